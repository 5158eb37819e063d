"""Figures of `ioprism write-time evaluate`: predicted against measured, by model and set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator

from ioprism.errors import FigureUnavailableError, UsageError
from ioprism.model.arrays import FloatArray
from ioprism.reports.figures.canvas import (
    BLUE,
    CYCLE,
    DASHES,
    GREY,
    Canvas,
    cumulative,
    log_number_axis,
    share_axis,
)
from ioprism.write_time import limits
from ioprism.write_time.evaluation import Evaluation, SampleSet

WIDE_ERROR = limits.FAIR
PANEL_HEIGHT = 0.3  # of the width
LARGEST_ERROR = 1.0  # errors beyond are drawn at the edge
RATIO_RANGE = (0.3, 3.0)  # ratios beyond are drawn at the edge
ERROR_RANGE = (0.001, 3.0)  # sizes of relative errors, likewise
MARKERS = "osv^Dx+d"
BAND: dict[str, Any] = {"color": GREY, "alpha": 0.2, "linewidth": 0}  # what counts as accurate
GUIDE: dict[str, Any] = {"color": GREY, "linewidth": 0.5}
DOTS: dict[str, Any] = {"markersize": 2, "markeredgewidth": 0, "alpha": 0.5, "rasterized": True}
LineStyle = dict[str, Any]  # arguments of matplotlib


def _sets(evaluation: Evaluation) -> list[SampleSet]:
    """The sets that have samples."""
    kept = [one for one in evaluation.sets if len(one.measured)]
    if not kept:
        raise FigureUnavailableError(
            "this figure",
            needs="measured writes",
            hint="add some with `ioprism write-time import`.",
        )
    return kept


@dataclass(frozen=True, slots=True)
class DrawnEvaluation:
    """An evaluation, and which kinds of model to draw; all of them if none is named."""

    evaluation: Evaluation
    kinds: tuple[str, ...] = ()

    def styles(self) -> dict[str, LineStyle]:
        """Return colour and line of each kind of model, the chosen one first.

        Raises:
            UsageError: the model's file has no such kind.
        """
        model = self.evaluation.model
        known = dict.fromkeys((model.fit.kind, *(fit.kind for fit in model.beside)))
        for kind in self.kinds:
            if kind not in known:
                raise UsageError(
                    f"the model's file has no kind {kind!r}.\nHint: it has {', '.join(known)}."
                )
        return {
            kind: {"color": CYCLE[n % len(CYCLE)], "linestyle": DASHES[n % len(DASHES)]}
            for n, kind in enumerate(self.kinds or known)
        }

    def predictions(self, one: SampleSet) -> dict[str, FloatArray]:
        """Return the predicted seconds of each kind that is drawn."""
        every = {self.evaluation.model.fit.kind: one.predicted, **one.beside}
        return {kind: every[kind] for kind in self.kinds or every}


def draw_predicted(canvas: Canvas, drawn: DrawnEvaluation) -> None:
    """Predicted against measured seconds of the chosen model; the band is 30 % wide."""
    sets = _sets(drawn.evaluation)
    (axes,) = canvas.panels(height=0.85)
    both = np.concatenate([np.concatenate((one.measured, one.predicted)) for one in sets])
    both = both[both > 0]
    low, high = float(both.min()) / 1.2, float(both.max()) * 1.2
    ends = np.array([low, high])
    around = (ends * (1 - WIDE_ERROR), ends * (1 + WIDE_ERROR))
    axes.fill_between(ends, *around, **BAND)
    axes.plot(ends, ends, **GUIDE)
    legend: list[Artist] = []
    for number, one in enumerate(reversed(sets)):
        place = len(sets) - 1 - number
        marker, colour = MARKERS[place % len(MARKERS)], CYCLE[place % len(CYCLE)]
        (line,) = axes.plot(
            one.measured, one.predicted, marker, color=colour, label=one.name, **DOTS
        )
        legend.insert(0, line)
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_number_axis(axes.xaxis, low, high)
    log_number_axis(axes.yaxis, low, high)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_xlabel("measured write time (s)")
    axes.set_ylabel("predicted write time (s)")
    canvas.legend(legend)


def draw_errors(canvas: Canvas, drawn: DrawnEvaluation) -> None:
    """Relative errors of each model, sorted by measured time: one panel for each set."""
    sets, styles = _sets(drawn.evaluation), drawn.styles()
    panels = canvas.panels(len(sets), height=PANEL_HEIGHT * (1 + len(sets)))
    for axes, one in zip(panels, sets, strict=True):
        axes.axhspan(-WIDE_ERROR, WIDE_ERROR, **BAND)
        axes.axhline(0.0, **GUIDE)
        place = (np.arange(len(one.measured)) + 0.5) / len(one.measured)
        for number, (kind, predicted) in enumerate(drawn.predictions(one).items()):
            errors = np.clip(predicted / one.measured - 1.0, -LARGEST_ERROR, LARGEST_ERROR)
            marker = MARKERS[number % len(MARKERS)]
            axes.plot(place, errors, marker, color=styles[kind]["color"], **DOTS)
        axes.set_title(f"{one.name}: {len(one.measured):,} samples", loc="left", fontsize=8, pad=2)
        _error_axis(axes)
    panels[-1].set_xlim(0.0, 1.0)
    panels[-1].set_xlabel("samples, shortest write left (%)")
    panels[-1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
    markers = [Line2D([], [], color=str(style["color"]), marker=MARKERS[n % len(MARKERS)],
                      linestyle="", markersize=3, label=kind)
               for n, (kind, style) in enumerate(styles.items())]  # fmt: skip
    canvas.legend(markers)


def _error_axis(axes: Axes) -> None:
    axes.set_ylim(-1.05 * LARGEST_ERROR, 1.05 * LARGEST_ERROR)
    axes.set_ylabel("relative error (%)")
    axes.yaxis.set_major_locator(FixedLocator([-1.0, -WIDE_ERROR, 0.0, WIDE_ERROR, 1.0]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))


def draw_ratio_cdf(canvas: Canvas, drawn: DrawnEvaluation) -> None:
    """Distribution of predicted over measured time for each model: one panel for each set."""
    around = (1 - WIDE_ERROR, 1 + WIDE_ERROR)
    panels = _draw_cdfs(canvas, drawn, lambda ratios: ratios, reach=RATIO_RANGE, band=around)
    for axes in panels:
        axes.axvline(1.0, **GUIDE)
    log_number_axis(panels[-1].xaxis, *RATIO_RANGE, most=8)
    panels[-1].set_xlabel("predicted / measured write time")


def draw_error_cdf(canvas: Canvas, drawn: DrawnEvaluation) -> None:
    """Distribution of the size of relative errors for each model: one panel for each set."""
    panels = _draw_cdfs(canvas, drawn, lambda ratios: np.abs(ratios - 1.0), reach=ERROR_RANGE,
                        band=(ERROR_RANGE[0], WIDE_ERROR))  # fmt: skip
    panels[-1].xaxis.set_major_locator(LogLocator())
    panels[-1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}"))
    panels[-1].set_xlabel("|predicted - measured| / measured (%)")


def _draw_cdfs(
    canvas: Canvas,
    drawn: DrawnEvaluation,
    value_of: Callable[[FloatArray], FloatArray],
    *,
    reach: tuple[float, float],
    band: tuple[float, float],
) -> list[Axes]:
    """Draw one panel for each set, on a shared logarithmic axis; values beyond are at its ends."""
    sets, styles = _sets(drawn.evaluation), drawn.styles()
    panels = list(canvas.panels(len(sets), height=PANEL_HEIGHT * (1 + len(sets))))
    for axes, one in zip(panels, sets, strict=True):
        axes.axvspan(*band, **BAND)
        for kind, predicted in drawn.predictions(one).items():
            cumulative(axes, np.clip(value_of(predicted / one.measured), *reach), **styles[kind])
        axes.set_title(f"{one.name}: {len(one.measured):,} samples", loc="left", fontsize=8, pad=2)
        share_axis(axes, "share of samples")
    panels[-1].set_xscale("log")
    panels[-1].set_xlim(*reach)
    canvas.legend([Line2D([], [], label=kind, **style) for kind, style in styles.items()])
    return panels


def draw_variability_cdf(canvas: Canvas, drawn: DrawnEvaluation) -> None:
    """Distribution of the slowest over the fastest run of the same write."""
    ratios = drawn.evaluation.variability.ratios
    if not len(ratios):
        raise FigureUnavailableError(
            "figure 'variability-cdf'",
            needs="writes that were run at least twice",
            hint="import repetitions of the same pattern.",
        )
    (axes,) = canvas.panels(height=0.6)
    cumulative(axes, ratios, color=BLUE)
    high = max(1.5, float(ratios[-1]) * 1.1)
    axes.set_xscale("log")
    axes.set_xlim(1.0, high)
    log_number_axis(axes.xaxis, 1.0, high)
    axes.set_xlabel("slowest / fastest run of the same write")
    share_axis(axes, "share of patterns")
