"""Where a Recorder folder keeps what, in every version, and the calls of one rank in it.

The files present and the header's own bytes tell, not VERSION: two different layouts both
call themselves 2.5.0.

- A (2.0 to 2.2): records with back references in `N.itf`, names of files in `N.mt`.
- B (2.3, 2.4 and the pilgrim branch): `N.cst`, `N.cfg`, `N.ts`, not compressed.
- C (gotcha, 3.0 and later): zlib blobs in `recorder.cst`, `ug.cfg`, `recorder.ts`.
- D (newest): as C, with the version inside the header, or all sections in `recorder.dat`.

Recorder keeps the order of calls as a grammar: a rule is a list of symbols with repetitions, a
symbol is a call signature or another rule. A small damaged grammar can stand for more calls than
any memory holds, so lengths are computed first and bounded by the number of timestamps.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from ioprism.errors import BrokenTraceError
from ioprism.formats.reading import Budget
from ioprism.formats.text import UNREADABLE
from ioprism.model.trace import Warn
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
    with os.scandir(folder) as entries:
        size = sum(entry.stat().st_size for entry in entries if entry.is_file())
    if layout.ranks > size // BYTES_OF_RANK:
        raise broken(folder, f"its header names {layout.ranks} ranks, but its files hold fewer")
    return layout


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
    """Return a section's bytes.

    Raises:
        OverBudgetError: most of the file is a hole, which takes no room on the disk.
    """
    with open_plain(section.path) as file:
        end = file.seek(0, os.SEEK_END)
        stop = end if section.stop is None else min(end, section.stop)
        file.seek(min(end, section.start))
        size = max(0, min(LARGEST, stop - section.start))
        Budget(section.path).take(size, "a section")
        return file.read(size)


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


Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Calls in the order in which they began."""

    signatures: Integers
    start: Floats  # seconds
    end: Floats

    def __len__(self) -> int:
        return len(self.signatures)


