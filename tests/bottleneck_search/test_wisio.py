"""In compatibility mode every view and label counts as many bottlenecks as WisIO 0.2.2."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ioprism import LocalEngine, Trace, read
from ioprism.bottleneck_search.counted_once import main_view
from ioprism.bottleneck_search.find import Found, bottlenecks_of
from ioprism.bottleneck_search.result import Settings

pytestmark = pytest.mark.corpus

RECORDER = "wisio-tests/recorder-parquet (CM1 1280p, Recorder)"
NAMES = {"file": "file_name", "process": "proc_name", "time": "time_range"}
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("wisio/recorder-parquet", RECORDER, "iops thr45", {}),
    ("wisio/recorder-parquet", RECORDER, "iops thr15", {"threshold": 15.0}),
    ("wisio/recorder-parquet", RECORDER, "iops thr75", {"threshold": 75.0}),
    ("wisio/recorder-parquet", RECORDER, "iops pct0.99", {"percentile": 0.99}),
    ("wisio/recorder-parquet", RECORDER, "time thr45 (all flagged)", {"metric": "time"}),
    ("wisio/recorder-parquet", RECORDER, "time pct0.9", {"metric": "time", "percentile": 0.9}),
    ("wisio/recorder-parquet", RECORDER, "iops thr45 file_name only", {"views": ("file",)}),
    ("wisio/recorder-parquet", RECORDER, "iops thr45 granularity 1e6 (=0.1s)", {"bucket": 0.1}),
    ("wisio/darshan-dxt/unet3d_a100.darshan", "wisio-tests/darshan-dxt (unet3d_a100)",
     "iops thr45", {"bucket": 0.001}),
    ("dftracer/dlio", "dftracer-dlio (unet3d 8p)",
     "iops thr45 HEAD 0.1.0 (correct: 166 files)", {}),
    ("dftracer/gen-large-v22", "dftracer-gen-large-v22", "iops thr45 0.2.2", {}),
    ("dftracer/gen-small", "dftracer-gen-small (v2.2.0)", "iops thr45 0.2.2", {}),
]  # fmt: skip


@cache
def trace_at(path: Path) -> Trace:
    return read(path)


@pytest.fixture(scope="module")
def answers(shared_data: Path) -> Any:
    return json.loads((shared_data.parent / "reference/wisio/answers.json").read_text())


def found_in(trace: Trace, settings: Settings) -> Found:
    return bottlenecks_of(main_view(trace, settings, LocalEngine()), trace, settings)


def like_wisio(path: Path, **chosen: Any) -> Found:
    trace = trace_at(path)
    settings = Settings(**{"views": ("file", "process", "time"), **chosen})
    return found_in(trace, settings.like_wisio(trace_format=trace.format))


@pytest.mark.parametrize(
    ("path", "key", "run", "chosen"), CASES, ids=[f"{c[0]} {c[2]}" for c in CASES]
)
def test_every_view_and_label_is_counted_as_wisio_does(
    shared_data: Path, answers: Any, path: str, key: str, run: str, chosen: dict[str, Any]
) -> None:
    expected = {
        name: ({k: v for k, v in counts.items() if k != "n"}, counts["n"])
        for name, counts in answers[key][run]["views"].items()
    }
    views = like_wisio(shared_data / path, **chosen).views
    counted = {
        ".".join(NAMES[name] for name in view.view): (dict(view.labels), view.bottlenecks)
        for view in views
        if view.bottlenecks
    }

    assert counted == expected
    assert sum(view.bottlenecks for view in views) == answers[key][run]["total"]


@pytest.mark.parametrize(("threshold", "total"), [(30.0, 174), (60.0, 642)])
def test_thresholds_in_between(shared_data: Path, threshold: float, total: int) -> None:
    found = like_wisio(shared_data / "wisio/recorder-parquet", threshold=threshold)

    assert sum(view.bottlenecks for view in found.views) == total


def test_the_records_of_the_recorder_trace_are_wisios(shared_data: Path) -> None:
    found = like_wisio(shared_data / "wisio/recorder-parquet")
    records = {view.view: view.records for view in found.views}

    assert (records["file",], records["process",], records["time",]) == (775, 1280, 393)
    assert found.totals["io_time"] == pytest.approx(4.12, abs=0.005)
    assert found.totals["operations"] == 27_463


def test_the_planted_truth_of_the_large_trace_is_named(shared_data: Path) -> None:
    trace = trace_at(shared_data / "dftracer/gen-large-v22")
    table = found_in(trace, Settings(views=("file",))).table
    worst = table.sort("number").head(6)
    named = dict(zip(worst["record_file"].str.extract(r"wl/(.*)$"), worst["function"], strict=True))

    assert named == {
        "dataset.bin": "pread64",
        "out/meta.db": "fdatasync",
        **{f"checkpoint/ckpt_00{number}_rank3.chk": "fsync" for number in range(4)},
    }
    assert list(named)[:2] == ["dataset.bin", "out/meta.db"]
