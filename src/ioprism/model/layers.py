"""The I/O interfaces, which of them is below which, and Darshan's classes of request sizes.

A byte that a program writes through HDF5 passes MPI-IO and then POSIX: adding up layers
counts it three times. So totals take each file's calls at the deepest layer that shows them.
A layer that shows less than half of the bytes written above it was not recorded whole, and is
passed over. Reads need not add up: a library may read a byte once for all ranks, or have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interface:
    """One I/O interface."""

    name: str
    title: str  # as its users write it
    height: int  # 0: hands data to the system or to storage; others call one below them


# In the order of the `layer` column's categories: stored traces depend on it.
INTERFACES = (
    Interface("posix", "POSIX", 0),
    Interface("stdio", "STDIO", 0),
    Interface("mpiio", "MPI-IO", 2),
    Interface("hdf5", "HDF5", 3),
    Interface("pnetcdf", "PnetCDF", 3),
    Interface("netcdf", "NetCDF", 4),
    Interface("dfs", "DFS", 1),
    Interface("daos", "DAOS", 0),
    Interface("application", "application", 5),
    Interface("other", "other calls", 5),
)
LAYERS = tuple(interface.name for interface in INTERFACES)
TITLES = {interface.name: interface.title for interface in INTERFACES}
HEIGHT = {interface.name: interface.height for interface in INTERFACES}
OPERATIONS = (
    "read", "write", "open", "close", "seek", "stat", "sync", "metadata", "other",
)  # fmt: skip
# The layers from storage up to the program.
UPWARDS = tuple(sorted(LAYERS, key=lambda name: HEIGHT[name]))

LEAST_SEEN = 0.5  # of the bytes written above: below that, calls are missing


def deepest(layers: Iterable[str]) -> tuple[str, ...]:
    """Return the layers whose calls none of the others repeats: all of the lowest height."""
    present = set(layers)
    lowest = min((HEIGHT[name] for name in present), default=0)
    return tuple(name for name in LAYERS if name in present and HEIGHT[name] == lowest)


def counted_layers(moved: Mapping[str, float], operation: str) -> tuple[str, ...]:
    """Return the layers at which reads or writes count, given the bytes that each shows."""
    least = LEAST_SEEN * max(moved.values(), default=0) if operation == "write" else 0
    return deepest(name for name, size in moved.items() if size >= least)


KIB, MIB, GIB = 2**10, 2**20, 2**30
MOST_RANKS = 2**24  # more than any machine has cores; beyond it the number is damage
LARGEST_PLAUSIBLE = 2**60  # an exbibyte, and more calls than any job makes: beyond it is damage


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Sizes from `low` to `high`, both included; the last bin has no upper end."""

    low: int
    high: int | None
    counter: str  # how the names of Darshan's counters end


_NAMES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M",
          "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")  # fmt: skip
LARGEST_IN_BIN = (100, KIB, 10 * KIB, 100 * KIB, MIB, 4 * MIB, 10 * MIB, 100 * MIB, GIB)
SIZE_BINS = tuple(
    SizeBin(low, high, name)
    for low, high, name in zip(
        (0, *(size + 1 for size in LARGEST_IN_BIN)), (*LARGEST_IN_BIN, None), _NAMES, strict=True
    )
)
