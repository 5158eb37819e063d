"""Which samples a model may learn from, which are held out to judge it, and their features."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ioprism.errors import AnalysisError
from ioprism.model.samples import ACCESSES, Sample, WritePattern
from ioprism.write_time import limits
from ioprism.write_time.features import (
    Columns,
    Feature,
    feature_table,
    features,
    informative_columns,
)
from ioprism.write_time.loads import stage_loads
from ioprism.write_time.system import BoolArray, FloatArray, System

HONEST = "training-scales"
LEAKING = "test-scales"


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Converged samples of the training scales; some are held out to choose the model."""

    table: FloatArray  # sample x feature
    seconds: FloatArray
    nodes: npt.NDArray[np.int64]
    held_out: BoolArray
    loads: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # sample x stage load
    short: TrainingData | None = None  # too short to count; they show what every write costs

    @property
    def scales(self) -> tuple[int, ...]:
        """The node counts, ascending."""
        return tuple(int(n) for n in np.unique(self.nodes))

    def part(self, wanted: BoolArray) -> TrainingData:
        """Return some of the samples."""
        loads = self.loads[wanted] if len(self.loads) else self.loads
        kept = {n: getattr(self, n)[wanted] for n in ("table", "seconds", "nodes", "held_out")}
        return replace(self, **kept, loads=loads)

    def up_to(self, nodes: int) -> TrainingData:
        """Return the samples of at most this many nodes."""
        short = self.short.up_to(nodes) if self.short else None
        return replace(self.part(self.nodes <= nodes), short=short)

    def with_short(self) -> TrainingData:
        """Return these samples and the short ones."""
        if self.short is None:
            return self
        names = ("table", "seconds", "nodes", "held_out", "loads")
        both = {n: np.concatenate([getattr(self, n), getattr(self.short, n)]) for n in names}
        return replace(self, **both, short=None)


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What a model was trained on."""

    samples: int
    runs: int
    scales: tuple[tuple[int, int], ...]  # nodes, samples
    held_out: int
    validation: str
    validation_samples: tuple[str, ...]  # fingerprints of samples beyond the training scales
    max_nodes: int
    unconverged: int  # left out
    too_short: int  # left out, except by the stage model
    shortest: float  # seconds
    seed: int
    variant: str
    constant_features: tuple[str, ...]
    copied_features: tuple[tuple[str, str], ...]
    unknown_placement: int  # samples without a node list
    short_used: int = 0  # of those too short: converged ones that the stage model learned from
    notes: tuple[str, ...] = ()  # what a person should know about the choice
    access: str = "write"


NO_DATA = TrainingData(
    np.empty((0, 0)), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
)


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How to train."""

    max_nodes: int = 128
    kind: str = "auto"  # the kind that the forward checks choose, or a kind
    validation: str = HONEST  # or LEAKING: 20 % of the test samples, the rule of the 2019 paper
    variant: str = "full"
    level: float = 0.9  # of intervals
    seed: int = 1
    one_scale: bool = False  # allow samples of a single node count
    access: str | None = None  # None: writes of a file per process, or what else there is


@dataclass(frozen=True, slots=True)
class SortedSamples:
    """Samples by what they are good for."""

    converged: tuple[Sample, ...]
    unconverged: tuple[Sample, ...]
    too_short: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class PreparedSamples:
    """Everything a fit needs."""

    features: tuple[Feature, ...]
    data: TrainingData
    validation: TrainingData
    unconverged: TrainingData  # of the training scales; for the intervals only
    patterns: tuple[WritePattern, ...]
    facts: TrainingFacts


def sort_samples(samples: Sequence[Sample], system: System) -> SortedSamples:
    """Tell converged samples, unconverged ones, and those too short to count apart."""
    rule = system.sampling
    long = [s for s in samples if s.seconds > rule.minimum_seconds]
    return SortedSamples(
        tuple(s for s in long if rule.is_converged(s.times)),
        tuple(s for s in long if not rule.is_converged(s.times)),
        tuple(s for s in samples if s.seconds <= rule.minimum_seconds),
    )


def fingerprint(pattern: WritePattern) -> str:
    """Return a short name by which a sample is known again."""
    return hashlib.sha256(repr(pattern.key).encode()).hexdigest()[:16]


