"""A trace written as a Darshan log says the same as the trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from benchmarks.synthetic import (
    Burst,
    MetadataStorm,
    Requests,
    Straggler,
    Striping,
    SyntheticTrace,
    Workload,
    synthesise,
)
from benchmarks.synthetic.darshan_writer import VERSIONS, Version, write_trace
from ioprism import Trace, read
from ioprism.formats.darshan.log import ByteOrder

DATA = ("read", "write")


@pytest.fixture(scope="module")
def made() -> SyntheticTrace:
    checkpoint = Burst(
        "/scratch/checkpoint_{phase}",
        "write",
        Requests(count=16, size=47_008),
        start=1.0,
        length=1.0,
        period=5.0,
        repetitions=4,
        layer="mpiio",
        sync=True,
    )
    collective = Burst(
        "/scratch/output",
        "write",
        Requests(count=10, size=2**16),
        start=25.0,
        layer="mpiio",
        collective=True,
        aggregators=2,
    )
    mesh = Burst(
        "/scratch/mesh_{rank}", "read", Requests(count=30, size=2**20, random=0.5), seeks=True
    )
    log = Burst("/home/log", "write", Requests(count=5, size=80), layer="stdio", ranks=(0,))
    return synthesise(
        Workload(
            ranks=8,
            hosts=2,
            bursts=(checkpoint, collective, mesh, log),
            storms=(MetadataStorm("/home/lib/{number}", opens=9, stats=7, files=9),),
            stragglers=(Straggler(5, 2.0),),
            striping=Striping(),
            runtime=30.0,
        )
    )


@pytest.fixture(scope="module")
def path(made: SyntheticTrace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("logs") / "job.darshan"
    write_trace(written, made.trace)
    return written


@pytest.fixture(scope="module")
def back(path: Path) -> Trace:
    return read(path)


def calls(trace: Trace) -> pl.DataFrame:
    """The reads and writes of the layers that extended tracing sees."""
    columns = ("start", "end", "rank", "layer", "operation", "offset", "bytes", "path")
    return (
        trace.events()
        .filter(pl.col("operation").is_in(DATA) & pl.col("layer").is_in(["posix", "mpiio"]))
        .join(trace.files.select("file", "path"), on="file")
        .select(columns)
        .sort(columns)
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_reads_and_writes_come_back_exactly(
    made: SyntheticTrace, tmp_path: Path, version: Version, byte_order: ByteOrder
) -> None:
    path = tmp_path / "job.darshan"

    write_trace(path, made.trace, version=version, byte_order=byte_order)
    trace = read(path)

    assert calls(trace).equals(calls(made.trace))
    assert trace.completeness.warnings == ()


def test_job_hosts_and_stripes_come_back(made: SyntheticTrace, back: Trace) -> None:
    assert back.job == made.trace.job
    assert back.processes["host"].to_list() == made.trace.processes["host"].to_list()
    striped = [
        trace.files.drop_nulls("targets").select("path", "stripe_size", "targets").sort("path")
        for trace in (back, made.trace)
    ]
    assert striped[0].height == 4 + 1 + 8
    assert striped[0].equals(striped[1])


def test_counters_add_up_to_the_truth(made: SyntheticTrace, back: Trace) -> None:
    truth = made.truth
    totals = {
        name: back.counters[module].select(pl.exclude("file", "rank").sum()).row(0, named=True)
        for name, module in (("posix", "POSIX"), ("mpiio", "MPI-IO"), ("stdio", "STDIO"))
    }

    posix = totals["posix"]
    assert posix["POSIX_BYTES_WRITTEN"] == truth.access["posix", "write"].bytes
    assert posix["POSIX_BYTES_READ"] == truth.access["posix", "read"].bytes
    assert posix["POSIX_FILE_NOT_ALIGNED"] == sum(
        truth.access["posix", direction].misaligned for direction in DATA
    )
    assert posix["POSIX_CONSEC_READS"] == truth.access["posix", "read"].consecutive
    for operation in ("open", "read", "write", "seek", "stat"):
        assert posix[f"POSIX_{operation.upper()}S"] == truth.operations["posix", operation]
    assert posix["POSIX_FSYNCS"] == truth.operations["posix", "sync"]
    mpiio = totals["mpiio"]
    assert mpiio["MPIIO_COLL_WRITES"] == 8 * 10
    assert mpiio["MPIIO_INDEP_WRITES"] == 8 * 16 * 4
    assert totals["stdio"]["STDIO_BYTES_WRITTEN"] == 5 * 80


def test_shared_files_name_the_straggler(back: Trace) -> None:
    shared = back.counters["POSIX"].join(back.files.select("file", "path"), on="file")
    checkpoints = shared.filter(pl.col("path").str.contains("checkpoint"))

    assert checkpoints.height == 4
    assert set(checkpoints["rank"]) == {-1}
    assert set(checkpoints["POSIX_SLOWEST_RANK"]) == {5}


def test_heat_maps_hold_every_byte(made: SyntheticTrace, back: Trace) -> None:
    maps = back.counters["HEATMAP"].with_columns(pl.col("read", "write").list.sum())
    sums = maps.group_by(pl.col("layer").cast(pl.String)).agg(pl.sum("read", "write")).rows()

    found = {(layer, way): n for layer, *both in sums for way, n in zip(DATA, both, strict=True)}
    assert {key: n for key, n in found.items() if n} == {
        key: access.bytes for key, access in made.truth.access.items()
    }


def test_heat_maps_put_bytes_where_the_calls_were(back: Trace, made: SyntheticTrace) -> None:
    row = back.counters["HEATMAP"].filter(layer="posix", rank=3).row(0, named=True)
    own = made.trace.events().filter(layer="posix", rank=3, operation="write")

    used = [n * row["bin_width"] for n, moved in enumerate(row["write"]) if moved]
    for edge in used:
        overlapping = (pl.col("start") < edge + row["bin_width"]) & (pl.col("end") >= edge)
        assert own.filter(overlapping).height > 0


def test_darshans_own_report_agrees(path: Path, made: SyntheticTrace) -> None:
    darshan = pytest.importorskip("darshan")
    report = darshan.DarshanReport(str(path), read_all=True)

    counters = report.records["POSIX"].to_df()["counters"]
    assert counters["POSIX_BYTES_WRITTEN"].sum() == made.truth.access["posix", "write"].bytes
    assert report.metadata["job"]["nprocs"] == 8
    segments = report.records["DXT_MPIIO"].to_df()
    assert sum(len(one["write_segments"]) for one in segments) == 8 * 10 + 8 * 16 * 4


def test_an_empty_trace_makes_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "job.darshan"

    write_trace(path, synthesise(Workload(ranks=3, runtime=2.0)).trace)
    trace = read(path)

    assert trace.job.ranks == 3
    assert trace.events().is_empty()
    assert list(trace.counters) == []
