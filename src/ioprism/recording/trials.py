"""Try changes from outside a program, in turn with runs without them, until the answer is clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ioprism.comparison.repetitions import Difference, difference
from ioprism.engine.local import LocalEngine
from ioprism.errors import TraceError
from ioprism.formats.registry import read_trace
from ioprism.recording.hints import Hint
from ioprism.recording.steps import TRIALS, Plan, run_once
from ioprism.recording.trial_results import Requests, judge, requests_of, same_requests


@dataclass(slots=True, eq=False)
class Trial:
    """One change, and what came of it."""

    hint: Hint
    status: str = "undecided"  # gain, no gain, ignored, failed, undecided
    seconds: list[float] = field(default_factory=list)
    requests: tuple[int, int] | None = None  # reads and writes without and with it
    found: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.hint.name,
            "hints": dict(self.hint.hints),
            "variables": dict(self.hint.variables),
            "status": self.status,
            "seconds": self.seconds,
            "requests": None if self.requests is None else list(self.requests),
            "run_time": None if self.found is None else asdict(self.found),
            "script": self.hint.script_lines() if self.status == "gain" else [],
        }


def try_hints(
    plan: Plan,
    hints: Sequence[Hint],
    *,
    rounds: int,
    stdout: int | None = None,
    stderr: int | None = None,
) -> list[Trial]:
    """Run the command without and with each hint, round by round.

    Args:
        plan: what to run; traces go to the folder `try` below its own.
        hints: what to try.
        rounds: how many at most.
        stdout: the file descriptor for the program's output; None: ours.
        stderr: the same for its messages.
    """
    folder = plan.folder / TRIALS
    folder.mkdir()
    trials = [Trial(hint) for hint in hints]
    base: list[float] = []
    for number in range(1, rounds + 1):
        active = [trial for trial in trials if trial.status == "undecided"]
        # Every other round goes backwards, so that no side is always the first.
        order: list[Trial | None] = [None, *active] if number % 2 else [*reversed(active), None]
        outcomes = {
            trial: _run_trial(plan, trial, folder, number, stdout=stdout, stderr=stderr)
            for trial in order
        }
        plain, without = outcomes.pop(None)
        if not active or without is None:
            break
        base.append(without)
        for trial, (requests, seconds) in outcomes.items():
            if trial is not None:
                _judge(trial, requests, seconds, plain, base, rounds=rounds, changes=len(trials))
    return trials


def _run_trial(
    plan: Plan,
    trial: Trial | None,
    folder: Path,
    number: int,
    *,
    stdout: int | None,
    stderr: int | None,
) -> tuple[Requests | None, float | None]:
    """Run once, and return the requests and the seconds; no seconds if the program failed."""
    traces = folder / f"{trial.hint.name if trial else 'without'}-{number}"
    variables = trial.hint.write(folder) if trial else {}
    outcome = run_once(plan, traces, variables=variables, stdout=stdout, stderr=stderr)
    return _requests(traces), outcome.seconds if outcome.exit_code == 0 else None


def _judge(
    trial: Trial,
    requests: Requests | None,
    seconds: float | None,
    plain: Requests | None,
    base: Sequence[float],
    *,
    rounds: int,
    changes: int,
) -> None:
    """Note what one more round showed of a change."""
    if seconds is None:
        trial.status = "failed"
        return
    trial.seconds.append(seconds)
    trial.found = difference(base, trial.seconds)
    if requests is not None and plain is not None:
        trial.requests = (plain.reads + plain.writes, requests.reads + requests.writes)
        # The first run may differ because it makes the files that others overwrite.
        if same_requests(plain, requests):
            trial.status = "ignored"
            return
    trial.status = judge(base, trial.seconds, rounds=rounds, changes=changes)


def _requests(folder: Path) -> Requests | None:
    try:
        return requests_of(read_trace(folder, grouping="one"), LocalEngine())
    except TraceError:
        return None
