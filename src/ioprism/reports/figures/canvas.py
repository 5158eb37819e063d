"""What all figures share: style, colours, panels, axes with units, and how a figure is saved.

The same input gives the same bytes: matplotlib's own settings files are not read, and neither a
date nor a random number gets into the file. Text stays text in SVG and PDF. Names of a trace are
drawn as they are: `$` never begins a formula.
"""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ioprism.model.arrays import FloatArray
from ioprism.reports.figures import COLUMN_WIDTH
from ioprism.units import format_bytes

# Okabe and Ito (2008), which readers with any colour vision tell apart; as on the pages.
BLUE, VERMILION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, BLACK, GREY = "#e69f00", "#56b4e9", "#1c2733", "#9aa5b1"
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (4, 1, 1, 1)),
    (0, (6, 2)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1)),
)
OF_DIRECTION = {"read": BLUE, "write": VERMILION}

STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 8,  # points: the least that IEEE asks for in figures
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#5b6875",
    "axes.prop_cycle": cycler(color=CYCLE),
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "legend.borderpad": 0.0,
    "figure.constrained_layout.h_pad": 0.02,  # inches
    "figure.constrained_layout.w_pad": 0.02,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ioprism",
    "pdf.fonttype": 42,  # TrueType: publishers reject Type 3 fonts
    "image.interpolation": "nearest",
    "image.aspect": "auto",
}
_OF_THE_PROCESS = ("backend", "interactive", "toolbar", "date.epoch")  # not ours to change
PRINT_DPI = 600  # of images inside SVG and PDF: what publishers ask for in line art
PNG_DPI = 300  # of a whole PNG: what publishers ask for in pictures
_NO_DATE: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
CHARACTERS_PER_INCH = 18  # of the font above at 7 points, in running text; measured
LEGEND_HANDLE = 5  # characters that the coloured mark and the space around it take


@contextmanager
def _own_style() -> Iterator[None]:
    """Draw as this module says, whatever the user's settings are; they are back afterwards."""
    usual: dict[Any, Any] = {
        key: value
        for key, value in mpl.rcParamsDefault.items()
        if not key.startswith(_OF_THE_PROCESS)
    }
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)  # it remarks on its font cache
    try:
        with warnings.catch_warnings(), mpl.rc_context():
            warnings.simplefilter("ignore", mpl.MatplotlibDeprecationWarning)
            # Names may hold letters that the font lacks; they are boxes in PNG, and right in SVG.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            mpl.rcParams.update(usual | STYLE)
            yield
    finally:
        log.setLevel(level)


@dataclass(frozen=True, slots=True, eq=False)
class Canvas:
    """An empty figure of a given width, in inches."""

    figure: Figure
    width: float

    def panels(
        self, count: int = 1, *, height: float = 0.55, ratios: Sequence[float] = ()
    ) -> list[Axes]:
        """Divide the figure into panels below each other that share the x axis.

        Args:
            count: how many.
            height: of all together, as a share of the width of one column; wider figures
                become flatter.
            ratios: of their heights; all equal if empty.
        """
        self.figure.set_size_inches(self.width, height * math.sqrt(self.width * COLUMN_WIDTH))
        axes = self.figure.subplots(
            count, 1, sharex=True, squeeze=False, height_ratios=list(ratios) or None
        )
        return list(axes[:, 0])

    @property
    def characters(self) -> int:
        """How many characters of text fit across."""
        return int(self.width * CHARACTERS_PER_INCH)

    def legend(self, handles: Sequence[Artist]) -> None:
        """Explain colours above the panels, in as few rows as fit."""
        if not handles:
            return
        longest = max(len(str(handle.get_label())) for handle in handles) + LEGEND_HANDLE
        rows = math.ceil(len(handles) * longest / self.characters)
        self.figure.legend(
            handles=list(handles),
            loc="outside upper center",
            ncols=math.ceil(len(handles) / rows),
            borderaxespad=0.1,
        )


def draw_with(draw: Callable[[Canvas, Any], None], subject: object, *, width: float) -> Figure:
    """Return the figure that a function draws of a subject."""
    with _own_style():
        figure = Figure(figsize=(width, width), layout="constrained")
        draw(Canvas(figure, width), subject)
    return figure


def content_of(figure: Figure, ending: str) -> bytes:
    """Return a figure as the bytes of a file with this ending."""
    stream = io.BytesIO()
    with _own_style():
        figure.savefig(
            stream,
            format=ending.removeprefix("."),
            dpi=PNG_DPI if ending == ".png" else PRINT_DPI,
            metadata=_NO_DATE[ending],
        )
    return stream.getvalue()


def swatches(colours: dict[str, str]) -> list[Patch]:
    """Return a legend's entries for coloured areas."""
    return [Patch(facecolor=colour, label=name) for name, colour in colours.items()]


@dataclass(frozen=True, slots=True)
class Unit:
    """What an axis counts in, and how much of the base unit that is."""

    name: str
    size: float


# A span is counted in a unit until it has this many of the base unit.
_TIMES = (
    (1e-3, Unit("µs", 1e-6)),
    (1.0, Unit("ms", 1e-3)),
    (300.0, Unit("s", 1.0)),
    (3 * 3600.0, Unit("min", 60.0)),
    (3 * 86_400.0, Unit("h", 3600.0)),
    (math.inf, Unit("d", 86_400.0)),
)


