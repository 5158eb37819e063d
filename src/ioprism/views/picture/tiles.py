"""Any part of a timeline at any zoom, from traces of any size.

Wide windows are answered from runs that were joined once, at three widths; narrow ones from
the calls themselves. Neither ever returns much more than a screen can show.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import polars as pl

from ioprism.model.schema import EVENTS
from ioprism.model.trace import Trace
from ioprism.views.picture.timeline import (
    Calls,
    Runs,
    Timeline,
    Window,
    marks_of_runs,
    order_marks,
    order_runs,
    stretch,
)

MOST_HELD = 25_000_000  # events in memory; more are kept in a folder for as long as they are used
MOST_CALLS = 60_000  # of a tile; more are joined to runs
LEVELS = (1024, 2048, 4096)  # columns of the whole picture
FEWEST = 500  # columns that a window must have to be answered from a level
ROWS = 128  # ranks share rows beyond this
NEEDED = ("start", "end", "rank", "process", "file", "layer", "operation", "function", "offset",
          "bytes")  # fmt: skip


@dataclass(slots=True, eq=False)
class Tiles:
    """The calls of a trace, and runs of them over the whole of it, made when first needed."""

    calls: pl.LazyFrame
    start: float
    end: float
    ranks: int
    count: int  # calls
    _levels: dict[int, pl.DataFrame] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def tile(
        self, start: float, end: float, *, columns: int, ranks: tuple[int, int] | None = None
    ) -> Timeline:
        """Return the marks of a window of time and ranks."""
        share = (end - start) / max(self.end - self.start, 1e-9)
        fitting = [level for level in LEVELS if share * level >= FEWEST]
        if fitting and ranks is None and self.count > MOST_CALLS:
            return self._from_level(fitting[0], Window(start, end))
        return self._from_calls(start, end, columns, ranks)

    def whole(self) -> Timeline:
        """Return the whole picture, coarsely."""
        return self.tile(self.start, self.end, columns=LEVELS[0])

    def level(self, columns: int) -> pl.DataFrame:
        """Return the runs of the whole picture in so many columns."""
        with self._lock:
            if columns not in self._levels:
                width = stretch(self.start, self.end, columns)
                runs = Runs(width, row_step(self.ranks)).partial(self.calls).collect()
                self._levels[columns] = order_runs(marks_of_runs(runs))
            return self._levels[columns]

    def _from_level(self, columns: int, window: Window) -> Timeline:
        kept = window.of(self.level(columns).lazy()).collect()
        width = stretch(self.start, self.end, columns)
        step = row_step(self.ranks)
        return Timeline(kept, self.start, self.end, self.count, width, rank_step=step)

    def _from_calls(
        self, start: float, end: float, columns: int, ranks: tuple[int, int] | None
    ) -> Timeline:
        first, last = ranks or (None, None)
        kept = Window(start, end, first, last).of(self.calls).collect()
        if kept.height <= MOST_CALLS:
            marks = order_marks(Calls().partial(kept.lazy()).collect())
            return Timeline(marks, self.start, self.end, self.count)
        step = row_step(self.ranks if ranks is None else ranks[1] - ranks[0] + 1)
        width = stretch(start, end, columns)
        runs = Runs(width, step).partial(kept.lazy()).collect()
        marks = order_runs(marks_of_runs(runs))
        return Timeline(marks, self.start, self.end, self.count, width, rank_step=step)


def row_step(ranks: int) -> int:
    """Return how many ranks share a row."""
    return max(1, -(-ranks // ROWS))


@contextmanager
def tiles_of(trace: Trace, *, most_held: int = MOST_HELD) -> Iterator[Tiles]:
    """Read a trace once and be ready for any window of it."""
    with tempfile.TemporaryDirectory(prefix="ioprism-") as place:
        calls, count = _keep_calls(trace, Path(place), most_held)
        span = calls.select(pl.col("start").min(), pl.col("end").max(), pl.col("rank").max())
        start, end, last = span.collect().row(0)
        ranks = max(trace.job.ranks or 1, (last or 0) + 1)
        runtime = trace.job.runtime or 1.0
        yield Tiles(calls, start or 0.0, runtime if end is None else end, ranks, count)


def _keep_calls(trace: Trace, place: Path, most_held: int) -> tuple[pl.LazyFrame, int]:
    """Keep what pictures need: in memory, or in files where it is too much for that."""
    pieces: list[pl.DataFrame] = [EVENTS.empty().select(NEEDED)]
    count = rows = 0
    for batch in trace.batches():
        pieces.append(batch.select(NEEDED).collect())
        rows += pieces[-1].height
        count += pieces[-1].height
        if rows > most_held:
            pl.concat(pieces).sort("start").write_parquet(place / f"{count}.parquet")
            pieces, rows = pieces[:1], 0
    if count == rows:
        return pl.concat(pieces, rechunk=False).lazy(), count
    pl.concat(pieces).sort("start").write_parquet(place / "rest.parquet")
    return pl.scan_parquet(sorted(place.glob("*.parquet")), glob=False), count
