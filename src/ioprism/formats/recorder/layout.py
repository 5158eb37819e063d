"""Which generation of Recorder wrote a folder, and what its header says.

The files present and the header's own bytes tell, not VERSION: two different layouts both
call themselves 2.5.0.

- A (2.0 to 2.2): records with back references in `N.itf`, names of files in `N.mt`.
- B (2.3, 2.4 and the pilgrim branch): `N.cst`, `N.cfg`, `N.ts`, not compressed.
- C (gotcha, 3.0 and later): zlib blobs in `recorder.cst`, `ug.cfg`, `recorder.ts`.
- D (newest): as C, with the version inside the header, or all sections in `recorder.dat`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isal import isal_zlib

from ioprism.errors import BrokenTraceError
from ioprism.formats.budget import Budget
from ioprism.formats.text import UNREADABLE
from ioprism.text import open_plain

MOST_RANKS = 10_000_000
BYTES_OF_RANK = 8  # at least: its entry in the table of timestamps, or its own files
HEADER = 2**20  # bytes of the header file that are looked at
SINGLE_FILE = "recorder.dat"
MAGIC = b"RECORDER"
MOST_SECTIONS = 1_000_000
METADATA, TIMESTAMPS, ALL_SIGNATURES, ALL_GRAMMARS, GRAMMAR_NUMBERS, SIGNATURES, GRAMMAR = range(7)


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a file; `stop` None is its end."""

    path: Path
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class TraceLayout:
    """How to read one folder."""

    folder: Path
    generation: str  # A, B, C, D
    ranks: int
    start: float  # seconds since 1970; 0 where each rank has its own
    resolution: float  # seconds a clock tick
    functions: tuple[str, ...]
    wide_functions: bool = False  # function numbers have four bytes, not one
    packed_times: bool = False
    shared: bool = False  # one table of signatures for all ranks
    relative_offsets: bool = False  # offsets are relative to a function's first one
    sections: dict[tuple[int, int], Section] = field(default_factory=dict)

    def section(self, kind: int, rank: int = -1) -> Section:
        """Where some data lie, in this generation's files."""
        if self.sections:
            section = self.sections.get((kind, rank))
            if section is None:
                raise OSError(f"it has no section {kind} of rank {rank}")
            return section
        return Section(self.folder / self._file(kind, rank))

    def _file(self, kind: int, rank: int) -> str:
        if kind == ALL_SIGNATURES:
            return "0.cst" if self.generation == "B" else "recorder.cst"
        if kind == TIMESTAMPS:
            return f"{rank}.ts" if self.generation == "B" else "recorder.ts"
        return {ALL_GRAMMARS: "ug.cfg", GRAMMAR_NUMBERS: "ug.mt"}.get(
            kind, f"{rank}.cst" if kind == SIGNATURES else f"{rank}.cfg"
        )


def is_recorder(folder: Path) -> bool:
    """Whether a folder has the files of a Recorder trace."""
    if (folder / SINGLE_FILE).is_file():
        with open_plain(folder / SINGLE_FILE) as file:
            return file.read(8) == MAGIC
    header = folder / "recorder.mt"
    beside = ("0.itf", "0.cst", "recorder.cst")
    return header.is_file() and any((folder / name).is_file() for name in beside)


