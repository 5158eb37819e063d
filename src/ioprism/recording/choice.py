"""Darshan's runtime library: counters of every layer, and every read and write with DXT."""

from __future__ import annotations

import datetime
import os
import platform
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ioprism.errors import UsageError
from ioprism.recording.command import CommandLine, Linkage, ask, read_linkage
from ioprism.recording.schedulers import SCHEDULERS
from ioprism.recording.tracer import (
    IN_KERNEL,
    INHERITED,
    STAT_IS_A_SYMBOL,
    Start,
    Strace,
    Tracer,
    find_dftracer,
    find_strace,
    glibc_version,
    hidden_stat,
    preload,
    ptrace_works,
)

LIBRARY = "libdarshan.so"
# MiB for a process. Darshan's defaults are 4 and 1, and drop records of programs with many files.
RECORD_MEMORY, NAME_MEMORY = "64", "8"
ROOTS = ("DARSHAN_RUNTIME_DIR", "DARSHAN_RUNTIME_ROOT", "DARSHAN_ROOT", "DARSHAN_DIR",
         "DARSHAN_HOME", "EBROOTDARSHANMINRUNTIME")  # fmt: skip
SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu",
          "/usr/lib/aarch64-linux-gnu", "/opt/darshan/lib")  # fmt: skip
MODULES = ("darshan-runtime", "darshan")
EXCLUDED = "/etc, /dev, /usr, /bin, /boot, /lib, /opt, /sbin, /sys, /proc and /var"


@dataclass(frozen=True, slots=True)
class Darshan(Tracer):
    """A runtime library of Darshan."""

    name = "darshan"

    linkage: Linkage
    log_variables: tuple[str, ...] = ()  # that it was built to take the log's folder from

    def obstacle(self, command: CommandLine) -> str | None:
        """Return why it cannot record this command, or None."""
        program = command.program
        if program.mpi and not self.linkage.uses_mpi:
            return "this Darshan was built without MPI, and the program uses MPI"
        if program.mpi and program.linkage is not None and program.linkage.uses_mpi:
            ours, theirs = _mpi_libraries(self.linkage), _mpi_libraries(program.linkage)
            if not ours & theirs:
                return (
                    f"this Darshan was built for {', '.join(sorted(ours))}, and the program uses "
                    f"{', '.join(sorted(theirs))}"
                )
        return Tracer.obstacle(self, command)

    def blind_spots(self, command: CommandLine) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        processes = (
            "programs that are killed (the log is written when MPI_Finalize is called)"
            if command.program.mpi
            else "processes that are killed, such as the workers of Python's multiprocessing"
        )
        return (
            processes,
            "when single files are opened and closed (only how often and how long)",
            *hidden_stat(),
            "unlink, mkdir and readdir",
            INHERITED,
            IN_KERNEL,
            "accesses to mapped files (mmap)",
            f"files below {EXCLUDED}",
        )

    def start(self, command: CommandLine, folder: Path) -> Start:
        """Return how to run the command so that logs go to the folder."""
        variables = {
            "DXT_ENABLE_IO_TRACE": "1",
            "DARSHAN_MODMEM": RECORD_MEMORY,
            "DARSHAN_NAMEMEM": NAME_MEMORY,
            "DARSHAN_MMAP_LOGPATH": str(folder),
        }
        if command.program.mpi:  # all ranks write one log
            variables["DARSHAN_LOGFILE"] = str(folder / f"{command.program.name}.darshan")
        else:
            _make_day_folders(folder)
            names = (*self.log_variables[:1], "DARSHAN_LOGPATH")
            variables |= {"DARSHAN_ENABLE_NONMPI": "1", **dict.fromkeys(names, str(folder))}
        return preload(command, self.where, variables)


def _make_day_folders(folder: Path) -> None:
    """Make the folders YEAR/MONTH/DAY that some builds of Darshan write to, also for tomorrow."""
    today = datetime.datetime.now().astimezone()
    for day in (today, today + datetime.timedelta(days=1)):
        (folder / f"{day.year}/{day.month}/{day.day}").mkdir(parents=True, exist_ok=True)


def find_darshan() -> list[Darshan]:
    """Return the runtime libraries that can be found, the most likely first."""
    libraries: dict[str, Darshan] = {}
    for folder in _folders():
        path = folder / LIBRARY
        if path.is_file() and (linkage := read_linkage(path)) is not None:
            described = folder / "pkgconfig" / "darshan-runtime.pc"
            version = _search(described, r"^Version: *(\S+)") or "of unknown version"
            config = folder.parent / "bin" / "darshan-config"
            names = _search(config, r'^DARSHAN_LOG_ENV="([\w,]+)"').split(",")
            variables = tuple(filter(None, names))
            library = Darshan(f"Darshan {version}", str(path), linkage, variables)
            libraries.setdefault(str(path.resolve()), library)
    return list(libraries.values())


def module_hint() -> str | None:
    """Return how to load Darshan where an environment module has it."""
    folders = [Path(path) for path in os.environ.get("MODULEPATH", "").split(":") if path]
    for name in MODULES:
        if any((folder / name).exists() for folder in folders):
            return f"module load {name}"
    return None


