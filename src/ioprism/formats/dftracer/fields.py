"""Cut JSON lines into fields without a JSON parser: all lines of a piece at once.

DFTracer writes flat objects: `{"key":value,…,"args":{"key":value,…}}`. Fields lie between
commas, and thousands of lines have the same text but for a few numbers. So one line is taken
as a template, and all lines with as many fields are compared with the text between its
numbers. A line that is not this simple (nested objects, escapes, commas in strings, spaces)
is marked as odd and left to a real JSON parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ioprism.formats.dftracer.chains import Follower, Taken
from ioprism.formats.dftracer.digits import Flags, Integers, Text
from ioprism.formats.dftracer.forms import MOST_TEMPLATES, Forms, Run, Template

NEWLINE, COMMA, OPEN, CLOSE, BACKSLASH, SPACE = b"\n,{}\\ "
_TRIMMED = b",\r "  # may stand after an object
_ARGS = b'"args":{'
_LONGEST_KEY = 64
# What a template's lines have in common besides keys; less and less, as templates run out.
_STAGES = (
    frozenset({"name", "cat", "pid", "tid", "ph"}),
    frozenset({"name", "cat", "ph"}),
    frozenset({"ph"}),
)
_RARE = 0.02  # share of a piece's lines that may as well be left to a JSON parser
_ALWAYS = frozenset({b'"type":', b'"hhash":', b'"hostname":'})
MOST_FIELDS = 48

TOP = ("name", "cat", "pid", "tid", "ts", "dur", "ph")
ARGUMENTS = ("fhash", "hhash", "fname", "hostname", "ret", "count", "offset", "whence",
             "flags", "size")  # fmt: skip
_SLOTS: Mapping[tuple[bool, bytes], str] = {
    **{(False, f'"{key}":'.encode()): key for key in TOP},
    **{(True, f'"{key}":'.encode()): key for key in ARGUMENTS},
}


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """What the lines say: by template what all its lines share, by line where the rest lies."""

    text: Text
    line_start: Integers
    line_end: Integers
    odd: Flags  # lines that need a real JSON parser
    template: Integers  # number of each line's template, -1 for odd lines
    shared: list[dict[str, bytes]]  # by template: values, as written
    starts: dict[str, Integers]  # per key: where its value begins, 0 where a line has none
    ends: dict[str, Integers]
    taken: list[Taken]  # lines whose values are read already

    def line(self, number: int) -> bytes:
        """Return the text of one line."""
        return self.text.raw[int(self.line_start[number]) : int(self.line_end[number])]


def split(text: Text, forms: Forms) -> Fields:
    """Find the lines of a text with margins that hold objects, and the fields in them."""
    return _Split(text, forms).fields()


class _Lines:
    """Lines with the same number of fields; where a field begins is looked up when needed."""

    def __init__(self, split: _Split, numbers: Integers, count: int) -> None:
        self.numbers = numbers
        self.count = count
        self.ends = split.end[numbers]
        self._commas = split.commas
        self._first = split.first[numbers]
        self._begins = {0: split.start[numbers] + 1}

    def begin(self, place: int) -> Integers:
        """Where a field begins in each line."""
        if place not in self._begins:
            self._begins[place] = self._commas.take(self._first + (place - 1)) + 1
        return self._begins[place]

    def example(self) -> list[int]:
        """Where the fields of the first line begin."""
        first = int(self._first[0])
        commas = self._commas[first : first + self.count - 1] + 1
        return [int(self._begins[0][0]), *commas.tolist()]


class _Split:
    """The state of cutting one piece."""

    def __init__(self, text: Text, forms: Forms) -> None:
        self.text = text
        self.forms = forms
        self.newlines = np.flatnonzero(text.bytes == NEWLINE)
        self._find_lines()
        self.odd = self._odd()
        self.template = np.full(len(self.start), -1)
        self.shared: list[dict[str, bytes]] = []
        self.starts: dict[str, Integers] = {}
        self.ends: dict[str, Integers] = {}

    def _find_lines(self) -> None:
        """Take lines with at least two characters; brackets and empty lines hold nothing."""
        start, end = self._trimmed(self.newlines[:-1] + 1, self.newlines[1:])
        used = np.flatnonzero(end - start > 1)
        self.start, self.end = start[used], end[used]

    @cached_property
    def commas(self) -> Integers:
        return np.flatnonzero(self.text.bytes == COMMA)

    @cached_property
    def first(self) -> Integers:
        """Number of each line's first comma."""
        return np.searchsorted(self.commas, self.start)

    @cached_property
    def count(self) -> Integers:
        """How many fields each line has."""
        return np.searchsorted(self.commas, self.end) - self.first + 1

    def _trimmed(self, start: Integers, end: Integers) -> tuple[Integers, Integers]:
        """Leave out what may stand after an object, and spaces before it."""
        look, end = self.text.bytes, end.copy()
        for line in np.flatnonzero((look[end - 1] != CLOSE) & (end > start)).tolist():
            text = self.text.raw[int(start[line]) : int(end[line])]
            end[line] -= len(text) - len(text.rstrip(_TRIMMED))
        blank = np.flatnonzero((look[start] == SPACE) & (end > start))
        start = start.copy() if len(blank) else start
        for line in blank.tolist():  # old versions write some
            text = self.text.raw[int(start[line]) : int(end[line])]
            start[line] += len(text) - len(text.lstrip())
        return start, end

    def _odd(self) -> Flags:
        """Lines that are no object, or have characters that are written by escapes."""
        look = self.text.bytes
        odd = (look[self.start] != OPEN) | (look[self.end - 1] != CLOSE)
        if BACKSLASH in self.text.raw and len(self.start):
            escapes = np.flatnonzero(look == BACKSLASH)
            line = np.searchsorted(self.start, escapes, side="right") - 1
            odd[line[line >= 0]] = True
        return np.asarray(odd, np.bool_)

    def fields(self) -> Fields:
        """Follow the chains that are known; match the other lines by their fields."""
        taken = self._followed()
        left = ~self.odd & (self.template < 0)
        if taken and left.sum() <= _RARE * len(left):
            self.odd |= left
        elif left.any():
            self.odd |= left & (self.count > MOST_FIELDS)
            left &= ~self.odd
            for count in np.flatnonzero(np.bincount(self.count[left], minlength=1)).tolist():
                self._match(_Lines(self, np.flatnonzero((self.count == count) & left), count))
        return Fields(
            self.text, self.start, self.end, self.odd, self.template, self.shared,
            self.starts, self.ends, taken,
        )  # fmt: skip

    def _followed(self) -> list[Taken]:
        follower = Follower(self.text, self.start, self.end, ~self.odd)
        found = []
        for chain in self.forms.chains:
            taken = follower.follow(chain)
            if len(taken.lines):
                self.template[taken.lines] = len(self.shared)
                self.shared.append(chain.shared)
                found.append(taken)
        return found

    def _match(self, lines: _Lines) -> None:
        """Take the lines of known forms, then make a template of the first that is left."""
        used: list[tuple[int, Template]] = []
        count, tried = lines.count, 0
        known = self.forms.of(count)
        while len(lines.numbers) and tried < MOST_TEMPLATES * len(_STAGES):
            template = known[len(used)] if len(used) < len(known) else None
            if template is None:
                stage = _STAGES[tried // MOST_TEMPLATES]
                template = self._template(lines.example(), int(lines.ends[0]), stage)
                tried += 1
            if template is None:
                self.odd[lines.numbers[0]] = True
                lines = _Lines(self, lines.numbers[1:], count)
                continue
            rest = self._rest(template, lines)
            used.append((len(lines.numbers) - len(rest.numbers), template))
            lines = rest
        self.odd[lines.numbers] = True
        self.forms.learn(count, [*used, *((1, template) for template in known[len(used) :])])

    def _rest(self, template: Template, lines: _Lines) -> _Lines:
        """Take the template's lines, and return the others.

        The longest text tells most lines apart; the others are compared only where it fits.
        """
        longest = max(template.runs, key=lambda run: len(run.text))
        alike = self.text.equals(lines.begin(longest.place), longest.text)
        likely = lines if alike.all() else _Lines(self, lines.numbers[alike], lines.count)
        same = self._same(template, longest, likely)
        self._store(template, likely, same)
        rest = lines.numbers[~alike]
        if not same.all():
            rest = np.sort(np.concatenate((rest, likely.numbers[~same])))
        return _Lines(self, rest, lines.count)

    def _template(self, begins: list[int], end: int, constant: frozenset[str]) -> Template | None:
        """The form of the line whose fields begin here; None if it is not simple."""
        raw, inside = self.text.raw, False
        runs: list[Run] = []
        shared: dict[str, bytes] = {}
        place = 0  # where the present run began
        closing = 2 if any(raw.startswith(_ARGS, at) for at in begins) else 1
        stops = [*(at - 1 for at in begins[1:]), end - closing]
        for number, (at, stop) in enumerate(zip(begins, stops, strict=True)):
            opened = raw.startswith(_ARGS, at)
            if opened and inside:
                return None
            inside |= opened
            key_at = at + len(_ARGS) if opened else at
            key = self._key(key_at)
            if key is None:
                return None
            value = raw[key_at + len(key) : stop]
            if b"\0" in raw[at:stop]:
                return None
            slot = _SLOTS.get((inside, key))
            if value[:1] in (b"{", b"["):
                return None
            if slot in constant or key in _ALWAYS or key == b"}":
                if slot is not None:
                    shared[slot] = value
                continue
            text = raw[begins[place] : key_at + len(key)]
            runs.append(Run(place, text, number, slot, value))
            place = number + 1
        if place < len(begins):
            runs.append(Run(place, raw[begins[place] : end], None, None))
        return Template(tuple(runs), shared, closing)

    def _key(self, at: int) -> bytes | None:
        """The key that begins here, with quotes and colon; a brace where there is none."""
        raw = self.text.raw
        if raw.startswith(b"}", at):
            return b"}"
        stop = raw.find(b'":', at + 1, at + _LONGEST_KEY)
        key = raw[at : stop + 2]
        return None if stop < 0 or key[:1] != b'"' or b"\n" in key else key

    def _same(self, template: Template, compared: Run, lines: _Lines) -> Flags:
        """Which lines have the rest of the template's text, and plain values in between."""
        look = self.text.bytes
        same = np.ones(len(lines.numbers), np.bool_)
        if template.closing == 2:
            same &= look[lines.ends - 2] == CLOSE
        for run in template.runs:
            begin = lines.begin(run.place)
            if run is not compared:
                same &= self.text.equals(begin, run.text)
            if run.varies is None:
                same &= begin + len(run.text) == lines.ends
            elif run.slot is None:
                value = look[np.minimum(begin + len(run.text), len(look) - 1)]
                same &= (value | 0x20) != 0x7B  # neither { nor [
            if run.varies is not None and run.varies > run.place:
                # Only then do the commas that end the fields lie where the template has them.
                same &= lines.begin(run.varies) < begin + len(run.text)
        return same

    def _store(self, template: Template, lines: _Lines, same: Flags) -> None:
        whole = bool(same.all())
        numbers = lines.numbers if whole else lines.numbers[same]
        self.template[numbers] = len(self.shared)
        self.shared.append(template.shared)
        for run in template.runs:
            if run.slot is None or run.varies is None:
                continue
            begin = lines.begin(run.place) if whole else lines.begin(run.place)[same]
            if run.varies + 1 < lines.count:
                after = lines.begin(run.varies + 1)
                end = (after if whole else after[same]) - 1
            else:
                end = (lines.ends if whole else lines.ends[same]) - template.closing
            if run.slot not in self.starts:
                self.starts[run.slot] = np.zeros(len(self.start), np.int64)
                self.ends[run.slot] = np.zeros(len(self.start), np.int64)
            self.starts[run.slot][numbers] = begin + len(run.text)
            self.ends[run.slot][numbers] = end
