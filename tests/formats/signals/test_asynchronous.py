"""TMIO's required bandwidth beside the measured one, from both of its formats."""

from __future__ import annotations

import json
from pathlib import Path

import msgpack
import pytest

from ioprism.engine.base import LocalEngine
from ioprism.formats.registry import read_trace
from ioprism.periodicity.of_job import PeriodSettings, RequiredBandwidth, job_periodicity

STARTS = [10.0 * number for number in range(1, 9)]
SIZE = 1e9
# Requests take 4 s; the program waits for them after 2 s in every second phase, else after 8 s.
ENDS = [start + 4.0 for start in STARTS]
WAITS = [start + (2.0 if number % 2 else 8.0) for number, start in enumerate(STARTS)]


def mode(ends: list[float]) -> dict[str, object]:
    rates = [SIZE / (end - start) for start, end in zip(STARTS, ends, strict=True)]
    return {"bandwidth": {"b_rank_avr": rates, "t_rank_s": STARTS, "t_rank_e": ends}}


@pytest.fixture(params=["json", "msgpack"])
def trace_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"1.{request.param}"
    if request.param == "json":
        path.write_text(json.dumps({"write_async_t": mode(ENDS), "write_async_b": mode(WAITS)}))
        return path
    phases = [
        [int(SIZE), start, end, wait, 0, 0, 0, 0, 1]
        for start, end, wait in zip(STARTS, ENDS, WAITS, strict=True)
    ]
    path.write_bytes(msgpack.packb(["write_async", True, True, *([0] * 8), 1, 1, phases]))
    return path


def test_the_highest_required_bandwidth_keeps_all_requests_hidden(trace_file: Path) -> None:
    found = job_periodicity(read_trace(trace_file), LocalEngine(), PeriodSettings())
    (one,) = found.asynchronous

    assert isinstance(one, RequiredBandwidth)
    assert one.direction == "write"
    assert one.required_peak == pytest.approx(SIZE / 2.0, rel=1e-3)
    assert one.measured_peak == pytest.approx(SIZE / 4.0, rel=1e-3)
    assert one.hidden == 0.5
    assert one.waited == pytest.approx(4 * 2.0)


def test_synchronous_requests_have_no_required_bandwidth(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.write_text(json.dumps({"write_sync": mode(ENDS)}))

    assert job_periodicity(read_trace(path), LocalEngine(), PeriodSettings()).asynchronous == ()
