"""What the writer writes, the reader returns bit for bit, whatever the version of the log."""

from __future__ import annotations

import tracemalloc
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.synthetic.darshan_records import (
    Counters,
    Dxt,
    DxtRecord,
    Heatmap,
    HeatmapRecord,
    LogContent,
    Lustre,
    LustreComponent,
    LustreRecord,
    Module,
    Segments,
)
from benchmarks.synthetic.darshan_writer import VERSIONS, Compression, Version, write_log
from ioprism import Job, Mount, OutputError, Trace, UsageError, read
from ioprism.formats.darshan.log import ByteOrder, read_log
from ioprism.formats.darshan.meaning import FIXED, MODULE_NAMES, PADDING

BYTE_ORDERS: tuple[ByteOrder, ...] = ("<", ">")
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
RECORDS = [(module, version) for module, versions in FIXED.items() for version in versions]
DXT_VERSIONS = [
    ("DXT_POSIX", 1),
    ("DXT_POSIX", 2),
    ("DXT_MPIIO", 1),
    ("DXT_MPIIO", 2),
    ("DXT_MPIIO", 3),
]
IDS = (2**64 - 5, 17, 2**63 + 9, 99)
NAMES = {identifier: f"/data/set/{identifier}.nc" for identifier in IDS}
RANKS = (-1, 0, 3, 1, 2)
JOB = Job(
    ranks=4,
    start_time=1_750_000_000.25,
    end_time=1_750_000_100.75,
    runtime=100.5,
    executable="./simulation --deck input.toml",
    user=1234,
    job_id="987654",
    mounts=(Mount("/", "ext4"), Mount("/scratch", "lustre")),
    metadata={"lib_ver": "3.5.0", "h": "romio_no_indep_rw=true;cb_nodes=4"},
)

# Random values are no counts, and the reader says so.
CONTRADICTION = "inconsistent"

every_byte_order = pytest.mark.parametrize("byte_order", BYTE_ORDERS)
every_compression = pytest.mark.parametrize("compression", COMPRESSIONS)


def records(module: str, version: int) -> pl.DataFrame:
    """Records whose every field has a value of its own, one per rank and one for all."""
    layout = FIXED[module][version]
    rng = np.random.default_rng(seed=len(module) + version)
    rows = len(RANKS)
    columns: dict[str, object] = {
        "id": np.array([IDS[row % 4] for row in range(rows)], np.uint64),
        "rank": np.array(RANKS),
    }
    if layout.has_parent:
        columns["parent"] = np.array([IDS[3 - row % 4] for row in range(rows)], np.uint64)
    for name in layout.counters:
        if name != PADDING:
            columns[name] = rng.integers(-(2**62), 2**62, rows)
    for name in layout.times:
        columns[name] = rng.random(rows) * 1e3
    for name in layout.tail:
        columns[name] = (
            [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(rows)]
            if name.endswith("_UUID")
            else rng.integers(2**62, 2**64, rows, np.uint64)
        )
    return pl.DataFrame(columns)


def as_read(table: pl.DataFrame) -> pl.DataFrame:
    """The records in the order of the ranks that add them, with rows of the file table."""
    rows = {identifier: row for row, identifier in enumerate(NAMES)}
    codes = [
        pl.col(name).replace_strict(rows, return_dtype=pl.UInt32).alias(file)
        for name, file in (("id", "file"), ("parent", "parent"))
        if name in table.columns
    ]
    table = table.sort(pl.col("rank").clip(lower_bound=0), maintain_order=True)
    return table.with_columns(codes).with_columns(pl.col("rank").cast(pl.Int32)).drop("id")


def room_for(module: str) -> list[Version]:
    """The log versions whose header has a place for a module."""
    first = {"H5D": (3, 20), "PNETCDF_VAR": (3, 41), "DAOS": (3, 41)}
    return [version for version in VERSIONS if version >= first.get(module, (3, 0))]


def read_back(path: Path) -> Trace:
    trace = read(path)
    assert trace.files.height == len(NAMES)
    return trace


