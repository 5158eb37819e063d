"""`ioprism servers` as functions: counters of file-system servers, jobs, the whole machine.

>>> from ioprism import servers
>>> servers.ingest("mmpmon/", "sacct.txt", store="machine.store")  # doctest: +SKIP
>>> servers.jobs("machine.store", min_runtime=600).table            # doctest: +SKIP
>>> found = servers.report("machine.store", shared="split")         # doctest: +SKIP
>>> found.fleet.totals["write"].unattributed                        # doctest: +SKIP
>>> servers.write_page(found, "machine.html")                       # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ioprism.model.counters import COUNTERS, JOBS, ReadingOptions, Tally
from ioprism.reports.figures.catalogue import (
    COLUMN_WIDTH,
    StaticFigure,
    draw_figure,
    require_matplotlib,
)
from ioprism.servers import steps as _pipeline
from ioprism.servers.ingest import Outcome
from ioprism.servers.result import JobMetrics
from ioprism.servers.steps import MachineReport, Question
from ioprism.servers.validate import Validation

__all__ = [
    "COUNTERS",
    "JOBS",
    "JobMetrics",
    "MachineReport",
    "Outcome",
    "Question",
    "ReadingOptions",
    "Tally",
    "Validation",
    "figure",
    "ingest",
    "jobs",
    "report",
    "validate",
    "write_page",
]


def ingest(
    *sources: str | Path, store: str | Path, time: float | None = None, timezone: str = "UTC"
) -> list[Outcome]:
    """Bring raw counters and job lists into a store; what is there already is skipped."""
    return _pipeline.ingest([*map(Path, sources)], Path(store), time=time, timezone=timezone)


def jobs(store: str | Path, **question: Any) -> JobMetrics:  # noqa: ANN401 - as `Question` has them
    """Return what every job did to the file system; settings are the fields of `Question`."""
    return _pipeline.jobs(Path(store), Question(**question))


def report(store: str | Path, **question: Any) -> MachineReport:  # noqa: ANN401 - as above
    """Return the whole machine; settings are the fields of `Question`."""
    return _pipeline.report(Path(store), Question(**question))


def validate(*, servers: int = 16, days: float = 4.0, seed: int = 1) -> Validation:
    """Run the whole chain on a simulated load and compare with what is known of it."""
    return _pipeline.validate(servers=servers, days=days, seed=seed)


def figure(
    machine: MachineReport,
    name: str,
    *,
    width: float = COLUMN_WIDTH,
    peak_read: float | None = None,
    peak_write: float | None = None,
) -> StaticFigure:
    """Draw a figure of a machine for a paper; the names are those of `--figure`.

    Args:
        machine: what `report` returns.
        name: one of load, servers, bandwidth-cdf, volume-cdf, intensity-cdf, burstiness-cdf,
            parallel-intensity-cdf, jobs.
        width: in inches; by default one column.
        peak_read: of the file system, in bytes per second.
        peak_write: likewise.

    Raises:
        UsageError: there is no such figure.
        MissingPackageError: matplotlib is not installed.
        FigureUnavailableError: the report lacks what the figure shows.
    """
    require_matplotlib()
    from ioprism.servers.figures import DrawnMachine

    drawn = DrawnMachine(machine, {"read": peak_read, "write": peak_write})
    return draw_figure("servers report", name, drawn, width=width)


def write_page(
    machine: MachineReport,
    path: str | Path,
    *,
    peak_read: float | None = None,
    peak_write: float | None = None,
    force: bool = False,
) -> None:
    """Write the self-contained page of a machine."""
    from ioprism.servers.page import write_page as write

    write(machine, Path(path), peaks={"read": peak_read, "write": peak_write}, force=force)
