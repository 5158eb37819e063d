"""When a job does I/O: phases per layer, with the fastest and slowest rank of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.engine.base import Engine
from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.model.trace import Trace
from ioprism.settings import PhaseSettings
from ioprism.views.time.heat import heat_intervals, heat_shares
from ioprism.views.time.intervals import BusyIntervals, PhaseShares

Floats = npt.NDArray[np.float64]

# Gaps that differ less than this, as deviation over mean, are of one kind.
EVEN = 0.5
# Even gaps are pauses within one phase where they are this short, next to the busy time.
PAUSE = 0.25
# Two kinds of gaps are told apart where they differ by this factor.
CLEAR = 4.0


@dataclass(frozen=True, slots=True)
class RankTime:
    """How long one rank was in calls."""

    rank: int
    time: float  # seconds


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of time in which the job does I/O."""

    start: float  # seconds
    end: float
    ranks: int  # that took part
    operations: int
    bytes: int
    bytes_read: int
    bytes_written: int
    fastest: RankTime
    slowest: RankTime
    typical: float  # seconds that the middle rank was in calls

    @property
    def kind(self) -> str:
        """What is done: read, write, read and write, or metadata."""
        done = [n for n, b in (("read", self.bytes_read), ("write", self.bytes_written)) if b]
        return " and ".join(done) or "metadata"


@dataclass(frozen=True, slots=True)
class LayerPhases:
    """The phases of one interface, and the gap that separates them."""

    gap_threshold: float  # seconds: shorter gaps are within a phase
    phases: tuple[Phase, ...]
    resolution: float | None = None  # seconds; of the heat map, where there are no calls

    @property
    def gaps(self) -> list[float]:
        """Seconds between phases."""
        pairs = zip(self.phases, self.phases[1:], strict=False)
        return [later.start - earlier.end for earlier, later in pairs]


