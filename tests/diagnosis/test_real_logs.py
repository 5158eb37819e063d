"""What is said of real logs is what their counters could give back, and no more."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ioprism import Trace, Verdict, diagnose, read

PUBLIC = "darshan/public"


def first(found: Verdict) -> str | None:
    return found.causes[0].code if found.causes else None


def spent_on(found: Verdict, what: str) -> float:
    return sum(line.seconds for line in found.ledger if line.what == what)


def metadata_seconds(trace: Trace) -> float:
    """The most that any one rank can have spent in opens, stats and closes, by the counters."""
    most = 0.0
    for module in ("POSIX", "STDIO"):
        if module not in trace.counters:
            continue
        table, column = trace.counters[module], f"{module}_F_META_TIME"
        own = table.filter(pl.col("rank") >= 0).group_by("rank").agg(pl.col(column).sum())
        most += float(own[column].max() or 0.0)  # type: ignore[arg-type]
        most += float(table.filter(pl.col("rank") < 0)[column].sum())
    return most


@pytest.mark.corpus
def test_metadata_never_costs_more_than_the_counters_of_metadata_say(shared_data: Path) -> None:
    logs = [
        *sorted((shared_data / PUBLIC / "darshan-logs").rglob("*.darshan")),
        *sorted((shared_data / PUBLIC / "pydarshan").glob("*.darshan")),
    ]
    assert logs
    for path in logs:
        trace = read(path)
        for cause in diagnose(trace).causes:
            if cause.code == "metadata":
                assert cause.saving.seconds < metadata_seconds(trace), path.name


@pytest.mark.corpus
@pytest.mark.parametrize(
    "log",
    [
        "darshan/made/e_mpiio_collective.darshan",
        "darshan/public/pydarshan/shane_macsio_id29959_5-22-32552-7035573431850780836_1590156158.darshan",
        "recorder/v2.4.0/mpiio_coll",
        "recorder/gotcha/hdf5",
    ],
)
def test_waiting_inside_libraries_is_no_transfer(shared_data: Path, log: str) -> None:
    found = diagnose(read(shared_data / log))

    assert not found.causes
    assert spent_on(found, "library") > 0.8 * found.io_stall.seconds
    assert spent_on(found, "transfer") < 0.1 * found.io_stall.seconds


@pytest.mark.corpus
@pytest.mark.parametrize("log", ["apmpi_apxc/mpi-io-test", "imbalanced_io/imbalanced-io"])
def test_many_ranks_on_a_file_are_no_evidence_that_its_targets_are_the_limit(
    shared_data: Path, log: str
) -> None:
    found = diagnose(read(shared_data / PUBLIC / "darshan-logs" / f"{log}.darshan"))

    assert not {"few-targets", "few-aggregators"} & {cause.code for cause in found.causes}


@pytest.mark.corpus
def test_flushes_are_no_syncs_and_a_file_opened_time_and_again_is_named(shared_data: Path) -> None:
    found = diagnose(read(shared_data / PUBLIC / "pydarshan/noposixopens.darshan"))

    assert first(found) == "metadata"
    assert found.causes[0].culprit["file"] == "/global/project/3722469739"
    assert found.causes[0].contrast.slow.count == 3036


@pytest.mark.corpus
def test_aggregators_of_writes_are_no_imbalance_where_reads_are_independent(
    shared_data: Path,
) -> None:
    (log,) = (shared_data / PUBLIC / "dxt-explorer-sample").glob("*.darshan")

    assert "data-imbalance" not in {cause.code for cause in diagnose(read(log)).causes}


@pytest.mark.corpus
def test_counters_tell_where_tracing_ran_full(shared_data: Path) -> None:
    log = shared_data / PUBLIC / "darshan-logs/partial_data_dxt/partial_data_dxt.darshan"
    found = diagnose(read(log))

    assert (first(found), found.io_stall.basis) == ("small-requests", "counters")


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("log", "seconds"),
    [
        ("darshan/public/darshan-logs/ior_daos/*DFS*.darshan", 0.0552),
        ("dftracer/formats/*-agg-*.pfw", 0.0554),
    ],
)
def test_calls_of_other_interfaces_and_unnamed_files_stall_the_job(
    shared_data: Path, log: str, seconds: float
) -> None:
    (path,) = shared_data.glob(log)

    assert diagnose(read(path)).io_stall.seconds == pytest.approx(seconds, abs=1e-3)


@pytest.mark.corpus
def test_python_files_that_few_ranks_load_are_no_metadata_load(shared_data: Path) -> None:
    folder = shared_data / PUBLIC / "darshan-logs/hdf5_diagonal_write_only"

    assert not diagnose(read(folder / "hdf5_file_opens_only.darshan")).causes


@pytest.mark.corpus
def test_a_log_that_lacks_records_of_storage_does_not_call_the_rest_waiting(
    shared_data: Path,
) -> None:
    """Two files of this log have most of their POSIX records missing; a third is slow STDIO."""
    trace = read(shared_data / f"{PUBLIC}/darshan-logs/imbalanced_io/imbalanced-io.darshan")

    found = diagnose(trace)

    assert spent_on(found, "library") == 0.0
    assert spent_on(found, "unexplained") > 350.0
    assert found.io_stall.seconds == pytest.approx(1381.0, rel=0.01)  # rank 0, with its STDIO
    # Rank 0 spends 113 s on 956 writes and an open of 33 s beside the I/O of all other ranks, of
    # which records are missing: whether they wait for it is not in the log.
    assert found.status == "possible" and not found.causes


@pytest.mark.corpus
def test_a_first_epoch_from_storage_is_told_from_later_ones_out_of_memory(
    shared_data: Path,
) -> None:
    """52 MiB/s in the first epoch, above 1 GiB/s where the same samples are read again."""
    found = diagnose(read(shared_data / "dftracer/example"))

    assert spent_on(found, "first-reads") > 0.7 * found.io_stall.seconds
    assert spent_on(found, "unexplained") < 0.2 * found.io_stall.seconds
