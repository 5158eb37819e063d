"""What is written for Perfetto comes back as it was: calls, files, processes, the job."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ioprism import (
    EVENTS,
    PROCESSES,
    BrokenTraceError,
    Job,
    MemoryPartition,
    OutputError,
    Trace,
    convert,
    file_table,
    read,
)
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import LAYERS
from tests.conftest import ROOT

DATA = ROOT / "tests/data"
PATHS = ["/a", '/b "quoted"', "/c\\d\ue000", "/é\n"]

events = st.fixed_dictionaries(
    {
        "start": st.integers(0, 10**12).map(lambda n: n / 1e9),
        "length": st.integers(0, 10**9).map(lambda n: n / 1e9),
        "process": st.integers(0, 3),
        "file": st.one_of(st.none(), st.integers(0, len(PATHS) - 1)),
        "layer": st.sampled_from(LAYERS),
        "operation": st.sampled_from(OPERATIONS),
        "function": st.one_of(st.none(), st.text(min_size=1, max_size=8)),
        "collective": st.sampled_from([None, True, False]),
        "nonblocking": st.sampled_from([None, True, False]),
        "offset": st.one_of(st.none(), st.integers(0, 2**50)),
        "bytes": st.one_of(st.none(), st.integers(0, 2**50)),
    }
)


def trace_of(rows: list[dict[str, Any]]) -> Trace:
    for row in rows:
        row["end"] = row["start"] + row.pop("length")
        row["rank"] = row["process"] // 2
        if row["operation"] not in ("read", "write"):
            row["bytes"] = None
    table = EVENTS.conform(pl.DataFrame(rows, infer_schema_length=None))
    processes = pl.DataFrame(
        {"process": range(4), "rank": [0, 0, 1, 1], "host": ["x", None, "y", "y"]}
    )
    return Trace(
        format="made",
        paths=(),
        job=Job(ranks=2, start_time=1.5e9, end_time=1.5e9 + 9, runtime=9.0, executable="a b"),
        partitions=(MemoryPartition(table),),
        load_files=lambda: file_table(PATHS),
        load_processes=lambda: PROCESSES.conform(processes),
    )


def comparable(trace: Trace) -> pl.DataFrame:
    named = trace.events().join(
        trace.files.select("file", "path"), on="file", how="left", maintain_order="left"
    )
    return named.drop("file").with_columns(pl.col("function").cast(pl.String))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(events, min_size=1, max_size=6))
def test_a_trace_survives_perfetto_and_the_store(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    trace = trace_of(rows)
    perfetto, store = tmp_path / "trace.json.gz", tmp_path / "store"
    convert(trace, perfetto, replace=True)
    convert(trace, store, replace=True)
    again, kept = read(perfetto), read(store)

    assert_frame_equal(comparable(again), comparable(trace), abs_tol=2e-9, rel_tol=1e-14)
    assert_frame_equal(comparable(kept), comparable(trace).sort("start"), check_row_order=False)
    assert again.processes.equals(trace.processes)
    assert again.job == trace.job == kept.job


@pytest.mark.parametrize(
    "name", ["darshan/a_ckpt_fpp_period5s.darshan", "recorder/v2.4.0-mpiio_coll"]
)
def test_perfetto_gets_one_track_per_rank_and_counters(tmp_path: Path, name: str) -> None:
    trace = read(DATA / name)
    path = tmp_path / "trace.json"
    convert(trace, path)
    written = json.loads(path.read_text())["traceEvents"]
    tracks = {e["pid"] for e in written if e["ph"] == "M" and e["name"] == "process_name"}
    rates = [e for e in written if e["ph"] == "C"]
    moved = trace.events().filter(operation="write")["bytes"].sum()
    area = 0.0
    writes = [e for e in rates if "write" in e["args"]]
    for first, second in pairwise(writes):
        area += first["args"]["write"] * (second["ts"] - first["ts"]) / 1e6

    assert tracks == {-1, *range(trace.job.ranks or 0)}
    assert {e["ph"] for e in written} == {"M", "X", "C"}
    assert area == pytest.approx(moved, rel=1e-6)


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("mine")

    with pytest.raises(OutputError):
        convert(trace_of([]), tmp_path / "a.json")


def written(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "t.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_other_programs_events_are_understood(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            {"ph": "M", "pid": 9, "name": "process_name", "args": {"name": "solver"}},
            {"ph": "X", "pid": 9, "tid": 1, "ts": 1e6, "dur": 5, "name": "pwrite", "cat": "POSIX",
             "args": {"file": "/a", "ret": 7, "offset": 3}},
            {"ph": "B", "pid": 9, "tid": 1, "ts": 1e6 + 10, "name": "step"},
            {"ph": "B", "pid": 9, "tid": 1, "ts": 1e6 + 11, "name": "fread"},
            {"ph": "E", "pid": 9, "tid": 1, "ts": 1e6 + 12, "args": {"bytes": 4}},
            {"ph": "E", "pid": 9, "tid": 1, "ts": 1e6 + 15},
            {"ph": "B", "pid": 9, "tid": 1, "ts": 1e6 + 20, "name": "cut"},
        ],
    )  # fmt: skip
    trace = read(path)
    found = trace.events().sort("start")

    assert found["layer"].to_list() == ["posix", "application", "stdio"]
    assert found["bytes"].to_list() == [7, None, 4]
    assert found["end"].to_list() == pytest.approx([5e-6, 15e-6, 12e-6])
    assert trace.processes["application"].to_list() == ["solver"]
    assert any("1 unfinished event left out" in warning for warning in trace.completeness.warnings)


def test_a_cut_file_gives_what_it_holds(tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    convert(read(DATA / "recorder/v2.4.0-mpiio_coll"), whole)
    text = whole.read_text()
    trace = read(written(tmp_path, text[: len(text) // 2]))

    assert 0 < trace.events().height < 451
    assert any("cut short" in warning for warning in trace.completeness.warnings)


@pytest.mark.parametrize("inner", ["[" * 100_000, '{"a":' * 100_000])
def test_deep_json_is_no_trace(tmp_path: Path, inner: str) -> None:
    event = '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}'
    trace = read(written(tmp_path, f"[{event}, {inner}"))

    assert trace.events().height == 1
    assert any("damaged" in warning for warning in trace.completeness.warnings)


def test_events_without_times_are_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, [{"ph": "X", "name": "a", "pid": 1, "tid": 1}])

    with pytest.raises(BrokenTraceError, match="no event in it"):
        read(path)


def test_a_compressed_file_may_be_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    convert(read(DATA / "recorder/v2.4.0-mpiio_coll"), whole)
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(whole.read_bytes())[:6000])

    assert 0 < read(path).events().height < 451
