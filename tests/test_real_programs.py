"""Pairs of real programs: promises are judged by what was measured, and missing tools are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import real_programs
from benchmarks.real_programs import Case, Pair, Recorder

ROOT = Path(__file__).parent.parent
CHANGED = Case("before", "after", ("frequent-sync",))


def _marks(
    monkeypatch: pytest.MonkeyPatch, case: Case, after: list[float], causes: list[dict[str, Any]]
) -> dict[str, bool]:
    monkeypatch.setattr(real_programs, "_diagnose", lambda _: {"causes": causes})
    runs = {"before": {"darshan": [10.0, 9.0, 11.0]}, "after": {"darshan": after}}
    pair = Pair(case, Path("program"), {"darshan": Recorder()}, Path("place"), **runs)
    return dict(pair.judge("case"))


def _cause(code: str, seconds: float, low: float, high: float) -> dict[str, Any]:
    return {"code": code, "saving": {"seconds": seconds, "low": low, "high": high}}


def test_a_promise_is_compared_with_the_measured_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    after = [6.0, 6.0, 6.0]

    right = _marks(monkeypatch, CHANGED, after, [_cause("frequent-sync", 4.5, 4.2, 4.8)])
    too_much = _marks(monkeypatch, CHANGED, after, [_cause("frequent-sync", 8.0, 7.0, 9.0)])
    other = _marks(monkeypatch, CHANGED, after, [_cause("metadata", 4.0, 3.0, 5.0)])

    assert right == {"first cause": True, "within a third": True, "interval": True}
    assert too_much == {"first cause": True, "within a third": False, "interval": False}
    assert other == {"first cause": False}


def test_a_change_that_gains_nothing_deserves_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    promise = [_cause("frequent-sync", 4.0, 3.0, 5.0)]

    (false_alarm,) = _marks(monkeypatch, CHANGED, [9.9, 10.0, 9.8], promise).values()
    (healthy,) = _marks(monkeypatch, Case("before"), [], []).values()

    assert not false_alarm
    assert healthy


def test_runs_that_differ_more_than_the_change_are_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not _marks(monkeypatch, CHANGED, [5.0, 9.5, 5.0], [])


def test_a_machine_without_mpi_is_named_as_such(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.real_programs"]

    done = subprocess.run(
        command, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )

    assert "this machine has no mpicc and no mpiexec" in done.stdout
    assert done.returncode == 0
