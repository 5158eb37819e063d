"""Which of many strings in a text are the same? Found by hashing them a word at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ioprism.formats.dftracer.digits import Integers, Text, Words

_FEW = 24  # different strings looked for one by one, before sorting pays
_MIX = np.uint64(0x9E3779B97F4A7C15)

Codes = npt.NDArray[np.int32]


def same_text(text: Text, start: Integers, end: Integers) -> tuple[Codes, list[int]]:
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
        word = word << kept.astype(np.uint64)  # NumPy shifts by 64 to zero
        mixed = (marks[longer] ^ word) * _MIX
        marks[longer] = mixed ^ (mixed >> np.uint64(29))
        at += 8
        longer = longer[length[longer] > at]
    return marks