def _folders() -> Iterator[Path]:
    """Yield folders that may hold the library; asking Spack and modules is slow and comes last."""
    for path in os.environ.get("LD_PRELOAD", "").split(":"):
        if Path(path).name == LIBRARY:
            yield Path(path).parent
    if config := shutil.which("darshan-config"):
        yield from _libraries_below(Path(config).resolve().parent.parent)
    for name in ROOTS:
        if os.environ.get(name):
            yield from _libraries_below(Path(os.environ[name]))
    yield from (Path(path) for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path)
    yield from map(Path, SYSTEM)
    if shutil.which("spack"):
        spack = ask(["spack", "location", "-i", "darshan-runtime"]).strip()
        yield from _libraries_below(Path(spack))
    if hint := module_hint():
        shown = ask(["bash", "-lc", f"module show {hint.removeprefix('module load ')} 2>&1"])
        for path in dict.fromkeys(re.findall(r"(/[^\s:\"']+)/(?:bin|lib|lib64)\b", shown)):
            yield from _libraries_below(Path(path))


def _libraries_below(root: Path) -> Iterator[Path]:
    yield root / "lib"
    yield root / "lib64"


def _search(path: Path, pattern: str) -> str:
    match = re.search(pattern, _text(path), re.MULTILINE)
    return match[1] if match else ""


def _mpi_libraries(linkage: Linkage) -> set[str]:
    return {name for name in linkage.needed if name.startswith(("libmpi", "libpmpi"))}


INSTALL: Mapping[str, str] = {
    "darshan": "`module load darshan`, `spack install darshan-runtime`, or set LD_LIBRARY_PATH to "
    "the folder of libdarshan.so",
    "dftracer": "pip install 'ioprism[record]'",
    "strace": "apt install strace, dnf install strace, or `module load strace`",
}
TRACERS = tuple(INSTALL)
NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True)
class Choice:
    """The tracer of a recording."""

    tracer: Tracer
    reason: str


def choose_tracer(command: CommandLine, name: str = "auto") -> Choice:
    """Return the tracer for a command.

    Raises:
        UsageError: it is not installed, or does not fit; the message says how to get one.
    """
    wanted = _preference(command) if name == "auto" else (name,)
    problems: dict[str, str] = {}
    for kind in wanted:
        for tracer in FIND[kind]():
            problem = tracer.obstacle(command)
            if problem is None:
                why = _reason(kind, command) if name == "auto" else "chosen with --tracer"
                passed_over = (f"; {name}: {problem}" for name, problem in problems.items())
                return Choice(tracer, why + "".join(passed_over))
            problems.setdefault(kind, problem)
        problems.setdefault(kind, NOT_INSTALLED)
    if name == "auto":
        listed = "; ".join(f"{kind}: {problem}" for kind, problem in problems.items())
        raise UsageError(f"no tracer can record this command ({listed}).\nHint: {_hint('strace')}")
    problem = problems[name]
    hint = _hint(name) if problem == NOT_INSTALLED else "use --tracer auto."
    raise UsageError(f"{name} cannot record this command: {problem}.\nHint: {hint}")


def _hint(name: str) -> str:
    install = (module_hint() if name == "darshan" else None) or INSTALL[name]
    return f"to get it: {install}; `ioprism record --check` lists what is there."


def _preference(command: CommandLine) -> tuple[str, ...]:
    if command.program.static:
        return ("strace",)
    first = ("darshan", "dftracer") if command.program.mpi else ("dftracer", "darshan")
    return (*first, "strace")


def _reason(name: str, command: CommandLine) -> str:
    if command.program.static:
        return "the program is statically linked, and only strace sees its calls"
    if name == "darshan" and command.program.mpi:
        return "it records MPI-IO and the calls below it at low cost"
    return {
        "darshan": "it records reads and writes at low cost",
        "dftracer": "it records every call, also of child processes, at low cost",
        "strace": "it records every system call of any program",
    }[name]


FIND: Mapping[str, Callable[[], Sequence[Tracer]]] = {
    "darshan": find_darshan,
    "dftracer": lambda: [tracer for tracer in (find_dftracer(),) if tracer is not None],
    "strace": lambda: [tracer for tracer in (find_strace(),) if tracer is not None],
}


def job_script(scheduler: str, words: Sequence[str], choice: Choice, *, repeat: int) -> str:
    """Return a script that records the command in a job, into a folder named after the job."""
    batch, tracer = SCHEDULERS[scheduler], choice.tracer
    times = f" --repeat {repeat}" if repeat > 1 else ""
    lines = [
        "#!/bin/bash",
        *batch.header("record", nodes=1, minutes=30),  # users change the numbers
        "",
        f"# Submit with: {batch.submit} FILE",
        f"# Recorded with {tracer.version} ({choice.reason}).",
        *(['cd "$PBS_O_WORKDIR"'] if scheduler == "pbs" else []),
        f'ioprism record -o "record-${batch.job_variable}" --tracer {tracer.name}{times} -- \\',
        f"    {shlex.join(words)}",
    ]
    return "\n".join(lines) + "\n"


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


def check_machine(folder: Path) -> Iterator[Check]:
    """Yield what can be used to record here, with traces in this folder."""
    yield from _darshan()
    for name in ("dftracer", "strace"):
        tracers = FIND[name]()
        if not tracers:
            yield Check(name, "missing", NOT_INSTALLED, INSTALL[name])
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
    libraries = find_darshan()
    if not libraries:
        hint = module_hint()
        yield Check("darshan", "missing", "libdarshan.so was not found", hint or INSTALL["darshan"])
    for library in libraries:
        kind = next((n for n in library.linkage.needed if n.startswith("libmpi")), "no MPI")
        yield Check("darshan", "ok", f"{library.version} for {kind}, {library.where}")


def _ptrace(strace: Strace) -> Check:
    scope = _text(SCOPE)
    detail = f"ptrace_scope is {scope}" if scope else "the kernel has no ptrace_scope"
    if ptrace_works(strace.where):
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
    """Return the content of a file, or nothing where it cannot be read."""
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
