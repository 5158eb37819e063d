"""Turn a piece of DFTracer text into columns: the fast path, and a JSON parser for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.formats.dftracer.digits import (
    Flags,
    Integers,
    Text,
    Words,
    decimals,
    hexadecimals,
    unquoted,
    unsigned,
)
from ioprism.formats.dftracer.equal_texts import Codes, same_text
from ioprism.formats.dftracer.fields import Fields, split
from ioprism.formats.dftracer.forms import Forms
from ioprism.formats.dftracer.objects import (
    EVENT,
    METADATA,
    MISSING,
    NUMBERS,
    call_of,
    phase_of,
    read_object,
)

REQUIRED = ("ts", "dur", "pid", "tid")
TEXTS = ("name", "cat", "hostname", "fname")


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
    """Columns over all lines: the fast path fills most of them, a JSON parser the others."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.odd = fields.odd.copy()
        self.height = len(self.odd)
        calls, self.metadata = self._phases()
        self.odd |= ~calls  # rare lines, worth a real parser
        self.numbers = {key: self._decimal(key) for key in (*REQUIRED, *NUMBERS)}
        self.known: dict[str, dict[str, int]] = {key: {} for key in TEXTS}
        self.codes = {key: self._string(key) for key in TEXTS}
        self.hashes, self.has_hash = self._hashes()

    def columns(self) -> Columns:
        """Read the lines that are left, and put all calls together."""
        others, damaged = self._read_odd()
        rows = np.flatnonzero(~self.odd) if self.odd.any() else slice(None)

        def strings(key: str) -> Strings:
            return Strings(self.codes[key][rows], list(self.known[key]))

        return Columns(
            ts=self.numbers["ts"][rows],
            dur=self.numbers["dur"][rows],
            pid=self.numbers["pid"][rows],
            tid=self.numbers["tid"][rows],
            name=strings("name"),
            cat=strings("cat"),
            host=strings("hostname"),
            path=strings("fname"),
            file_hash=self.hashes[rows],
            has_hash=self.has_hash[rows],
            numbers={key: self.numbers[key][rows] for key in NUMBERS},
            others=others,
            damaged=damaged,
        )

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

    def _decimal(self, key: str) -> Integers:
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
        if key in REQUIRED:
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

    def _string(self, key: str) -> Codes:
        known = self.known[key]
        codes = self._shared_codes(key, known)
        found = self._where(key)
        if found is not None:
            lines, start, end = found
            inner_start, inner_end = unquoted(self.fields.text, start, end)
            self.odd[lines[inner_start == start]] = True  # no string
            own, firsts = same_text(self.fields.text, inner_start, inner_end)
            raw = self.fields.text.raw
            texts = [_decoded(raw[int(inner_start[i]) : int(inner_end[i])]) for i in firsts]
            numbers = [known.setdefault(text, len(known)) for text in texts]
            codes[lines] = np.array([*numbers, -1], np.int32)[own]
        if key in ("name", "cat"):
            self.odd |= codes < 0
        return codes

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

    def _read_odd(self) -> tuple[list[dict[str, Any]], int]:
        """Fill in the calls of odd lines; return what is no call, and how much is damaged."""
        others, damaged = [], 0
        for line in np.flatnonzero(self.odd & ~self.metadata).tolist():
            read = read_object(self.fields.line(line))
            phase = phase_of(read)
            call = call_of(read) if read is not None and phase == EVENT else None
            if call is not None:
                self._fill_in(line, call)
            elif read is None or phase is None or phase == EVENT:
                damaged += 1
            else:
                others.append(read)
        return others, damaged

    def _fill_in(self, line: int, call: Mapping[str, Any]) -> None:
        self.odd[line] = False
        for key, values in self.numbers.items():
            values[line] = call[key]
        for key, codes in self.codes.items():
            known, text = self.known[key], call[key]
            codes[line] = -1 if text is None else known.setdefault(text, len(known))
        self.has_hash[line] = call["fhash"] is not None
        self.hashes[line] = call["fhash"] or 0


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