def time_unit(span: float) -> Unit:
    """Return the unit for a span of seconds."""
    return next(unit for limit, unit in _TIMES if span < limit)


def bytes_unit(largest: float, *, suffix: str = "") -> Unit:
    """Return the binary unit for amounts up to `largest`."""
    power = min(6, max(0, int(math.log2(largest) // 10))) if largest > 0 else 0
    return Unit(f"{' KMGTPE'[power].strip()}{'i' if power else ''}B{suffix}", 2.0 ** (10 * power))


def few_ticks(axis: Axis, *, most: int = 5, integer: bool = False) -> None:
    """Put ticks at round numbers, without trailing zeros and without an offset."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=integer))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def time_axis(
    axes: Axes, start: float, end: float, unit: Unit, *, since: str = "job start"
) -> None:
    """Label the x axis as time; the data are in `unit`."""
    axes.set_xlim(start / unit.size, max(end, start + 1e-9) / unit.size)
    axes.set_xlabel(f"time since {since} ({unit.name})")
    few_ticks(axes.xaxis, most=7)


def amount_axis(axis: Axis, label: str, unit: Unit) -> None:
    """Label an axis with a quantity and its unit."""
    axis.set_label_text(f"{label} ({unit.name})")
    few_ticks(axis, most=4)


def log_bytes_axis(axis: Axis, low: float, high: float, *, suffix: str = "") -> None:
    """Put a few powers of two on a logarithmic axis, such as 1 KiB, 32 KiB, 1 MiB."""
    first, last = math.log2(max(low, 1.0)), math.log2(max(high, 2.0))
    step = next(step for step in (1, 2, 5, 10, 20) if (last - first) / step <= 6)
    powers = range(math.ceil(first / step) * step, math.floor(last) + 1, step)
    axis.set_major_locator(FixedLocator([2.0**power for power in powers]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _whole_bytes(value, suffix)))


def round_bytes(size: int) -> str:
    """Return a round size without the zeros behind its point: 128 KiB, 1 MiB."""
    return format_bytes(size).replace(".00 ", " ").replace(".0 ", " ")


def _whole_bytes(value: float, suffix: str) -> str:
    unit = bytes_unit(value, suffix=suffix)
    return f"{value / unit.size:.0f} {unit.name}"


_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0,
           10.0, 20.0, 50.0, 100.0, 1000.0)  # fmt: skip


def log_number_axis(
    axis: Axis, low: float, high: float, *, most: int = 8, integer: bool = False
) -> None:
    """Put round numbers on a logarithmic axis: powers of ten, or ratios around 1."""
    inside = [n for n in _RATIOS if low <= n <= high and (n.is_integer() or not integer)]
    if high / low > 100 or not inside:
        first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
        inside = [10.0**power for power in range(first, last + 1)]
    gap = math.log(high / low) / most if high > low else 0.0
    ticks: list[float] = []
    for value in sorted(inside, key=lambda value: abs(math.log(value))):  # 1 comes first
        if all(abs(math.log(value / other)) >= gap for other in ticks):
            ticks.append(value)
    axis.set_major_locator(FixedLocator(sorted(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def share_axis(axes: Axes, label: str) -> None:
    """Label the y axis of a cumulative distribution."""
    axes.set_ylim(0.0, 1.02)
    axes.set_ylabel(label)
    axes.yaxis.set_major_locator(FixedLocator([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def cumulative(axes: Axes, values: FloatArray, **style: Any) -> Any:  # noqa: ANN401 - a line of matplotlib
    """Draw which share of the values is at or below each; returns the line."""
    ordered = np.sort(values)
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    (line,) = axes.step(
        np.concatenate((ordered[:1], ordered)), np.concatenate(([0.0], shares)),
        where="post", **style,
    )  # fmt: skip
    return line


def intensity_colours() -> Colormap:
    """Return colours from light to dark, so that small values do not stand out on white."""
    blues = mpl.colormaps["Blues"](np.linspace(0.2, 1.0, 256))  # one hue: lightness says it all
    return ListedColormap(blues).with_extremes(bad="white")


def rate_image(
    axes: Axes, rates: FloatArray, extent: tuple[float, float, float, float], *, high: float
) -> AxesImage:
    """Draw rates (rows from the bottom up) in colours on a logarithmic scale; none is white."""
    low = max(high / 1e4, float(np.min(rates[rates > 0], initial=high)))
    return axes.imshow(
        np.ma.masked_less_equal(rates, 0.0),
        extent=extent,
        origin="lower",
        cmap=intensity_colours(),
        norm=LogNorm(min(low, high / 2), high, clip=True),
    )


def rate_bar(canvas: Canvas, image: AxesImage, axes: Sequence[Axes], label: str) -> Colorbar:
    """Explain the colours of a picture of rates."""
    bar = canvas.figure.colorbar(image, ax=list(axes), pad=0.02, aspect=22)
    log_bytes_axis(bar.ax.yaxis, *image.get_clim(), suffix="/s")
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar
