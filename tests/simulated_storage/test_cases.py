"""Cases have the cause that was planted, worth what they say, and are written as logs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from benchmarks.simulated_storage.cases import (
    COUNTED,
    COUNTERS_ONLY,
    KINDS,
    WORKFLOWS,
    WORTH,
    make,
    write_case,
    write_workflow,
)
from benchmarks.simulated_storage.many_logs import Wanted, write_many
from benchmarks.synthetic.darshan_content import FILE_ALIGNMENT, log_content
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import read


@pytest.mark.parametrize("kind", [*KINDS, *WORKFLOWS])
def test_a_planted_cause_costs_time_and_its_absence_costs_none(kind: str) -> None:
    truth = make(kind, seed=5).truth

    saving, runtime, in_io = truth["saving"], truth["runtime"], truth["in_io"]
    assert isinstance(saving, float)
    assert isinstance(runtime, float)
    assert isinstance(in_io, float)
    assert 0 <= saving <= in_io <= runtime
    assert (saving >= WORTH * runtime) == bool(truth["causes"])


def test_the_same_kind_and_seed_give_the_same_case() -> None:
    first, again, other = (make("slow-node", seed=seed) for seed in (3, 3, 4))

    assert first.truth == again.truth
    assert first.run.recorded.end == again.run.recorded.end
    assert first.truth != other.truth


def test_a_written_case_reads_back_with_layout_calls_and_truth(tmp_path: Path) -> None:
    case = make("slow-target", seed=2)
    write_case(tmp_path, "slow", case)

    trace = read(tmp_path / "slow.darshan")
    data = case.run.trace().events().filter(pl.col("bytes").is_not_null())

    assert trace.events()["bytes"].sum() == data["bytes"].sum()
    assert trace.files["targets"].drop_nulls().len() > 0
    assert trace.processes["host"].n_unique() > 1
    assert json.loads((tmp_path / "slow.truth.json").read_text()) == case.truth


def test_a_case_with_counters_only_has_no_calls(tmp_path: Path) -> None:
    write_case(tmp_path, "counted", make(COUNTED[0], seed=2), counters_only=True)

    assert read(tmp_path / "counted.darshan").detail == {"counters"}


def test_a_workflow_reads_back_with_its_applications_ranks_and_hosts(tmp_path: Path) -> None:
    case = make("workflow-metadata", seed=2)
    write_workflow(tmp_path, "flow", case)

    trace = read(tmp_path / "flow", one_job=True)
    before = case.run.trace()
    keys = ("rank", "layer", "operation")
    counts = [t.events().group_by(keys).len().sort(keys) for t in (trace, before)]

    assert {"prepare", "ingest", "train"} <= set(trace.processes["application"])
    assert trace.processes["host"].n_unique() == before.processes["host"].n_unique()
    assert counts[0].equals(counts[1])


def test_many_logs_at_once_are_the_same_as_one_by_one(tmp_path: Path) -> None:
    kinds = ("healthy", "few-targets", "single-aggregator", "metadata-storm")
    runs = [make(kind, seed=9).run for kind in kinds]
    wanted = [Wanted(tmp_path / f"{n}.darshan", one, one.job()) for n, one in enumerate(runs)]

    written = write_many(wanted)

    assert written == len(kinds)
    for log in wanted:
        alone = tmp_path / "alone.darshan"
        trace = log.run.trace()
        content = log_content(trace, file_alignment=FILE_ALIGNMENT, modules=COUNTERS_ONLY)
        write_log(alone, content, replace=True)
        assert alone.read_bytes() == log.path.read_bytes()