NO_CALLS = Stream(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class Grammars:
    """The grammar of every rank; ranks may share one."""

    number_of: Integers  # grammar by rank
    rules: dict[int, dict[int, Numbers]]  # by grammar


def read_grammars(layout: TraceLayout, warn: Warn) -> Grammars:
    """Read the grammars of all ranks; those of damaged ranks are missing."""
    if not layout.shared:
        grammars = {rank: _rank_grammar(layout, rank) for rank in range(layout.ranks)}
        every = np.arange(layout.ranks)
    else:
        section = read_section(layout.section(GRAMMAR_NUMBERS))
        numbers = np.frombuffer(section, "<i4", len(section) // 4)
        every = np.full(layout.ranks, -1)
        known = numbers[: min(layout.ranks, max(0, len(numbers) - 1))]
        every[: len(known)] = known
        grammars = dict(enumerate(_shared_grammars(layout, every)))
    rules = {}
    for number, data in grammars.items():
        try:
            rules[number] = read_rules(data)
        except DamagedGrammarError as error:
            warn(f"grammar {number} is damaged: {error}; the calls of its ranks are missing")
    return Grammars(every, rules)


def _rank_grammar(layout: TraceLayout, rank: int) -> bytes:
    try:
        section = layout.section(GRAMMAR, rank)
        return read_section(section) if layout.generation == "B" else next(blobs(section), b"")
    except OSError:
        return b""


def _shared_grammars(layout: TraceLayout, numbers: Integers) -> list[bytes]:
    if layout.generation == "B":
        return [
            _rank_grammar(layout, number)
            for number in range(min(len(numbers), int(numbers.max()) + 1))
        ]
    return list(blobs(layout.section(ALL_GRAMMARS)))


def read_ticks(layout: TraceLayout, rank: int) -> npt.NDArray[np.uint32]:
    """Return a rank's pairs of start and end, each since the start of the call before."""
    section = layout.section(TIMESTAMPS, rank if layout.generation == "B" else -1)
    if layout.generation == "B":
        data = read_section(section)
    else:
        data = _packed_ticks(layout, section, rank)
    return np.frombuffer(data, "<u4", len(data) // 8 * 2).reshape(-1, 2)


def _packed_ticks(layout: TraceLayout, section: Section, rank: int) -> bytes:
    ends = _tick_ends(section, layout.ranks, section.path.stat().st_mtime_ns)
    if rank + 1 >= len(ends) or ends[rank] == ends[rank + 1]:
        return b""
    begin = section.start + 8 * layout.ranks
    first, last = begin + int(ends[rank]), begin + int(ends[rank + 1])
    own = Section(section.path, first, last)
    return next(blobs(own), b"") if layout.packed_times else read_section(own)


@lru_cache(maxsize=4)
def _tick_ends(section: Section, ranks: int, changed: int) -> npt.NDArray[np.uint64]:  # noqa: ARG001
    """Where each rank's ticks end behind the table of sizes; read once for all ranks.

    Args:
        section: the ticks of all ranks.
        ranks: how many there are.
        changed: when the file was, which tells its versions apart.
    """
    told = read_section(Section(section.path, section.start, section.start + 8 * ranks))
    sizes = np.frombuffer(told, "<u8", len(told) // 8)
    whole = np.uint64(section.path.stat().st_size)
    return np.concatenate(([np.uint64(0)], np.cumsum(np.minimum(sizes, whole))))


def last_end(ticks: npt.NDArray[np.uint32], resolution: float) -> float:
    """Return when the last of a rank's calls returned, in seconds."""
    begun, last = 0, 0
    for first in range(0, len(ticks), TICKS_PER_STEP):
        some = ticks[first : first + TICKS_PER_STEP].astype(np.int64)
        starts = begun + np.cumsum(some[:, 0])
        begun, last = int(starts[-1]), max(last, int((starts - some[:, 0] + some[:, 1]).max()))
    return last * resolution


def read_stream(layout: TraceLayout, grammars: Grammars, rank: int, warn: Warn) -> Stream:
    """Return a rank's calls with their times.

    Every pair of ticks counts from the start of the call before it, through nested rules too,
    so that the starts are running sums.
    """
    ticks = read_ticks(layout, rank)
    rules = grammars.rules.get(int(grammars.number_of[rank]))
    if rules is None or not len(ticks):
        called = rules is None or len(rules.get(START, ())) > 0
        if called and (rules is not None or len(ticks)):
            lost = "order" if rules is None else "times"
            warn(f"the {lost} of the calls of rank {rank} cannot be read; they are missing")
        return NO_CALLS
    try:
        order = unfold(rules, limit=len(ticks)).astype(np.int64)
    except DamagedGrammarError as error:
        warn(f"the grammar of rank {rank} is damaged: {error}; its calls are missing")
        return NO_CALLS
    if len(ticks) > len(order):
        warn(
            f"rank {rank} has {len(ticks)} timestamps for {len(order)} calls: its times are damaged"
        )
    ticks = ticks[: len(order)].astype(np.int64)
    starts = np.cumsum(ticks[:, 0])
    ends = starts - ticks[:, 0] + ticks[:, 1]
    seconds = np.float64(layout.resolution)
    return Stream(order, np.asarray(starts * seconds), np.asarray(ends * seconds))


START = -1
TICKS_PER_STEP = 2**20  # that memory holds twice
Numbers = npt.NDArray[np.int32]


class DamagedGrammarError(ValueError):
    """The grammar refers to rules that do not exist, to itself, or to too many calls."""


def read_rules(data: bytes) -> dict[int, Numbers]:
    """Return symbol and repetition pairs by rule."""
    numbers = np.frombuffer(data, "<i4", len(data) // 4)
    if not len(numbers):
        raise DamagedGrammarError("it is empty")
    rules: dict[int, Numbers] = {}
    at = 1
    for _ in range(int(numbers[0])):
        if at + 2 > len(numbers):
            raise DamagedGrammarError("a rule is cut off")
        rule, symbols = int(numbers[at]), int(numbers[at + 1])
        at += 2
        if symbols < 0 or at + 2 * symbols > len(numbers):
            raise DamagedGrammarError("a rule is cut off")
        if rule in rules:
            raise DamagedGrammarError("a rule is defined twice")
        rules[rule] = numbers[at : at + 2 * symbols].reshape(-1, 2)
        at += 2 * symbols
    return rules


def unfold(rules: dict[int, Numbers], *, limit: int) -> Numbers:
    """Return the signatures' numbers in the order of the calls; at most `limit` of them.

    Raises:
        DamagedGrammarError: the grammar makes no sense, or stands for more calls.
    """
    order = _order(rules)
    lengths: dict[int, int] = {}
    for rule in order:
        body = rules[rule]
        counts = body[:, 1].astype(object).clip(min=0)
        sizes = [1 if s >= 0 else lengths[s] for s in body[:, 0].tolist()]
        lengths[rule] = sum(int(c) * size for c, size in zip(counts, sizes, strict=True))
        if lengths[rule] > limit:
            raise DamagedGrammarError(f"it expands to more than the {limit} calls that have times")
    if sum(lengths.values()) > 16 * limit + 2**20:
        raise DamagedGrammarError("its rules repeat each other too often")
    unfolded: dict[int, Numbers] = {}
    for rule in order:
        unfolded[rule] = _body(rules[rule], unfolded)
    return unfolded[START]


def _body(body: Numbers, unfolded: dict[int, Numbers]) -> Numbers:
    symbols, counts = body[:, 0], body[:, 1].clip(min=0)
    parts = []
    done = 0
    for place in np.flatnonzero(symbols < 0).tolist():
        parts.append(np.repeat(symbols[done:place], counts[done:place]))
        parts.append(np.tile(unfolded[int(symbols[place])], int(counts[place])))
        done = place + 1
    parts.append(np.repeat(symbols[done:], counts[done:]))
    return np.concatenate(parts)


def _order(rules: dict[int, Numbers]) -> list[int]:
    """The rules that the start rule needs, each after those it is made of."""
    needs: dict[int, list[int]] = {}
    waiting = [START]
    while waiting:
        rule = waiting.pop()
        if rule in needs:
            continue
        if rule not in rules:
            raise DamagedGrammarError(f"rule {rule} is missing")
        symbols = rules[rule][:, 0]
        needs[rule] = np.unique(symbols[symbols < 0]).tolist()
        waiting += needs[rule]
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError:
        raise DamagedGrammarError("a rule contains itself") from None
