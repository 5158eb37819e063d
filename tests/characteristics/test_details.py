"""What is behind the totals agrees with the records, and with Darshan's own library."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism import Characteristics, characterise, read
from ioprism.characteristics.details import by_file, by_rank
from ioprism.cli import main
from ioprism.engine.base import LocalEngine
from tests.call_tables import calls, trace_of
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
MODULES = {"posix": "POSIX", "mpiio": "MPI-IO", "stdio": "STDIO", "dfs": "DFS", "daos": "DAOS"}


@pytest.fixture(scope="module")
def characteristics() -> Characteristics:
    return characterise(read(LOG))


def test_common_sizes_are_those_of_the_records(characteristics: Characteristics) -> None:
    posix = read(LOG).counters["POSIX"]
    (size,) = set(posix["POSIX_ACCESS1_ACCESS"])

    first = characteristics.details.common_sizes[0]
    assert (first.layer, first.bytes) == ("posix", size)
    assert first.count == posix["POSIX_ACCESS1_COUNT"].sum()


def test_types_and_mounts_hold_every_byte_once(characteristics: Characteristics) -> None:
    details = characteristics.details
    for groups in (details.file_types, details.mounts):
        assert sum(group.bytes_written for group in groups) == pytest.approx(
            characteristics.by_operation["write"].bytes,
            abs=1000,  # without the console
        )
    assert {group.filesystem for group in details.mounts} <= {
        m.filesystem for m in read(LOG).job.mounts
    }


def test_events_have_common_sizes_too() -> None:
    sizes = characterise(read(TEST_DATA / "dftracer/v2.2.0-ns.pfw")).details.common_sizes

    assert [(one.bytes, one.count) for one in sizes[:2]] == [(4096, 56), (2**20, 8)]


def test_the_command_prints_and_writes_all_of_it() -> None:
    runner = CliRunner()
    text = runner.invoke(main, ["characterise", str(LOG)]).output
    document = json.loads(runner.invoke(main, ["characterise", str(LOG), "--json"]).stdout)

    for heading in ("Most common request sizes", "By type of file", "By mount", "Performance as"):
        assert heading in text
    assert document["performance"][0]["layer"] == "posix"
    assert document["mpi"] is None


@pytest.mark.corpus
def test_performance_equals_that_of_darshans_own_library(shared_data: Path) -> None:
    darshan = pytest.importorskip("darshan")
    backend = pytest.importorskip("darshan.backend.cffi_backend")
    compared = 0
    for log in sorted((shared_data / "darshan").rglob("*.darshan")):
        if {"big", "l_killed_job_mmap_logs"} & set(log.parts):
            continue
        report = darshan.DarshanReport(str(log), read_all=False)
        details = characterise(read(log)).details
        estimates = {MODULES[one.layer]: one for one in details.performance}
        for module in set(report.modules) & set(MODULES.values()):
            report.mod_read_all_records(module, dtype="numpy")
            records = report.records[module].to_df()
            ranks = report.metadata["job"]["nprocs"]
            theirs = backend.accumulate_records(records, module, ranks).derived_metrics
            if not (theirs.total_bytes and theirs.agg_time_by_slowest):
                assert module not in estimates
                continue
            ours = estimates[module]
            assert ours.bytes == theirs.total_bytes
            assert math.isclose(ours.rate / 2**20, theirs.agg_perf_by_slowest, rel_tol=1e-9)
            compared += 1

    assert compared > 100


@pytest.mark.corpus
def test_time_in_mpi_equals_that_of_darshans_own_library(shared_data: Path) -> None:
    darshan = pytest.importorskip("darshan")
    log = next((shared_data / "darshan/public").rglob("e3sm_io_heatmap_only.darshan"))
    report = darshan.DarshanReport(str(log), read_all=False)
    report.mod_read_all_apmpi_records()
    theirs = list(report.records["APMPI"])[1:]  # without the header
    trace = read(log)
    ours = trace.counters["APMPI"]
    mpi = characterise(trace).details.mpi

    assert ours["host"].to_list() == [record["node_name"] for record in theirs]
    for row, record in zip(ours.iter_rows(named=True), theirs, strict=True):
        assert {name: row[name] for name in record["all_counters"]} == record["all_counters"]
    assert mpi is not None
    assert (mpi.ranks, mpi.hosts, mpi.calls[0].name) == (512, 8, "MPI_Barrier")
    assert mpi.time == pytest.approx(ours["MPI_TOTAL_COMM_TIME"].sum())
    assert mpi.share == pytest.approx(0.916, abs=0.001)
    assert "APMPI" not in " ".join(trace.completeness.warnings)
    assert ours.select(pl.col(pl.Float64).min()).min_horizontal().item() >= 0


def test_waiting_for_a_child_is_time_of_no_file_and_no_rank() -> None:
    wait = {"seconds": 3.0, "file": None, "operation": "other", "function": "waitpid"}
    trace = trace_of(calls([{"seconds": 1.0, "bytes": 10}, wait]))

    assert by_file(trace, LocalEngine())["seconds"].to_list() == [1.0]
    assert by_rank(trace, LocalEngine()).select("metadata", "seconds").rows() == [(0, 1.0)]
