"""When a job does I/O: phases per layer, with the fastest and slowest rank of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ioprism.engine.base import Engine, View
from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.model.result import Result, pick
from ioprism.model.trace import Trace
from ioprism.phase_detection import Borders, burst_borders, phase_borders
from ioprism.settings import PhaseSettings
from ioprism.views.bandwidth import bandwidth
from ioprism.views.intervals import BusyIntervals, PhaseShares, heat_intervals, heat_shares

FEWEST_FOR_BURSTS = 64  # a stream of fewer busy intervals is one phase


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
    operations: int | None  # None from a heat map, which counts bytes only
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
    resolution: float | None = None  # seconds; of the heat map, without per-call data
    bursts: bool = False  # whether I/O goes on between the phases, which are bursts of its rate

    @property
    def gaps(self) -> list[float]:
        """Seconds between phases."""
        pairs = zip(self.phases, self.phases[1:], strict=False)
        return [later.start - earlier.end for earlier, later in pairs]


@dataclass(frozen=True, slots=True, repr=False)
class Phases(Result):
    """The phases of every layer."""

    layers: Mapping[str, LayerPhases]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism phases --json` says."""
        return self._document(list)

    def to_stream(self) -> dict[str, Any]:
        """Return what `to_dict` does, with iterators: a million phases are not dicts at once."""
        return self._document(iter)

    def _document(self, rows: Callable[[Iterator[dict[str, Any]]], Any]) -> dict[str, Any]:
        layers = {
            name: {
                **pick(layer, "gap_threshold", "resolution", "bursts"),
                "phases": rows(pick(phase, *KEYS) for phase in layer.phases),
            }
            for name, layer in self.layers.items()
        }
        return {"layers": layers}

    def to_frame(self) -> pl.DataFrame:
        """Return one row per phase."""
        rows = [
            {"layer": layer, **_flat(phase)}
            for layer, layer_phases in self.layers.items()
            for phase in layer_phases.phases
        ]
        return pl.DataFrame(rows, schema=_FRAME)

    def summary(self) -> str:
        """Return the answer in one line."""
        counts = (
            f"{name} {len(layer_phases.phases)}" for name, layer_phases in self.layers.items()
        )
        return f"phases by layer: {', '.join(counts) or 'none'}"


_FRAME = pl.Schema(
    {
        "layer": pl.String(), "start": pl.Float64(), "end": pl.Float64(), "kind": pl.String(),
        "ranks": pl.Int64(), "operations": pl.Int64(), "bytes": pl.Int64(),
        "fastest_rank": pl.Int64(), "fastest_time": pl.Float64(),
        "slowest_rank": pl.Int64(), "slowest_time": pl.Float64(),
    }
)  # fmt: skip


COMMON_KEYS = ("start", "end", "kind", "ranks", "operations", "bytes")
KEYS = (*COMMON_KEYS, "fastest", "slowest", "typical")


def _flat(phase: Phase) -> dict[str, Any]:
    return {
        **pick(phase, *COMMON_KEYS),
        "fastest_rank": phase.fastest.rank,
        "fastest_time": phase.fastest.time,
        "slowest_rank": phase.slowest.rank,
        "slowest_time": phase.slowest.time,
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
    return phases_beside(trace, engine, settings=settings, layer=layer)[0]


def phases_beside(
    trace: Trace,
    engine: Engine,
    *others: View,
    settings: PhaseSettings | None = None,
    layer: str | None = None,
) -> tuple[Phases, tuple[pl.DataFrame, ...]]:
    """Find phases as `phases` does, and compute other views in the same pass over the events."""
    settings = settings or PhaseSettings()
    if trace.partitions:
        (busy,) = engine.run(trace, BusyIntervals())
        resolution: Mapping[str, float] = {}
    elif "HEATMAP" in trace.counters:
        busy, resolution = heat_intervals(trace.counters["HEATMAP"])
    else:
        raise NotEnoughDetailError(
            needed="a per-call trace or heat maps",
            has="counters only",
            hint="record the job with extended tracing: export DXT_ENABLE_IO_TRACE=1",
        )
    first, last = busy.select(pl.col("start").min(), pl.col("end").max()).row(0)
    span = 0.0 if first is None else float(last - first)
    thresholds: dict[str, float] = {}
    borders: dict[str, Borders] = {}
    bursts: dict[str, Borders | None] = {}
    for name, rows in _layers(busy, layer):
        start, end = rows["start"].to_numpy(), rows["end"].to_numpy()
        thresholds[name], borders[name] = phase_borders(start, end, settings, span=span)
        # A layer that never rests is cut where its data rate rises.
        streams = len(borders[name][0]) == 1 and len(start) >= FEWEST_FOR_BURSTS
        streams &= settings == PhaseSettings()
        bursts[name] = _bursts(trace, engine, name) if streams else None
        borders[name] = bursts[name] or borders[name]
    asked = (PhaseShares(borders),) if trace.partitions else ()
    tables = engine.run(trace, *others, *asked) if others or asked else ()
    shares = tables[-1] if asked else heat_shares(trace.counters["HEATMAP"], borders)
    layers = {
        name: LayerPhases(
            threshold,
            tuple(_phases_of_layer(borders[name], shares.filter(layer=name))),
            resolution.get(name),
            bursts[name] is not None,
        )
        for name, threshold in thresholds.items()
    }
    return Phases(layers), tables[: len(others)]


def _bursts(trace: Trace, engine: Engine, layer: str) -> Borders | None:
    try:
        return burst_borders(bandwidth(trace, engine, layer=layer))
    except NotEnoughDetailError:  # metadata calls alone have no data rate
        return None


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


def _phases_of_layer(borders: Borders, shares: pl.DataFrame) -> Iterator[Phase]:
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
            row["operations"] or None,
            row["read"] + row["write"],
            row["read"],
            row["write"],
            RankTime(row["fastest"], row["shortest"]),
            RankTime(row["slowest"], row["longest"]),
            row["typical"],
        )
