"""The order of the steps of `ioprism write-time`: import, train, evaluate, estimate, tune, sample.

>>> from ioprism import write_time
>>> model = write_time.load_model("cetus")  # the published one; or the path of a trained one
>>> answer = write_time.estimate(model, nodes=64, cores=16, burst=512_000_000)
>>> answer.leading
('link', 'I/O node')
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioprism.errors import AnalysisError, NotEnoughDetailError, TraceError, UsageError
from ioprism.model.result import pick
from ioprism.model.samples import Sample, WritePattern
from ioprism.model.trace import Trace
from ioprism.reports.figures import COLUMN_WIDTH, StaticFigure, draw_figure, require_matplotlib
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import open_plain, printable
from ioprism.views.intervals import write_intervals
from ioprism.write_time.estimate import Estimate, PhaseEstimate, compare_phases, estimate_write
from ioprism.write_time.evaluation import Evaluation, evaluate_samples
from ioprism.write_time.launchers import find_launcher
from ioprism.write_time.loads import check_pattern
from ioprism.write_time.machine import allocated_hosts
from ioprism.write_time.model import (
    PUBLISHED,
    WriteTimeModel,
    model_from_dict,
    model_to_dict,
    published_model,
)
from ioprism.write_time.run_files import RunFile, read_runs
from ioprism.write_time.run_store import RunStore, open_store
from ioprism.write_time.sampling import (
    Announce,
    PlanCost,
    PlanSettings,
    SamplingProgress,
    SessionLimits,
    draw_patterns,
    long_enough,
    plan_cost,
    run_session,
)
from ioprism.write_time.system import System, bundled_system, bundled_systems, parse_system
from ioprism.write_time.training import train_model
from ioprism.write_time.training_data import TrainingSettings
from ioprism.write_time.tuning import Tuning, TuningLimits, checkpoint_advice, rank_alternatives

ASSUMED_RATE = 1e9  # bytes per second and node, until something was measured


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import added."""

    file: RunFile
    samples_in_store: int


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """What was planned, and what it will cost."""

    cost: PlanCost
    added: int
    rate: float  # bytes per second and node
    rate_known_from: str  # given, measured or assumed

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism write-time sample plan --json` says."""
        cost = self.cost
        return {
            **pick(cost, "patterns", "largest_run_bytes", "node_hours"),
            "added": self.added,
            "bytes": {"fewest": cost.fewest_bytes, "most": cost.most_bytes},
            "seconds": {"fewest": cost.fewest_seconds, "most": cost.most_seconds},
            "too_short": {"patterns": cost.too_short, "seconds": cost.shortest},
            "assumed_rate_per_node": self.rate,
            "rate_is": self.rate_known_from,
        }


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
        if str(path) in PUBLISHED:
            return published_model(str(path))
        raise TraceError(
            "no such model.\nHint: `ioprism write-time train` writes one; "
            f"{' and '.join(PUBLISHED)} name the models of the paper.",
            source=path,
        )
    try:
        content = json.loads(_text(path))
    except (ValueError, RecursionError):
        content = None
    return model_from_dict(content, source=str(path))


def save_model(model: WriteTimeModel, path: str | Path, *, replace: bool = False) -> None:
    """Write a model's file, whole or not at all."""
    atomic_write_text(Path(path), json.dumps(model_to_dict(model)) + "\n", replace=replace)


def import_runs(
    path: str | Path, store: str | Path, *, system: str | Path | None = None, skip_bad: bool = False
) -> Imported:
    """Add all runs of a file to a store, or none; a new store needs a system.

    Raises:
        UsageError: a new store without a system.
        TraceError: the file cannot be read, or its runs are in the store already.
        AnalysisError: the system cannot have run a pattern.
    """
    path, store = Path(path), Path(store)
    where = _system_for(system, store)
    file = read_runs(path, skip_bad=skip_bad)
    for pattern in dict.fromkeys(run.pattern for run in file.runs):
        _check(pattern, where, path)
    with open_store(store, create_for=(where.name, where.text)) as runs:
        runs.add_runs(file.runs, origin=str(path), content=file.content)
        return Imported(file, len(runs.samples()))


def train(store: str | Path, settings: TrainingSettings | None = None) -> WriteTimeModel:
    """Learn from a store's samples."""
    system, samples = load_samples(store)
    return train_model(samples, system=system, settings=settings)


def evaluate(store: str | Path, model: WriteTimeModel) -> Evaluation:
    """Compare a store's samples with what a model predicts."""
    system, samples = load_samples(store)
    return evaluate_samples(samples, model=model, system=system)


def figure(
    evaluation: Evaluation, name: str, *, width: float = COLUMN_WIDTH, kinds: Sequence[str] = ()
) -> StaticFigure:
    """Draw a figure of an evaluation for a paper; the names are those of `--figure`.

    Args:
        evaluation: what `evaluate` returns.
        name: one of predicted, errors, error-cdf, ratio-cdf, variability-cdf.
        width: in inches; by default one column.
        kinds: of model to draw; by default all in the model's file.

    Raises:
        UsageError: there is no such figure, or no such kind.
        MissingPackageError: matplotlib is not installed.
        FigureUnavailableError: the evaluation lacks what the figure shows.
    """
    require_matplotlib()
    from ioprism.write_time.figures import DrawnEvaluation

    drawn = DrawnEvaluation(evaluation, tuple(kinds))
    return draw_figure("write-time evaluate", name, drawn, width=width)


def estimate(
    model: WriteTimeModel,
    *,
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None = None,
    node_list: Sequence[int] | None = None,
) -> Estimate:
    """Predict the time of one write or read of `burst` bytes by every core, as the model's."""
    pattern = _pattern(model, nodes, cores, burst, stripe_count, node_list)
    return estimate_write(pattern, model=model)


def compare(
    model: WriteTimeModel,
    trace: Trace,
    *,
    gap: float = 1.0,
    nodes: int | None = None,
    stripe_count: int | None = None,
    node_list: Sequence[int] | None = None,
) -> tuple[PhaseEstimate, ...]:
    """Predict the write phases of a trace; `gap` seconds without writes end a phase."""
    if model.facts.access != "write":
        raise UsageError(
            f"this model is of {model.facts.access}; phases of a trace are writes of separate "
            "files.\nHint: give a model trained on such writes."
        )
    if not trace.partitions:
        raise NotEnoughDetailError(
            needed="a per-call trace",
            has="counters only",
            hint="record them next time (for Darshan: DXT enabled).",
        )
    return compare_phases(
        write_intervals(trace, gap=gap).to_dicts(),
        model=model,
        nodes=nodes,
        node_list=tuple(node_list) if node_list else None,
        stripe_count=stripe_count,
    )


def tune(
    model: WriteTimeModel,
    *,
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None = None,
    node_list: Sequence[int] | None = None,
    limits: TuningLimits | None = None,
    mean_time_between_failures: float | None = None,
    io_share: float | None = None,
) -> Tuning:
    """Rank configurations that write the same bytes, and advise how often to write them."""
    pattern = _pattern(model, nodes, cores, burst, stripe_count, node_list)
    limits = limits or TuningLimits(cores=(1, cores), nodes=(nodes, nodes))
    now, choices = rank_alternatives(pattern, model=model, limits=limits)
    fastest = min([now.seconds, *(choice.estimate.seconds for choice in choices)])
    advice = checkpoint_advice(
        fastest, mean_time_between_failures=mean_time_between_failures, io_share=io_share
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
) -> SamplingPlan:
    """Choose patterns from the published templates, add them to a store, and state their cost."""
    store = Path(store)
    where = _system_for(system, store)
    measured = None
    if store.exists():
        with open_store(store) as runs:
            measured = runs.measured_rate()
    speed = rate or measured or ASSUMED_RATE
    patterns = draw_patterns(where, settings)
    if skip_short:
        patterns = long_enough(patterns, where, rate=speed)
    added = 0
    if not dry_run:
        with open_store(store, create_for=(where.name, where.text)) as runs:
            added = runs.add_plan(patterns)
    known_from = "given" if rate else "measured" if measured else "assumed"
    return SamplingPlan(plan_cost(patterns, where, rate=speed), added, speed, known_from)


def sample(
    store: str | Path,
    directory: str | Path,
    *,
    launcher: str = "auto",
    limits: SessionLimits | None = None,
    announce: Announce = lambda _: None,
) -> SamplingProgress:
    """Run what is planned until every mean has converged; resumes where it stopped."""
    with open_store(Path(store)) as runs:
        system = _system_of(runs)
        if not runs.planned():
            raise AnalysisError(
                f"{store}: nothing is planned yet.\n"
                "Hint: run `ioprism write-time sample plan` first."
            )
        hosts = allocated_hosts(system.hostname)
        return run_session(
            runs,
            rule=system.sampling,
            launcher=find_launcher(launcher, hosts=hosts),
            folder=Path(directory),
            hosts=hosts,
            limits=limits,
            announce=announce,
        )


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
    model: WriteTimeModel,
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None,
    node_list: Sequence[int] | None,
) -> WritePattern:
    placed, access = tuple(node_list) if node_list else None, model.facts.access
    return WritePattern(nodes, cores, burst, None, stripe_count, placed, access=access)


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
        with open_plain(path) as file:
            return file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError("this is not a text file.\nHint: check the path.", source=path) from error
