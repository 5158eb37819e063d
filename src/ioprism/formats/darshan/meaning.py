"""What the records of each Darshan module look like in every version, and what they mean.

A fixed record is {id u64, rank i64, [parent id u64], counters i64…, times f64…, [tail]}.
Older versions lack some fields; the tables below name what each version has, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ioprism.model.trace import SIZE_BINS

# Position in the header's module table, for logs since 3.41.
MODULE_NAMES = (
    "NULL", "POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE",
    "STDIO", "DXT_POSIX", "DXT_MPIIO", "MDHIM", "APXC", "APMPI", "HEATMAP", "DFS", "DAOS",
)  # fmt: skip
# A module added later shifts those after it: absent from the table before this version.
ADDED_IN = {"H5D": (3, 20), "PNETCDF_VAR": (3, 41)}
PADDING = "PADDING"  # a word that carries nothing


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of one fixed-size record, in order, after id and rank."""

    counters: tuple[str, ...]
    times: tuple[str, ...]
    has_parent: bool = False  # a data set's file
    tail: tuple[str, ...] = ()  # 16-byte `…_UUID` or 8-byte unsigned fields

    @property
    def words(self) -> int:
        """The record's length in 8-byte words."""
        tail = sum(2 if name.endswith("_UUID") else 1 for name in self.tail)
        return 2 + self.has_parent + len(self.counters) + len(self.times) + tail

    def without(self, *names: str) -> Layout:
        """Return the layout of an older version that lacked these fields."""
        return Layout(
            tuple(name for name in self.counters if name not in names),
            tuple(name for name in self.times if name not in names),
            self.has_parent,
            self.tail,
        )


def _numbered_names(prefix: str, names: str) -> Iterable[str]:
    return (f"{prefix}{i}_{names}" for i in range(1, 5))


def _sizes(prefix: str, *, aggregate: str) -> Iterable[str]:
    return (
        f"{prefix}_SIZE_{direction}_{aggregate}{size.counter}"
        for direction in ("READ", "WRITE")
        for size in SIZE_BINS
    )


def _accesses_in_dimensions(prefix: str) -> Iterable[str]:
    for i in range(1, 5):
        yield f"{prefix}_ACCESS{i}_ACCESS"
        yield from (f"{prefix}_ACCESS{i}_LENGTH_D{d}" for d in range(1, 6))
        yield from (f"{prefix}_ACCESS{i}_STRIDE_D{d}" for d in range(1, 6))


def _prefix(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for name in names.split())


def _ranks(prefix: str) -> tuple[str, ...]:
    return _prefix(prefix, "FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES")


def _times(prefix: str, *, variance: bool = True) -> tuple[str, ...]:
    moments = [f"{what}_{edge}_TIMESTAMP" for edge in ("START", "END")
               for what in ("OPEN", "READ", "WRITE", "CLOSE")]  # fmt: skip
    names = (*moments, "READ_TIME", "WRITE_TIME", "META_TIME", "MAX_READ_TIME", "MAX_WRITE_TIME",
             "FASTEST_RANK_TIME", "SLOWEST_RANK_TIME")  # fmt: skip
    spread = ("VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES") if variance else ()
    return tuple(f"{prefix}_F_{name}" for name in (*names, *spread))


def _most_common(prefix: str) -> tuple[str, ...]:
    return (
        *_numbered_names(f"{prefix}_ACCESS", "ACCESS"),
        *_numbered_names(f"{prefix}_ACCESS", "COUNT"),
    )


POSIX = Layout(
    (
        *_prefix("POSIX", "OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS "
                   "RENAME_SOURCES RENAME_TARGETS RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN "
                   "MAX_BYTE_READ MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS "
                   "SEQ_WRITES RW_SWITCHES MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED "
                   "FILE_ALIGNMENT MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE"),
        *_sizes("POSIX", aggregate=""),
        *_numbered_names("POSIX_STRIDE", "STRIDE"),
        *_numbered_names("POSIX_STRIDE", "COUNT"),
        *_most_common("POSIX"),
        *_ranks("POSIX"),
    ),
    _times("POSIX"),
)  # fmt: skip
POSIX_3 = POSIX.without(
    *_prefix("POSIX", "FILENOS DUPS RENAME_SOURCES RENAME_TARGETS RENAMED_FROM")
)
POSIX_2 = POSIX_3.without("POSIX_F_CLOSE_START_TIMESTAMP", "POSIX_F_OPEN_END_TIMESTAMP")
# Version 1 counted stdio calls in the POSIX module, between MMAPS and FSYNCS.
POSIX_1 = Layout(
    (
        *POSIX_2.counters[:6],
        *_prefix("POSIX", "FOPENS FREADS FWRITES FSEEKS"),
        *POSIX_2.counters[6:],
    ),
    POSIX_2.times,
)

