"""Workflows and independent tasks: who waits for whom, which application, which rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from benchmarks.simulated_storage.cases import make, write_workflow
from benchmarks.simulated_storage.scenario import Truth
from ioprism import LocalEngine, MemoryPartition, Trace, Verdict, diagnose, read
from ioprism.diagnosis.from_calls import observe_calls
from ioprism.diagnosis.limits import Limits
from ioprism.model.schema import Operation


def case(kind: str, folder: Path, *, seed: int) -> tuple[Trace, Truth]:
    made = make(kind, seed=seed)
    write_workflow(folder, "case", made)
    return read(folder / "case", one_job=True), made.truth


def of(trace: Trace) -> Verdict:
    return diagnose(trace)


@pytest.mark.parametrize(
    ("kind", "waits"),
    [("workflow-independent-slow-rank", False), ("workflow-slow-rank", True), ("slow-node", True)],
)
def test_lateness_that_lasts_tells_ranks_that_do_not_wait(kind: str, waits: bool) -> None:
    trace = make(kind, seed=21).run.trace()

    assert observe_calls(trace, LocalEngine(), Limits()).synchronised == waits


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("workflow-slow-rank", 21),
        ("workflow-independent-slow-rank", 21),
        ("workflow-independent-slow-rank", 5211),  # its tasks rewrite their file in each step
    ],
)
def test_the_slow_rank_is_named_with_what_it_costs(kind: str, seed: int, tmp_path: Path) -> None:
    trace, truth = case(kind, tmp_path, seed=seed)

    found = of(trace).causes[0]

    assert found.code == "slow-rank"
    assert {"ranks": found.culprit["ranks"]} == truth["culprit"]
    assert found.saving.seconds == pytest.approx(truth["saving"], rel=0.25)


def test_a_storm_of_files_is_placed_in_its_directory_application_and_time(tmp_path: Path) -> None:
    trace, truth = case("workflow-metadata", tmp_path, seed=22)

    found = of(trace).causes[0]

    wanted = truth["culprit"]
    assert isinstance(wanted, dict)
    assert found.code == "metadata"
    assert str(found.culprit["directory"]).startswith(wanted["directory"])
    assert found.culprit["application"] == wanted["application"]
    assert found.culprit["from"] == pytest.approx(wanted["from"], abs=0.1)
    assert found.culprit["to"] == pytest.approx(wanted["to"], abs=0.1)


def test_small_requests_are_placed_in_their_file_application_and_time(tmp_path: Path) -> None:
    trace, truth = case("workflow-small-requests", tmp_path, seed=23)

    found = of(trace).causes[0]

    wanted = truth["culprit"]
    assert isinstance(wanted, dict)
    assert found.code == "small-requests"
    assert {key: found.culprit[key] for key in ("file", "application")} == {
        key: wanted[key] for key in ("file", "application")
    }
    assert found.culprit["to"] == pytest.approx(wanted["to"], abs=0.1)


@pytest.mark.parametrize("kind", ["workflow-healthy", "workflow-late-task"])
def test_nothing_is_wrong_with_even_tasks_and_with_long_computing(
    kind: str, tmp_path: Path
) -> None:
    trace, _ = case(kind, tmp_path, seed=24)

    found = of(trace)

    assert sum(cause.saving.seconds for cause in found.causes) <= 0.03 * found.runtime


def test_waiting_for_a_child_process_is_no_io(tmp_path: Path) -> None:
    trace, _ = case("workflow-healthy", tmp_path, seed=25)
    events = trace.events()
    waiting = events.head(1).with_columns(
        start=pl.lit(0.0),
        end=pl.lit(trace.job.runtime),
        operation=pl.lit("other", dtype=Operation),
        function=pl.lit("waitpid", dtype=pl.Categorical()),
        file=pl.lit(None, dtype=pl.UInt32),
        offset=pl.lit(None, dtype=pl.Int64),
        bytes=pl.lit(None, dtype=pl.Int64),
    )
    longer = replace(trace, partitions=(MemoryPartition(pl.concat([events, waiting])),))

    assert of(longer).io_stall.seconds == pytest.approx(of(trace).io_stall.seconds)


def test_ranks_that_are_all_of_a_node_in_one_application_are_named_by_the_node() -> None:
    whole = make("workflow-healthy", seed=29).run.trace()
    processes = whole.processes.with_columns(
        host=pl.format("n{}", pl.col("rank").cast(pl.Int64) % 4)
    )
    mine = processes.filter((pl.col("application") == "reduce") & (pl.col("host") == "n1"))
    slow = pl.col("rank").is_in(mine["rank"].implode())
    begin = pl.col("start").min().over("rank")

    def later(moment: str) -> pl.Expr:
        return pl.when(slow).then(begin + 9 * (pl.col(moment) - begin)).otherwise(pl.col(moment))

    events = whole.events().with_columns(start=later("start"), end=later("end"))
    job = replace(whole.job, runtime=float(events["end"].max()))  # type: ignore[arg-type]
    trace = replace(
        whole, job=job, partitions=(MemoryPartition(events),), load_processes=lambda: processes
    )

    found = of(replace(trace, load_files=lambda: _without_layout(whole))).causes[0]

    assert found.code == "slow-node"
    assert found.culprit["host"] == "n1"
    assert found.culprit["application"] == "reduce"
    assert found.culprit["ranks"] == sorted(mine["rank"].to_list())


def _without_layout(trace: Trace) -> pl.DataFrame:
    return trace.files.with_columns(
        stripe_size=pl.lit(None, pl.Int64), targets=pl.lit(None, pl.List(pl.Int64))
    )
