"""The write-time commands as functions: import runs, train, evaluate, estimate, tune, sample.

>>> from ioprism import write_time
>>> model = write_time.load_model("cetus")  # the paper's own; or the path of a trained one
>>> answer = write_time.estimate(model, nodes=64, cores=16, burst=512_000_000)
>>> answer.leading
('link',)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.errors import AnalysisError, NotEnoughDetailError, TraceError, UsageError
from ioprism.model.result import Result
from ioprism.model.samples import Sample, WritePattern
from ioprism.model.trace import Trace
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import printable
from ioprism.write_time.campaign.launchers import find_launcher
from ioprism.write_time.campaign.machine import allocated_hosts
from ioprism.write_time.campaign.sampler import Announce, Progress, StopRule
from ioprism.write_time.campaign.sampler import Limits as SessionLimits
from ioprism.write_time.campaign.sampler import sample as _sample
from ioprism.write_time.convergence import converged, finished
from ioprism.write_time.estimate import Estimate
from ioprism.write_time.estimate import estimate as _estimate
from ioprism.write_time.evaluation import Evaluation
from ioprism.write_time.evaluation import evaluate as _evaluate
from ioprism.write_time.measured_phases import Comparison, compare_phases, phases_of
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.model_file import from_dict, to_dict
from ioprism.write_time.parameters import check_pattern
from ioprism.write_time.preparation import TrainingSettings
from ioprism.write_time.published import COEFFICIENTS, published_model
from ioprism.write_time.run_store import RunStore, open_store
from ioprism.write_time.sample_formats.runs import RunFile, read_runs
from ioprism.write_time.sampling import Cost, PlanSettings, cost, long_enough
from ioprism.write_time.sampling import plan as _plan
from ioprism.write_time.system import (
    System,
    bundled_system,
    bundled_systems,
    parse_system,
)
from ioprism.write_time.training import train as _train
from ioprism.write_time.tuning import (
    CheckpointAdvice,
    Choice,
    Limits,
    checkpoint_advice,
)
from ioprism.write_time.tuning import tune as _tune

ASSUMED_RATE = 1e9  # bytes per second and node, until something was measured


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought."""

    file: RunFile
    samples_in_store: int


