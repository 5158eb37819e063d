"""Marks keep what calls add up to, however the events are cut and however coarse they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ioprism import EVENTS, FILES, PROCESSES, Job, LocalEngine, MemoryPartition, Trace, read
from ioprism.views.tiles import RUNS, pack, tick_of, tiles_of
from ioprism.views.timeline import MARKS, CallMarks, Runs, Window, marks_of_runs, timeline
from tests.conftest import SHARED_DATA, TEST_DATA

DATA = TEST_DATA / "darshan"
CALLS = 5000


def events(count: int = CALLS, ranks: int = 16) -> pl.DataFrame:
    chance = np.random.default_rng(7)
    start = chance.uniform(2.0, 50.0, count)
    return EVENTS.conform(
        pl.DataFrame(
            {
                "start": start,
                "end": start + chance.exponential(0.01, count),
                "rank": chance.integers(0, ranks, count),
                "file": chance.integers(0, 3, count),
                "layer": chance.choice(["posix", "mpiio"], count),
                "operation": chance.choice(["read", "write", "open"], count),
                "offset": chance.integers(0, 2**40, count),
                "bytes": chance.integers(1, 2**22, count),
            }
        )
    )


def trace_of(frame: pl.DataFrame, *, parts: int = 1) -> Trace:
    size = -(-frame.height // parts)
    pieces = tuple(MemoryPartition(frame.slice(n * size, size)) for n in range(parts))
    return Trace("made", (Path("made"),), Job(ranks=16, runtime=60.0), pieces,
                 load_files=FILES.empty, load_processes=PROCESSES.empty)  # fmt: skip


def test_every_call_has_its_mark_when_there_is_room() -> None:
    shown = timeline(trace_of(events()), LocalEngine())

    assert shown.whole
    assert shown.marks.height == shown.calls == CALLS
    assert shown.marks.schema == MARKS


@pytest.mark.parametrize("parts", [1, 7])
def test_too_many_calls_become_runs_that_keep_all_sums(parts: int) -> None:
    frame = events()

    shown = timeline(trace_of(frame, parts=parts), LocalEngine(), most=800)

    assert not shown.whole
    assert shown.marks.height <= 800
    assert shown.marks["calls"].sum() == CALLS
    assert shown.marks["bytes"].sum() == frame["bytes"].sum()
    assert shown.marks["seconds"].sum() == pytest.approx((frame["end"] - frame["start"]).sum())
    assert shown.marks["reach"].max() == (frame["offset"] + frame["bytes"]).max()


def test_runs_do_not_depend_on_how_events_are_cut() -> None:
    one, many = (
        timeline(trace_of(events(), parts=parts), LocalEngine(), most=800) for parts in (1, 9)
    )

    assert one.marks.drop("seconds").equals(many.marks.drop("seconds"))


def test_combining_runs_again_changes_nothing() -> None:
    view = Runs(0.5)
    once = view.partial(events().lazy()).collect()
    twice = view.combine(once.lazy()).collect()

    order = ["layer", "rank", "operation", "start"]
    assert marks_of_runs(once).sort(order).equals(marks_of_runs(twice).sort(order))


def test_a_run_of_several_files_names_none() -> None:
    marks = marks_of_runs(Runs(100.0).partial(events().lazy()).collect())

    assert marks["file"].null_count() == marks.height


def test_a_window_keeps_what_touches_it() -> None:
    frame = events()

    kept = CallMarks().partial(Window(10.0, 20.0, (3, 5)).of(frame.lazy())).collect()

    assert kept["rank"].is_between(3, 5).all()
    assert kept.height == frame.filter(
        (pl.col("end") >= 10) & (pl.col("start") <= 20) & pl.col("rank").is_between(3, 5)
    ).height  # fmt: skip


def test_a_heat_map_stands_in_for_calls() -> None:
    trace = read(DATA / "l_killed_job_merged.darshan")
    table = pl.DataFrame(
        {"layer": ["posix"], "rank": [1], "bin_width": [0.5], "read": [[0, 4]], "write": [[8, 0]]}
    )
    shown = timeline(
        Trace("made", trace.paths, Job(runtime=3.0), (), {"HEATMAP": table},
              load_files=FILES.empty, load_processes=PROCESSES.empty),
        LocalEngine(),
    )  # fmt: skip

    assert shown.source == "heat map"
    assert shown.marks.select("operation", "start", "end", "bytes").rows() == [
        ("read", 0.5, 1.0, 4),
        ("write", 0.0, 0.5, 8),
    ]


def test_a_trace_without_anything_has_an_empty_timeline() -> None:
    shown = timeline(trace_of(EVENTS.empty()), LocalEngine())

    assert shown.marks.height == 0
    assert shown.end == 60.0


def unpacked(planes: bytes, count: int, columns: dict[str, int]) -> dict[str, np.ndarray]:
    """Read byte planes back, as the page does."""
    found, at = {}, 0
    for name, width in columns.items():
        raw = np.frombuffer(planes, np.uint8, width * count, at).reshape(width, count)
        values = np.zeros((count, 8), np.uint8)
        values[:, 8 - width :] = raw.T
        found[name] = values.view("<i8").ravel() >> (8 * (8 - width))  # keeps the sign
        at += width * count
    assert at == len(planes)
    return found


def test_packed_marks_are_what_went_in() -> None:
    shown = timeline(trace_of(events()), LocalEngine())
    packed = pack(shown)
    found = unpacked(packed.planes, packed.count, dict(packed.columns))
    marks = shown.marks

    start = packed.origin + np.cumsum(found["start"]) * packed.tick
    assert start == pytest.approx(marks["start"].to_numpy(), abs=packed.tick)
    assert np.cumsum(found["rank"]).tolist() == marks["rank"].to_list()
    assert (np.cumsum(found["file"]) - 1).tolist() == marks["file"].to_list()
    assert found["bytes"].tolist() == marks["bytes"].to_list()
    reach = np.cumsum(found["offset"] + np.concatenate(([0], found["bytes"][:-1])))
    assert reach.tolist() == marks["offset"].to_list()


def test_a_regular_job_needs_few_bytes_a_call() -> None:
    count = 100_000
    start = np.repeat(np.arange(count // 10) * 0.01, 10) + np.tile(
        np.arange(10) * 1e-4, count // 10
    )
    frame = EVENTS.conform(
        pl.DataFrame(
            {
                "start": start, "end": start + 5e-5, "rank": np.tile(np.arange(10), count // 10),
                "file": np.zeros(count, np.int64), "layer": ["posix"] * count,
                "operation": ["write"] * count, "offset": np.arange(count) * 4096,
                "bytes": np.full(count, 4096),
            }
        )
    )  # fmt: skip

    packed = pack(timeline(trace_of(frame), LocalEngine()))

    assert len(packed.deflate()) < 1.0 * count


def test_runs_carry_their_sums() -> None:
    packed = pack(timeline(trace_of(events()), LocalEngine(), most=800))

    columns = dict(packed.columns)
    assert tuple(columns) == RUNS
    assert unpacked(packed.planes, packed.count, columns)["calls"].sum() == CALLS


@pytest.mark.parametrize("span", [0.0, 1e-9, 0.5, 600.0, 1e7])
def test_every_span_fits_into_the_ticks(span: float) -> None:
    assert span / tick_of(span, 10) <= 2**48


def test_ten_hours_keep_nanoseconds_and_many_calls_microseconds() -> None:
    assert tick_of(36_000.0, 10) == pytest.approx(1e-9)
    assert tick_of(36_000.0, 1_000_000) == pytest.approx(1e-6)


def test_functions_and_threads_are_packed_where_the_trace_has_them() -> None:
    names = ["load", "step"] * (CALLS // 2)
    threads = np.arange(CALLS) % 32
    frame = events().with_columns(
        function=pl.Series(names, dtype=pl.Categorical()),
        process=pl.Series(threads, dtype=pl.UInt32),
    )
    shown = timeline(trace_of(frame, parts=3), LocalEngine())
    packed = pack(shown)
    columns = dict(packed.columns)
    values = unpacked(packed.planes, packed.count, columns)

    assert set(packed.functions) == {"load", "step"}
    assert [packed.functions[code - 1] for code in values["function"]] == shown.marks[
        "function"
    ].to_list()
    assert (np.cumsum(values["process"]) - 1).tolist() == shown.marks["process"].to_list()
    assert "function" not in dict(pack(timeline(trace_of(events()), LocalEngine())).columns)


@pytest.mark.corpus
def test_counters_alone_become_spans_of_files() -> None:
    trace = read(SHARED_DATA / "darshan" / "public" / "pydarshan" / "sample.darshan")
    shown = timeline(trace, LocalEngine())
    record = trace.counters["POSIX"].filter(pl.col("POSIX_WRITES") > 0)
    writes = shown.marks.filter(layer="posix", operation="write")

    assert (shown.source, shown.whole) == ("counters", False)
    assert writes["start"].to_list() == record["POSIX_F_WRITE_START_TIMESTAMP"].to_list()
    assert writes["end"].to_list() == record["POSIX_F_WRITE_END_TIMESTAMP"].to_list()
    assert writes["bytes"].sum() == record["POSIX_BYTES_WRITTEN"].sum()
    assert writes["calls"].sum() == record["POSIX_WRITES"].sum()


def test_damaged_sizes_do_not_break_the_packing() -> None:
    frame = events(3).with_columns(bytes=pl.lit(-5, pl.Int64), offset=pl.lit(2**62, pl.Int64))

    assert pack(timeline(trace_of(frame), LocalEngine())).count == 3


@pytest.mark.parametrize("most_held", [10**9, 1000])
def test_tiles_agree_with_the_calls_whether_held_or_kept_in_files(most_held: int) -> None:
    frame = events()
    inside = frame.filter((pl.col("end") >= 10) & (pl.col("start") <= 12))

    with tiles_of(trace_of(frame, parts=4), most_held=most_held) as tiles:
        shown = tiles.tile(10.0, 12.0, columns=500)

        assert tiles.count == CALLS
        assert shown.whole
        assert shown.marks["bytes"].sum() == inside["bytes"].sum()


def test_partitions_of_a_log_are_read_side_by_side() -> None:
    trace = read(DATA / "e_mpiio_collective.darshan")

    assert trace.partitions
    assert all(part.side_by_side for part in trace.partitions)  # type: ignore[attr-defined]


def test_wide_tiles_come_from_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioprism.views.tiles.MOST_CALLS", 100)

    with tiles_of(trace_of(events())) as tiles:
        whole, part, ranks = (
            tiles.tile(*window, columns=500, ranks=chosen)
            for window, chosen in (((0.0, 60.0), None), ((10.0, 14.0), None), ((0, 60), (2, 3)))
        )

    assert whole.width is not None
    assert whole.marks["calls"].sum() == CALLS
    assert part.width == pytest.approx(4.0 / 500)
    assert set(ranks.marks["rank"]) == {2, 3}
