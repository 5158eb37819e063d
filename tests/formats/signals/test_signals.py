"""Traces that tell bandwidth over time are read, whole or damaged, and nothing is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioprism import BrokenTraceError, IoprismError, UsageError, read
from ioprism.formats.registry import find_reader
from ioprism.formats.signals.monitors import read_described_text

BODY = {
    "total_bytes": 3e9,
    "number_of_ranks": 2,
    "bandwidth": {
        "max": 0.0,
        "b_rank_avr": [1e9, 1e9, 5e8],
        "b_rank_sum": [1e9, 1e9, 5e8],
        "t_rank_s": [0.0, 10.0, 10],
        "t_rank_e": [1.0, 11.0, 12],
    },
}
PHASE = [2_000_000, 0.5, 1.5, 0, 2e6, 2e6, 0, 0, 1]
MODE = ["write_sync", False, True, 2_000_000, 1, 1, 1, 1, 1, 1, 1, 4, 4, [PHASE]]
IO_TIME = ["io_time", *[float("nan")] * 18]
GEKKO = {
    "avg_thruput_mib": [1.0, 2.0],
    "start_t_micro": [0, 5_000_000],
    "end_t_micro": [1_000_000, 6_000_000],
    "req_size": [100, 200],
    "hostname": "x0024",
    "pid": 7,
    "total_bytes": 300,
    "total_iops": 2,
}


def rows(path: Path) -> list[tuple[Any, ...]]:
    events = read(path).events()
    return events.select("start", "end", "bytes", "operation", "nonblocking").rows()


def test_tmio_json(tmp_path: Path) -> None:
    path = tmp_path / "2.json"
    path.write_text(json.dumps({"write_sync": BODY, "read_async_t": BODY, "io_time": {}}))

    assert find_reader(path).name == "tmio"
    assert read(path).job.ranks == 2
    assert rows(path) == [
        (0.0, 1.0, 1_000_000_000, "write", False),
        (0.0, 1.0, 1_000_000_000, "read", True),
        (10.0, 11.0, 1_000_000_000, "write", False),
        (10.0, 12.0, 1_000_000_000, "write", False),
        (10.0, 11.0, 1_000_000_000, "read", True),
        (10.0, 12.0, 1_000_000_000, "read", True),
    ]


def test_required_bandwidth_is_not_counted_as_measured(tmp_path: Path) -> None:
    path = tmp_path / "2.json"
    path.write_text(json.dumps({"write_sync": BODY, "write_async_b": BODY}))

    assert len(rows(path)) == 3


def test_tmio_lines_of_several_flushes(tmp_path: Path) -> None:
    end: dict[str, Any] = {"io_time": {"delta_t_agg": 1}}
    nothing: dict[str, Any] = {"write_sync": {"bandwidth": {}}}
    lines = [{"write_sync": BODY}, end, {"write_sync": BODY}, end, nothing, end]
    path = tmp_path / "2.jsonl"
    path.write_text("".join(f"\t{json.dumps(line)}\n" for line in lines))

    assert len(rows(path)) == 6
    assert read(path).completeness.whole


def test_a_line_that_is_cut_off_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "2.jsonl"
    line = json.dumps({"write_sync": BODY})
    path.write_text(f"{line}\n{line}\n{line[:60]}")
    trace = read(path)

    assert trace.events().height == 6
    assert trace.completeness.warnings == (
        "2.jsonl: the last line is cut off and left out",
        "2.jsonl: the last flush has no io_time: the file is truncated",
    )


EMPTY_MODE = [*MODE[:-1], []]


def test_a_msgpack_trace_cut_anywhere_is_never_taken_for_whole(tmp_path: Path) -> None:
    path = tmp_path / "4.msgpack"
    flushes = [MODE, MODE, IO_TIME, MODE, IO_TIME, EMPTY_MODE, IO_TIME]
    whole = b"".join(msgpack.packb(part) for part in flushes)
    path.write_bytes(whole)
    assert read(path).completeness.whole

    silent = []
    for size in range(len(msgpack.packb(MODE)), len(whole)):
        path.write_bytes(whole[:size])
        if read(path).completeness.whole:
            silent.append(size)

    assert silent == []


def test_lines_of_tmio_cut_between_two_flushes_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "2.jsonl"
    end = json.dumps({"io_time": {"delta_t_agg": 1}})
    path.write_text(f"{json.dumps({'write_sync': BODY})}\n{end}\n")

    assert "the empty flush that ends a trace is missing" in read(path).completeness.warnings[0]


def test_tmio_msgpack_keeps_exact_bytes(tmp_path: Path) -> None:
    path = tmp_path / "4.msgpack"
    path.write_bytes(b"".join(msgpack.packb(part) for part in (MODE, IO_TIME, MODE)))

    assert rows(path) == [(0.5, 1.5, 2_000_000, "write", False)] * 2
    assert read(path).job.ranks == 4


def test_a_msgpack_file_that_is_cut_off_warns(tmp_path: Path) -> None:
    path = tmp_path / "4.msgpack"
    whole = msgpack.packb(MODE)
    path.write_bytes(whole + whole[:-5])
    trace = read(path)

    assert trace.events().height == 1
    assert "cut off after" in trace.completeness.warnings[0]


@pytest.mark.parametrize(
    "document",
    [
        {"b": [1e9, 0.0, 1e9, 0.0], "t": [0.0, 5.0, 10.0, 15.0]},
        {"bandwidth": {"b_overlap_avr": [1e9, 0, 1e9, 0], "t_overlap": [0, 5, 10, 15]}},
    ],
)
def test_a_plain_step_function_has_no_direction(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    trace = read(path)
    (series,) = trace.series.values()

    assert trace.detail == {"series"}
    assert series.direction is None
    assert series.steps.edges.tolist() == [0, 5, 10, 15]
    assert series.steps.values.tolist() == [1e9, 0, 1e9]


def test_plain_intervals(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"b": [1e6, 2e6], "ts": [0, 5], "te": [1, 6]}))

    assert [row[2] for row in rows(path)] == [1_000_000, 2_000_000]


def test_impossible_intervals_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"b": [1, NaN, 1, 1e6], "ts": [5, 1, 1, 0], "te": [4, 2, Infinity, 1]}')
    trace = read(path)

    assert trace.events().height == 1
    assert "3 intervals left out" in trace.completeness.warnings[0]


def test_gekkofs_json_and_msgpack_tell_the_same(tmp_path: Path) -> None:
    as_json = tmp_path / "write_2024_x0024.json"
    as_json.write_text(json.dumps(GEKKO))
    fields: list[object] = [1, "x0024", 7, "w"]
    arrays = [GEKKO[name] for name in ("start_t_micro", "end_t_micro", "req_size")]
    as_msgpack = tmp_path / "dump"
    as_msgpack.write_bytes(b"".join(msgpack.packb(x) for x in [*fields, *arrays, 2, 300]))

    assert find_reader(as_msgpack).name == "gekkofs"
    assert rows(as_json) == rows(as_msgpack)
    assert rows(as_json)[1] == (5.0, 6.0, 200, "write", None)
    assert read(as_json).processes["host"].to_list() == ["x0024"]


def test_a_process_id_beyond_all_bounds_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**GEKKO, "pid": 10**30}))

    assert read(path).processes["pid"].to_list() == [None]


def test_clients_of_gekkofs_become_one_trace(tmp_path: Path) -> None:
    for pid, host in enumerate(("x0024", "x0025", "x0183"), start=34_250):
        name = f"write_2024-02-28_20:50:02_{host}_{pid}.json"  # as clients name their files
        (tmp_path / name).write_text(json.dumps(GEKKO | {"hostname": host, "pid": pid}))
    trace = read(tmp_path)

    assert trace.job.ranks == 3
    assert trace.job.runtime == 6.0
    assert trace.events()["rank"].unique().sort().to_list() == [0, 1, 2]


def test_metrics_are_rates_and_counters_become_rates(tmp_path: Path) -> None:
    metrics = {
        "total___strace___size___write": [[0, 0], [1, 10], [2, 10], [3, 40]],
        "cpu": [[0, 5], [1, 3], [2, 9], [3, 1]],
        "x": [[0, 0], [1, 1], [2, 2], [3, 3]],
        "deriv__x": [[0, 1], [1, 1], [2, 1], [3, 1]],
    }
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps({"infos": False, "metrics": metrics}))
    series = read(path).series

    assert set(series) == {"total___strace___size___write", "cpu", "deriv__x"}
    assert series["total___strace___size___write"].steps.values.tolist() == [10, 0, 30]
    assert series["total___strace___size___write"].direction == "write"
    assert series["cpu"].steps.values.tolist() == [5, 3, 9]


DESCRIPTION = r"""
operation = "write"
[start]
pattern = 'start: \[([^\]]*)\]'
scale = 1e-6
[end]
pattern = 'end: \[([^\]]*)\]'
scale = 1e-6
[bytes]
pattern = 'size: \[([^\]]*)\]'
"""
TEXT = "# anything\nstart: [0, 5000000]\nend: [1000000, 6000000]\nsize: [10 20]\n"


def described(tmp_path: Path, description: str, text: str = TEXT) -> Any:
    (tmp_path / "d.toml").write_text(description)
    (tmp_path / "t.txt").write_text(text)
    return read_described_text(tmp_path / "t.txt", tmp_path / "d.toml")


def test_a_text_is_read_as_its_description_says(tmp_path: Path) -> None:
    events = described(tmp_path, DESCRIPTION).events()

    assert events.select("start", "end", "bytes").rows() == [(0.0, 1.0, 10), (5.0, 6.0, 20)]
    assert events["operation"].to_list() == ["write", "write"]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("start = [", "not valid TOML"),
        ("[start]\npattern='x'", "are needed"),
        (DESCRIPTION + "\n[run]\nx='import os'", "unknown entries"),
        (DESCRIPTION.replace("([^", "(?:[^"), "no group"),
        (DESCRIPTION.replace("1e-6", "'__import__(\"os\")'"), "a scale"),
        (DESCRIPTION.replace(r"\[([^\]]*)\]", "([", 1), "pattern"),
    ],
)
def test_a_wrong_description_is_one_clear_error(
    tmp_path: Path, description: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        described(tmp_path, description)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "matches nothing"),
        (TEXT.replace("[10 20]", "[10]"), "not equally long"),
        (TEXT.replace("[10 20]", "[10 exec]"), "not a number"),
    ],
)
def test_a_text_that_does_not_fit_is_one_clear_error(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BrokenTraceError, match=message):
        described(tmp_path, DESCRIPTION, text)


@pytest.mark.parametrize(
    "content",
    [
        b'{"write_sync": {"bandwidth": {"b_rank_avr": [1], "t_rank_s": [1, 2], "t_rank_e": [2]}}}',
        b'{"write_sync": {"bandwidth": {"b_rank_avr": ["x"], "t_rank_s": [1], "t_rank_e": [2]}}}',
        b'{"write_sync": {}}',
        b'{"b": [], "t": []}',
        b'{"b": [1, 2], "t": [2, 1]}',
        b'{"write_sync": ' + b"[" * 100_000,
        b'{"infos": 0, "metrics": {"x": [1, 2, 3]}}',
        b'{"start_t_micro": [1]}',
        msgpack.packb(["write_sync", 1, 2]),
        msgpack.packb([*MODE[:13], [[1]]]),
    ],
)
def test_damaged_files_are_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)

    with pytest.raises(IoprismError, match="Hint: "):
        read(path)


SAMPLES = [
    json.dumps({"write_sync": BODY}).encode(),
    (json.dumps({"write_sync": BODY}) + "\n").encode() * 3,
    msgpack.packb(MODE) * 3,
    json.dumps(GEKKO).encode(),
    json.dumps({"infos": 0, "metrics": {"x": [[0, 1], [1, 2], [2, 0]]}}).encode(),
]


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sample=st.sampled_from(SAMPLES),
    edits=st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=4)), max_size=5),
)
def test_changed_bytes_never_crash_a_reader(
    tmp_path: Path, sample: bytes, edits: list[tuple[int, bytes]]
) -> None:
    data = bytearray(sample)
    for place, new in edits:
        data[place : place + len(new)] = new
    path = tmp_path / "changed"
    path.write_bytes(data)

    try:
        events = read(path).events()
    except IoprismError as error:
        assert "Hint: " in str(error)
    else:
        assert (events["end"] >= events["start"]).all()


@pytest.mark.corpus
def test_public_traces_hold_what_their_readme_says(shared_data: Path) -> None:
    folder = shared_data / "tmio"
    by_direction = pl.len().alias("calls")

    assert read(folder / "384.msgpack").events().height == 2 * 30_720
    lines = read(folder / "8.jsonl").events()
    assert lines.group_by("operation").agg(by_direction)["calls"].to_list() == [1095, 1095]
    assert read(folder / "gekkofs").events().height == 820
    assert read(folder / "custom.json").events().height == 32
    assert read(folder / "custom_app.json").detail == {"series"}
    assert read(folder / "trace_export.msgpack").detail == {"series"}
