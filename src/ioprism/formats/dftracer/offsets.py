"""How many bytes calls moved, and where in the file they began."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ioprism.formats.file_pointer import UNKNOWN, FilePointers, Integers
from ioprism.model.layers import LARGEST_PLAUSIBLE, LAYERS
from ioprism.model.schema import OPERATIONS

APPEND = 0o2000  # O_APPEND: where a write goes is not known
Codes = npt.NDArray[np.uint8]


def moved_bytes(numbers: Mapping[str, Integers], layer: Codes, operation: Codes) -> Integers:
    """Return what reads and writes moved: what they returned, else what they were asked for."""
    data = operation <= OPERATIONS.index("write")
    returned, asked, size = (numbers[key] for key in ("ret", "count", "size"))
    moved = np.where(returned == UNKNOWN, asked, returned.clip(min=0))
    items = (layer == LAYERS.index("stdio")) & (size > 0) & (moved != UNKNOWN)
    if items.any():  # fread and fwrite count items
        moved = np.where(items, moved.clip(max=LARGEST_PLAUSIBLE) * size.clip(1, 2**20), moved)
    return np.where(data & (moved >= 0) & (moved < LARGEST_PLAUSIBLE), moved, UNKNOWN)


def pointer_key(process: npt.NDArray[np.uint32], file: npt.NDArray[np.integer]) -> Integers:
    """Return one number for a process and its file, which share a pointer."""
    return (process.astype(np.int64) << 32) | (file.astype(np.int64) & 0xFFFFFFFF)


def offsets(
    numbers: Mapping[str, Integers], process: npt.NDArray[np.uint32], file: Integers,
    layer: Codes, operation: Codes, positional: npt.NDArray[np.bool_], moved: Integers,
    pointers: FilePointers,
) -> Integers:  # fmt: skip
    """Return the calls' own offsets, or the replayed file pointer."""
    is_open = operation == OPERATIONS.index("open")
    is_seek = operation == OPERATIONS.index("seek")
    data = operation <= OPERATIONS.index("write")
    worked = (numbers["ret"] >= 0) | (numbers["ret"] == UNKNOWN)
    named = (file >= 0) & (layer <= LAYERS.index("stdio"))
    append = (numbers["flags"] != UNKNOWN) & ((numbers["flags"] & APPEND) != 0)
    amount = np.where(data, np.where(moved == UNKNOWN, 0, moved), UNKNOWN)
    amount = np.where(is_open & ~append, 0, amount)
    amount = np.where(is_seek, _sought(numbers, layer), amount)
    positions = pointers.replay(
        pointer_key(process, file),
        sets=named & worked & (is_open | is_seek),
        moves=named & data & ~positional,
        amount=amount,
    )
    own = np.where(numbers["offset"] >= 0, numbers["offset"], UNKNOWN)
    return np.where(data & named, np.where(positional, own, positions), UNKNOWN)


def _sought(numbers: Mapping[str, Integers], layer: Codes) -> Integers:
    """Where a seek leaves the pointer: lseek returns it, fseek only if it was absolute."""
    returned, offset, whence = (numbers[key] for key in ("ret", "offset", "whence"))
    absolute = np.where((whence == 0) & (offset >= 0), offset, UNKNOWN)
    posix = layer == LAYERS.index("posix")
    return np.where(posix & (returned >= 0), returned, absolute)
