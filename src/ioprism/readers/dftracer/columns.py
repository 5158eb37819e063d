"""Turn a piece of DFTracer text into columns: the fast path, and a JSON parser for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.readers.dftracer.digits import (
    Flags,
    Integers,
    Text,
    Words,
    decimals,
    hexadecimals,
    unquoted,
    unsigned,
)
from ioprism.readers.dftracer.fields import Fields, Forms, split
from ioprism.readers.dftracer.objects import (
    EVENT,
    METADATA,
    MISSING,
    NUMBERS,
    call_of,
    phase_of,
    read_object,
)

_FEW = 24  # different strings looked for one by one, before sorting pays
_MIX = np.uint64(0x9E3779B97F4A7C15)

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Strings:
    """A column of strings with few different values; code -1 is a missing one."""

    codes: Codes
    values: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The calls of one piece, in the order of the file."""

    ts: Integers  # the trace's own time unit
    dur: Integers
    pid: Integers
    tid: Integers
    name: Strings
    cat: Strings
    host: Strings  # of old versions, which write it into every line
    path: Strings  # likewise
    file_hash: Words
    has_hash: Flags
    numbers: Mapping[str, Integers]  # arguments; MISSING where there is none
    others: list[dict[str, Any]]  # counters, and metadata in odd lines, whole
    damaged: int  # lines that are no JSON object, or lack what a call needs

    def __len__(self) -> int:
        return len(self.ts)


def parse(piece: bytes, forms: Forms | None = None) -> Columns:
    """Read all lines of a text with margins; `forms` helps with the next piece of its file."""
    return _Parse(split(Text(piece), forms or Forms())).columns()


def parse_all(pieces: Iterable[bytes]) -> Iterator[Columns]:
    """Read the pieces of one file."""
    forms = Forms()
    for piece in pieces:
        yield parse(piece, forms)


