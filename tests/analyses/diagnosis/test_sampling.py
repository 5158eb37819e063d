"""A large trace is judged by a sample of its phases, and the answer stays about the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioprism.analyses.diagnosis import sampling
from ioprism.analyses.diagnosis.diagnose import diagnose
from ioprism.formats.registry import read_trace
from ioprism.synthetic.machine.cases import make
from ioprism.synthetic.machine.logs import write_case


def test_a_sample_finds_the_same_cause_and_about_the_same_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case(tmp_path, "case", make("slow-target", seed=2))
    trace = read_trace(next(tmp_path.glob("*.darshan")))
    whole = diagnose(trace)
    calls = trace.events().height

    monkeypatch.setattr(sampling.sampled_calls, "__kwdefaults__", {"most": calls // 2})
    part = diagnose(trace)

    assert part.causes[0].code == whole.causes[0].code == "slow-target"
    assert part.causes[0].culprit == whole.causes[0].culprit
    assert part.causes[0].saving.seconds == pytest.approx(whole.causes[0].saving.seconds, rel=0.25)
    assert part.held_up.seconds == pytest.approx(whole.held_up.seconds, rel=0.15)