MPIIO = Layout(
    (
        *_prefix("MPIIO", "INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS "
                   "COLL_WRITES SPLIT_READS SPLIT_WRITES NB_READS NB_WRITES SYNCS HINTS VIEWS "
                   "MODE BYTES_READ BYTES_WRITTEN RW_SWITCHES MAX_READ_TIME_SIZE "
                   "MAX_WRITE_TIME_SIZE"),
        *_sizes("MPIIO", aggregate="AGG_"),
        *_most_common("MPIIO"),
        *_ranks("MPIIO"),
    ),
    _times("MPIIO"),
)  # fmt: skip
MPIIO_2 = MPIIO.without("MPIIO_F_CLOSE_START_TIMESTAMP", "MPIIO_F_OPEN_END_TIMESTAMP")

STDIO = Layout(
    (
        *_prefix("STDIO", "OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ "
                   "MAX_BYTE_READ MAX_BYTE_WRITTEN"),
        *_ranks("STDIO"),
    ),
    _prefix("STDIO_F", "META_TIME WRITE_TIME READ_TIME OPEN_START_TIMESTAMP "
              "CLOSE_START_TIMESTAMP WRITE_START_TIMESTAMP READ_START_TIMESTAMP "
              "OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP WRITE_END_TIMESTAMP READ_END_TIMESTAMP "
              "FASTEST_RANK_TIME SLOWEST_RANK_TIME VARIANCE_RANK_TIME VARIANCE_RANK_BYTES"),
)  # fmt: skip

H5F = Layout(
    _prefix("H5F", "OPENS FLUSHES USE_MPIIO"),
    _prefix("H5F_F", "OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP OPEN_END_TIMESTAMP "
              "CLOSE_END_TIMESTAMP META_TIME"),
)  # fmt: skip
H5F_2 = H5F.without("H5F_FLUSHES", "H5F_USE_MPIIO", "H5F_F_META_TIME")
H5F_1 = H5F_2.without("H5F_F_CLOSE_START_TIMESTAMP", "H5F_F_OPEN_END_TIMESTAMP")

H5D = Layout(
    (
        *_prefix("H5D", "OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES "
                   "REGULAR_HYPERSLAB_SELECTS IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS "
                   "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE"),
        *_sizes("H5D", aggregate="AGG_"),
        *_accesses_in_dimensions("H5D"),
        *_numbered_names("H5D_ACCESS", "COUNT"),
        *_prefix("H5D", "DATASPACE_NDIMS DATASPACE_NPOINTS DATATYPE_SIZE CHUNK_SIZE_D1 "
                   "CHUNK_SIZE_D2 CHUNK_SIZE_D3 CHUNK_SIZE_D4 CHUNK_SIZE_D5 "
                   "USE_MPIIO_COLLECTIVE USE_DEPRECATED"),
        *_ranks("H5D"),
    ),
    _times("H5D"),
    has_parent=True,
)  # fmt: skip
H5D_1 = Layout(H5D.counters, H5D.times)

PNETCDF_FILE = Layout(
    _prefix("PNETCDF_FILE", "CREATES OPENS REDEFS INDEP_WAITS COLL_WAITS SYNCS BYTES_READ "
              "BYTES_WRITTEN WAIT_FAILURES"),
    _prefix("PNETCDF_FILE_F", "OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP WAIT_START_TIMESTAMP "
              "OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP WAIT_END_TIMESTAMP META_TIME WAIT_TIME"),
)  # fmt: skip
PNETCDF_FILE_2 = Layout(
    _prefix("PNETCDF_FILE", "INDEP_OPENS COLL_OPENS"),
    _prefix("PNETCDF_FILE_F", "OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP OPEN_END_TIMESTAMP "
              "CLOSE_END_TIMESTAMP"),
)  # fmt: skip
PNETCDF_FILE_1 = PNETCDF_FILE_2.without(
    "PNETCDF_FILE_F_CLOSE_START_TIMESTAMP", "PNETCDF_FILE_F_OPEN_END_TIMESTAMP"
)

_PNETCDF_CALLS = "VAR VAR1 VARA VARS VARM VARN"
PNETCDF_VAR = Layout(
    (
        *_prefix("PNETCDF_VAR", "OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS "
                   "NB_WRITES BYTES_READ BYTES_WRITTEN RW_SWITCHES"),
        *_prefix("PNETCDF_VAR_PUT", f"{_PNETCDF_CALLS} VARD"),
        *_prefix("PNETCDF_VAR_GET", f"{_PNETCDF_CALLS} VARD"),
        *_prefix("PNETCDF_VAR_IPUT", _PNETCDF_CALLS),
        *_prefix("PNETCDF_VAR_IGET", _PNETCDF_CALLS),
        *_prefix("PNETCDF_VAR_BPUT", _PNETCDF_CALLS),
        *_prefix("PNETCDF_VAR", "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE"),
        *_sizes("PNETCDF_VAR", aggregate="AGG_"),
        *_accesses_in_dimensions("PNETCDF_VAR"),
        *_numbered_names("PNETCDF_VAR_ACCESS", "COUNT"),
        *_prefix("PNETCDF_VAR", "NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR"),
        *_ranks("PNETCDF_VAR"),
    ),
    _times("PNETCDF_VAR"),
    has_parent=True,
)  # fmt: skip

