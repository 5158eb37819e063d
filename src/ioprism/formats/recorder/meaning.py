"""What the calls of Recorder mean: one by one, and for families of signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ioprism.formats.calls import APPEND, UNKNOWN, Call, Integers, classify
from ioprism.formats.recorder.signatures import Signature, SignatureTable
from ioprism.model.trace import LARGEST_PLAUSIBLE

TYPE_SIZES: Mapping[str, int] = {
    **dict.fromkeys(("MPI_BYTE", "MPI_CHAR", "MPI_PACKED", "MPI_SIGNED_CHAR", "MPI_INT8_T",
                     "MPI_UNSIGNED_CHAR", "MPI_UINT8_T", "MPI_CHARACTER"), 1),
    **dict.fromkeys(("MPI_SHORT", "MPI_UNSIGNED_SHORT", "MPI_INT16_T", "MPI_UINT16_T"), 2),
    **dict.fromkeys(("MPI_INT", "MPI_UNSIGNED", "MPI_FLOAT", "MPI_INT32_T", "MPI_UINT32_T",
                     "MPI_INTEGER", "MPI_REAL", "MPI_LOGICAL"), 4),
    **dict.fromkeys(("MPI_LONG", "MPI_UNSIGNED_LONG", "MPI_DOUBLE", "MPI_LONG_LONG",
                     "MPI_LONG_LONG_INT", "MPI_UNSIGNED_LONG_LONG", "MPI_INT64_T", "MPI_UINT64_T",
                     "MPI_DOUBLE_PRECISION", "MPI_OFFSET", "MPI_AINT"), 8),
    **dict.fromkeys(("MPI_LONG_DOUBLE", "MPI_DOUBLE_COMPLEX"), 16),
}  # fmt: skip
_FORMULA = re.compile(r"(-?\d{1,18})\*r\+(-?\d{1,18})")


class Offset(NamedTuple):
    """The first byte a call touches: `base + per_rank * rank`."""

    base: int
    per_rank: int = 0


class Meaning(NamedTuple):
    """A signature, understood."""

    call: Call
    path: str | None = None
    handle: str | None = None  # an MPI file handle that stands for the path
    opens: str | None = None  # the MPI file handle that this call defines
    bytes: int | None = None
    offset: Offset | None = None
    sets: bool = False  # the file pointer stands at `position` afterwards
    position: int | None = None  # None: somewhere
    moves: int | None = None  # bytes that the file pointer is moved on
    shifts_view: bool = False  # offsets on this handle no longer are those of the file


Arguments = tuple[str, ...]


def number(text: str) -> int | None:
    """Return a whole number; None for anything else, or more than can be."""
    try:
        value = int(text) if len(text) < 20 else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < LARGEST_PLAUSIBLE else None


def meaning(signature: Signature) -> Meaning:
    """Understand a signature; arguments that make no sense are taken as missing."""
    call = classify(plain_name(signature.function))
    understand = _BY_LAYER.get(call.layer)
    return Meaning(call) if understand is None else understand(call, signature)


def plain_name(function: str) -> str:
    """Return the name without the mark of MPI's profiling interface."""
    return function[1:] if function.startswith("PMPI_") else function


def _at(arguments: Arguments, place: int) -> int | None:
    return number(arguments[place]) if len(arguments) > place else None


def _path(arguments: Arguments, place: int = 0) -> str | None:
    if not -len(arguments) <= place < len(arguments):
        return None
    path = arguments[place]
    return None if path in ("", "???", "%p") or path.lstrip("-").isdigit() else path


def _offset(arguments: Arguments, place: int) -> Offset | None:
    if len(arguments) <= place:
        return None
    formula = _FORMULA.fullmatch(arguments[place]) if "*" in arguments[place] else None
    if formula:
        return Offset(int(formula[2]), int(formula[1]))
    value = number(arguments[place])
    return None if value is None or value < 0 else Offset(value)


