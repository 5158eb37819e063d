"""Darshan's own library reads what the writer writes, and agrees, except where it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

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
    Segments,
)
from benchmarks.synthetic.darshan_writer import VERSIONS, Compression, Version, write_log
from ioprism import read
from ioprism.formats.darshan.log import ByteOrder, read_log
from ioprism.formats.darshan.meaning import FIXED, LUSTRE_COMPONENT, PADDING
from tests.formats.darshan.test_writer import JOB

libdarshan: Any = pytest.importorskip("darshan.backend.cffi_backend")

IDS = (2**64 - 5, 17, 2**63 + 9)
NAMES = {identifier: f"/data/{identifier}" for identifier in IDS}

# libdarshan cannot read BG/Q through its Python interface.
RECORDS = [(m, version) for m, versions in FIXED.items() for version in versions if m != "BG/Q"]
# libdarshan gives -1 for what an old version lacks, and this one 0.
ABSENT = {"POSIX_RENAMED_FROM": 0}
# libdarshan leaves these unswapped in big-endian logs of POSIX versions before 4.
UNSWAPPED = {"POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME"}
# libdarshan moves too few bytes when it converts POSIX versions 2 and 3: the last are lost.
VARIANCES = {"POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES"}
LOST = {3: VARIANCES, 2: VARIANCES | {"POSIX_F_FASTEST_RANK_TIME", "POSIX_F_SLOWEST_RANK_TIME"}}
# libdarshan adds up the opens of old PnetCDF files before it swaps their bytes.
ADDED_UNSWAPPED = "PNETCDF_FILE_OPENS"
# libdarshan leaves out POSIX version 1 records that opened a stdio stream.
STREAMS = ("POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FSEEKS")

every_byte_order = pytest.mark.parametrize("byte_order", ["<", ">"])


@contextmanager
def opened(path: Path) -> Iterator[dict[str, Any]]:
    handle = libdarshan.log_open(str(path))
    yield handle
    libdarshan.log_close(handle)


def theirs(path: Path, module: str) -> list[dict[str, Any]]:
    with opened(path) as handle:
        found = []
        while (record := libdarshan.log_get_record(handle, module, dtype="dict")) is not None:
            found.append(record)
        return found


def records(module: str, version: int) -> pl.DataFrame:
    layout = FIXED[module][version]
    rng = np.random.default_rng(seed=version)
    columns: dict[str, object] = {"id": np.array(IDS, np.uint64), "rank": [-1, 1, 2]}
    if layout.has_parent:
        columns["parent"] = np.array(IDS[::-1], np.uint64)
    for name in layout.counters:
        if name != PADDING:
            columns[name] = rng.integers(1, 2**50, 3)
    columns |= {name: rng.random(3) * 1e3 for name in layout.times}
    columns |= {name: [0, 0, 0] for name in STREAMS if name in columns}
    return pl.DataFrame(columns)


def known_errors(module: str, version: int, byte_order: str) -> set[str]:
    big = byte_order == ">"
    if module == "PNETCDF_FILE":
        return {ADDED_UNSWAPPED} if big and version < 3 else set()
    if module != "POSIX":
        return set()
    return (UNSWAPPED if big and version < 4 else set()) | LOST.get(version, set())


def opens(record: dict[str, int]) -> int:
    return record["PNETCDF_FILE_INDEP_OPENS"] + record["PNETCDF_FILE_COLL_OPENS"]


@pytest.mark.parametrize(("module", "version"), RECORDS)
@every_byte_order
def test_counters_agree(tmp_path: Path, module: str, version: int, byte_order: ByteOrder) -> None:
    table = records(module, version)
    written = table.to_dicts()
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, NAMES, [Counters(module, table, version)]),
              byte_order=byte_order)  # fmt: skip

    found = theirs(path, module)
    wrong = known_errors(module, version, byte_order)
    assert [(one["id"], one["rank"]) for one in found] == list(zip(IDS, (-1, 1, 2), strict=True))
    for one, expected in zip(found, written, strict=True):
        values = one["counters"] | one["fcounters"]
        if "PNETCDF_FILE_COLL_OPENS" in expected:
            expected["PNETCDF_FILE_OPENS"] = opens(expected)
        differing = {k for k, v in values.items() if v != expected.get(k, ABSENT.get(k, -1))}
        assert differing == wrong
        # libdarshan forgets to swap the bytes of a data set's file.
        if "parent" in expected and (module, byte_order) != ("H5D", ">"):
            assert one["file_rec_id"] == expected["parent"]


@pytest.mark.parametrize("version", [1, 2, 3])
@every_byte_order
def test_where_libdarshan_is_wrong_the_reader_is_right(
    tmp_path: Path, version: int, byte_order: ByteOrder
) -> None:
    table = records("POSIX", version)
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, NAMES, [Counters("POSIX", table, version)]),
              byte_order=byte_order)  # fmt: skip
    found = read(path).counters["POSIX"]

    for name in UNSWAPPED | VARIANCES | LOST[2]:
        assert found[name].to_list() == table[name].to_list()


@pytest.mark.parametrize("version", [1, 2])
def test_the_reader_adds_up_opens_of_big_endian_logs(tmp_path: Path, version: int) -> None:
    table = records("PNETCDF_FILE", version)
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, NAMES, [Counters("PNETCDF_FILE", table, version)]),
              byte_order=">")  # fmt: skip
    found = read(path).counters["PNETCDF_FILE"]

    assert found["PNETCDF_FILE_OPENS"].to_list() == [opens(one) for one in table.to_dicts()]


def test_the_reader_sees_partial_bits_of_big_endian_logs_that_libdarshan_does_not(
    tmp_path: Path,
) -> None:
    content = LogContent(JOB, NAMES, [Counters("POSIX", records("POSIX", 4), 4)])
    flags = {}
    orders: tuple[ByteOrder, ...] = ("<", ">")
    for byte_order in orders:
        path = tmp_path / f"{ord(byte_order)}.darshan"
        write_log(path, content, byte_order=byte_order, partial=["POSIX"])
        with opened(path) as handle:
            theirs = libdarshan.log_get_modules(handle)["POSIX"]["partial_flag"]
        flags[byte_order] = (theirs, read_log(path).modules["POSIX"].partial)

    assert flags == {"<": (True, True), ">": (False, True)}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("compression", ["zlib", "none"])
@every_byte_order
def test_job_names_and_mounts_agree(
    tmp_path: Path, version: Version, compression: Compression, byte_order: ByteOrder
) -> None:
    path = tmp_path / "log.darshan"
    content = LogContent(JOB, NAMES, [Counters("POSIX", records("POSIX", 4), 4)])

    write_log(path, content, version=version, compression=compression, byte_order=byte_order)

    with opened(path) as handle:
        job = libdarshan.log_get_job(handle)
        assert (job["uid"], job["nprocs"], job["jobid"]) == (
            JOB.user,
            JOB.ranks,
            int(JOB.job_id or 0),
        )
        assert (job["start_time_sec"], job["end_time_sec"]) == (1_750_000_000, 1_750_000_100)
        nanoseconds = (250_000_000, 750_000_000) if version >= (3, 41) else (0, 0)
        assert (job["start_time_nsec"], job["end_time_nsec"]) == nanoseconds
        assert job["metadata"] == dict(JOB.metadata)
        assert libdarshan.log_get_exe(handle) == JOB.executable
        mounts = {(mount, kind) for mount, kind in libdarshan.log_get_mounts(handle)}
        assert mounts == {(mount.path, mount.filesystem) for mount in JOB.mounts}
        assert libdarshan.log_get_name_records(handle) == NAMES


@pytest.mark.parametrize(("module", "version"), [("DXT_POSIX", 1), ("DXT_MPIIO", 2)])
@every_byte_order
def test_traced_calls_agree(
    tmp_path: Path, module: str, version: int, byte_order: ByteOrder
) -> None:
    rng = np.random.default_rng(seed=1)
    offset, length = rng.integers(0, 2**50, 30), rng.integers(0, 2**30, 30)
    calls = Segments(offset, length, rng.random(30), 1 + rng.random(30))
    written = [DxtRecord(IDS[r], r, calls[: 5 * r], calls[5 * r :], host="n1") for r in range(3)]
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, NAMES, [Dxt(module, written, version)]), byte_order=byte_order)

    found = theirs(path, module)
    assert [(one["id"], one["rank"], one["hostname"]) for one in found] == [
        (IDS[rank], rank, "n1") for rank in range(3)
    ]
    for one, record in zip(found, written, strict=True):
        for kind, part in (("write", record.writes), ("read", record.reads)):
            names = ("offset", "length", "start_time", "end_time")
            assert [tuple(s[name] for name in names) for s in one[f"{kind}_segments"]] == list(
                zip(part.offset, part.length, part.start, part.end, strict=True)
            )


@every_byte_order
def test_heat_maps_agree(tmp_path: Path, byte_order: ByteOrder) -> None:
    maps = [HeatmapRecord(IDS[0], rank, 0.1, [1, 2, rank], [2**40, 0, 7]) for rank in range(3)]
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, {IDS[0]: "heatmap:POSIX"}, [Heatmap(maps)]),
              byte_order=byte_order)  # fmt: skip

    found = theirs(path, "HEATMAP")
    for one, record in zip(found, maps, strict=True):
        assert (one["rank"], one["bin_width_seconds"]) == (record.rank, record.bin_width)
        assert list(one["write_bins"]) == list(record.write)
        assert list(one["read_bins"]) == list(record.read)


@every_byte_order
def test_stripe_layouts_agree(tmp_path: Path, byte_order: ByteOrder) -> None:
    parts = [LustreComponent([3, 1], 2**20, pattern=1, mirror=2), LustreComponent([5], 2**16)]
    path = tmp_path / "log.darshan"

    write_log(path, LogContent(JOB, NAMES, [Lustre([LustreRecord(IDS[0], -1, parts)])]),
              byte_order=byte_order)  # fmt: skip

    (found,) = theirs(path, "LUSTRE")
    assert (found["id"], found["rank"]) == (IDS[0], -1)
    for one, part in zip(found["components"], parts, strict=True):
        values = dict(zip(LUSTRE_COMPONENT, part.counters, strict=True))
        counters = one["counters"]
        assert counters["LUSTRE_COMP_STRIPE_SIZE"] == values["stripe_size"]
        assert counters["LUSTRE_COMP_STRIPE_COUNT"] == values["stripe_count"]
        assert list(one["ost_ids"]) == list(part.targets)