@pytest.mark.parametrize(("module", "version"), RECORDS)
@every_byte_order
def test_every_record_version_comes_back_bit_for_bit(
    tmp_path: Path, module: str, version: int, byte_order: ByteOrder
) -> None:
    table = records(module, version)
    expected = as_read(table)
    content = LogContent(JOB, NAMES, [Counters(module, table, version)])
    for log_version in room_for(module):
        for compression in COMPRESSIONS:
            path = tmp_path / f"{log_version}-{compression}.darshan"
            write_log(
                path, content, version=log_version, byte_order=byte_order, compression=compression,
                replace=True,
            )  # fmt: skip
            trace = read_back(path)
            found = trace.counters[module]

            assert [w for w in trace.completeness.warnings if CONTRADICTION not in w] == []
            assert found.select(expected.columns).equals(expected)


@pytest.mark.parametrize(("module", "version"), RECORDS)
def test_counters_that_a_version_lacks_are_null(tmp_path: Path, module: str, version: int) -> None:
    table = records(module, version)
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, NAMES, [Counters(module, table, version)]))
    found = read_back(path).counters[module]

    derived = {"PNETCDF_FILE_OPENS"} if module == "PNETCDF_FILE" else set()
    lacking = set(found.columns) - set(as_read(table).columns) - derived
    assert all(found[name].null_count() == found.height for name in lacking)


@pytest.mark.parametrize("version", VERSIONS)
@every_byte_order
@every_compression
def test_job_and_names_come_back(
    tmp_path: Path, version: Version, byte_order: ByteOrder, compression: Compression
) -> None:
    path = tmp_path / "log.darshan"
    names = {n * 2**40 + 7: f"/naïve/名前/<b>{n}</b>\x1b[31m" for n in range(1, 3000)}

    write_log(
        path,
        LogContent(JOB, names),
        version=version,
        byte_order=byte_order,
        compression=compression,
    )
    trace = read(path)

    assert dict(trace.files.select("id", "path").iter_rows()) == names
    assert trace.completeness.warnings == ()
    if version >= (3, 41):
        assert trace.job == JOB
    else:
        assert trace.job.start_time == 1_750_000_000
        assert trace.job.end_time == 1_750_000_100
        assert (trace.job.ranks, trace.job.user, trace.job.job_id) == (4, 1234, "987654")
        assert (trace.job.mounts, trace.job.metadata) == (JOB.mounts, JOB.metadata)


def test_a_killed_job_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(Job(ranks=1, start_time=1.75e9)))

    assert read(path).job.end_time is None


@pytest.mark.parametrize("version", VERSIONS)
@every_byte_order
def test_each_module_can_be_marked_partial(
    tmp_path: Path, version: Version, byte_order: ByteOrder
) -> None:
    path = tmp_path / "log.darshan"
    for module in MODULE_NAMES:
        if version in room_for(module):
            write_log(
                path, LogContent(JOB), version=version, byte_order=byte_order, partial=[module],
                replace=True,
            )  # fmt: skip
            flagged = [name for name, region in read_log(path).modules.items() if region.partial]

            assert flagged == [module]


def segments(rng: np.random.Generator, count: int, *, threads: bool) -> Segments:
    start = np.sort(rng.random(count) * 100)
    thread = rng.integers(0, 3, count).astype(np.uint64) if threads else None
    return Segments(
        rng.integers(0, 2**50, count),
        rng.integers(0, 2**30, count),
        start,
        start + rng.random(count),
        thread,
    )


def dxt_records(*, threads: bool) -> list[DxtRecord]:
    rng = np.random.default_rng(seed=3)
    return [
        DxtRecord(
            IDS[file],
            rank,
            writes=segments(rng, 5 * rank + file, threads=threads),
            reads=segments(rng, 3 * file, threads=threads),
            host=f"node{rank // 2}",
            shared=file == 0,
        )
        for rank in range(4)
        for file in range(3)
    ]


def flat(record: DxtRecord) -> Iterator[tuple[object, ...]]:
    for operation, part in (("write", record.writes), ("read", record.reads)):
        for row in range(len(part)):
            values = (part.offset[row], part.length[row], part.start[row], part.end[row])
            yield record.rank, NAMES[record.id], operation, *(v.item() for v in values)


