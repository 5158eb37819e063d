"""Understand hundreds of thousands of signatures that differ in numbers only, all at once.

A program that reads at random offsets has a signature per read. What such signatures have in
common is understood once; sizes, offsets and positions are taken from their columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.formats.calls import classify
from ioprism.formats.file_pointer import UNKNOWN, Integers
from ioprism.formats.recorder.meaning import plain_name
from ioprism.formats.recorder.signatures import SignatureTable
from ioprism.model.layers import LARGEST_PLAUSIBLE

MANY = 64  # signatures of one function that are worth it
AS_FIRST = UNKNOWN + 1
_PLAIN = r"^-?\d{1,18}$"


@dataclass(frozen=True, slots=True)
class Places:
    """Which arguments of a function matter, and what the numbers among them are."""

    key: tuple[int, ...]  # arguments that have to be the same
    size: tuple[int, ...] = ()  # multiplied, they are the bytes moved
    offset: int | None = None
    target: int | None = None  # where a seek leads, or how far


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """Signatures by what they have in common."""

    of_row: Integers  # family of every signature, in the table's order
    first: Integers  # row of each family's first signature
    bytes: Integers  # of every signature; AS_FIRST: as the family's first one says
    offset: Integers
    amount: Integers


def places_of(function: str) -> Places | None:
    """Return where the numbers stand in a function's arguments; None if it is not worth it."""
    call, name = classify(plain_name(function)), plain_name(function).lstrip("_")
    moves = call.operation in ("read", "write")
    if call.layer == "posix" and moves:
        size = 1 if name.startswith(("readv", "writev")) else 2
        return Places((0,), (size,), 3 if call.positional else None)
    if call.layer == "stdio" and name.startswith(("fread", "fwrite")):
        return Places((3,), (1, 2))
    if call.layer in ("posix", "stdio") and call.operation == "seek" and name != "rewind":
        return Places((0, 2), target=1)
    if call.layer == "mpiio" and moves and call.positional and not name.endswith("_end"):
        return Places((0, 3, 4), offset=1)
    return None


def families(table: SignatureTable) -> Families:
    """Put signatures together that differ in numbers only."""
    height = len(table)
    of_row = np.full(height, -1)
    numbers = np.full((3, height), AS_FIRST)
    firsts: list[int] = []
    for code, name in enumerate(table.names):
        rows = np.flatnonzero(table.functions == code)
        places = places_of(name) if len(rows) >= MANY else None
        if places is None:
            continue
        parsed = _of_function(table.texts.gather(rows), places, len(firsts))
        chosen = rows[parsed.rows]
        of_row[chosen] = parsed.family
        firsts += rows[parsed.first].tolist()
        numbers[:, chosen] = parsed.numbers
    alone = np.flatnonzero(of_row < 0)
    of_row[alone] = np.arange(len(firsts), len(firsts) + len(alone))
    first = np.concatenate([np.array(firsts, np.int64), alone])
    return Families(of_row, first, *numbers)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    rows: Integers
    family: Integers
    first: Integers  # row of each family
    numbers: Integers  # bytes, offset, amount


def _of_function(texts: pl.Series, places: Places, taken: int) -> _Found:
    arguments = texts.str.split(" ")

    def argument(place: int) -> pl.Series:
        return arguments.list.get(place, null_on_oob=True)

    free = [*places.size, *(p for p in (places.offset, places.target) if p is not None)]
    is_plain = pl.Series([True]).new_from_index(0, len(texts))
    for place in free:
        is_plain &= argument(place).str.contains(_PLAIN).fill_null(False)
    rows = np.flatnonzero(is_plain.to_numpy())
    value = {place: argument(place).gather(rows).cast(pl.Int64).to_numpy() for place in free}
    keys = pl.DataFrame({str(place): argument(place).gather(rows) for place in places.key})
    numbered = keys.unique(maintain_order=True).with_row_index("family")
    joined = keys.join(
        numbered, on=keys.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    family = joined["family"].cast(pl.Int64).to_numpy()
    _, first = np.unique(family, return_index=True)
    whence = keys["2"].to_numpy() if places.target is not None else None
    return _Found(rows, family + taken, rows[first], _numbers(places, value, whence))


def _numbers(places: Places, value: dict[int, Integers], whence: object) -> Integers:
    height = len(next(iter(value.values())))
    moved, offset, amount = np.full((3, height), AS_FIRST)
    if places.size:
        about = np.prod([value[p].astype(np.float64) for p in places.size], axis=0)
        possible = (about >= 0) & (about < LARGEST_PLAUSIBLE)
        exact = np.prod([value[p] for p in places.size], axis=0)
        moved = np.where(possible, exact, UNKNOWN)
        if places.offset is None:  # then the file pointer moves on
            amount = np.where(possible, exact, 0)
    if places.offset is not None:
        offset = np.where(value[places.offset] >= 0, value[places.offset], UNKNOWN)
    if places.target is not None:
        distance = value[places.target]
        absolute = (np.asarray(whence) == "0") & (distance >= 0)
        relative = np.asarray(whence) == "1"
        amount = np.where(absolute | relative, distance, UNKNOWN)
    return np.array([moved, offset, amount])