class _Parse:
    """Columns of the lines that the fast path understands; the others are kept for JSON."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.odd = fields.odd.copy()
        self.height = len(self.odd)

    def columns(self) -> Columns:
        calls, metadata = self._phases()
        self.odd |= ~calls  # rare lines, worth a real parser
        required = {key: self._decimal(key, required=True) for key in ("ts", "dur", "pid", "tid")}
        numbers = {key: self._decimal(key, required=False) for key in NUMBERS}
        name, cat = self._string("name", required=True), self._string("cat", required=True)
        host, path = self._string("hostname"), self._string("fname")
        hashes, has_hash = self._hashes()
        rows = np.flatnonzero(~self.odd) if self.odd.any() else slice(None)
        fast = Columns(
            ts=required["ts"][rows],
            dur=required["dur"][rows],
            pid=required["pid"][rows],
            tid=required["tid"][rows],
            name=_chosen(name, rows),
            cat=_chosen(cat, rows),
            host=_chosen(host, rows),
            path=_chosen(path, rows),
            file_hash=hashes[rows],
            has_hash=has_hash[rows],
            numbers={key: values[rows] for key, values in numbers.items()},
            others=[],
            damaged=0,
        )
        return self._with_odd(fast, rows, np.flatnonzero(self.odd & ~metadata))

    def _phases(self) -> tuple[Flags, Flags]:
        """Which lines are calls, and which are metadata, which the survey has read."""
        kinds = [phase_of({"ph": _bare(shared.get("ph", b""))}) for shared in self.fields.shared]
        phase = np.array([*(kind or 0 for kind in kinds), 0], np.int64)[self.fields.template]
        return phase == EVENT, (phase == METADATA) & ~self.odd

    def _where(self, key: str) -> tuple[Integers, Integers, Integers] | None:
        """Lines with this key, and where its value lies in them."""
        starts = self.fields.starts.get(key)
        if starts is None:
            return None
        lines = np.flatnonzero((starts > 0) & ~self.odd)
        return lines, starts[lines], self.fields.ends[key][lines]

    def _decimal(self, key: str, *, required: bool) -> Integers:
        shared = [_whole(one.get(key)) for one in self.fields.shared]
        if any(value != MISSING for value in shared):
            values = np.array([*shared, MISSING], np.int64)[self.fields.template]
        else:
            values = np.full(self.height, MISSING)
        for taken in self.fields.taken:
            if key in taken.numbers:
                values[taken.lines] = taken.numbers[key]
        found = self._where(key)
        if found is not None:
            lines, start, end = found
            values[lines], sound = decimals(self.fields.text, start, end)
            self.odd[lines[~sound]] = True
        if required:
            self.odd |= values == MISSING
        return values

    def _hashes(self) -> tuple[Words, Flags]:
        values, has = np.zeros(self.height, np.uint64), np.zeros(self.height, np.bool_)
        for taken in self.fields.taken:
            if "fhash" in taken.hashes:
                values[taken.lines], has[taken.lines] = taken.hashes["fhash"], True
        found = self._where("fhash")
        if found is not None:
            lines, start, end = found
            inner_start, inner_end = unquoted(self.fields.text, start, end)
            quoted = inner_start > start
            for chosen, read in ((quoted, hexadecimals), (~quoted, unsigned)):
                if chosen.any():
                    number, sound = read(self.fields.text, inner_start[chosen], inner_end[chosen])
                    values[lines[chosen]] = number
                    self.odd[lines[chosen][~sound]] = True
            has[lines] = True
        return values, has

    def _string(self, key: str, *, required: bool = False) -> Strings:
        known: dict[str, int] = {}
        codes = self._shared_codes(key, known)
        found = self._where(key)
        if found is not None:
            lines, start, end = found
            inner_start, inner_end = unquoted(self.fields.text, start, end)
            self.odd[lines[inner_start == start]] = True  # no string
            own, firsts = _same_text(self.fields.text, inner_start, inner_end)
            raw = self.fields.text.raw
            texts = [_decoded(raw[int(inner_start[i]) : int(inner_end[i])]) for i in firsts]
            numbers = [known.setdefault(text, len(known)) for text in texts]
            codes[lines] = np.array([*numbers, -1], np.int32)[own]
        if required:
            self.odd |= codes < 0
        return Strings(codes, list(known))

    def _shared_codes(self, key: str, known: dict[str, int]) -> Codes:
        """Codes of strings that all lines of a template share."""
        numbers = []
        for shared in self.fields.shared:
            value = shared.get(key)
            if value is not None and value[:1] == b'"' and value[-1:] == b'"' and len(value) > 1:
                numbers.append(known.setdefault(_decoded(value[1:-1]), len(known)))
            else:
                numbers.append(-1)
        return np.array([*numbers, -1], np.int32)[self.fields.template]

    def _with_odd(self, fast: Columns, rows: Integers | slice, odd: Integers) -> Columns:
        """Add the lines that a real parser must read, in their place."""
        if not len(odd):
            return fast
        calls, others, damaged = [], [], 0
        places = []
        for line in odd.tolist():
            read = read_object(self.fields.line(line))
            phase = phase_of(read)
            if read is None or phase is None:
                damaged += 1
            elif phase != EVENT:
                others.append(read)
            elif (call := call_of(read)) is not None:
                calls.append(call)
                places.append(line)
            else:
                damaged += 1
        own = np.arange(self.height)[rows]
        order = np.argsort(np.concatenate((own, np.array(places, np.int64))), kind="stable")
        return _joined(fast, calls, order, others, damaged)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _bare(value: bytes) -> str:
    """A short value without its quotes."""
    return value.strip(b'"').decode("ascii", "replace")


def _whole(value: bytes | None) -> int:
    """A number that all lines of a template share; MISSING if it is none."""
    if value is None:
        return MISSING
    bare = value[1:-1] if value[:1] == b'"' == value[-1:] else value
    digits = bare.removeprefix(b"-")
    number = int(bare) if digits.isdigit() and len(digits) < 20 else MISSING
    return number if abs(number) < 2**63 else MISSING


def _same_text(text: Text, start: Integers, end: Integers) -> tuple[Codes, list[int]]:
    """Number equal strings alike; also return the first place of each."""
    marks = _marks(text, start, end)
    codes = np.full(len(marks), -1, np.int32)
    firsts: list[int] = []
    left = np.arange(len(marks))
    while len(left) and len(firsts) < _FEW:
        same = marks[left] == marks[left[0]]
        codes[left[same]] = len(firsts)
        firsts.append(int(left[0]))
        left = left[~same]
    if len(left):
        _, first, inverse = np.unique(marks[left], return_index=True, return_inverse=True)
        codes[left] = inverse + len(firsts)
        firsts += left[first].tolist()
    return codes, firsts


def _marks(text: Text, start: Integers, end: Integers) -> Words:
    """A 64-bit hash of each string."""
    length = end - start
    marks = length.astype(np.uint64)
    at = 0
    longer = np.arange(len(start))
    while len(longer):
        kept = (8 - (length[longer] - at).clip(0, 8)) << 3
        word = text.words[start[longer] + at]
        # Shifting by 64 bits is undefined, so that shifts are done in two halves.
        half = (kept >> 1).astype(np.uint64)
        rest = (kept - (kept >> 1)).astype(np.uint64)
        word = (word << half) << rest
        mixed = (marks[longer] ^ word) * _MIX
        marks[longer] = mixed ^ (mixed >> np.uint64(29))
        at += 8
        longer = longer[length[longer] > at]
    return marks


def _chosen(strings: Strings, rows: Integers | slice) -> Strings:
    return Strings(strings.codes[rows], strings.values)


def _joined(
    fast: Columns,
    calls: list[dict[str, Any]],
    order: Integers,
    others: list[dict[str, Any]],
    damaged: int,
) -> Columns:
    def numbers(key: str, own: Integers) -> Integers:
        if not calls:
            return own
        return np.concatenate((own, np.array([call[key] for call in calls], np.int64)))[order]

    def strings(key: str, own: Strings) -> Strings:
        if not calls:
            return own
        values = list(own.values)
        known = {value: code for code, value in enumerate(values)}
        return _added(own, list(_codes(calls, key, known, values)), values, order)

    hashes = [call["file_hash"] for call in calls]
    return Columns(
        ts=numbers("ts", fast.ts),
        dur=numbers("dur", fast.dur),
        pid=numbers("pid", fast.pid),
        tid=numbers("tid", fast.tid),
        name=strings("name", fast.name),
        cat=strings("cat", fast.cat),
        host=strings("host", fast.host),
        path=strings("path", fast.path),
        file_hash=np.concatenate((fast.file_hash, np.array([h or 0 for h in hashes], np.uint64)))[
            order
        ],
        has_hash=np.concatenate(
            (fast.has_hash, np.array([h is not None for h in hashes], np.bool_))
        )[order],
        numbers={key: numbers(key, own) for key, own in fast.numbers.items()},
        others=others,
        damaged=damaged,
    )


def _codes(
    calls: list[dict[str, Any]], key: str, known: dict[str, int], values: list[str]
) -> Iterator[int]:
    for call in calls:
        value = call[key]
        if value is None:
            yield -1
            continue
        if value not in known:
            known[value] = len(values)
            values.append(value)
        yield known[value]


def _added(own: Strings, codes: list[int], values: list[str], order: Integers) -> Strings:
    return Strings(np.concatenate((own.codes, np.array(codes, np.int32)))[order], values)
