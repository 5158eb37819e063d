"""CM1, the data of WisIO's paper: its header, what it finds, and one list that reads well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism import Bottlenecks, MemoryPartition, Trace, bottlenecks, read
from ioprism.cli import main
from tests.conftest import SHARED_DATA

pytestmark = [pytest.mark.corpus, pytest.mark.usefixtures("shared_data")]

OUTPUT = "/p/gpfs1/iopp/temp/cm1r20.3.2846827/config_files/les_ConvBoundLayer"


@cache
def cm1() -> Trace:
    return read(SHARED_DATA / "wisio/recorder-parquet")


@cache
def default_list() -> Bottlenecks:
    return bottlenecks(cm1())


def with_events(*pieces: pl.DataFrame, factor: float = 1.0) -> Trace:
    trace = cm1()
    return replace(
        trace,
        partitions=tuple(map(MemoryPartition, pieces)),
        job=replace(trace.job, runtime=(trace.job.runtime or 0.0) * factor),
        load_files=lambda: trace.files,
        load_processes=lambda: trace.processes,
    )


def records(found: Bottlenecks) -> list[dict[str, Any]]:
    return [dict(one.record) for one in found.bottlenecks]


@pytest.mark.parametrize("chosen", [{}, {"method": "slope"}, {"compatible": "wisio"}], ids=str)
def test_time_shares_are_those_of_the_papers_table_3(chosen: dict[str, Any]) -> None:
    totals = bottlenecks(cm1(), **chosen).totals
    shares = [totals[f"{kind}_time_share"] for kind in ("read", "write", "metadata")]

    assert [round(100 * (share or 0.0), 2) for share in shares] == [0.05, 14.08, 85.89]
    assert totals["io_time"] == pytest.approx(4.12, abs=0.005)


def test_the_list_names_what_can_be_changed_and_never_the_whole_job() -> None:
    found = default_list()

    assert records(found) == [
        {"process": "rank 0 on localhost"},
        {"process": "rank 600 on localhost"},
        {"file": f"{OUTPUT}/cm1out_stats.ctl", "process": "rank 0 on localhost"},
        {"file": f"{OUTPUT}/cm1out_000001_s.dat"},
    ]
    assert max(one.time_share for one in found.bottlenecks) < 0.75
    assert {one.reasons[0].rule for one in found.bottlenecks} == {"excessive_metadata_access"}
    window = found.bottlenecks[3].peers
    assert (window["window_start"], window["window_end"]) == (3, 6)  # the seconds of the paper


def test_ranks_that_open_shared_output_are_one_entry_with_all_their_names() -> None:
    group = default_list().to_dict()["bottlenecks"][1]

    assert "(31 of 1,280 processes alike)" in group["title"]
    names = {member["name"] for member in group["members"]}
    assert names == {f"rank {rank} on localhost" for rank in range(40, 1280, 40)}


def test_the_list_has_what_the_papers_way_finds_first_in_each_view() -> None:
    angles = bottlenecks(cm1(), method="slope", top=1).bottlenecks
    first = [dict(one.record) for one in angles if one.view in (("process",), ("file",))]

    assert len(first) == 2
    assert all(record in records(default_list()) for record in first)


def test_alike_bottlenecks_are_grouped_and_none_is_lost() -> None:
    """WisIO has 75 groups of these 118: it parts 31 ranks that do the same into 24."""
    found = bottlenecks(cm1(), compatible="wisio").to_dict()
    groups = [group for group in found["groups"] if len(group["view"]) == 1]
    listed = {one["id"] for one in found["bottlenecks"] if len(one["view"]) == 1}

    grouped = [name for group in groups for name in group["ids"]]
    assert len(grouped) == len(set(grouped)) == 118
    assert set(grouped) == listed
    assert len(groups) == 43
    ranks = {g["label"]: len(g["ids"]) for g in groups if list(g["view"]) == ["process"]}
    assert ranks == {"critical": 5, "very high": 26}  # WisIO parts them at 80 degrees


def test_one_line_stands_for_alike_ones_in_the_terminal_and_pages_count_lines() -> None:
    path = str(SHARED_DATA / "wisio/recorder-parquet")
    args = ["bottlenecks", path, "--method", "slope", "--views", "process,file", "--top", "2"]
    shown = CliRunner().invoke(main, args)

    assert shown.exit_code == 0, shown.output
    assert "rank 600 on localhost and 30 similar" in shown.output
    assert "rank 400 on localhost" not in shown.output
    assert "metadata     85.89%" in shown.output


CUTS: dict[str, Callable[[pl.DataFrame], list[pl.DataFrame]]] = {
    "by time": lambda events: list(events.sort("start").iter_slices(5_000)),
    "by process": lambda events: [events.filter(pl.col("process") % 3 == n) for n in range(3)],
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_splitting_the_trace_changes_nothing(
    cut: Callable[[pl.DataFrame], list[pl.DataFrame]],
) -> None:
    changed = bottlenecks(with_events(*cut(cm1().events())))

    assert [one.title for one in changed.bottlenecks] == [
        one.title for one in default_list().bottlenecks
    ]


@pytest.mark.parametrize("factor", [0.5, 2.0, 10.0])
def test_stretching_all_times_keeps_the_order(factor: float) -> None:
    events = cm1().events().with_columns(pl.col("start", "end") * factor)
    changed = bottlenecks(with_events(events, factor=factor), bucket=factor)

    assert records(changed) == records(default_list())
    for one, before in zip(changed.bottlenecks, default_list().bottlenecks, strict=True):
        assert one.excess_seconds == pytest.approx(factor * before.excess_seconds, rel=1e-3)
        assert one.label == before.label


def test_doubling_times_keeps_the_order_within_the_same_buckets() -> None:
    events = cm1().events().with_columns(pl.col("start", "end") * 2)

    assert records(bottlenecks(with_events(events, factor=2))) == records(default_list())
