"""A few phases within a longer job are a periodicity only where the job's phases show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ioprism import LocalEngine, Period, Signal, read
from ioprism.periodicity.counting import count_common_starts
from ioprism.periodicity.detect import Options, detect
from ioprism.periodicity.of_job import PeriodSettings, job_periodicity

BIN = 0.4  # seconds
EPOCHS = (48, 67, 86, 105, 124)  # bins in which reading begins


def heat_map(epochs: Sequence[int], *, small_reads: Sequence[int]) -> Signal:
    """Reads of ten bins in each epoch, and a few bytes long before them."""
    values = np.zeros(220)
    for first in epochs:
        values[first : first + 10] = 3e8
    values[list(small_reads)] = 100.0
    return Signal(0.0, BIN, values)


def detected(signal: Signal) -> Period:
    found = detect(signal)
    assert found is not None
    return found


def test_phases_of_the_job_confirm_a_few_phases() -> None:
    found = detected(heat_map(EPOCHS, small_reads=(0,)))

    assert found.confirmed == len(found.phases) == len(EPOCHS)
    assert found.seconds == pytest.approx(19 * BIN, rel=0.01)


def test_a_few_phases_that_the_job_shows_as_one_are_no_periodicity() -> None:
    hidden = heat_map([40 + one for one in EPOCHS], small_reads=(0, 44))

    assert detect(hidden, options=Options(confirm=False)) is not None
    assert detect(hidden) is None


@pytest.mark.corpus
def test_epochs_of_training_logs_are_a_periodicity_only_where_phases_show_them(
    shared_data: Path,
) -> None:
    logs = sorted((shared_data / "darshan/public/darshan-logs/dlio_logs").rglob("*.darshan"))
    found = [job_periodicity(read(log), LocalEngine(), PeriodSettings()).whole for log in logs]
    periods = [one.period for one in found if one.period is not None]

    assert len(logs) == 24
    assert periods
    assert all(one.seconds == pytest.approx(7.7, rel=0.03) for one in periods)
    assert all((one.confirmed or 0) >= 4 for one in periods)


def test_many_phases_are_compared_with_those_of_the_job_in_no_time() -> None:
    beats = 10.0 * np.arange(100_000.0)
    period = replace(
        detected(heat_map(EPOCHS, small_reads=())),
        seconds=10.0,
        phases=tuple((start, start + 1.0) for start in beats.tolist()),
    )

    assert count_common_starts(period, beats + 1.0) == len(beats)
    assert count_common_starts(period, beats + 2.0) == 0
    assert count_common_starts(period, beats[:1] + 4.0) == 0