def prepare(
    samples: Sequence[Sample], system: System, settings: TrainingSettings
) -> PreparedSamples:
    """Choose training and validation samples, and the features that differ among them.

    Raises:
        AnalysisError: too few samples, a single scale, or nothing that varies.
    """
    sampled = {s.pattern.access for s in samples}
    access = settings.access or next((a for a in ACCESSES if a in sampled), ACCESSES[0])
    samples = [s for s in samples if s.pattern.access == access]
    samples_by_use = sort_samples(samples, system)
    inside = [s for s in samples_by_use.converged if s.pattern.nodes <= settings.max_nodes]
    _check(inside, samples_by_use, settings)
    offered = features(system, variant=settings.variant, access=access)
    table = feature_table([s.pattern for s in inside], system=system, chosen=offered)
    columns = informative_columns(table, offered)
    if not columns.kept:
        raise AnalysisError(
            f"every feature is constant over the {len(inside)} samples; nothing can be learned.\n"
            "Hint: sample different node counts, cores and burst sizes."
        )
    kept = tuple(offered[number] for number in columns.kept)
    leaked = _leaking_validation(samples_by_use.converged, settings)
    data = _data(inside, system, kept, settings, hold_out=not leaked)
    short = [
        s
        for s in samples_by_use.too_short
        if s.pattern.nodes <= settings.max_nodes and system.sampling.is_converged(s.times)
    ]
    if short:
        data = replace(data, short=_data(short, system, kept, settings, hold_out=False))
    validation = data.part(data.held_out)
    if leaked:
        validation = _data(leaked, system, kept, settings, hold_out=False)
    noisy = [s for s in samples_by_use.unconverged if s.pattern.nodes <= settings.max_nodes]
    unconverged = _data(noisy, system, kept, settings, hold_out=False) if noisy else NO_DATA
    facts = _facts(
        inside, leaked, samples_by_use, columns, settings, held_out=len(validation.seconds)
    )
    patterns = tuple(s.pattern for s in inside)
    return PreparedSamples(kept, data, validation, unconverged, patterns, facts)


def _check(
    inside: Sequence[Sample], sorted_samples: SortedSamples, settings: TrainingSettings
) -> None:
    if len(inside) < limits.MIN_SAMPLES:
        raise AnalysisError(
            f"only {len(inside)} converged samples of at most {settings.max_nodes} nodes, at least "
            f"{limits.MIN_SAMPLES} are needed ({len(sorted_samples.unconverged)} did not converge, "
            f"{len(sorted_samples.too_short)} are too short, "
            f"{len(sorted_samples.converged) - len(inside)} have more nodes).\n"
            "Hint: take more samples with `ioprism write-time sample`, or raise --max-nodes; the "
            "system's [sampling] table says when a sample has converged."
        )
    scales = {s.pattern.nodes for s in inside}
    if len(scales) == 1 and not settings.one_scale:
        raise AnalysisError(
            f"all {len(inside)} samples have {scales.pop()} node(s): one scale does not show how "
            "time grows with the number of nodes.\n"
            "Hint: sample other node counts, or use --one-scale for a model of this one only."
        )


def _data(
    samples: Sequence[Sample],
    system: System,
    chosen: Sequence[Feature],
    settings: TrainingSettings,
    *,
    hold_out: bool,
) -> TrainingData:
    patterns = [s.pattern for s in samples]
    nodes = np.array([s.pattern.nodes for s in samples], dtype=np.int64)
    held_out = np.zeros(len(samples), dtype=bool)
    chance = np.random.default_rng(settings.seed)
    for scale in np.unique(nodes) if hold_out else ():
        members = chance.permutation(np.flatnonzero(nodes == scale))
        held_out[members[: round(limits.HELD_OUT * len(members))]] = True
    if hold_out and not held_out.any():
        held_out[-1] = True
    return TrainingData(
        feature_table(patterns, system=system, chosen=chosen),
        np.array([s.seconds for s in samples]),
        nodes,
        held_out,
        stage_loads(patterns, system=system),
    )


def _leaking_validation(known: Sequence[Sample], settings: TrainingSettings) -> list[Sample]:
    """Choose a fifth of the test samples, where that rule is asked for."""
    if settings.validation != LEAKING:
        return []
    beyond = [s for s in known if s.pattern.nodes > settings.max_nodes]
    if not beyond:
        raise AnalysisError(
            f"no samples of more than {settings.max_nodes} nodes are there to validate on.\n"
            f"Hint: use --validation {HONEST}, which also gives honest scores."
        )
    order = np.random.default_rng(settings.seed).permutation(len(beyond))
    return [beyond[number] for number in order[: max(1, round(limits.HELD_OUT * len(beyond)))]]


def _facts(
    inside: Sequence[Sample],
    leaked: Sequence[Sample],
    sorted_samples: SortedSamples,
    columns: Columns,
    settings: TrainingSettings,
    *,
    held_out: int,
) -> TrainingFacts:
    nodes = [s.pattern.nodes for s in inside]
    return TrainingFacts(
        samples=len(inside),
        runs=sum(len(s.times) for s in inside),
        scales=tuple((scale, nodes.count(scale)) for scale in sorted(set(nodes))),
        held_out=held_out,
        validation=settings.validation,
        validation_samples=tuple(fingerprint(s.pattern) for s in leaked),
        max_nodes=settings.max_nodes,
        unconverged=len(sorted_samples.unconverged),
        too_short=len(sorted_samples.too_short),
        shortest=min(s.seconds for s in inside),
        seed=settings.seed,
        variant=settings.variant,
        constant_features=columns.constant,
        copied_features=columns.copies,
        unknown_placement=sum(s.pattern.node_list is None for s in inside),
        access=inside[0].pattern.access,
    )