def _posix(call: Call, signature: Signature) -> Meaning:
    arguments = signature.arguments
    name = signature.function.lstrip("_")
    if call.operation in ("read", "write"):
        vector = name.startswith(("readv", "writev"))
        size = _size(_at(arguments, 1 if vector else 2))
        offset = _offset(arguments, 3) if call.positional else None
        moves = None if call.positional else (size or 0)
        return Meaning(call, _path(arguments), bytes=size, offset=offset, moves=moves)
    if call.operation == "open":
        place = 1 if name.startswith("openat") else 0
        flags = _at(arguments, place + 1) or 0
        appends = bool(flags & APPEND) and not name.startswith("creat")
        position = None if appends else 0
        return Meaning(call, _path(arguments, place), sets=True, position=position)
    if call.operation == "seek":
        return _seek(call, _path(arguments), arguments)
    if name.startswith(("xstat", "lxstat", "fxstat")):
        return Meaning(call, _path(arguments, 1))
    if name.startswith("mmap"):
        return Meaning(call, _path(arguments, 4))
    return Meaning(call, _path(arguments))


def _seek(call: Call, path: str | None, arguments: Arguments) -> Meaning:
    """Absolute and relative seeks tell where they lead; one from the end does not."""
    distance, whence = _at(arguments, 1), _at(arguments, 2)
    if whence == 1 and distance is not None:
        return Meaning(call, path, moves=distance)
    absolute = distance if whence == 0 and distance is not None and distance >= 0 else None
    return Meaning(call, path, sets=True, position=absolute)


def _stdio(call: Call, signature: Signature) -> Meaning:
    arguments = signature.arguments
    name = signature.function
    if name.startswith(("fread", "fwrite")):
        size, items = _at(arguments, 1), _at(arguments, 2)
        moved = _size(size * items) if size is not None and items is not None else None
        return Meaning(call, _path(arguments, 3), bytes=moved, moves=moved or 0)
    if call.operation in ("read", "write"):
        moved = _size(_at(arguments, 1))
        return Meaning(call, _path(arguments), bytes=moved, moves=moved or 0)
    if name.startswith("fopen"):
        appends = len(arguments) > 1 and arguments[1].startswith("a")
        return Meaning(call, _path(arguments), sets=True, position=None if appends else 0)
    if call.operation == "seek":
        if name == "rewind":
            return Meaning(call, _path(arguments), sets=True, position=0)
        return _seek(call, _path(arguments), arguments)
    return Meaning(call, _path(arguments))


def _mpiio(call: Call, signature: Signature) -> Meaning:
    arguments, name = signature.arguments, plain_name(signature.function)
    if call.operation == "open":
        handle = arguments[4] if len(arguments) > 4 else None
        return Meaning(call, _path(arguments, 1), opens=handle)
    handle = arguments[0] if arguments else None
    if call.operation in ("read", "write") and not name.endswith("_end"):
        shift = 1 if call.positional else 0
        size = TYPE_SIZES.get(arguments[3 + shift]) if len(arguments) > 3 + shift else None
        items = _at(arguments, 2 + shift)
        moved = _size(size * items) if size is not None and items is not None else None
        offset = _offset(arguments, 1) if call.positional else None
        return Meaning(call, handle=handle, bytes=moved, offset=offset)
    if name == "MPI_File_set_view":
        plain = len(arguments) > 3 and arguments[1] == "0" and arguments[3] in TYPE_SIZES
        return Meaning(call, handle=handle, shifts_view=not plain)
    return Meaning(call, handle=handle)


def _library(call: Call, signature: Signature) -> Meaning:
    """HDF5 and netCDF: only file calls name a file."""
    names = [a for a in signature.arguments if a.startswith("/")]
    is_file = signature.function.startswith("H5F") or call.operation == "open"
    return Meaning(call, names[0] if names and is_file else None)


def _size(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < LARGEST_PLAUSIBLE else None


_BY_LAYER: Mapping[str, Callable[[Call, Signature], Meaning]] = {
    "posix": _posix,
    "stdio": _stdio,
    "mpiio": _mpiio,
    "hdf5": _library,
    "pnetcdf": _library,
    "netcdf": _library,
}


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