def traced(trace: Trace) -> list[tuple[object, ...]]:
    named = trace.events().join(trace.files.select("file", "path"), on="file", how="left")
    return named.select("rank", "path", "operation", "offset", "bytes", "start", "end").rows()


@pytest.mark.parametrize(("module", "version"), DXT_VERSIONS)
@every_byte_order
@every_compression
def test_every_traced_call_comes_back(
    tmp_path: Path, module: str, version: int, byte_order: ByteOrder, compression: Compression
) -> None:
    threads = (module, version) in {("DXT_POSIX", 2), ("DXT_MPIIO", 3)}
    written = dxt_records(threads=threads)
    path = tmp_path / "log.darshan"

    write_log(
        path,
        LogContent(JOB, NAMES, [Dxt(module, iter(written), version)]),
        byte_order=byte_order,
        compression=compression,
    )
    trace = read_back(path)

    expected = sorted(call for record in written for call in flat(record))
    if (module, version) == ("DXT_MPIIO", 1):
        expected = sorted((*call[:3], None, *call[4:]) for call in expected)
        assert sorted(traced(trace), key=repr) == sorted(expected, key=repr)
    else:
        assert sorted(traced(trace)) == expected
    assert trace.completeness.warnings == ()
    assert dict(trace.processes.select("rank", "host").iter_rows()) == {
        rank: f"node{rank // 2}" for rank in range(4)
    }
    assert trace.processes["tid"].drop_nulls().n_unique() == (3 if threads else 0)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6),
    byte_order=st.sampled_from(BYTE_ORDERS),
    seed=st.integers(0, 2**32),
)
def test_any_number_of_calls_comes_back(
    tmp_path: Path, counts: list[tuple[int, int]], byte_order: ByteOrder, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    written = [
        DxtRecord(
            IDS[rank % 4],
            rank % 4,
            segments(rng, writes, threads=False),
            segments(rng, reads, threads=False),
        )
        for rank, (writes, reads) in enumerate(counts)
    ]
    path = tmp_path / "log.darshan"

    content = LogContent(JOB, NAMES, [Dxt("DXT_POSIX", written, 1)])
    write_log(path, content, byte_order=byte_order, replace=True)

    expected = sorted(call for record in written for call in flat(record))
    assert sorted(traced(read(path))) == expected


@every_byte_order
@every_compression
def test_heat_maps_come_back(
    tmp_path: Path, byte_order: ByteOrder, compression: Compression
) -> None:
    maps = [HeatmapRecord(IDS[0], r, 0.1, [r, 2**40, 0], [5, 6, r]) for r in range(3)]
    maps.append(HeatmapRecord(IDS[0], 3, 0.2, [1], [2]))
    path = tmp_path / "log.darshan"
    content = LogContent(JOB, {IDS[0]: "heatmap:POSIX"}, [Heatmap(maps)])

    write_log(path, content, byte_order=byte_order, compression=compression)
    found = read(path).counters["HEATMAP"]

    assert found["layer"].unique().to_list() == ["posix"]
    assert found.select("rank", "bin_width", "write", "read").rows() == [
        (one.rank, one.bin_width, one.write, one.read) for one in maps
    ]


@every_byte_order
@every_compression
@pytest.mark.parametrize("version", [1, 2])
def test_stripe_layouts_come_back(
    tmp_path: Path, version: int, byte_order: ByteOrder, compression: Compression
) -> None:
    unused = LustreComponent([], stripe_size=-1, stripe_count=0, extent_start=2**30)
    parts = [LustreComponent([3, 1, 2], 2**20, pattern=1, flags=16, mirror=7, pool="flash")]
    layouts = [
        LustreRecord(IDS[0], -1, parts if version == 1 else [*parts, unused]),
        LustreRecord(IDS[1], 2, [LustreComponent([9], 2**16)]),
    ]
    path = tmp_path / "log.darshan"

    write_log(
        path,
        LogContent(JOB, NAMES, [Lustre(layouts, version=version)]),
        byte_order=byte_order,
        compression=compression,
    )
    trace = read_back(path)

    found = trace.files.select("stripe_size", "stripe_count", "targets").rows()
    assert found[:3] == [(2**20, 3, [3, 1, 2]), (2**16, 1, [9]), (None, None, None)]
    table = trace.counters["LUSTRE"]
    assert table.height == (2 if version == 1 else 3)
    if version == 2:
        first = table.row(0, named=True)
        assert (first["pattern"], first["flags"], first["mirror"]) == (1, 16, 7)
        assert (first["pool"], table["stripe_size"].to_list()) == ("flash", [2**20, -1, 2**16])


def test_each_rank_adds_one_compressed_stream(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"
    modules: list[Module] = [
        Counters("POSIX", records("POSIX", 4), 4),
        Dxt("DXT_POSIX", dxt_records(threads=False), 1),
    ]

    write_log(path, LogContent(JOB, NAMES, modules))

    log = read_log(path)
    for region in log.modules.values():
        data = path.read_bytes()[region.offset : region.offset + region.length]
        streams = 0
        while data:
            inflate = zlib.decompressobj()
            inflate.decompress(data)
            assert inflate.eof
            data, streams = inflate.unused_data, streams + 1
        assert streams == 4


def test_writing_many_calls_needs_memory_for_one_record_only(tmp_path: Path) -> None:
    size = 2**16
    times: npt.NDArray[np.float64] = np.linspace(0, 1, size)

    def one_after_the_other() -> Iterator[DxtRecord]:
        for rank in range(40):
            offsets = np.arange(size) * 4096
            yield DxtRecord(17, rank, Segments(offsets, np.full(size, 4096), times, times))

    job = Job(ranks=40, start_time=1.75e9)
    tracemalloc.start()
    try:
        content = LogContent(job, NAMES, [Dxt("DXT_POSIX", one_after_the_other(), 1)])
        write_log(tmp_path / "log.darshan", content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 20e6  # all calls together are 84 MB


def test_a_failure_leaves_the_old_log_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"
    write_log(path, LogContent(JOB, NAMES))
    before = path.read_bytes()

    with pytest.raises(OutputError, match="already exists"):
        write_log(path, LogContent(JOB))
    with pytest.raises(UsageError, match="no POSIX records of version 9"):
        content = LogContent(JOB, NAMES, [Counters("POSIX", records("POSIX", 4), 9)])
        write_log(path, content, replace=True)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")

    with pytest.raises(OutputError, match="cannot be written"):
        write_log(blocker / "log.darshan", LogContent(JOB))


def test_old_logs_refuse_modules_they_have_no_room_for(tmp_path: Path) -> None:
    content = LogContent(JOB, NAMES, [Counters("H5D", records("H5D", 1), 1)])

    with pytest.raises(UsageError, match="no room for H5D"):
        write_log(tmp_path / "log.darshan", content, version=(3, 10))


def test_unknown_log_versions_are_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"choose one of 3\.00, 3\.10"):
        write_log(tmp_path / "log.darshan", LogContent(JOB), version=(2, 5))


def test_a_misspelt_counter_is_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": [1], "rank": [0], "POSIX_OPENINGS": [1]})

    with pytest.raises(UsageError, match="may not have POSIX_OPENINGS"):
        write_log(tmp_path / "log.darshan", LogContent(JOB, {}, [Counters("POSIX", table, 4)]))


def test_metadata_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    job = Job(ranks=1, metadata={"h": "x" * 1024})

    with pytest.raises(UsageError, match="keep to 1023 bytes of metadata"):
        write_log(tmp_path / "log.darshan", LogContent(job))


@pytest.mark.parametrize("version", [1, 2])
def test_a_layout_of_an_impossible_rank_is_damage(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.darshan"
    layouts = [LustreRecord(IDS[0], 2**40, [LustreComponent([9], 2**16)])]
    write_log(path, LogContent(JOB, NAMES, [Lustre(layouts, version=version)]))
    trace = read(path)

    assert trace.counters["LUSTRE"].is_empty()
    assert "a LUSTRE record is damaged" in trace.completeness.warnings[0]
