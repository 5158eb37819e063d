"""What does a scheduler know of the periods of jobs, and when?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ioprism.errors import ServiceError
from ioprism.periodicity.tracker import Tracker, TrackerSettings
from ioprism.scheduling.machine import SimulatedJob

# Seconds between phases, or None: asked with all phases of a job until now (start, end, bytes).
Predictor = Callable[[Sequence[tuple[float, float, float]]], float | None]
SETTLED = 16  # phases; a period known for longer is looked at once in as many
REMEMBERED = 4096  # phases of a job that a predictor is given


class TruePeriods:
    """The mean period of every job, as if users had given it."""

    def __init__(self, jobs: Sequence[SimulatedJob], bandwidth: float) -> None:
        self._periods = [mean_period(job, bandwidth) for job in jobs]

    def period(self, job: int, *, now: float) -> float | None:  # noqa: ARG002 - the protocol's
        """The same at all times."""
        return self._periods[job]

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Nothing is new."""


class _Observed:
    """Until a period is known, the mean distance of phases stands for it from the second on."""

    def __init__(self, jobs: Sequence[SimulatedJob]) -> None:
        self._first: list[float | None] = [None] * len(jobs)  # seconds, start of the first phase
        self._ended = [0] * len(jobs)  # phases
        self._known: list[float | None] = [None] * len(jobs)

    def period(self, job: int, *, now: float) -> float | None:
        """The period found last, else the mean distance of phases; None for the first phase.

        The phase that begins now counts: a distance is known before its second phase is served.
        """
        first = self._first[job]
        if self._known[job] is not None or first is None or not self._ended[job]:
            self._first[job] = now if first is None else first
            return self._known[job]
        return (now - first) / self._ended[job]

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:  # noqa: ARG002
        """Count a phase that has ended."""
        self._ended[job] += 1


class LivePeriods(_Observed):
    """What ioprism's tracker knows by then: the period, or the distance of the phases so far."""

    def __init__(
        self, jobs: Sequence[SimulatedJob], settings: TrackerSettings | None = None
    ) -> None:
        super().__init__(jobs)
        self._trackers = [Tracker(settings or TrackerSettings()) for _ in jobs]

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Tell the tracker of the job, and ask it."""
        super().observe(job, start=start, end=end, moved=moved)
        tracker = self._trackers[job]
        tracker.add(np.array([start]), np.array([end]), np.array([moved]))
        # A period known for long is looked at now and then: it costs less, and changes show soon.
        settled = self._known[job] is not None and self._ended[job] > SETTLED
        prediction = tracker.predict(analyse=not settled or self._ended[job] % SETTLED == 0)
        # A period that was known stays in use: a look that shows none may be an unlucky one.
        if prediction is not None and prediction.period is not None:
            self._known[job] = prediction.period.seconds


class PredictedPeriods(_Observed):
    """What another predictor finds in the phases until then."""

    def __init__(self, jobs: Sequence[SimulatedJob], predict: Predictor) -> None:
        super().__init__(jobs)
        self._predict = predict
        self._phases: list[list[tuple[float, float, float]]] = [[] for _ in jobs]

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Ask the predictor again."""
        super().observe(job, start=start, end=end, moved=moved)
        phases = self._phases[job]
        phases.append((start, end, moved))
        del phases[:-REMEMBERED]
        period = self._predict(phases)
        if period is not None:
            self._known[job] = period


def mean_period(job: SimulatedJob, bandwidth: float) -> float:
    """Seconds from one phase to the next if no other job runs."""
    rate = min(job.bandwidth, bandwidth)
    steps = [one.compute + one.bytes / rate for one in job.iterations]
    return sum(steps) / len(steps)


SERVER = """
import contextlib, io, json, sys
import numpy as np
with contextlib.redirect_stdout(sys.stderr):
    from ftio.cli.ftio_core import core
    from ftio.parse.args import parse_args
for line in sys.stdin:
    time, values = json.loads(line)
    args = parse_args(["-e", "no", "-f", "10"], "ftio")
    sim = {"time": np.array(time), "bandwidth": np.array(values), "total_bytes": 0, "ranks": 1}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            prediction, _ = core(sim, args)
        frequency = float(prediction.get_dominant_freq())
    except Exception:
        frequency = 0.0
    print(json.dumps(1 / frequency if frequency > 0 else None), flush=True)
"""
SAME_ANSWERS = 3  # in a row, after which FTIO's predictor takes only the last periods
LAST_PERIODS = 3.0  # as FTIO's predictor does
FEWEST_PHASES = 3
MOST_PHASES = 64  # that FTIO is asked about one by one; then every sixteenth


class FtioPredictor:
    """Keeps one process with FTIO; jobs are identified by their first phase."""

    def __init__(self, python: Path) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user names the interpreter
                [str(python), "-c", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError as error:
            raise ServiceError(f"{python} cannot be started: {error}.") from error
        self._hits: dict[float, tuple[int, float | None]] = {}

    def __call__(self, phases: Sequence[tuple[float, float, float]]) -> float | None:
        """Return the period of phases (start, end, bytes), or None if FTIO finds none."""
        count = len(phases)
        if count < FEWEST_PHASES or (count > MOST_PHASES and count % SETTLED):
            return None
        hits, last = self._hits.get(phases[0][0], (0, None))
        begin = phases[0][0]
        if hits > SAME_ANSWERS and last:
            begin = phases[-1][1] - LAST_PERIODS * last
        time, values = [], []
        for start, end, moved in phases:
            if end > begin:
                time += [start, end]
                values += [moved / max(end - start, 1e-6), 0.0]
        period = self._ask(time, values)
        self._hits[phases[0][0]] = (hits + 1 if period else 0, period)
        return period

    def close(self) -> None:
        """End its process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, time: list[float], values: list[float]) -> float | None:
        if self._process.stdin is None or self._process.stdout is None:
            raise ServiceError("FTIO's process has no pipes.")
        try:
            self._process.stdin.write(json.dumps([time, values]) + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        except OSError as error:
            raise ServiceError(f"FTIO's process ended: {error}.") from error
        if not said:
            raise ServiceError(
                "FTIO's process ended without an answer.\n"
                "Hint: --ftio-python must name a Python in which `import ftio` works."
            )
        period: float | None = json.loads(said)
        return period
