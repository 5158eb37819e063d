"""What can record here: tracers, MPI, permissions and limits, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ioprism.recording.choice import INSTALL, find_tracers
from ioprism.recording.darshan import Darshan, module_hint
from ioprism.recording.process import ask
from ioprism.recording.tracer import STAT_IS_A_SYMBOL, Strace, glibc_version, ptrace_works

Status = Literal["ok", "missing", "no"]
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
ONLY_ROOT = 2  # the smallest scope that forbids tracing a child
LAUNCHERS = ("mpirun", "mpiexec", "srun", "jsrun", "flux")
STRIPING = "lfs"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that recording may need."""

    what: str
    status: Status  # no: it is there but cannot be used
    found: str
    hint: str = ""


def check_machine(folder: Path) -> tuple[Check, ...]:
    """Return what can be used to record here.

    Args:
        folder: where traces would be written.
    """
    return tuple(_checks(folder))


def _checks(folder: Path) -> Iterator[Check]:
    yield from _darshan()
    for name in ("dftracer", "strace"):
        tracers = find_tracers(name)
        if not tracers:
            yield Check(name, "missing", "not installed", INSTALL[name])
        for tracer in tracers:
            yield Check(name, "ok", f"{tracer.version}, {tracer.where}")
            if isinstance(tracer, Strace):
                yield _ptrace(tracer)
    yield from _launchers()
    yield _c_library()
    yield _kernel()
    if find_spec("mpi4py") is not None:
        yield Check("mpi4py", "ok", "Python programs can use MPI")
    if shutil.which(STRIPING):
        yield Check("lfs", "ok", "striping of Lustre folders can be read and set")
    yield _folder(folder)


def _darshan() -> Iterator[Check]:
    libraries = [tracer for tracer in find_tracers("darshan") if isinstance(tracer, Darshan)]
    if not libraries:
        hint = module_hint()
        yield Check("darshan", "missing", "libdarshan.so was not found", hint or INSTALL["darshan"])
    for library in libraries:
        kind = next((n for n in library.linkage.needed if n.startswith("libmpi")), "no MPI")
        yield Check("darshan", "ok", f"{library.version} for {kind}, {library.where}")


def _ptrace(strace: Strace) -> Check:
    scope = _text(SCOPE)
    detail = f"ptrace_scope is {scope}" if scope else "the kernel has no ptrace_scope"
    if ptrace_works(strace.path):
        return Check("ptrace", "ok", f"a program can be traced ({detail})")
    hint = "start the container with --cap-add=SYS_PTRACE"
    if scope.isdigit() and int(scope) >= ONLY_ROOT:
        hint = "ask the administrator to set kernel.yama.ptrace_scope to 1"
    return Check("ptrace", "no", f"tracing is not permitted ({detail})", hint)


def _launchers() -> Iterator[Check]:
    installed = [(name, path) for name in LAUNCHERS if (path := shutil.which(name))]
    if not installed:
        yield Check("MPI", "missing", "no launcher in PATH", "module load openmpi, or mpich")
    for name, path in installed:
        lines = ask([path, "--version"]).strip().split("\n")
        version = " ".join(" ".join(lines[:2]).split())
        yield Check(name, "ok", f"{path}: {version or 'says no version'}")


def _c_library() -> Check:
    version = glibc_version()
    if version == (0, 0):
        return Check("C library", "ok", f"not glibc ({' '.join(platform.libc_ver()) or 'unknown'})")
    hidden = version >= STAT_IS_A_SYMBOL
    library = f"glibc {version[0]}.{version[1]}"
    hint = "Darshan and DFTracer cannot see stat here; use --tracer strace to see it"
    return Check("C library", "ok", library, hint if hidden else "")


def _kernel() -> Check:
    release = os.uname().release
    uring = _text(Path("/proc/sys/kernel/io_uring_disabled"))
    hint = "" if uring == "2" else "requests through io_uring are invisible to all tracers"
    return Check("kernel", "ok", f"Linux {release}", hint)


def _folder(folder: Path) -> Check:
    place = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        return Check("output", "no", f"{place} cannot be written to", "choose another with -o DIR")
    return Check("output", "ok", f"{place} has {free / 1e9:,.1f} GB free")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""
