"""What the counters of each Darshan module mean: the one table that all readers use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Names = tuple[str, ...]
_CALLS: Mapping[str, Names] = {"read": ("READS",), "write": ("WRITES",)}


def _both(*patterns: str) -> Mapping[str, Names]:
    """Counters of both directions; `{}` stands for READ or WRITE."""
    return {
        direction: tuple(pattern.format(direction.upper()) for pattern in patterns)
        for direction in ("read", "write")
    }


@dataclass(frozen=True, slots=True)
class Module:
    """Which counters mean what; names lack the module's prefix."""

    layer: str
    prefix: str
    calls: Mapping[str, Names] = field(default_factory=lambda: _CALLS)  # direction -> counters
    collective: Mapping[str, Names] = field(default_factory=dict)
    independent: Mapping[str, Names] = field(default_factory=dict)
    nonblocking: Mapping[str, Names] = field(default_factory=dict)
    opens: Names = ("OPENS",)
    not_opens: Names = ()  # counted in `opens`, but they open nothing
    seeks: Names = ()
    stats: Names = ()
    syncs: Names = ()  # that force data to storage
    other_metadata: Names = ()
    sizes: str | None = "SIZE_{}_AGG_"  # before the bin; None: without a histogram
    sizes_add_up: bool = False  # whether each call is in the histogram exactly once
    sequences: bool = False  # whether sequential and consecutive accesses are counted
    extras: Mapping[str, str] = field(default_factory=dict)

    @property
    def moves_data(self) -> bool:
        """Whether it counts reads and writes at all."""
        return bool(self.calls)

    def bytes(self, direction: str) -> str:
        """The counter of the bytes moved."""
        return self.counter_name("BYTES_READ" if direction == "read" else "BYTES_WRITTEN")

    def seconds(self, operation: str) -> str:
        """The time of all reads, all writes, or all metadata calls."""
        return self.counter_name(
            f"F_{'META' if operation == 'metadata' else operation.upper()}_TIME"
        )

    def size_counter(self, direction: str, size_bin: str) -> str:
        """The counter of one bin of the histogram of sizes."""
        return self.counter_name(f"{(self.sizes or '').format(direction.upper())}{size_bin}")

    def counter_name(self, counter: str) -> str:
        """A counter's whole name."""
        return f"{self.prefix}_{counter}"


MODULES: Mapping[str, Module] = {
    "POSIX": Module(
        "posix", "POSIX",
        not_opens=("FILENOS", "DUPS"), seeks=("SEEKS",), stats=("STATS",),
        syncs=("FSYNCS", "FDSYNCS"), other_metadata=("MMAPS", "RENAME_SOURCES"),
        sizes="SIZE_{}_", sizes_add_up=True, sequences=True,
    ),
    "STDIO": Module(
        "stdio", "STDIO",
        opens=("OPENS", "FDOPENS"), seeks=("SEEKS",),
        # fflush hands data to the system; it does not force them to storage.
        other_metadata=("FLUSHES",), sizes=None,
    ),
    "MPI-IO": Module(
        "mpiio", "MPIIO",
        _both("INDEP_{}S", "COLL_{}S", "SPLIT_{}S", "NB_{}S"),
        collective=_both("COLL_{}S", "SPLIT_{}S"), independent=_both("INDEP_{}S"),
        nonblocking=_both("NB_{}S", "SPLIT_{}S"),
        opens=("INDEP_OPENS", "COLL_OPENS"), syncs=("SYNCS",), other_metadata=("VIEWS",),
        sizes_add_up=True,
    ),
    "H5F": Module("hdf5", "H5F", {}, syncs=("FLUSHES",), sizes=None),
    "H5D": Module(
        "hdf5", "H5D", syncs=("FLUSHES",), sizes_add_up=True,
        extras={
            "regular": "REGULAR_HYPERSLAB_SELECTS", "irregular": "IRREGULAR_HYPERSLAB_SELECTS",
            "points": "POINT_SELECTS", "collective": "USE_MPIIO_COLLECTIVE",
        },
    ),
    "PNETCDF_FILE": Module(
        "pnetcdf", "PNETCDF_FILE", {},
        opens=("CREATES", "OPENS"), syncs=("SYNCS",),
        other_metadata=("REDEFS", "INDEP_WAITS", "COLL_WAITS"), sizes=None,
    ),
    "PNETCDF_VAR": Module(
        "pnetcdf", "PNETCDF_VAR", _both("INDEP_{}S", "COLL_{}S", "NB_{}S"),
        collective=_both("COLL_{}S"), independent=_both("INDEP_{}S"), nonblocking=_both("NB_{}S"),
    ),
    "DFS": Module(
        "dfs", "DFS", _both("{}S", "{}XS"),
        nonblocking=_both("NB_{}S"),  # counted among the others too
        opens=("OPENS", "GLOBAL_OPENS", "LOOKUPS"), stats=("STATS", "GET_SIZES"),
        other_metadata=("PUNCHES", "REMOVES"), sizes="SIZE_{}_", sizes_add_up=True,
    ),
    "DAOS": Module(
        "daos", "DAOS",
        {"read": ("OBJ_FETCHES", "ARRAY_READS", "KV_GETS"),
         "write": ("OBJ_UPDATES", "ARRAY_WRITES", "KV_PUTS")},
        opens=("OBJ_OPENS", "ARRAY_OPENS", "KV_OPENS"), stats=("ARRAY_GET_SIZES", "ARRAY_STATS"),
        other_metadata=(
            "OBJ_PUNCHES", "OBJ_DKEY_PUNCHES", "OBJ_AKEY_PUNCHES", "OBJ_DKEY_LISTS",
            "OBJ_AKEY_LISTS", "OBJ_RECX_LISTS", "ARRAY_SET_SIZES", "ARRAY_PUNCHES",
            "ARRAY_DESTROYS", "KV_REMOVES", "KV_LISTS", "KV_DESTROYS",
        ),
        sizes="SIZE_{}_",
    ),
}  # fmt: skip
# Modules whose reads and writes are judged; the others count what is done to whole files.
DATA_MODULES = {name: module for name, module in MODULES.items() if module.moves_data}
