"""The choices of the method, with the source of every default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Grid = Literal["job", "native"]
Window = Literal["clip", "clip_abs", "full", "literal"]
Reset = Literal["auto", "restart", "drop"]
Sharing = Literal["split", "mark"]

GRIDS: tuple[Grid, ...] = ("job", "native")
WINDOWS: tuple[Window, ...] = ("clip", "clip_abs", "full", "literal")
RESETS: tuple[Reset, ...] = ("auto", "restart", "drop")
SHARINGS: tuple[Sharing, ...] = ("split", "mark")
THRESHOLDS = (0, 128 * 1024, 1024 * 1024)  # bytes per Δt: the paper's c


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """How counters become metrics (El Sayed et al., 'Parallel I/O Characterisation …')."""

    interval_us: int  # Δt: the paper samples every 120 s; here it is read off the counters
    thresholds: tuple[int, ...] = THRESHOLDS
    grid: Grid = "job"  # windows from the job's start, as in the paper
    window: Window = "clip"  # the paper's own ("literal") gives intensities above 1
    reset: Reset = "auto"  # "drop" for totals of a node (unmounts), else "restart"
    shared: Sharing = "split"  # bytes of jobs that ran together: by nodes, or left to nobody
    min_runtime: float = 3600.0  # seconds: the paper looks at jobs of at least an hour
    gap_factor: float = 1.5  # a longer step than this many Δt means that samples were lost