@dataclass(frozen=True, slots=True, repr=False)
class Tuning(Result):
    """Configurations that write the same bytes, fastest first, and how often to write."""

    now: Estimate
    choices: tuple[Choice, ...]
    advice: CheckpointAdvice

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism write-time tune --json` says."""
        advice = self.advice
        return {
            "now": self.now.to_dict(),
            "choices": [choice.to_dict() for choice in self.choices],
            "checkpoint": {
                "write_seconds": advice.write_seconds,
                "young_interval": advice.young,
                "daly_interval": advice.daly,
                "io_share": advice.io_share,
                "least_interval": advice.least_interval,
            },
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per configuration."""
        rows = [
            {**c.estimate.pattern.to_dict(), "seconds": c.estimate.seconds, "speedup": c.speedup}
            for c in self.choices
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def summary(self) -> str:
        """Return the answer in one line."""
        fastest = max((choice.speedup for choice in self.choices), default=1.0)
        return f"{self.now.seconds:.4g} s now, {max(fastest, 1.0):.3g} times faster at best"


@dataclass(frozen=True, slots=True)
class Planned:
    """What was planned, and what it will take."""

    cost: Cost
    added: int
    rate: float  # bytes per second and node
    rate_known_from: str  # given, measured or assumed


def load_system(name: str | Path) -> System:
    """Return a bundled system, or the one that a file describes."""
    path = Path(name)
    if str(name) in bundled_systems() or not path.exists():
        return bundled_system(str(name))
    return parse_system(_text(path), source=str(name))


def load_samples(store: str | Path) -> tuple[System, list[Sample]]:
    """Return a store's system and samples."""
    with open_store(Path(store)) as runs:
        return _system_of(runs), runs.samples()


def seconds_of_writes(model: WriteTimeModel) -> Callable[[Trace], float]:
    """Return the function that estimates how long the write phases of a trace need."""

    def seconds(trace: Trace) -> float:
        if not trace.partitions:
            return 0.0
        return sum(pair.estimate.seconds for pair in compare(model, trace))

    return seconds


def load_model(path: str | Path) -> WriteTimeModel:
    """Read a model's file, or return the paper's model of the system of this name."""
    path = Path(path)
    if not path.exists():
        if str(path) in COEFFICIENTS:
            return published_model(str(path))
        raise TraceError(
            "no such model.\nHint: `ioprism write-time train` writes one; "
            f"{' and '.join(COEFFICIENTS)} name the models of the paper.",
            source=path,
        )
    try:
        content = json.loads(_text(path))
    except (ValueError, RecursionError):
        content = None
    return from_dict(content, source=str(path))


def save_model(model: WriteTimeModel, path: str | Path, *, replace: bool = False) -> None:
    """Write a model's file, whole or not at all."""
    atomic_write_text(Path(path), model_text(model), replace=replace)


def model_text(model: WriteTimeModel) -> str:
    """Return what a model's file holds."""
    return json.dumps(to_dict(model)) + "\n"


def import_runs(
    path: str | Path,
    store: str | Path,
    *,
    system: str | Path | None = None,
    skip_bad: bool = False,
) -> Imported:
    """Add all runs of a file to a store, or none; a new store needs a system.

    Raises:
        UsageError: a new store without a system.
        TraceError: the file cannot be read, or its runs are in the store already.
        AnalysisError: the system cannot have run a pattern.
    """
    path, store = Path(path), Path(store)
    where = _system_for(system, store)
    found = read_runs(path, skip_bad=skip_bad)
    for pattern in dict.fromkeys(run.pattern for run in found.runs):
        _check(pattern, where, path)
    with open_store(store, create_for=(where.name, where.text)) as runs:
        runs.add_runs(found.runs, origin=str(path), content=found.content)
        return Imported(found, len(runs.samples()))


def train(store: str | Path, settings: TrainingSettings | None = None) -> WriteTimeModel:
    """Learn from a store's samples."""
    system, samples = load_samples(store)
    return _train(samples, system=system, settings=settings)


def evaluate(store: str | Path, model: WriteTimeModel) -> Evaluation:
    """Compare a store's samples with what a model predicts."""
    system, samples = load_samples(store)
    return _evaluate(samples, model=model, system=system)


def estimate(
    model: WriteTimeModel,
    *,
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None = None,
    node_list: Sequence[int] | None = None,
) -> Estimate:
    """Predict the time of one write of `burst` bytes from every core."""
    return _estimate(_pattern(nodes, cores, burst, stripe_count, node_list), model=model)


def compare(
    model: WriteTimeModel,
    trace: Trace,
    *,
    gap: float = 1.0,
    nodes: int | None = None,
    stripe_count: int | None = None,
    node_list: Sequence[int] | None = None,
) -> tuple[Comparison, ...]:
    """Predict the write phases of a trace; `gap` seconds without writes end a phase."""
    from ioprism.views.time.intervals import write_intervals

    if not trace.partitions:
        raise NotEnoughDetailError(
            needed="single write calls",
            has="counters only",
            hint="record them next time (for Darshan: DXT enabled).",
        )
    phases = phases_of(
        write_intervals(trace, gap=gap).to_dicts(),
        cores_per_node=model.system.cores_per_node,
        nodes=nodes,
    )
    placed = tuple(node_list) if node_list else None
    return compare_phases(phases, model=model, node_list=placed, stripe_count=stripe_count)


def tune(
    model: WriteTimeModel,
    *,
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None = None,
    node_list: Sequence[int] | None = None,
    limits: Limits | None = None,
    mean_time_between_failures: float | None = None,
    io_share: float | None = None,
) -> Tuning:
    """Rank configurations that write the same bytes, and advise how often to write them."""
    pattern = _pattern(nodes, cores, burst, stripe_count, node_list)
    limits = limits or Limits(cores=(1, cores), nodes=(nodes, nodes))
    now, choices = _tune(pattern, model=model, limits=limits)
    best = min([now, *(choice.estimate for choice in choices)], key=lambda found: found.seconds)
    advice = checkpoint_advice(
        best.seconds, mean_time_between_failures=mean_time_between_failures, io_share=io_share
    )
    return Tuning(now, choices, advice)


def plan(
    store: str | Path,
    settings: PlanSettings | None = None,
    *,
    system: str | Path | None = None,
    rate: float | None = None,
    skip_short: bool = False,
    dry_run: bool = False,
) -> Planned:
    """Choose patterns from the paper's templates, put them into a store, and state their cost."""
    store = Path(store)
    where = _system_for(system, store)
    measured = _measured_rate(store)
    speed = rate or measured or ASSUMED_RATE
    patterns = _plan(where, settings)
    if skip_short:
        patterns = long_enough(patterns, where, rate=speed)
    added = 0
    if not dry_run:
        with open_store(store, create_for=(where.name, where.text)) as runs:
            added = runs.add_plan(patterns)
    known_from = "given" if rate else "measured" if measured else "assumed"
    return Planned(cost(patterns, where, rate=speed), added, speed, known_from)


def sample(
    store: str | Path,
    directory: str | Path,
    *,
    launcher: str = "auto",
    limits: SessionLimits | None = None,
    announce: Announce = lambda _: None,
) -> Progress:
    """Run what is planned until every mean has converged; resumes where it stopped."""
    with open_store(Path(store)) as runs:
        system = _system_of(runs)
        if not runs.planned():
            raise AnalysisError(
                f"{store}: nothing is planned yet.\n"
                "Hint: run `ioprism write-time sample plan` first."
            )
        rule = system.sampling
        hosts = allocated_hosts(system.hostname)
        return _sample(
            runs,
            rule=StopRule(lambda t: converged(t, rule), lambda t: finished(t, rule)),
            launcher=find_launcher(launcher, hosts=hosts),
            folder=Path(directory),
            hosts=hosts,
            limits=limits,
            announce=announce,
        )


def _measured_rate(store: Path) -> float | None:
    if not store.exists():
        return None
    with open_store(store) as runs:
        return runs.measured_rate()


def _system_for(name: str | Path | None, store: Path) -> System:
    if name is not None:
        return load_system(name)
    if not store.exists():
        raise UsageError(
            "a new store needs --system.\nHint: give a name or the file of a description."
        )
    with open_store(store) as runs:
        return _system_of(runs)


def _system_of(runs: RunStore) -> System:
    name, text = runs.system()
    return parse_system(text, source=f"{runs.path} ({name})")


def _pattern(
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None,
    node_list: Sequence[int] | None,
) -> WritePattern:
    placed = tuple(node_list) if node_list else None
    return WritePattern(nodes, cores, burst, None, stripe_count, placed)


def _check(pattern: WritePattern, system: System, path: Path) -> None:
    try:
        check_pattern(pattern, system)
    except AnalysisError as error:
        raise AnalysisError(
            f"{printable(str(path))}: pattern {printable(pattern.label) or '(unnamed)'}, "
            f"nothing was imported: {error}"
        ) from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError("this is not a text file.\nHint: check the path.", source=path) from error
