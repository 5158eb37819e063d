"""Read lines of a known form in one go: text, number, text, number, to the end of the line.

Where a number ends is seen from the number itself, so that nothing else of the line has to be
found first. Lines that do not follow the chain exactly are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ioprism.formats.dftracer.digits import (
    MARGIN,
    Flags,
    Integers,
    Text,
    Words,
    hashes,
    leading_decimals,
    long_decimals,
    short_ends,
)

HASH_DIGITS = 16


class Step(NamedTuple):
    """Text that must stand there, and what follows it."""

    text: bytes
    slot: str | None  # the key of the value, if it is wanted
    hexadecimal: bool = False  # a hash of 16 digits; else a whole number
    width: int = 0  # digits of a number that always has as many; 0 if not known


@dataclass(frozen=True, slots=True)
class Chain:
    """One form of line; at least one value varies."""

    steps: tuple[Step, ...]
    tail: bytes  # up to the end of the line
    shared: dict[str, bytes]  # what all its lines have in common


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """The lines that follow a chain, and their values."""

    chain: Chain
    lines: Integers
    numbers: dict[str, Integers]
    hashes: dict[str, Words]


@dataclass(slots=True, eq=False)
class Follower:
    """Lines that wait for the chain they follow."""

    text: Text
    start: Integers
    end: Integers
    waiting: Flags
    _opened: dict[Step, tuple[Integers, Flags]] = field(default_factory=dict)
    _words: dict[tuple[Step, int], Words] = field(default_factory=dict)

    def follow(self, chain: Chain) -> Taken:
        """Take the lines that follow a chain."""
        position, fits = self._open(chain.steps[0])
        likely = np.flatnonzero(self.waiting & fits & self._likely(chain))
        found = self._rest(chain, likely, position[likely])
        self.waiting[found.lines] = False
        return found

    def _open(self, step: Step) -> tuple[Integers, Flags]:
        """Where all lines stand after a chain's first step: most chains share it."""
        if step not in self._opened:
            fits = self.text.equals(self.start, step.text)
            position = self.start + len(step.text)
            if step.slot is None and not step.hexadecimal:
                position, short = short_ends(self.text, self._inside(position))
                if not short.all():
                    left = np.flatnonzero(~short)
                    begin = self._inside(self.start[left] + len(step.text))
                    _, position[left], short[left] = leading_decimals(self.text, begin)
                fits &= short
            else:  # its value is wanted: it is read again for the lines that fit
                position = self.start
            self._opened[step] = position, fits
        return self._opened[step]

    def _likely(self, chain: Chain) -> Flags:
        """Lines whose second text has the same characters where names differ."""
        first = chain.steps[0]
        texts = [step.text for step in chain.steps[1:]] + [chain.tail]
        at = texts[0].find(b'"name":"') + 8
        if first.slot is not None or at < 8 or len(texts[0]) < at + 8:
            return self.waiting
        key = first, at
        if key not in self._words:
            position, _ = self._opened[first]
            self._words[key] = self.text.words[self._inside(position + at)]
        wanted = np.uint64(int.from_bytes(texts[0][at : at + 8], "little"))
        return np.asarray(self._words[key] == wanted)

    def _inside(self, position: Integers) -> Integers:
        return np.minimum(position, len(self.text.raw) - len(MARGIN))

    def _rest(self, chain: Chain, lines: Integers, position: Integers) -> Taken:
        sound = np.ones(len(lines), np.bool_)
        numbers: dict[str, Integers] = {}
        found: dict[str, Words] = {}
        steps = chain.steps if chain.steps[0].slot is not None else chain.steps[1:]
        for step in steps:
            sound &= self.text.equals(position, step.text)
            position = self._inside(position + len(step.text))
            if step.hexadecimal:
                found[step.slot or ""] = hashes(self.text, position)
                position = self._inside(position + HASH_DIGITS)
                continue
            if step.width:
                number, fits = long_decimals(self.text, position, step.width)
                position = self._inside(position + step.width)
            else:
                number, position, fits = leading_decimals(self.text, position)
                position = self._inside(position)
            if step.slot is not None:
                numbers[step.slot] = number
            sound &= fits
        sound &= self.text.equals(position, chain.tail)
        sound &= position + len(chain.tail) == self.end[lines]
        if not sound.all():
            lines = lines[sound]
            numbers = {slot: values[sound] for slot, values in numbers.items()}
            found = {slot: values[sound] for slot, values in found.items()}
        return Taken(chain, lines, numbers, found)
