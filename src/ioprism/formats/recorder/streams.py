"""The calls of one rank: which signature, from when to when.

Recorder keeps the order of calls as a grammar: a rule is a list of symbols with repetitions, a
symbol is a call signature or another rule. A small damaged grammar can stand for more calls than
any memory holds, so lengths are computed first and bounded by the number of timestamps.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ioprism.formats.budget import Budget
from ioprism.formats.recorder.layout import (
    ALL_GRAMMARS,
    GRAMMAR,
    GRAMMAR_NUMBERS,
    TIMESTAMPS,
    Section,
    TraceLayout,
    blobs,
    inflate_blob,
    read_section,
)
from ioprism.model.trace import Warn

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
    data = read_section(Section(section.path, first, last))
    if not layout.packed_times:
        return data
    if len(data) < 16:
        return b""
    (size,) = struct.unpack_from("<Q", data)
    packed = memoryview(data)[16 : 16 + min(size, len(data))]
    return inflate_blob(packed, Budget(section.path))


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
    if not len(ticks):
        return 0.0
    starts = np.cumsum(ticks[:, 0], dtype=np.int64)
    return float((starts - ticks[:, 0] + ticks[:, 1]).max()) * resolution


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
        return Stream(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    try:
        order = unfold(rules, limit=len(ticks)).astype(np.int64)
    except DamagedGrammarError as error:
        warn(f"the grammar of rank {rank} is damaged: {error}; its calls are missing")
        return Stream(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
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
    finished: dict[int, None] = {}
    open_rules: dict[int, None] = {}
    waiting = [START]
    while waiting:
        rule = waiting[-1]
        if rule in finished:
            waiting.pop()
            continue
        if rule in open_rules:
            finished[rule] = None
            del open_rules[rule]
            waiting.pop()
            continue
        if rule not in rules:
            raise DamagedGrammarError(f"rule {rule} is missing")
        open_rules[rule] = None
        symbols = rules[rule][:, 0]
        needed = [s for s in np.unique(symbols[symbols < 0]).tolist() if s not in finished]
        if any(s in open_rules for s in needed):
            raise DamagedGrammarError("a rule contains itself")
        waiting += needed
    return list(finished)
