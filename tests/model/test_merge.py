"""Several traces become one on one clock, and nothing is lost or counted twice."""

from __future__ import annotations

import polars as pl
import pytest

from ioprism import characterise, read
from ioprism.model.merge import merge
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOGS = ("a_ckpt_fpp_period5s", "m_threads_dxt_v2_pthread_id", "n_hdf5_collective_write")


def test_a_single_trace_is_returned_as_it_is() -> None:
    trace = read(DATA / f"{LOGS[0]}.darshan")

    assert merge([trace]) is trace


def test_totals_add_up() -> None:
    traces = [read(DATA / f"{name}.darshan") for name in LOGS]
    parts = [characterise(trace) for trace in traces]
    whole = characterise(merge(traces))

    assert whole.job.ranks == sum(part.job.ranks or 0 for part in parts)
    assert whole.total.bytes == sum(part.total.bytes for part in parts)
    assert whole.total.operations == sum(part.total.operations for part in parts)
    assert whole.io_time == pytest.approx(sum(part.io_time for part in parts))
    assert whole.files == sum(part.files for part in parts)


def test_events_lie_on_the_clock_of_the_first_job() -> None:
    traces = [read(DATA / f"{name}.darshan") for name in LOGS]
    starts = [trace.job.start_time for trace in traces]
    merged = merge(traces)
    events = merged.events()
    paths = events.join(merged.files, on="file")

    assert events.height == sum(trace.events().height for trace in traces)
    for trace, start in zip(traces, starts, strict=True):
        own = trace.events().join(trace.files, on="file")
        shift = (start or 0) - min(s for s in starts if s is not None)
        theirs = paths.filter(pl.col("path").is_in(own["path"].unique().to_list()))
        first = own["start"].to_numpy().min()
        assert theirs["start"].to_numpy().min() == pytest.approx(first + shift)
        assert theirs["bytes"].sum() == own["bytes"].sum()


def test_ranks_and_processes_of_different_jobs_stay_apart() -> None:
    traces = [read(DATA / f"{name}.darshan") for name in LOGS]
    merged = merge(traces)

    assert merged.processes["process"].to_list() == list(range(merged.processes.height))
    assert merged.processes["rank"].n_unique() == merged.job.ranks
    assert merged.processes["application"].n_unique() == len(LOGS)


def test_a_data_set_keeps_its_file() -> None:
    traces = [read(DATA / f"{name}.darshan") for name in LOGS]
    files = merge(traces).files
    sets = files.filter(kind="dataset").join(
        files.select(parent="file", parent_path="path"), on="parent"
    )

    assert sets.height == 5
    for path, parent in sets.select("path", "parent_path").iter_rows():
        assert path.startswith(parent)


def test_a_warning_that_comes_late_is_heard_by_the_merged_trace() -> None:
    traces = [read(DATA / f"{name}.darshan") for name in LOGS]
    merged = merge(traces)
    traces[1].completeness.warn("something is missing")

    assert merged.completeness.warnings == ("something is missing",)
    assert not merged.completeness.whole
