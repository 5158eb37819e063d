"""Which figures each command can draw, and a drawn one. Importing it loads no matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ioprism.errors import EndingError, MissingPackageError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ENDINGS = (".svg", ".png", ".pdf")
COLUMN_WIDTH = 3.5  # inches: one column of the IEEE and ACM two-column formats
MIN_WIDTH, MAX_WIDTH = 2.0, 20.0  # inches: narrower has no room for labels; a wide poster

# Command -> figure -> what it shows. `draw_NAME` in the command's module draws it.
CATALOGUE = {
    "report": {
        "timeline": "calls of every rank over time, by interface",
        "bandwidth": "read and write bandwidth over time",
        "phases": "I/O phases, their median and slowest rank",
        "targets": "data, time and rate of each storage target",
        "heatmap": "bandwidth of every rank over time",
        "sizes": "number of requests by size",
        "ledger": "where the I/O stall time goes",
    },
    "period": {
        "signal": "the bandwidth with its period, valid ranges and next phase",
        "spectrum": "power over frequency with the dominant frequency",
        "components": "the bandwidth and sums of its strongest cosine waves",
        "scalogram": "power over time and period",
        "autocorrelation": "correlation of the bandwidth with itself by lag",
        "correlation": "where the dominant frequency holds, by the hybrid method",
    },
    "servers report": {
        "load": "read and write bandwidth of the machine over time",
        "servers": "bandwidth of every server over time",
        "bandwidth-cdf": "maximum bandwidth of jobs, cumulative",
        "volume-cdf": "bytes of jobs, cumulative",
        "intensity-cdf": "I/O intensity of jobs for each threshold, cumulative",
        "burstiness-cdf": "burstiness of jobs for each threshold, cumulative",
        "parallel-intensity-cdf": "parallel I/O intensity of jobs for each threshold, cumulative",
        "jobs": "jobs by bytes and maximum bandwidth, with the share of jobs below",
    },
    "write-time evaluate": {
        "predicted": "predicted against measured write time",
        "errors": "relative errors of each model, in the order of measured time",
        "error-cdf": "size of the relative error of each model, cumulative",
        "ratio-cdf": "predicted over measured time of each model, cumulative",
        "variability-cdf": "slowest over fastest run of the same write, cumulative",
    },
}
_MODULES = {
    "report": "ioprism.reports.figures.job_figures",
    "period": "ioprism.reports.figures.period_figures",
    "servers report": "ioprism.servers.figures",
    "write-time evaluate": "ioprism.write_time.figures",
}


@dataclass(frozen=True, slots=True, eq=False)
class StaticFigure:
    """A figure for a paper. It shows itself in a notebook; `figure` is matplotlib's own."""

    figure: Figure

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the figure in the format that the ending says: .svg, .png or .pdf.

        Raises:
            EndingError: the format is another.
            OutputError: the file exists and is not to be replaced.
        """
        target = Path(path)
        if target.suffix.lower() not in ENDINGS:
            raise EndingError(target, what="figures", known=ENDINGS)
        content = self.to_bytes(target.suffix.lower())
        from ioprism.storage.atomic import atomic_write

        with atomic_write(target, replace=replace) as temporary:
            temporary.write_bytes(content)

    def to_bytes(self, ending: str = ".png") -> bytes:
        """Return the content of a file with this ending."""
        from ioprism.reports.figures.canvas import content_of

        return content_of(self.figure, ending)

    def _repr_png_(self) -> bytes:
        return self.to_bytes()


def require_matplotlib() -> None:
    """Check that figures can be drawn at all, before any work is done.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingPackageError(
            needed_by="a figure", package="matplotlib", install="'ioprism[figures]'"
        )


def draw_figure(
    command: str, name: str, subject: object, *, width: float = COLUMN_WIDTH
) -> StaticFigure:
    """Draw one figure of a command.

    Args:
        command: a key of `CATALOGUE`.
        name: which of its figures.
        subject: the result of the command, as its module takes it.
        width: in inches.

    Raises:
        UsageError: there is no such figure, or the width makes no sense.
        MissingPackageError: matplotlib is not installed.
        FigureUnavailableError: the result lacks what the figure needs.
    """
    if name not in CATALOGUE[command]:
        known = ", ".join(CATALOGUE[command])
        raise UsageError(f"there is no figure {name!r}.\nHint: choose one of {known}.")
    if not MIN_WIDTH <= width <= MAX_WIDTH:
        raise UsageError(
            f"a figure cannot be {width:g} inches wide.\n"
            f"Hint: give {MIN_WIDTH:g} to {MAX_WIDTH:g} inches."
        )
    require_matplotlib()
    from ioprism.reports.figures.canvas import draw_with

    module = import_module(_MODULES[command])
    draw = getattr(module, f"draw_{name.replace('-', '_')}")
    return StaticFigure(draw_with(draw, subject, width=width))
