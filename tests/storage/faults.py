"""What can happen while a command writes, and what became of the old data then.

`python -m tests.storage.faults` prints the whole table; mounting small file systems needs root.
"""

from __future__ import annotations

import errno
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.storage.writers import (
    WRITERS,
    Writer,
    command,
    content,
    prepare_inputs,
    prepare_old,
    run,
)

KILLED = """
import os, signal, sys
from ioprism.storage import atomic
from ioprism.write_time import run_store
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
atomic.sync = atomic._swap = killed
run_store.seal = killed
from ioprism.cli import main
main(sys.argv[1:])
"""
KILLS = 3  # of each writer in the table
MOMENTS = (0.3, 2.5)  # seconds after the start


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left after a fault."""

    intact: bool  # the old data are as they were
    leftovers: tuple[str, ...]  # beside them
    code: int
    said: str

    @property
    def messages(self) -> int:
        """How many messages there are; a hint is part of its message."""
        lines = [line for line in self.said.splitlines() if line.startswith(("Error", "Aborted"))]
        return len(lines)


def _failing(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def renames_fail(_: Path) -> Iterator[None]:
    """No name can be changed any more."""
    with (
        patch.object(Path, "rename", _failing),
        patch.object(Path, "replace", _failing),
        patch("ioprism.storage.atomic._swap", _failing),
        patch("ioprism.write_time.run_store.seal", _failing),  # where nothing is renamed
    ):
        yield


@contextmanager
def interrupted(_: Path) -> Iterator[None]:
    """Ctrl-C when all is written and nothing is in place."""
    with (
        patch("ioprism.storage.atomic.sync", _interrupted),
        patch("ioprism.write_time.run_store.seal", _interrupted),
    ):
        yield


@contextmanager
def disk_full(disk: Path) -> Iterator[None]:
    """Not a byte fits on the disk any more."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """The disk cannot be written to."""
    remount = ["mount", "-o", "remount,{}", str(disk)]
    subprocess.run([part.format("ro") for part in remount], check=True)
    try:
        yield
    finally:
        subprocess.run([part.format("rw") for part in remount], check=True)


Fault = Callable[[Path], AbstractContextManager[None]]
IN_PROCESS: dict[str, Fault] = {"rename fails": renames_fail, "Ctrl-C": interrupted}
ON_DISK: dict[str, Fault] = {"disk full": disk_full, "read-only": read_only}


def after_fault(writer: Writer, fault: Fault, inputs: Path, folder: Path) -> Outcome:
    """Prepare old data, let the fault happen to a command that would replace them, and look."""
    prepare_old(writer, inputs, folder)
    before, beside = content(folder / writer.target), names(folder)
    with fault(folder):
        code, said = run(command(writer, inputs, folder))
    left = tuple(sorted(names(folder) - beside))
    return Outcome(content(folder / writer.target) == before, left, code, said)


def after_kill(writer: Writer, inputs: Path, folder: Path) -> Outcome:
    """Kill a command that has written all and put nothing in place."""
    prepare_old(writer, inputs, folder)
    before = content(folder / writer.target)
    arguments = [sys.executable, "-c", KILLED, *command(writer, inputs, folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    intact = content_without_leftovers(folder / writer.target) == before
    code, said = run(command(writer, inputs, folder))  # the next one tidies up
    return Outcome(intact and not code, tuple(sorted(leftovers(folder))), code, said)


def after_random_kill(writer: Writer, moment: float, inputs: Path, folder: Path) -> Outcome:
    """Kill a command so many seconds after its start; a writer that adds may have added.

    What replaces leaves the old or the new, and the same command works again in either case.
    """
    prepare_old(writer, inputs, folder)
    before = content(folder / writer.target)
    arguments = [sys.executable, "-m", "ioprism", *command(writer, inputs, folder)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    process.kill()
    process.wait()
    now = content_without_leftovers(folder / writer.target)
    code, said = run(command(writer, inputs, folder))
    after = content_without_leftovers(folder / writer.target)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    mixed = len({now.get(name) == before.get(name) for name in changed}) > 1
    # A command that was done before it was killed may find nothing left to do.
    fine = code == 0 or "already" in said
    intact = fine and not (mixed and writer.force)
    return Outcome(intact, tuple(sorted(leftovers(folder))), code, said)


def names(folder: Path) -> set[str]:
    """Every file, but SQLite's working files and locks."""
    ignored = ("-wal", "-shm", "-journal", ".lock")
    every = (path for path in folder.rglob("*") if not path.is_dir() or path.suffix == ".new")
    return {str(path.relative_to(folder)) for path in every if not path.name.endswith(ignored)}


def leftovers(folder: Path) -> set[str]:
    """What a writer left beside its target."""
    return {name for name in names(folder) if name.endswith((".new", ".old"))}


def content_without_leftovers(place: Path) -> dict[str, bytes]:
    """Every file but those that a killed writer left."""
    return {
        name: data
        for name, data in content(place).items()
        if not any(part.endswith((".new", ".old")) for part in Path(name).parts)
    }


def main() -> None:
    """Print what becomes of old data: a row for every writer, a column for every fault."""
    faults = {**IN_PROCESS, **ON_DISK}
    with tempfile.TemporaryDirectory() as place:
        inputs = Path(place) / "inputs"
        inputs.mkdir()
        prepare_inputs(inputs)
        columns = (*faults, "SIGKILL", "SIGKILL at random")
        sys.stdout.write("| writer | " + " | ".join(columns) + " |\n")
        sys.stdout.write("|---" * (len(columns) + 1) + "|\n")
        for writer in WRITERS:
            cells = [_cell(writer, faults.get(name), inputs) for name in columns[:-1]]
            cells.append(_random_kills(writer, inputs))
            sys.stdout.write(f"| {writer.name} | " + " | ".join(cells) + " |\n")
            sys.stdout.flush()


def _random_kills(writer: Writer, inputs: Path) -> str:
    chance = random.Random(writer.name)
    kept = 0
    for _ in range(KILLS):
        with tempfile.TemporaryDirectory() as place:
            moment = chance.uniform(*MOMENTS)
            found = after_random_kill(writer, moment, inputs, Path(place))
            kept += found.intact and not found.leftovers
    return f"{kept} of {KILLS} intact"


def _cell(writer: Writer, fault: Fault | None, inputs: Path) -> str:
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place) / "out"
        folder.mkdir()
        if fault in ON_DISK.values():
            mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(folder)]
            subprocess.run(mount, check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
        if fault is None:
            found = after_kill(writer, inputs, folder)
            return f"old data {'intact' if found.intact else 'LOST'}, next run {found.code}"
        found = after_fault(writer, fault, inputs, folder)
        kept = "intact" if found.intact and not found.leftovers else "CHANGED"
        return f"{kept}, {found.messages} message, exit {found.code}"


if __name__ == "__main__":
    assert shutil.which("mount")
    main()