@dataclass(frozen=True, slots=True)
class Phases:
    """The phases of every layer."""

    layers: Mapping[str, LayerPhases]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism phases --json` says."""
        return {"layers": {name: _layer_dict(found) for name, found in self.layers.items()}}

    def to_frame(self) -> pl.DataFrame:
        """Return one row per phase."""
        rows = [
            {"layer": layer, **_flat(phase)}
            for layer, found in self.layers.items()
            for phase in found.phases
        ]
        return pl.DataFrame(rows, schema=_FRAME)


_FRAME = pl.Schema(
    {
        "layer": pl.String(), "start": pl.Float64(), "end": pl.Float64(), "kind": pl.String(),
        "ranks": pl.Int64(), "operations": pl.Int64(), "bytes": pl.Int64(),
        "fastest_rank": pl.Int64(), "fastest_time": pl.Float64(),
        "slowest_rank": pl.Int64(), "slowest_time": pl.Float64(),
    }
)  # fmt: skip


def _flat(phase: Phase) -> dict[str, Any]:
    return {
        "start": phase.start,
        "end": phase.end,
        "kind": phase.kind,
        "ranks": phase.ranks,
        "operations": phase.operations,
        "bytes": phase.bytes,
        "fastest_rank": phase.fastest.rank,
        "fastest_time": phase.fastest.time,
        "slowest_rank": phase.slowest.rank,
        "slowest_time": phase.slowest.time,
    }


def _layer_dict(found: LayerPhases) -> dict[str, Any]:
    return {
        "gap_threshold": found.gap_threshold,
        "resolution": found.resolution,
        "phases": [
            {
                "start": p.start,
                "end": p.end,
                "kind": p.kind,
                "ranks": p.ranks,
                "operations": p.operations,
                "bytes": p.bytes,
                "fastest": {"rank": p.fastest.rank, "time": p.fastest.time},
                "slowest": {"rank": p.slowest.rank, "time": p.slowest.time},
                "typical": p.typical,
            }
            for p in found.phases
        ],
    }


def phases(
    trace: Trace,
    engine: Engine,
    *,
    settings: PhaseSettings | None = None,
    layer: str | None = None,
) -> Phases:
    """Find the phases of each layer, from calls, or from heat maps where there are none.

    Raises:
        NotEnoughDetailError: the trace has neither calls nor heat maps.
        UsageError: the trace has no such layer.
    """
    settings = settings or PhaseSettings()
    if trace.partitions:
        (busy,) = engine.run(trace, BusyIntervals())
        resolution: Mapping[str, float] = {}
    elif "HEATMAP" in trace.counters:
        busy, resolution = heat_intervals(trace.counters["HEATMAP"])
    else:
        raise NotEnoughDetailError(
            needed="single calls or heat maps",
            has="counters only",
            hint="record the job with extended tracing: export DXT_ENABLE_IO_TRACE=1",
        )
    found = {
        name: joined_phases(rows["start"].to_numpy(), rows["end"].to_numpy(), settings)
        for name, rows in _layers(busy, layer)
    }
    starts = {name: borders[0] for name, (_, borders) in found.items()}
    if trace.partitions:
        (shares,) = engine.run(trace, PhaseShares(starts))
    else:
        shares = heat_shares(trace.counters["HEATMAP"], starts)
    return Phases(
        {
            name: LayerPhases(
                threshold,
                tuple(_described(borders, shares.filter(layer=name))),
                resolution.get(name),
            )
            for name, (threshold, borders) in found.items()
        }
    )


def _layers(busy: pl.DataFrame, chosen: str | None) -> Iterator[tuple[str, pl.DataFrame]]:
    present = [str(name) for name in busy["layer"].unique().sort().to_list()]
    if chosen is not None and chosen not in present:
        raise UsageError(
            f"the trace has no calls of the layer {chosen!r}.\n"
            f"Hint: it has {', '.join(present) or 'none at all'}."
        )
    for name in present:
        if chosen in (None, name):
            yield name, busy.filter(layer=name)


def joined_phases(
    start: Floats, end: Floats, settings: PhaseSettings
) -> tuple[float, tuple[Floats, Floats]]:
    """Join disjoint busy intervals, in order, to phases; return the threshold and the borders."""
    gaps = start[1:] - end[:-1]
    threshold = settings.gap
    if threshold is None:
        threshold = gap_threshold(gaps, busy=end - start, deviations=settings.deviations)
    breaks = np.flatnonzero(gaps >= threshold) if len(gaps) else np.empty(0, np.int64)
    first = np.concatenate(([0], breaks + 1))[: len(start)]
    last = np.concatenate((breaks, [len(start) - 1]))[: len(start)]
    return threshold, (start[first], end[last])


def gap_threshold(gaps: Floats, *, busy: Floats, deviations: float) -> float:
    """Return how long a gap between busy intervals must be to separate two phases.

    The mean gap and one standard deviation, as long as most gaps are short ones within phases.
    Where at least half are long, that sum is longer than they are: then the threshold lies
    where short and long gaps part. Gaps of one kind either all separate phases, or none does.
    """
    if not len(gaps):
        return 0.0
    mean, deviation = float(gaps.mean()), float(gaps.std())
    if deviation <= EVEN * mean:
        pauses = mean < PAUSE * float(np.median(busy))
        return float(gaps.max()) * 2 if pauses else float(gaps.min())
    return min(mean + deviations * deviation, _parting(gaps))


def _parting(gaps: Floats) -> float:
    """Where the gaps part into short and long ones most clearly; infinite if they do not."""
    ordered = np.sort(gaps[gaps > 0])
    ratios = ordered[1:] / ordered[:-1]
    if not len(ratios):
        return float("inf")
    # Only the upper half can make mean and deviation too long.
    later = len(ratios) // 2 if len(ratios) > 2 else 0
    widest = int(np.argmax(ratios))
    if ratios[widest] < CLEAR or widest > later:
        return float("inf")
    return float(np.sqrt(ordered[widest] * ordered[widest + 1]))


def _described(borders: tuple[Floats, Floats], shares: pl.DataFrame) -> Iterator[Phase]:
    """Turn what ranks did in each phase into phases, in order."""
    by_time = shares.sort("phase", "seconds", "rank")
    table = by_time.group_by("phase", maintain_order=True).agg(
        pl.len().alias("ranks"),
        pl.col("operations", "read", "write").sum(),
        pl.col("rank").first().alias("fastest"),
        pl.col("seconds").first().alias("shortest"),
        pl.col("rank").last().alias("slowest"),
        pl.col("seconds").last().alias("longest"),
        pl.col("seconds").median().alias("typical"),
    )
    for row in table.iter_rows(named=True):
        number = row["phase"]
        yield Phase(
            float(borders[0][number]),
            float(borders[1][number]),
            row["ranks"],
            row["operations"],
            row["read"] + row["write"],
            row["read"],
            row["write"],
            RankTime(row["fastest"], row["shortest"]),
            RankTime(row["slowest"], row["longest"]),
            row["typical"],
        )
