"""Every log is read as Darshan's own library reads it, except where that library is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ioprism import Trace, characterise, read
from ioprism.formats.darshan.log import Log, read_log
from ioprism.formats.darshan.meaning import FIXED, LUSTRE_COMPONENT
from ioprism.formats.darshan.reader import DarshanReader
from tests.conftest import SHARED_DATA

pytestmark = pytest.mark.corpus
libdarshan: Any = pytest.importorskip("darshan.backend.cffi_backend")

LOGS = sorted((SHARED_DATA / "darshan").rglob("*.darshan"))
SMALL = [path for path in LOGS if path.parent.name != "big"]

# libdarshan leaves these unswapped in big-endian logs of POSIX versions before 4.
UNSWAPPED = ("POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME")
# libdarshan moves 16 bytes too few when it converts POSIX version 3.
LOST = ("POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES")


def ident(path: Path) -> str:
    return path.name[:40]


# Tests run log by log: each is read once, and closed before the next one.
@pytest.fixture(scope="module", params=SMALL, ids=ident)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture(scope="module")
def log(path: Path) -> Log:
    return read_log(path)


@pytest.fixture(scope="module")
def trace(path: Path) -> Trace:
    return DarshanReader().read(path)  # its partitions as the reader makes them


@pytest.fixture
def theirs(path: Path) -> Iterator[dict[str, Any]]:
    handle = libdarshan.log_open(str(path))
    yield handle
    libdarshan.log_close(handle)


def records(handle: dict[str, Any], module: str) -> Iterator[dict[str, Any]]:
    while record := libdarshan.log_get_record(handle, module, "numpy"):
        yield record


def identifiers(trace: Trace, names: pl.Series) -> list[int | None]:
    """The record identifiers behind rows of the file table."""
    by_row = dict(trace.files.select("file", "id").iter_rows())
    return [by_row.get(row) for row in names.to_list()]


def test_job_facts_and_mounts_agree(trace: Trace, theirs: dict[str, Any]) -> None:
    job = libdarshan.log_get_job(theirs)

    assert trace.job.user == job["uid"]
    assert trace.job.ranks == job["nprocs"]
    assert trace.job.job_id == str(job["jobid"])
    assert trace.job.start_time == job["start_time_sec"] + job["start_time_nsec"] / 1e9
    if job["end_time_sec"]:
        assert trace.job.end_time == job["end_time_sec"] + job["end_time_nsec"] / 1e9
        assert trace.job.runtime == pytest.approx(job["run_time"], abs=1e-6)
    assert dict(trace.job.metadata) == job["metadata"]
    # libdarshan gives up on a command line that fills its whole field; it is there all the same.
    executable = libdarshan.log_get_exe(theirs)
    assert trace.job.executable == executable or (not executable and "<TRUNC" in repr(trace.job))
    mounts = {(mount.path, mount.filesystem) for mount in trace.job.mounts}
    assert mounts == set(libdarshan.log_get_mounts(theirs))


def test_modules_versions_and_partial_flags_agree(log: Log, theirs: dict[str, Any]) -> None:
    modules = libdarshan.log_get_modules(theirs)

    assert {n for n, region in log.modules.items() if region.length} == set(modules)
    for name, facts in modules.items():
        assert log.modules[name].version == facts["ver"]
        assert log.modules[name].length == facts["len"]
        if log.byte_order == "<":  # libdarshan does not swap the flags
            assert log.modules[name].partial == facts["partial_flag"]


def test_names_agree(trace: Trace, theirs: dict[str, Any]) -> None:
    names = libdarshan.log_get_name_records(theirs)
    ours = dict(trace.files.select("id", "path").iter_rows())

    assert {names[identifier] for identifier in names if identifier not in ours} <= {
        "heatmap:POSIX", "heatmap:MPIIO", "heatmap:STDIO", "heatmap:DFS", "heatmap:DAOS",
        "darshan-internal-bgq", "darshan-apmpi-header", "darshan-apxc-header", "APMPI", "APXC",
    }  # fmt: skip
    assert ours == {identifier: names[identifier] for identifier in ours}


def test_counters_agree(log: Log, trace: Trace, theirs: dict[str, Any]) -> None:
    for module, versions in FIXED.items():
        if module not in trace.counters:
            continue
        newest = versions[max(versions)]
        table = trace.counters[module]
        expected = list(records(theirs, module)) if module != "BG/Q" else bgq_records(theirs)
        assert table.height == len(expected)
        if not expected:
            continue
        assert table["rank"].to_list() == [record["rank"] for record in expected]
        if module != "BG/Q":
            assert identifiers(trace, table["file"]) == [record["id"] for record in expected]
        for names, field in ((newest.counters, "counters"), (newest.times, "fcounters")):
            values = np.array([record[field] for record in expected])
            for number, name in enumerate(names):
                if not known_wrong(name, log):
                    column = table[name].fill_null(0 if name == "POSIX_RENAMED_FROM" else -1)
                    np.testing.assert_array_equal(column.to_numpy(), values[:, number], name)


def known_wrong(name: str, log: Log) -> bool:
    version = log.modules["POSIX"].version if "POSIX" in log.modules else 4
    swapped = log.byte_order == ">" and version < 4 and name in UNSWAPPED
    return swapped or (version == 3 and name in LOST)


def bgq_records(handle: dict[str, Any]) -> list[dict[str, Any]]:
    """BG/Q records, which pydarshan itself does not offer, through its library."""
    ffi, library = libdarshan.ffi, libdarshan.libdutil
    index = libdarshan.log_get_modules(handle)["BG/Q"]["idx"]
    found = []
    buffer = ffi.new("void **")
    while library.darshan_log_get_record(handle["handle"], index, buffer) >= 1:
        record = ffi.cast("struct darshan_bgq_record **", buffer)[0]
        found.append(
            {
                "rank": record.base_rec.rank,
                "counters": list(record.counters),
                "fcounters": list(record.fcounters),
            }
        )
        library.darshan_free(buffer[0])
        buffer[0] = ffi.NULL
    return found


def test_big_endian_times_are_right_where_libdarshan_leaves_them_unswapped(
    log: Log, trace: Trace, theirs: dict[str, Any]
) -> None:
    if not (log.byte_order == ">" and "POSIX" in log.modules and log.modules["POSIX"].version < 4):
        return  # parametrised over all logs; the others have nothing to show here
    names = libdarshan.fcounter_names("POSIX")
    raw = np.array([record["fcounters"] for record in records(theirs, "POSIX")])
    for name in UNSWAPPED:
        swapped = raw[:, names.index(name)].byteswap()
        np.testing.assert_array_equal(trace.counters["POSIX"][name].to_numpy(), swapped)
        assert trace.counters["POSIX"][name].is_between(0, 1e6).all()


def test_variances_of_version_3_are_kept_where_libdarshan_loses_them(
    log: Log, trace: Trace, theirs: dict[str, Any]
) -> None:
    if "POSIX" not in log.modules or log.modules["POSIX"].version != 3:
        return
    names = libdarshan.fcounter_names("POSIX")
    raw = np.array([record["fcounters"] for record in records(theirs, "POSIX")])
    shared = trace.counters["POSIX"].filter(pl.col("rank") == -1)

    for name in LOST:
        assert (raw[:, names.index(name)] == 0).all()
        assert (shared[name] >= 0).all()
    if shared.height:
        assert (shared["POSIX_F_VARIANCE_RANK_TIME"] > 0).any()


def test_lustre_layouts_agree(trace: Trace, theirs: dict[str, Any]) -> None:
    if "LUSTRE" not in trace.counters:
        return
    expected = [
        (record["id"], record["rank"], component)
        for record in iter(lambda: libdarshan._log_get_lustre_record(theirs), None)
        for component in record["components"]
    ]
    table = trace.counters["LUSTRE"]

    assert table.height == len(expected)
    assert identifiers(trace, table["file"]) == [identifier for identifier, _, _ in expected]
    assert table["rank"].to_list() == [rank for _, rank, _ in expected]
    assert table["targets"].to_list() == [c["ost_ids"].tolist() for _, _, c in expected]
    for number, name in enumerate(LUSTRE_COMPONENT):
        theirs_column = [int(component["counters"][number]) for _, _, component in expected]
        for mine, other in zip(table[name].to_list(), theirs_column, strict=True):
            assert mine == other or mine is None  # version 1 has the size and the count alone


def test_heat_maps_agree(trace: Trace, theirs: dict[str, Any]) -> None:
    if "HEATMAP" not in trace.counters:
        return
    expected = list(iter(lambda: libdarshan._log_get_heatmap_record(theirs), None))
    table = trace.counters["HEATMAP"]

    assert table["rank"].to_list() == [record["rank"] for record in expected]
    assert table["bin_width"].to_list() == [record["bin_width_seconds"] for record in expected]
    assert table["write"].to_list() == [record["write_bins"].tolist() for record in expected]
    assert table["read"].to_list() == [record["read_bins"].tolist() for record in expected]
    assert table["layer"].null_count() == 0


def test_segments_agree(log: Log, trace: Trace, theirs: dict[str, Any]) -> None:
    if "DXT_POSIX" in log.modules and log.modules["DXT_POSIX"].version > 1:
        return  # the installed library does not know thread ids
    for partition in trace.partitions:
        module = partition.region.name  # type: ignore[attr-defined]
        events = pl.concat([b.collect() for b in partition.batches(pytest.fail)])
        events = events.with_columns(id=pl.Series(identifiers(trace, events["file"])))
        expected = list(dxt_rows(theirs, module))
        columns = ["id", "rank", "operation", "offset", "bytes", "start", "end"]
        ours = list(events.select(columns).iter_rows())
        if events["offset"].null_count():
            expected = [(*row[:3], None, *row[4:]) for row in expected]

        assert ours == expected


def dxt_rows(handle: dict[str, Any], module: str) -> Iterator[tuple[Any, ...]]:
    while record := libdarshan.log_get_dxt_record(handle, module):
        for operation in ("write", "read"):
            for segment in record[f"{operation}_segments"]:
                yield (
                    record["id"], record["rank"], operation, segment["offset"],
                    segment["length"], segment["start_time"], segment["end_time"],
                )  # fmt: skip


def test_a_large_log_keeps_every_segment(shared_data: Path) -> None:
    trace = read(shared_data / "darshan/made/big/synth_dxt_1M.darshan")
    events, posix = trace.events(), trace.counters["POSIX"]

    assert events.height == 999_424
    written = events.filter(operation="write")["bytes"].sum()
    assert written == posix["POSIX_BYTES_WRITTEN"].sum()


def test_thread_identifiers_are_read(shared_data: Path) -> None:
    trace = read(shared_data / "darshan/made/m_threads_dxt_v2_pthread_id.darshan")
    events = trace.events()

    assert trace.processes.filter(pl.col("tid").is_not_null()).height == 8
    assert events["process"].n_unique() == 8
    assert (
        events["bytes"].sum()
        == trace.counters["POSIX"]
        .select(pl.col("POSIX_BYTES_READ") + pl.col("POSIX_BYTES_WRITTEN"))
        .sum()
        .item()
    )


def test_the_logs_of_a_killed_job_are_one_job(shared_data: Path) -> None:
    apart = read(shared_data / "darshan/made/l_killed_job_mmap_logs")
    merged = read(shared_data / "darshan/made/l_killed_job_merged.darshan")

    assert apart.job.ranks == merged.job.ranks == 2
    assert apart.processes.height == 2
    assert posix_by_name(apart).rows() == posix_by_name(merged).rows()


def posix_by_name(trace: Trace) -> pl.DataFrame:
    name = pl.col("path").str.extract(r"([^/]*)$").alias("name")
    columns = ["rank", "POSIX_WRITES", "POSIX_BYTES_WRITTEN", "POSIX_F_WRITE_TIME"]
    return trace.counters["POSIX"].join(trace.files, on="file").select(name, *columns).sort("name")


@pytest.mark.parametrize(
    "truth_file", sorted((SHARED_DATA / "darshan").rglob("*.truth.json")), ids=ident
)
def test_totals_equal_what_the_program_counted(truth_file: Path) -> None:
    truth = json.loads(truth_file.read_text())
    log = truth_file.with_name(truth_file.name.replace(".truth.json", ".darshan"))
    if "metadata_storm" in log.name:
        pytest.skip("the storm moves no bytes")
    found = characterise(read(log))
    counted = sum(rank["bytes"] for rank in truth["ranks"])
    by_layer = {n: sum(a.bytes for a in kinds.values()) for n, kinds in found.by_layer.items()}

    assert counted in by_layer.values()
    assert found.job.ranks == truth["nprocs"]