BGQ = Layout(
    _prefix("BGQ", "CSJOBID NNODES RANKSPERNODE DDRPERNODE INODES ANODES BNODES CNODES DNODES "
              "ENODES TORUSENABLED"),
    ("BGQ_F_TIMESTAMP",),
)  # fmt: skip

DFS = Layout(
    (
        *_prefix("DFS", "OPENS GLOBAL_OPENS LOOKUPS DUPS READS READXS WRITES WRITEXS NB_READS "
                   "NB_WRITES GET_SIZES PUNCHES REMOVES STATS BYTES_READ BYTES_WRITTEN "
                   "RW_SWITCHES MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE"),
        *_sizes("DFS", aggregate=""),
        *_most_common("DFS"),
        "DFS_CHUNK_SIZE",
        *_ranks("DFS"),
    ),
    _times("DFS", variance=False),
    tail=("DFS_POOL_UUID", "DFS_CONT_UUID"),
)  # fmt: skip
DAOS = Layout(
    (
        *_prefix("DAOS", "OBJ_OPENS OBJ_FETCHES OBJ_UPDATES OBJ_PUNCHES OBJ_DKEY_PUNCHES "
                   "OBJ_AKEY_PUNCHES OBJ_DKEY_LISTS OBJ_AKEY_LISTS OBJ_RECX_LISTS ARRAY_OPENS "
                   "ARRAY_READS ARRAY_WRITES ARRAY_GET_SIZES ARRAY_SET_SIZES ARRAY_STATS "
                   "ARRAY_PUNCHES ARRAY_DESTROYS KV_OPENS KV_GETS KV_PUTS KV_REMOVES KV_LISTS "
                   "KV_DESTROYS NB_OPS BYTES_READ BYTES_WRITTEN RW_SWITCHES MAX_READ_TIME_SIZE "
                   "MAX_WRITE_TIME_SIZE"),
        *_sizes("DAOS", aggregate=""),
        *_most_common("DAOS"),
        *_prefix("DAOS", "OBJ_OTYPE ARRAY_CELL_SIZE ARRAY_CHUNK_SIZE"),
        *_ranks("DAOS"),
    ),
    _times("DAOS", variance=False),
    tail=("DAOS_POOL_UUID", "DAOS_CONT_UUID", "DAOS_OID_HI", "DAOS_OID_LO"),
)  # fmt: skip

# Module -> version -> layout; the highest version is the one whose columns the tables have.
FIXED: Mapping[str, Mapping[int, Layout]] = {
    "POSIX": {1: POSIX_1, 2: POSIX_2, 3: POSIX_3, 4: POSIX},
    "MPI-IO": {1: MPIIO_2, 2: MPIIO_2, 3: MPIIO},
    "STDIO": {1: STDIO.without("STDIO_FDOPENS"), 2: STDIO},
    "H5F": {1: H5F_1, 2: H5F_2, 3: H5F},
    "H5D": {1: H5D_1, 2: H5D},
    "PNETCDF_FILE": {1: PNETCDF_FILE_1, 2: PNETCDF_FILE_2, 3: PNETCDF_FILE},
    "PNETCDF_VAR": {1: PNETCDF_VAR},
    "BG/Q": {1: Layout((PADDING, *BGQ.counters), BGQ.times), 2: BGQ},
    "DFS": {1: DFS},
    "DAOS": {1: DAOS},
}

# Words in front of a DXT record's segments: id, rank, shared, host[64], writes, reads.
DXT_HEADER_WORDS = 13
DXT_LAYERS = {"DXT_POSIX": "posix", "DXT_MPIIO": "mpiio"}
DXT_VERSIONS = {"DXT_POSIX": (1, 2), "DXT_MPIIO": (1, 2, 3)}


def dxt_segment_words(module: str, version: int) -> int:
    """Words per segment: offset, length, start, end, and since Darshan 3.6 the thread id."""
    return 5 if version >= {"DXT_POSIX": 2, "DXT_MPIIO": 3}[module] else 4


def dxt_has_offsets(module: str, version: int) -> bool:
    """Whether offsets are meaningful: the first MPI-IO version left them undefined."""
    return not (module == "DXT_MPIIO" and version < 2)


LUSTRE_COMPONENT = (
    "stripe_size", "stripe_count", "pattern", "flags", "extent_start", "extent_end", "mirror",
)  # fmt: skip

HEATMAP_LAYERS = {
    "heatmap:POSIX": "posix",
    "heatmap:MPIIO": "mpiio",
    "heatmap:STDIO": "stdio",
    "heatmap:DFS": "dfs",
    "heatmap:DAOS": "daos",
}
WITHOUT_FILES = "BG/Q"  # its records are of nodes
# How the names of counters end that are plain numbers of calls or bytes.
PLAIN_COUNTS = ("_READS", "_WRITES", "OPENS", "_BYTES_READ", "_BYTES_WRITTEN")
# Names of records that are about the machine or the job, not about a file.
NOT_FILES = (
    *HEATMAP_LAYERS,
    "darshan-internal-bgq",
    "darshan-apmpi-header",
    "darshan-apxc-header",
    "APMPI",
    "APXC",
)


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
