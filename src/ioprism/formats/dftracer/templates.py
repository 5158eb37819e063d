"""Read lines that differ from one that was read before in numbers and files only.

A tracer writes a few kinds of lines millions of times. A line that was read as JSON becomes a
template: bytes that others of its kind have as well, and between them digits, or the hash of a
file that the survey knows. A line that has all these bytes is the same JSON with other numbers,
and NumPy reads thousands of them at a time. Whatever fits no template, torn lines among it, is
left to the JSON parser; so nothing is guessed, and nothing depends on how a version writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ioprism.formats.dftracer.lines import CALL, whole_number

Places = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Values = dict[str, npt.NDArray[np.int64]]

LONGEST = 1024  # bytes of a line that becomes a template
PADDING = LONGEST + 64  # bytes behind a text, so that no place lies too near to its end
HASH = 16  # bytes of a file's hash in quotes
_VALUE = re.compile(rb'"(\w+)":(?:("?)-?(\d{1,19})\2|"([^"]{16})")(?=[,}])')
_ARGUMENTS = b'"args":{'
_NAME = b'"name":'
_TIMES = ("pid", "tid", "ts", "dur")
_DIGITS = 8  # in a word
_WORD = np.uint64(64)  # bits
_ZEROS, _TO_HIGH, _HIGH = (np.uint64(0x0101010101010101 * n) for n in (0x30, 0x76, 0x80))
_ONE = np.uint64(1)
_TENS = np.array([10**n for n in range(_DIGITS + 1)], np.uint64)
_JOINS = tuple(
    (np.uint64(10**n), np.uint64(8 * n), np.uint64(mask))
    for n, mask in ((1, 0x00FF00FF00FF00FF), (2, 0x0000FFFF0000FFFF), (4, 0xFFFFFFFF))
)
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Text:
    """Lines, of which bytes at many places can be taken together."""

    def __init__(self, padded: bytes) -> None:
        self.raw = padded  # behind the lines there are `PADDING` bytes
        row = np.frombuffer(padded, np.uint8)[:-PADDING]
        ends = np.flatnonzero(row == ord("\n")) + 1
        if len(row) and (not len(ends) or ends[-1] < len(row)):
            ends = np.append(ends, len(row))
        self.ends = ends
        self.starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends

    def line(self, number: int) -> bytes:
        """Return one line, with its end."""
        return self.raw[self.starts[number] : self.ends[number]]

    def words(self, places: Places, number: int) -> Words:
        """Return some words from each place on, the first byte of each as its lowest."""
        size = 8 * number
        shape = (len(self.raw) - size + 1,)
        taken = np.ndarray(shape, f"V{size}", self.raw, strides=(1,))[places]
        return taken.view("<u8").reshape(-1, number)


def _digit_count(word: Words) -> Places:
    """How many digits a word begins with."""
    other = word ^ _ZEROS
    other |= other + _TO_HIGH
    other &= _HIGH  # the lowest bit is that of the first byte that is not a digit
    other &= -other
    other -= _ONE
    bits: Places = np.bitwise_count(other).astype(np.intp)
    return bits >> 3


def _parse_digits(word: Words, width: Places) -> Words:
    """Return the number that the first digits of a word are: by pairs, fours, then all eight."""
    value = (word ^ _ZEROS) << ((_DIGITS - width) << 3).astype(np.uint64)
    for factor, shift, mask in _JOINS:
        more = value >> shift
        value *= factor
        value += more
        value &= mask
    return value


class Hashes:
    """Files by the hashes that lines name them by."""

    def __init__(self, files: Mapping[str, int]) -> None:
        texts, numbers = [], []
        for text, code in files.items():
            if not text.isascii() or not text.isalnum():
                continue
            if len(text) == HASH:
                texts.append((*np.frombuffer(text.encode(), "<u8").tolist(), code))
            if text.isdigit() and str(int(text)) == text and len(text) < 20:
                numbers.append((int(text), code))
        table = np.array(texts, np.uint64).reshape(-1, 3)
        self._texts = table[np.argsort(self._key(table[:, 0], table[:, 1]))]
        self._keys = self._key(self._texts[:, 0], self._texts[:, 1])
        by_number = np.array(sorted(numbers), np.uint64).reshape(-1, 2)
        self._numbers, self._number_codes = by_number[:, 0], by_number[:, 1]

    def has(self, *, quoted: bool) -> bool:
        """Whether there is any hash of this kind."""
        return len(self._keys if quoted else self._numbers) > 0

    @staticmethod
    def _key(first: Words, second: Words) -> Words:
        return first ^ (second * _ODD)

    def of_texts(self, first: Words, second: Words) -> tuple[Words, Flags]:
        """Return the codes of hashes in quotes, by their two words, and which are known."""
        place = np.searchsorted(self._keys, self._key(first, second))
        nearest = self._texts[np.minimum(place, len(self._keys) - 1)]
        return nearest[:, 2], (nearest[:, 0] == first) & (nearest[:, 1] == second)

    def of_numbers(self, numbers: Words) -> tuple[Words, Flags]:
        """Return the codes of hashes that are bare numbers, and which of them are known."""
        place = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return self._number_codes[place], self._numbers[place] == numbers


class _Literal:
    """Bytes that lines have to have, compared word by word."""

    def __init__(self, text: bytes) -> None:
        self.size = len(text)
        self._words = np.frombuffer(text + bytes(8), "<u8", len(text) // 8 + 1)
        self._over = np.uint64(8 * (len(text) % 8))  # bits of the last word
        self._mask = (_ONE << self._over) - _ONE
        # Lines of another kind differ in the name: one word shows it.
        at = text.find(_NAME) + len(_NAME)
        self.name_at = at if _NAME in text and at + 8 <= len(text) else None
        self.name = np.frombuffer(text + bytes(8), "<u8", 1, self.name_at or 0)[0]

    def fits(self, words: Words) -> Flags:
        """Which rows of words begin with these bytes."""
        last = len(self._words) - 1
        fits: Flags = (words[:, last] & self._mask) == self._words[last]
        for number in range(last):
            fits &= words[:, number] == self._words[number]
        return fits

    def behind(self, words: Words, number: int = 0) -> Words:
        """Return the bytes behind, a word of them."""
        first = len(self._words) - 1 + number
        return (words[:, first] >> self._over) | (words[:, first + 1] << (_WORD - self._over))


@dataclass(frozen=True, slots=True)
class _TemplateStep:
    """Bytes that a line has to have, and the value behind them."""

    literal: _Literal
    key: str = ""  # "" if the value is not needed
    kind: Literal["number", "hash"] = "number"
    digits: int = 0  # of the line that became the template
    negative: bool = False

    @property
    def words(self) -> int:
        """How many words to take: the literal, what goes on in its last one, and the value."""
        value = 2 if self.is_wide else min(self.digits, 1)
        return self.literal.size // 8 + 1 + value

    @property
    def is_wide(self) -> bool:
        """Whether the value mostly needs more than a word."""
        return self.kind == "hash" or self.digits > _DIGITS


@dataclass(frozen=True, slots=True, eq=False)
class LineTemplate:
    """One kind of line."""

    name: str
    category: str
    same: Mapping[str, int]  # values that all of these lines have
    steps: tuple[_TemplateStep, ...]

    def fit(self, text: Text, rows: Places, hashes: Hashes) -> tuple[Places, Values]:
        """Return which of some lines are of this kind, and what they say."""
        state = _State(text, rows, text.starts[rows])
        for step in self.steps:
            if not len(state.rows):
                break
            state.take(step, hashes)
        return state.rows, {key: one.view(np.int64) for key, one in state.values.items()}


@dataclass(slots=True)
class _State:
    """Lines that fit so far, and where in them the rest begins."""

    text: Text
    rows: Places
    places: Places
    values: dict[str, Words] = field(default_factory=dict)

    def take(self, step: _TemplateStep, hashes: Hashes) -> None:
        """Keep lines that go on as the step says."""
        literal = step.literal
        if literal.name_at is not None:
            self.keep(self.text.words(self.places + literal.name_at, 1)[:, 0] == literal.name)
        words = self.text.words(self.places, step.words)
        fits = literal.fits(words)
        if not fits.all():
            self.keep(fits)
            words = words[fits]
        self.places = self.places + literal.size
        if step.kind == "hash":
            codes, known = hashes.of_texts(literal.behind(words), literal.behind(words, 1))
            self._go_on(known, HASH, {step.key: codes})
        elif step.digits:
            self._take_number(step, words, hashes)

    def _take_number(self, step: _TemplateStep, words: Words, hashes: Hashes) -> None:
        """Read digits; a number that JSON does not allow, or that is too long, does not fit."""
        word = step.literal.behind(words)
        width = _digit_count(word)
        fits = (width > 0) & ((word & np.uint64(0xFF) != np.uint64(ord("0"))) | (width == 1))
        value = _parse_digits(word, width) if step.key else word
        total = width
        for part in range(1, max(2, -(-step.digits // _DIGITS))):
            full = width == _DIGITS
            if not full.any():
                break
            near = part == 1 and step.is_wide
            word = (
                step.literal.behind(words, 1)
                if near
                else self.text.words(self.places + total, 1)[:, 0]
            )
            width = _digit_count(word) * full
            total = total + width
            if step.key:
                value = value * _TENS[width] + _parse_digits(word, width)
        if step.digits > 2 * _DIGITS:
            fits &= (total < 20) & (value < np.uint64(2**63))
        if step.key == "fhash":
            value, known = hashes.of_numbers(value)
            fits &= known
        self._go_on(fits, total, {step.key: -value if step.negative else value} if step.key else {})

    def _go_on(self, fits: Flags, size: int | Places, values: dict[str, Words]) -> None:
        self.values |= values
        self.places = self.places + size
        self.keep(fits)

    def keep(self, fits: Flags) -> None:
        """Leave out lines that do not fit."""
        if fits.all():
            return
        self.rows, self.places = self.rows[fits], self.places[fits]
        self.values = {key: one[fits] for key, one in self.values.items()}


def template_of(
    line: bytes, numbers: Collection[str], hashes: Hashes, *, of_one_thread: bool
) -> LineTemplate | None:
    """Make a template of a call; None if it is none, or is written in an unusual way.

    Args:
        line: with its end.
        numbers: the arguments that are wanted.
        hashes: files, which lines may name.
        of_one_thread: whether process and thread are those of the line.
    """
    read = _plain_object(line)
    if read is None or read.get("ph") not in CALL or not isinstance(read.get("name"), str):
        return None
    same = {key: whole_number(read.get(key)) for key in ("pid", "tid") if of_one_thread}
    inner = line.find(_ARGUMENTS) if _ARGUMENTS in line else len(line)
    steps, at = [], 0
    for match in _VALUE.finditer(line):
        key, inside = match[1].decode(), match.start() > inner
        if not inside and key in ("name", "cat", "ph", "type", *same):
            continue
        step = _step(match, line, at, numbers if inside else _TIMES, hashes)
        if step is not None:
            steps.append(step)
            at = match.end(3 if match[4] is None else 4)
    made = {step.key for step in steps}.union(same)
    arguments = read.get("args")
    given = arguments if isinstance(arguments, dict) else {}
    wanted = {*_TIMES, *(key for key in given if key in (*numbers, "fhash"))}
    constants = {key: value for key, value in same.items() if value is not None}
    if not made >= wanted or len(constants) < len(same):
        return None
    steps.append(_TemplateStep(_Literal(line[at:])))
    return LineTemplate(str(read["name"]), str(read.get("cat") or ""), constants, tuple(steps))


def _step(
    match: re.Match[bytes], line: bytes, at: int, wanted: Collection[str], hashes: Hashes
) -> _TemplateStep | None:
    """Return how to read a value; None if it is the same in all lines, or cannot be read."""
    key, quoted = match[1].decode(), bool(match[2]) or match[4] is not None
    begin, end = match.span(3 if match[4] is None else 4)
    is_hash = key == "fhash" and wanted is not _TIMES
    if is_hash and not hashes.has(quoted=quoted):
        return None
    if is_hash and quoted:
        return _TemplateStep(_Literal(line[at:begin]), key, "hash") if end - begin == HASH else None
    if match[4] is not None:
        return None
    key = key if is_hash or key in wanted else ""
    negative = line[begin - 1 : begin] == b"-"
    return _TemplateStep(_Literal(line[at:begin]), key, "number", end - begin, negative)


def _plain_object(line: bytes) -> dict[str, object] | None:
    """Return a line as an object if its text has no trap: escapes, lists, equal keys, depths."""
    inner = int(_ARGUMENTS in line)
    if len(line) > LONGEST or not line.endswith(b"\n") or not line.isascii():
        return None
    if (
        line.count(b"{") != 1 + inner
        or (inner and b"}}" not in line)
        or re.search(rb"[\\\[]", line)
    ):
        return None
    try:
        read = json.loads(line.rstrip(b", \r\n"), object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object if no key occurs twice, which a template could not tell apart."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key occurs twice")
    return read
