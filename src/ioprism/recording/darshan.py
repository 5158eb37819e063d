"""Darshan's runtime library: counters of every layer, and every read and write with DXT."""

from __future__ import annotations

import datetime
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ioprism.recording.command import Command
from ioprism.recording.process import Linkage, ask, read_linkage
from ioprism.recording.tracer import (
    IN_KERNEL,
    INHERITED,
    Start,
    hidden_stat,
    preload,
    preload_obstacle,
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
class Darshan:
    """A runtime library of Darshan."""

    library: str
    number: str
    linkage: Linkage
    log_variables: tuple[str, ...] = ()  # that it was built to take the log's folder from
    name: str = "darshan"

    @property
    def version(self) -> str:
        """Its name and version."""
        return f"Darshan {self.number}"

    @property
    def where(self) -> str:
        """The library that is preloaded."""
        return self.library

    def obstacle(self, command: Command) -> str | None:
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
        return preload_obstacle(command, "Darshan")

    def blind_spots(self, command: Command) -> tuple[str, ...]:
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

    def start(self, command: Command, folder: Path) -> Start:
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
        return preload(command, self.library, variables)


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
            made = Darshan(str(path), _version(folder), linkage, _log_variables(folder))
            libraries.setdefault(str(path.resolve()), made)
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
        yield from _libraries_below(
            Path(ask(["spack", "location", "-i", "darshan-runtime"]).strip())
        )
    if module_hint():
        shown = ask(
            ["bash", "-lc", f"module show {module_hint()!s} 2>&1".replace("module load ", "")]
        )
        for path in dict.fromkeys(re.findall(r"(/[^\s:\"']+)/(?:bin|lib|lib64)\b", shown)):
            yield from _libraries_below(Path(path))


def _libraries_below(root: Path) -> Iterator[Path]:
    yield root / "lib"
    yield root / "lib64"


def _version(folder: Path) -> str:
    try:
        text = (folder / "pkgconfig" / "darshan-runtime.pc").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return "of unknown version"
    match = re.search(r"^Version: *(\S+)", text, re.MULTILINE)
    return match[1] if match else "of unknown version"


def _log_variables(folder: Path) -> tuple[str, ...]:
    try:
        text = (folder.parent / "bin" / "darshan-config").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    match = re.search(r'^DARSHAN_LOG_ENV="([\w,]+)"', text, re.MULTILINE)
    return tuple(match[1].split(",")) if match else ()


def _mpi_libraries(linkage: Linkage) -> set[str]:
    return {name for name in linkage.needed if name.startswith(("libmpi", "libpmpi"))}
