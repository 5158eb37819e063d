"""How a program was linked: tracers that are preloaded cannot see into static programs."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

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
