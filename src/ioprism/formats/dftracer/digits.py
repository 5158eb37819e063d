"""Numbers out of text, thousands at a time: eight digits are one machine word.

A word holds eight characters, the first in its lowest byte. Multiplying and shifting adds
neighbours pairwise: two digits, four digits, eight digits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

MARGIN = b"\n" * 24  # must stand before and after the text, so that words can be cut anywhere
QUOTE, MINUS = 0x22, 0x2D
_ZEROS = np.uint64(0x3030303030303030)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES = np.uint64(0x0101010101010101)
_OVER_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_QUADS = np.uint64(0x0000FFFF0000FFFF)
_DECIMAL = (np.uint64(10 * 2**8 + 1), np.uint64(100 * 2**16 + 1), np.uint64(10_000 * 2**32 + 1))
_HEXADECIMAL = (np.uint64(16 * 2**8 + 1), np.uint64(2**24 + 1), np.uint64(2**48 + 1))
LONGEST_LEADING = 18  # digits that fit into a word for sure
_TENS = np.array([10**power for power in range(9)], np.uint64)
_LARGEST = np.uint64(2**63 - 1)


class Text:
    """A text piece of text that can be looked at as bytes and as words at any position."""

    def __init__(self, text: bytes) -> None:
        self.raw = text
        self.bytes = np.frombuffer(text, np.uint8)
        self.words: Words = np.ndarray(
            shape=(max(0, len(text) - 7),), dtype="<u8", buffer=text, strides=(1,)
        )

    def equals(self, start: Integers, wanted: bytes) -> Flags:
        """Which of the places hold this text, compared word by word."""
        words = -(-len(wanted) // 8)
        if len(self.raw) < 8 * words:
            return np.zeros(len(start), np.bool_)
        if words == 1:
            return _begins_with(self.words[start], wanted)
        last = len(self.raw) - 8 * words
        places = np.ndarray((last + 1,), f"V{8 * words}", buffer=self.raw, strides=(1,))
        held = places[np.minimum(start, last)].view("<u8").reshape(-1, words)
        same = _begins_with(held[:, -1], wanted[8 * words - 8 :])
        for word in range(words - 1):
            same &= _begins_with(held[:, word], wanted[8 * word : 8 * word + 8])
        return same


def _begins_with(word: Words, characters: bytes) -> Flags:
    wanted = np.uint64(int.from_bytes(characters, "little"))
    if len(characters) < 8:
        word = word & np.uint64((1 << (8 * len(characters))) - 1)
    return np.asarray(word == wanted)


def _kept(word: Words, count: Integers) -> Words:
    """The last `count` of eight characters; the others become zero bytes."""
    shift = ((8 - count) << 3).astype(np.uint64)
    return (word >> shift) << shift


def _joined(nibbles: Words, steps: tuple[np.uint64, np.uint64, np.uint64]) -> Words:
    joined = (nibbles * steps[0]) >> np.uint64(8)
    joined = ((joined & _PAIRS) * steps[1]) >> np.uint64(16)
    return np.asarray(((joined & _QUADS) * steps[2]) >> np.uint64(32), np.uint64)


def _eight(text: Text, end: Integers, count: Integers) -> tuple[Words, Flags]:
    """Up to eight decimal digits that stop before `end`, and whether they are digits."""
    digits = _kept(text.words[end - 8] ^ _ZEROS, count)
    sound = (((digits + _OVER_NINE) | digits) & _HIGH_BITS) == 0
    return _joined(digits, _DECIMAL), sound


def decimals(text: Text, start: Integers, end: Integers) -> tuple[Integers, Flags]:
    """Return the whole numbers written there, bare or in quotes, and which are sound."""
    first = text.bytes[start]
    if (first == QUOTE).any():
        start, end = unquoted(text, start, end)
        first = text.bytes[start]
    negative = first == MINUS
    signed = bool(negative.any())
    if signed:
        start = start + negative
    value, sound = unsigned(text, start, end)
    sound &= (value <= _LARGEST) & (end - start < 20)
    whole = value.view(np.int64)
    return (np.where(negative, -whole, whole) if signed else whole), sound


def leading_decimals(text: Text, start: Integers) -> tuple[Integers, Integers, Flags]:
    """Return the whole numbers that begin there, where they end, and which are sound."""
    word = text.words[start]
    negative = (word & np.uint64(0xFF)) == MINUS
    signed = bool(negative.any())
    if signed:
        start = start + negative
        word = text.words[start]
    value, count = _leading(word)
    end = start + count
    longer = np.flatnonzero(count == 8)
    for _ in range(2):  # up to 18 digits surely fit; more are left to others
        if not len(longer):
            break
        more, digits = _leading(text.words[end[longer]])
        value[longer] = value[longer] * _TENS[digits] + more
        end[longer] += digits
        longer = longer[digits == 8]
    length = end - start
    number = value.view(np.int64)
    number = np.where(negative, -number, number) if signed else number
    return number, end, (length > 0) & (length <= LONGEST_LEADING)


def _leading(word: Words) -> tuple[Words, Integers]:
    """The number that the first digits of a word make, and how many they are."""
    bits = _digit_bits(word)
    shift = np.uint64(64) - bits.astype(np.uint64)  # NumPy shifts by 64 to zero
    count = (bits >> np.uint8(3)).astype(np.int64)
    return _joined((word ^ _ZEROS) << shift, _DECIMAL), count


def _digit_bits(word: Words) -> npt.NDArray[np.uint8]:
    """How many bits the digits take with which a word begins."""
    digits = word ^ _ZEROS
    other = ((digits + _OVER_NINE) | digits) & _HIGH_BITS
    # All bits before the mark of the first character that is no digit: 8 n + 7, or 64.
    before = (other & (~other + np.uint64(1))) - np.uint64(1)
    return np.asarray(np.bitwise_count(before) & np.uint8(0x78), np.uint8)


def short_ends(text: Text, start: Integers) -> tuple[Integers, Flags]:
    """Return where numbers of up to seven digits end, and which are such."""
    bits = _digit_bits(text.words[start])
    return start + (bits >> np.uint8(3)), (bits > 0) & (bits < 64)


def long_decimals(text: Text, start: Integers, width: int) -> tuple[Integers, Flags]:
    """Return the numbers of 9 to 16 digits that stand there, and which are sound."""
    low = text.words[start + (width - 8)] ^ _ZEROS
    shift = np.uint64(8 * (16 - width))
    high = ((text.words[start + (width - 16)] ^ _ZEROS) >> shift) << shift
    wrong = ((low + _OVER_NINE) | low | (high + _OVER_NINE) | high) & _HIGH_BITS
    value = _joined(high, _DECIMAL) * np.uint64(10**8) + _joined(low, _DECIMAL)
    return value.view(np.int64), wrong == 0


def hashes(text: Text, start: Integers) -> Words:
    """Return the numbers of 16 hexadecimal digits that stand there."""
    high, low = (_nibbles(text.words[at]) for at in (start, start + 8))
    return (_joined(high, _HEXADECIMAL) << np.uint64(32)) | _joined(low, _HEXADECIMAL)


def _nibbles(word: Words) -> Words:
    letters = (word >> np.uint64(6)) & _ONES
    return (word & _NIBBLES) + letters * np.uint64(9)


def unsigned(text: Text, start: Integers, end: Integers) -> tuple[Words, Flags]:
    """Return bare numbers of up to 20 digits."""
    length = end - start
    value, sound = _eight(text, end, length.clip(1, 8))
    sound &= (length > 0) & (length <= 20)
    for step, weight in ((8, 10**8), (16, 10**16)):
        longer = np.flatnonzero(sound & (length > step))
        if not len(longer):
            break
        part, digits = _eight(text, end[longer] - step, (length[longer] - step).clip(1, 8))
        value[longer] += part * np.uint64(weight)
        sound[longer] &= digits
    return value, sound


def hexadecimals(text: Text, start: Integers, end: Integers) -> tuple[Words, Flags]:
    """Return the numbers of up to 16 hexadecimal digits written there."""
    length = end - start
    sound = (length > 0) & (length <= 16)
    value = _eight_hexadecimal(text, end, length.clip(1, 8))
    longer = np.flatnonzero(sound & (length > 8))
    if len(longer):
        part = _eight_hexadecimal(text, end[longer] - 8, (length[longer] - 8).clip(1, 8))
        value[longer] |= part << np.uint64(32)
    return value, sound


def _eight_hexadecimal(text: Text, end: Integers, count: Integers) -> Words:
    return _joined(_kept(_nibbles(text.words[end - 8]), count), _HEXADECIMAL)


def unquoted(text: Text, start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Leave out the quotes around values that have them."""
    quoted = text.bytes[start] == QUOTE
    if not quoted.any():
        return start, end
    quoted &= (text.bytes[end - 1] == QUOTE) & (end - start >= 2)
    return start + quoted, end - quoted
