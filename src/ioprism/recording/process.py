"""Programs: run one and see how it ends; read whether its file is linked dynamically."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ioprism.errors import RunFailedError
from ioprism.text import printable

QUICK = 30.0  # seconds for a tool that only has to answer


def call(command: Sequence[str], *, failure: str, timeout: float) -> str:
    """Return what the program printed.

    Raises:
        RunFailedError: it cannot be started, refuses, or takes longer than `timeout` seconds.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command lines
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that what it started ends with it
        )
    except OSError as error:
        reason = f"{command[0]} cannot be started ({error.strerror})"
        raise RunFailedError(f"{failure}: {reason}") from error
    try:
        output, complaint = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RunFailedError(f"{failure}: still running after {timeout:g} s") from None
    finally:
        _end(process)
    if process.returncode:
        raise RunFailedError(f"{failure}: {last_words(complaint or output)}")
    return output


def ask(command: Sequence[str]) -> str:
    """Return what a tool says, or nothing where it is missing, slow or unwilling."""
    try:
        return call(command, failure=command[0], timeout=QUICK)
    except RunFailedError:
        return ""


def last_words(complaint: str) -> str:
    """Return the last line of what a program said."""
    return printable(complaint.strip().rpartition("\n")[2])[-200:] or "no reason given"


def _end(process: subprocess.Popen[str]) -> None:
    """End the program and everything it started, if anything is left."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5.0)
            return


LOADED, DYNAMIC, INTERPRETER = 1, 2, 3  # types of segments
END, NEEDED, STRING_TABLE = 0, 1, 5  # tags of the dynamic segment
MPI_LIBRARIES = ("libmpi", "libpmpi", "libfmpi")  # MPICH and Open MPI, their profiling and Fortran


@dataclass(frozen=True, slots=True)
class Linkage:
    """What a program or library needs at run time."""

    static: bool  # no dynamic loader starts it
    needed: tuple[str, ...]  # shared libraries

    @property
    def uses_mpi(self) -> bool:
        """Whether an MPI library is linked directly."""
        return any(name.startswith(MPI_LIBRARIES) for name in self.needed)


def read_linkage(path: Path) -> Linkage | None:
    """Return how an ELF file is linked; None for scripts and everything else."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return _linkage(content) if content[:4] == b"\x7fELF" else None
    except (OSError, ValueError, IndexError, struct.error):  # no file, empty, or damaged
        return None


def _linkage(content: mmap.mmap) -> Linkage:
    """Follow the program headers to the interpreter and to the list of libraries."""
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    (table,) = (
        struct.unpack_from(f"{order}Q", content, 32)
        if wide
        else struct.unpack_from(f"{order}I", content, 28)
    )
    size, count = struct.unpack_from(f"{order}HH", content, 54 if wide else 42)
    segments = [_segment(content, table + n * size, order, wide=wide) for n in range(count)]
    static = all(kind != INTERPRETER for kind, *_ in segments)
    entries: list[tuple[int, int]] = []
    for kind, offset, _, length in segments:
        if kind == DYNAMIC:
            form = struct.Struct(order + ("qQ" if wide else "iI"))
            entries = [
                *form.iter_unpack(content[offset : offset + length // form.size * form.size])
            ]
    by_tag = dict(reversed(entries))
    strings = next(
        (
            by_tag[STRING_TABLE] - address + offset
            for kind, offset, address, length in segments
            if kind == LOADED and address <= by_tag.get(STRING_TABLE, -1) < address + length
        ),
        0,
    )
    return Linkage(
        static, tuple(_text(content, strings + at) for tag, at in entries if tag == NEEDED)
    )


def _segment(content: mmap.mmap, at: int, order: str, *, wide: bool) -> tuple[int, int, int, int]:
    """Return type, place in the file, address in memory and length."""
    if wide:
        kind, _, offset, address, _, length = struct.unpack_from(f"{order}IIQQQQ", content, at)
    else:
        kind, offset, address, _, length = struct.unpack_from(f"{order}IIIII", content, at)
    return kind, offset, address, length


def _text(content: mmap.mmap, at: int) -> str:
    return content[at : content.find(b"\0", at)].decode("utf-8", "replace")