def read_layout(folder: Path) -> TraceLayout:
    """Read the header.

    Raises:
        BrokenTraceError: the header makes no sense.
    """
    try:
        layout = _read(folder)
    except (struct.error, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise broken(folder, f"its header cannot be read ({error})") from error
    if not 0 < layout.ranks <= MOST_RANKS or not 0 < layout.resolution < 1:
        raise broken(
            folder,
            f"its header names {layout.ranks} ranks and a resolution of {layout.resolution} s",
        )
    if layout.ranks > _bytes_of(folder) // BYTES_OF_RANK:
        raise broken(folder, f"its header names {layout.ranks} ranks, but its files hold fewer")
    return layout


def _bytes_of(folder: Path) -> int:
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


def _read(folder: Path) -> TraceLayout:
    if (folder / SINGLE_FILE).is_file():
        sections = _sections(folder / SINGLE_FILE)
        if (METADATA, -1) not in sections:
            raise ValueError("no metadata section")
        return _newest(folder, _bytes(sections[METADATA, -1]), sections)
    header = _bytes(Section(folder / "recorder.mt"))
    if (folder / "0.itf").is_file():
        resolution, ranks = struct.unpack_from("<di", header)
        return TraceLayout(folder, "A", ranks, 0.0, resolution, _names(header, 24))
    if (folder / "0.cst").is_file() and (folder / "0.ts").is_file():
        return _second(folder, header)
    if _is_name(header[40:44]) or _is_name(header[1024:1028]):
        return _third(folder, header)
    return _newest(folder, header, {})


def _second(folder: Path, header: bytes) -> TraceLayout:
    ranks, start, resolution = struct.unpack_from("<i4xdd", header)
    at = 40 if _is_name(header[40:44]) else 32
    shared = at == 40 and bool(struct.unpack_from("<i", header, 32)[0])
    return TraceLayout(folder, "B", ranks, start, resolution, _names(header, at), shared=shared)


def _third(folder: Path, header: bytes) -> TraceLayout:
    early = _is_name(header[40:44])
    ranks, start, resolution, _ = struct.unpack_from("<i12xddi", header)
    packed, shared, _, relative = struct.unpack_from("<4?", header, 36)
    return TraceLayout(
        folder, "C", ranks, start, resolution, _names(header, 40 if early else 1024),
        wide_functions=not early, packed_times=packed, shared=shared, relative_offsets=relative,
    )  # fmt: skip


def _newest(folder: Path, header: bytes, sections: dict[tuple[int, int], Section]) -> TraceLayout:
    _, _, _, ranks, count = struct.unpack_from("<5i", header)
    start, resolution, _ = struct.unpack_from("<ddi", header, 32)
    packed, shared, _, relative = struct.unpack_from("<4?", header, 52)
    if not 0 < count <= len(header) // 64:
        raise ValueError(f"{count} functions")
    names = [header[56 + 64 * n : 120 + 64 * n].split(b"\0")[0] for n in range(count)]
    functions = tuple(name.decode("ascii", "backslashreplace") for name in names)
    return TraceLayout(
        folder, "D", ranks, start, resolution, functions, wide_functions=True,
        packed_times=packed, shared=shared, relative_offsets=relative, sections=sections,
    )  # fmt: skip


def _sections(path: Path) -> dict[tuple[int, int], Section]:
    size = path.stat().st_size
    with open_plain(path) as file:
        _, _, count = struct.unpack("<8sII", file.read(16))
        if count > MOST_SECTIONS:
            raise ValueError(f"{count} sections")
        table = file.read(24 * count)
    entries = struct.iter_unpack("<IiQQ", table[: len(table) // 24 * 24])
    return {
        (kind, rank): Section(path, start, min(start + length, size))
        for kind, rank, start, length in entries
        if start <= size
    }


def _bytes(section: Section) -> bytes:
    with open_plain(section.path) as file:
        file.seek(section.start)
        return file.read(HEADER)


def _is_name(text: bytes) -> bool:
    return len(text) > 2 and text.isalnum() and text[:1].isalpha()


def _names(header: bytes, at: int) -> tuple[str, ...]:
    return tuple(header[at:].decode("ascii", "backslashreplace").split("\n")[:-1])


def broken(folder: Path, why: str) -> BrokenTraceError:
    """Return the error for a trace of which nothing can be read."""
    return BrokenTraceError(
        f"the Recorder trace is damaged: {why}.\n"
        "Hint: check that the folder was copied completely.",
        source=folder,
    )


LARGEST = 2**30  # bytes of one read
WINDOW = 2**20
COPIES_HELD = 4  # of a blob: as bytes, as numbers, and what is computed of them


def read_section(section: Section) -> bytes:
    """Return a section's bytes."""
    with open_plain(section.path) as file:
        end = file.seek(0, os.SEEK_END)
        stop = end if section.stop is None else min(end, section.stop)
        file.seek(min(end, section.start))
        return file.read(max(0, min(LARGEST, stop - section.start)))


def blobs(section: Section) -> Iterator[bytes]:
    """Inflate consecutive blobs: size, inflate_blob size, zlib stream; a damaged one ends early.

    Raises:
        OverBudgetError: together they hold more than a file of this size can.
    """
    data, budget = read_section(section), Budget(section.path)
    at = 0
    while at + 16 <= len(data):
        size, _ = struct.unpack_from("<QQ", data, at)
        packed = memoryview(data)[at + 16 : at + 16 + min(size, len(data))]
        yield inflate_blob(packed, budget)
        at += 16 + size


def inflate_blob(packed: memoryview, budget: Budget) -> bytes:
    """Inflate what can be inflate_blob."""
    inflate = isal_zlib.decompressobj()
    pieces: list[bytes] = []
    rest: bytes | memoryview = packed
    while len(rest) and not inflate.eof:
        try:
            piece = inflate.decompress(rest, WINDOW)
        except UNREADABLE:
            break
        budget.take(COPIES_HELD * len(piece), "a blob of the trace")
        pieces.append(piece)
        rest = inflate.unconsumed_tail
    return b"".join(pieces)
