"""Decode DFTracer's JSON lines, of any version, one by one.

A value of another type than expected counts as missing, because applications may use the same
keys for their arguments. A line that is not a JSON object is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ioprism.formats.file_pointer import UNKNOWN, Integers

CALL, COUNTER, METADATA = (1, "X", "1"), (3, "C", "3"), (4, "M", "4")  # phases
REQUIRED = ("pid", "tid", "ts", "dur")
NUMBERS = ("ret", "count", "offset", "whence", "flags", "size")
# `surrogateescape` marks bytes that are not UTF-8; they are written as hexadecimal digits.
_HEXADECIMAL = {0xDC00 + byte: f"\\\\x{byte:02x}" for byte in range(128, 256)}


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """The arguments that matter: of calls, of sums and of DFTracer's lines about itself."""

    ret: Any = UNKNOWN
    count: Any = UNKNOWN
    offset: Any = UNKNOWN
    whence: Any = UNKNOWN
    flags: Any = UNKNOWN
    size: Any = UNKNOWN
    fhash: Any = None
    fname: Any = None  # old versions write names into every line
    hostname: Any = None
    dft_cnt: Any = None  # the aggregated mode
    ret_sum: Any = None
    dur_sum: Any = None
    dur: Any = None
    name: Any = None  # what a hash stands for
    value: Any = None
    hhash: Any = None
    exec_hash: Any = None
    cmd_hash: Any = None
    ppid: Any = None


NO_ARGUMENTS = Arguments()


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line."""

    id: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = UNKNOWN
    tid: Any = UNKNOWN
    ts: Any = UNKNOWN
    dur: Any = UNKNOWN
    ph: Any = None
    args: Arguments | list[Any] | str | int | float | None = NO_ARGUMENTS

    @property
    def arguments(self) -> Arguments:
        """Its arguments; all are missing where it has none."""
        return self.args if isinstance(self.args, Arguments) else NO_ARGUMENTS

    @property
    def category(self) -> str:
        """The library that a call belongs to."""
        return self.cat if isinstance(self.cat, str) else ""

    @property
    def is_sum(self) -> bool:
        """Whether it stands for several calls: the aggregated mode."""
        return self.ph in COUNTER and whole_number(self.arguments.dft_cnt) is not None


DAMAGED_LINE = Line()
_DECODER = msgspec.json.Decoder(Line)
# Python's `json` writes these for numbers that JSON does not have.
_NOT_FINITE = re.compile(rb"(?<=[:,\[ ])-?(?:NaN|Infinity)(?=[,}\] ])")


def decode_line(line: bytes) -> Line:
    """Return what a line says; `DAMAGED_LINE` if it is not a JSON object."""
    if not line.isascii():
        line = line.decode("utf-8", "surrogateescape").translate(_HEXADECIMAL).encode()
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError):
        if _NOT_FINITE.search(line):
            return decode_line(_NOT_FINITE.sub(b"null", line))
        return DAMAGED_LINE


@dataclass(frozen=True)
class DecodedLines:
    """Some lines, and which of them are calls."""

    lines: Sequence[Line]

    @cached_property
    def required_numbers(self) -> dict[str, Integers]:
        """The numbers that a call needs."""
        return {key: whole_numbers(map(attrgetter(key), self.lines)) for key in REQUIRED}

    @cached_property
    def is_call(self) -> npt.NDArray[np.bool_]:
        """Which lines are calls that have all that a call needs."""
        named = [line.ph in CALL and isinstance(line.name, str) for line in self.lines]
        calls = np.array(named, np.bool_)
        for column in self.required_numbers.values():
            calls &= column != UNKNOWN
        return calls

    @cached_property
    def calls(self) -> list[Line]:
        """The calls."""
        return list(compress(self.lines, self.is_call))

    @cached_property
    def others(self) -> list[Line]:
        """Lines that are not calls."""
        return list(compress(self.lines, ~self.is_call))

    @property
    def damaged_count(self) -> int:
        """How many lines are not calls, and not of another known kind."""
        return sum(line.ph not in COUNTER + METADATA for line in self.others)


def decode_text(text: bytes) -> DecodedLines:
    """Return what the lines of a text say."""
    lines = text.rstrip().split(b"\n")
    last = len(lines) - 1
    objects = (bare_object(one, first=n == 0, last=n == last) for n, one in enumerate(lines))
    return DecodedLines([decode_line(one) for one in objects if one])


def bare_object(line: bytes, *, first: bool, last: bool) -> bytes:
    """Return a line without what makes all lines one JSON array; empty if nothing is left."""
    bare = line.strip(b", \r\n")
    if first:
        bare = bare.removeprefix(b"[")
    return b"" if last and bare == b"]" else bare


def whole_number(value: object) -> int | None:
    """Return a number that is written bare or as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 2**63 else None


def whole_numbers(values: Iterable[Any]) -> Integers:
    """Return a column of numbers, `UNKNOWN` where a value is not one."""
    column = list(values)
    if set(map(type, column)) <= {int, str}:
        with suppress(ValueError, OverflowError):  # then some are not numbers, or too large
            return np.array(list(map(int, column)), np.int64)
    numbers = map(whole_number, column)
    return np.array([UNKNOWN if one is None else one for one in numbers], np.int64)


def hash_of(value: object) -> str | None:
    """Return a hash as text: versions write hexadecimal digits in quotes, or a bare number."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return str(value) or None
