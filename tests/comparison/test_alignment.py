"""Phases of two runs are paired in order; every second of both runs is in exactly one stretch."""

from __future__ import annotations

import pytest

from ioprism.comparison.repetitions import align_runs, pair_phases
from ioprism.phase_detection.find import LayerPhases, Phase, Phases, RankTime


def phase(start: float, end: float, *, read: int = 0, written: int = 0) -> Phase:
    rank = RankTime(0, end - start)
    return Phase(start, end, 4, 8, read + written, read, written, rank, rank, end - start)


def run(*phases: Phase) -> Phases:
    return Phases({"posix": LayerPhases(1.0, phases)})


BEFORE = (phase(0, 1, read=100), phase(10, 14, written=800), phase(20, 24, written=800))


def test_a_missing_phase_leaves_the_others_paired() -> None:
    after = (phase(0, 1, read=100), phase(10, 11, written=800))
    pairs = pair_phases((*BEFORE, phase(30, 31)), after)

    assert [(a.start, b.start) for a, b in pairs] in ([(0, 0), (10, 10)], [(0, 0), (20, 10)])


def test_phases_of_another_kind_are_never_paired() -> None:
    assert pair_phases([phase(0, 1, read=1)], [phase(0, 1, written=1)]) == []


def test_saved_seconds_of_all_stretches_add_up_to_the_difference() -> None:
    after = run(phase(0, 1, read=100), phase(10, 11, written=700), phase(17, 18, written=900))
    segments = align_runs(run(*BEFORE), after, ((0.0, 25.0), (0.0, 19.0)))
    saved = {segment.kind or "between": segment.saved for segment in segments}

    assert sum(segment.saved for segment in segments) == pytest.approx(6.0)
    assert [segment.kind for segment in segments if segment.kind] == ["read", "write", "write"]
    assert saved["write"] == pytest.approx(3.0)


def test_a_pair_of_phases_is_named_by_what_either_does() -> None:
    segments = align_runs(
        run(phase(0, 1, read=100)), run(phase(0, 3, read=100, written=90)), ((0, 1), (0, 3))
    )

    assert [segment.kind for segment in segments] == ["", "read and write", ""]


@pytest.mark.parametrize("phases", [None, run()])
def test_without_phases_both_runs_are_one_stretch(phases: Phases | None) -> None:
    segments = align_runs(phases, run(*BEFORE), ((0.0, 5.0), (0.0, 25.0)))

    assert [(one.before, one.after) for one in segments] == [((0.0, 5.0), (0.0, 25.0))]
