"""Darshan's heat maps, where there are no single calls: when each rank moved how many bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Floats
from ioprism.model.trace import Trace
from ioprism.views.time.heat import heat_intervals, heat_shares

LAYERS = ("posix", "stdio")  # that touch storage, the first that moved bytes counts
FEWEST = 4  # phases, for some to stand out
TOGETHER = 0.5  # of the ranks take part in a phase


@dataclass(frozen=True, slots=True, eq=False)
class HeatPhases:
    """Stretches of bins in which bytes were moved; tables are phase by rank."""

    start: Floats
    end: Floats
    moved: Floats  # bytes
    busy: Floats  # seconds of the bins in which a rank moved any
    width: float  # of a bin

    def __len__(self) -> int:
        return len(self.start)

    @property
    def seconds(self) -> Floats:
        """How long each phase lasts, to the width of a bin."""
        return self.end - self.start

    @property
    def by_rank(self) -> Floats:
        """Bytes of each rank."""
        return np.asarray(self.moved.sum(axis=0), np.float64)

    @property
    def waiting_ratio(self) -> float:
        """Slowest ranks' time, phase by phase, over that of the rank which is slowest in all.

        Ranks that take part in the same phases wait for whoever is slowest in each of them.
        """
        present = (self.busy > 0).mean(axis=1) >= TOGETHER
        if present.sum() < 2:
            return 1.0
        busy = self.busy[present]
        return float(busy.max(axis=1).sum() / busy.sum(axis=0).max())


def heat_phases(trace: Trace, ranks: int) -> HeatPhases | None:
    """Return the phases of the lowest layer that has a heat map; None without one."""
    if "HEATMAP" not in trace.counters:
        return None
    heat = trace.counters["HEATMAP"]
    busy, resolution = heat_intervals(heat)
    for layer in LAYERS:
        rows = busy.filter(pl.col("layer").cast(pl.String) == layer)
        if rows.height:
            start, end = rows["start"].to_numpy(), rows["end"].to_numpy()
            shares = heat_shares(heat, {layer: (start, end)})
            return _phases(shares, start, end, ranks, resolution[layer])
    return None


def _phases(
    shares: pl.DataFrame, start: Floats, end: Floats, ranks: int, width: float
) -> HeatPhases:
    moved, busy = np.zeros((len(start), ranks)), np.zeros((len(start), ranks))
    known = shares.filter((pl.col("rank") >= 0) & (pl.col("rank") < ranks))
    place = known["phase"].to_numpy(), known["rank"].to_numpy()
    moved[place] = (known["read"] + known["write"]).to_numpy()
    busy[place] = known["seconds"].to_numpy()
    return HeatPhases(start, end, moved, busy, width)
