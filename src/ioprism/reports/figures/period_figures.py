"""Figures of `ioprism period`: the signal, its spectrum, its waves, and where the period holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ioprism.errors import FigureUnavailableError
from ioprism.model.arrays import FloatArray, Signal
from ioprism.periodicity.describe import components, synthesise
from ioprism.periodicity.detect import Options
from ioprism.periodicity.harmonic import autocorrelation
from ioprism.periodicity.results import Component, Periodicity, Ranges
from ioprism.periodicity.spectrum import power_spectrum
from ioprism.periodicity.time_frequency import analyse_hybrid, scalogram
from ioprism.reports.figures.canvas import (
    BLACK,
    BLUE,
    CYCLE,
    DASHES,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    Canvas,
    Unit,
    amount_axis,
    bytes_unit,
    few_ticks,
    log_number_axis,
    time_axis,
    time_unit,
)
from ioprism.reports.to_html.period import COUNTS, rows_that_matter
from ioprism.text import shorten
from ioprism.units import format_seconds

BINS = 1050  # of a signal: 300 per inch of a column
POINTS = 2100  # of a wave, likewise 600
WEAKEST = 0.01  # of the highest power; frequencies above the last stronger one are not drawn
MOST_PHASE_LINES = 60  # lines closer than that cannot be told apart
LONGEST_METRIC = 18  # characters of its name beside the axis
LAGS = 8  # periods of an autocorrelation that are drawn
WIDE_RANGE = 50.0  # highest over lowest, from which an axis is logarithmic


@dataclass(frozen=True, slots=True)
class DrawnPeriodicity:
    """A periodicity, and the options by which it was found."""

    periodicity: Periodicity
    metric: str | None = None  # a series that was analysed instead of bandwidth
    options: Options = field(default_factory=Options)


def draw_signal(canvas: Canvas, drawn: DrawnPeriodicity) -> None:
    """The signal, the ranges in which the period holds, its phases, and the next one."""
    periodicity = drawn.periodicity
    signal, period = periodicity.signal, periodicity.period
    (axes,) = canvas.panels()
    unit, _ = _draw_curve(axes, drawn, colour=BLUE)
    end = (
        signal.end
        if periodicity.next_phase is None
        else max(signal.end, periodicity.next_phase.end)
    )
    legend: list[Artist] = [Line2D([], [], color=BLUE, label="signal")]
    if period is not None:
        _shade(axes, period.valid_ranges, unit)
        every = f"period {format_seconds(period.seconds)}"
        legend.append(Patch(facecolor=GREEN, alpha=0.15, label=every))
        if 0 < len(period.phases) <= MOST_PHASE_LINES:
            starts = [start / unit.size for start, _ in period.phases]
            axes.vlines(starts, 0, 0.04, transform=axes.get_xaxis_transform(), color=BLACK)
            legend.append(
                Line2D([], [], color=BLACK, marker="|", linestyle="", label="phase start")
            )
    if periodicity.next_phase is not None:
        upcoming = periodicity.next_phase
        axes.axvspan(upcoming.start / unit.size, upcoming.end / unit.size, facecolor="none",
                     edgecolor=ORANGE, hatch="////", linewidth=0.8)  # fmt: skip
        legend.append(Patch(facecolor="none", edgecolor=ORANGE, hatch="////", label="next phase"))
    time_axis(axes, signal.start, end, unit)
    canvas.legend(legend)


def _shade(axes: Axes, ranges: Ranges, unit: Unit) -> None:
    for start, end in ranges:
        axes.axvspan(start / unit.size, end / unit.size, color=GREEN, alpha=0.15, linewidth=0)


def _draw_curve(axes: Axes, drawn: DrawnPeriodicity, *, colour: str) -> tuple[Unit, Unit]:
    """Draw the signal and label its axis; returns the units of both axes."""
    periodicity = drawn.periodicity
    signal = periodicity.signal
    unit = time_unit(signal.end - signal.start)
    edges, values = _means(signal)
    top = float(values.max(initial=0.0))
    amount = bytes_unit(top, suffix="/s") if drawn.metric is None else Unit("per second", 1.0)
    axes.stairs(values / amount.size, edges / unit.size, color=colour, linewidth=0.6, fill=False)
    lowest = min(0.0, float(values.min(initial=0.0)))
    axes.set_ylim(lowest / amount.size, top / amount.size * 1.05 or 1.0)
    amount_axis(axes.yaxis, _quantity(drawn), amount)
    return unit, amount


def _quantity(drawn: DrawnPeriodicity) -> str:
    if drawn.metric is not None:
        return shorten(drawn.metric, LONGEST_METRIC)
    direction = drawn.periodicity.direction
    return "bandwidth" if direction == "both" else f"{direction} bandwidth"


def _means(signal: Signal) -> tuple[FloatArray, FloatArray]:
    """The edges of at most `BINS` bins, and the mean of the signal in each."""
    block = max(1, -(-len(signal.values) // BINS))
    starts = np.arange(0, len(signal.values), block)
    ends = np.append(starts, len(signal.values))
    means = np.add.reduceat(signal.values, starts) / np.diff(ends)
    return signal.start + signal.interval * ends, means


def draw_spectrum(canvas: Canvas, drawn: DrawnPeriodicity) -> None:
    """The share of the variance at each frequency; candidates and the answer are marked."""
    periodicity = drawn.periodicity
    frequencies, shares = power_spectrum(periodicity.signal)
    if not shares.any():
        raise FigureUnavailableError(
            "figure 'spectrum'",
            needs="a signal that changes",
            hint="look at --figure signal.",
        )
    last = int(np.flatnonzero(shares >= WEAKEST * shares.max())[-1]) + 1
    frequencies, shares = frequencies[:last], shares[:last]
    unit = _frequency_unit(float(frequencies[-1]))
    (axes,) = canvas.panels()
    axes.vlines(frequencies / unit.size, 0.0, shares, color=BLUE, linewidth=0.8)
    axes.plot(frequencies / unit.size, shares, ".", color=BLUE, markersize=2)
    legend: list[Artist] = [Line2D([], [], color=BLUE, label="spectrum")]
    marked = [one for one in periodicity.candidates if one.frequency <= frequencies[-1]]
    if marked:
        (line,) = axes.plot([one.frequency / unit.size for one in marked],
                            [one.power_share for one in marked], "o", color=VERMILION,
                            fillstyle="none", markersize=5, label="candidate")  # fmt: skip
        legend.append(line)
    period = periodicity.period
    if period is not None:
        legend.append(
            axes.axvline(period.frequency / unit.size, color=BLACK, linestyle="--",
                         linewidth=0.8, label=f"period {format_seconds(period.seconds)}")
        )  # fmt: skip
    _frequency_axis(axes, frequencies / unit.size, unit)
    axes.set_ylim(0.0, float(shares.max()) * 1.1)
    axes.set_ylabel("share of the variance (%)")
    few_ticks(axes.yaxis, most=5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g}")
    canvas.legend(legend)


def _frequency_unit(highest: float) -> Unit:
    """Frequencies in mHz below one tenth of a Hz."""
    return Unit("mHz", 1e-3) if highest < 0.1 else Unit("Hz", 1.0)


def _frequency_axis(axes: Axes, frequencies: FloatArray, unit: Unit) -> None:
    low, high = float(frequencies[0]), float(frequencies[-1])
    axes.set_xlabel(f"frequency ({unit.name})")
    if high / low > WIDE_RANGE:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.1, high * 1.1)
        log_number_axis(axes.xaxis, low / 1.1, high * 1.1)
    else:
        axes.set_xlim(0.0, high * 1.05)
        few_ticks(axes.xaxis)


def draw_components(canvas: Canvas, drawn: DrawnPeriodicity) -> None:
    """The signal, and the sums of its 2, 3, 5 and 10 strongest waves; the fit where it is there."""
    periodicity = drawn.periodicity
    signal = periodicity.signal
    (axes,) = canvas.panels(height=0.65)
    unit, amount = _draw_curve(axes, drawn, colour=GREY)
    times = np.linspace(signal.start, signal.end, POINTS)
    sums = {f"n = {count}": components(signal, count=count) for count in COUNTS}
    if periodicity.fit is not None:
        sums[f"fit, n = {len(periodicity.fit.components) - 1}"] = periodicity.fit.components
    highest, lowest = axes.get_ylim()[1], 0.0
    legend: list[Artist] = [Line2D([], [], color=GREY, label="signal")]
    for number, (name, waves) in enumerate(sums.items()):
        values = synthesise(waves, times) / amount.size
        style: dict[str, Any] = {
            "color": CYCLE[number],
            "linestyle": DASHES[number],
            "linewidth": 0.9,
        }
        axes.plot(times / unit.size, values, **style)
        legend.append(Line2D([], [], label=name, **style))
        highest, lowest = max(highest, float(values.max())), min(lowest, float(values.min()))
    axes.set_ylim(lowest * 1.05, highest * 1.02)
    time_axis(axes, signal.start, signal.end, unit)
    canvas.legend(legend)


def draw_scalogram(canvas: Canvas, drawn: DrawnPeriodicity) -> None:
    """Which period is strong when."""
    signal, period = drawn.periodicity.signal, drawn.periodicity.period
    picture = scalogram(signal)
    if not picture.power.size:
        raise FigureUnavailableError(
            "figure 'scalogram'", needs="a longer signal", hint="choose a higher --frequency."
        )
    rows = rows_that_matter(picture, period)
    periods, power = picture.periods[rows], picture.power[rows]
    unit = time_unit(signal.end - signal.start)
    across = time_unit(float(periods[-1]))
    (axes,) = canvas.panels(height=0.6)
    highest = float(power.max()) or 1.0
    mesh = axes.pcolormesh(
        picture.times / unit.size, periods / across.size, power / highest,
        cmap="Blues", norm=PowerNorm(0.5, 0.0, 1.0), shading="nearest", rasterized=True,
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylabel(f"period ({across.name})")
    log_number_axis(axes.yaxis, *(float(p) / across.size for p in periods[[0, -1]]))
    if period is not None:
        line = axes.axhline(period.seconds / across.size, color=VERMILION, linestyle="--",
                            label=f"period {format_seconds(period.seconds)}")  # fmt: skip
        canvas.legend([line])
    bar = canvas.figure.colorbar(mesh, ax=axes, pad=0.02, aspect=22, ticks=[0.0, 0.25, 0.5, 1.0])
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    bar.set_label("power (% of the highest)")
    time_axis(axes, signal.start, signal.end, unit)


def draw_autocorrelation(canvas: Canvas, drawn: DrawnPeriodicity) -> None:
    """The correlation of the signal with itself by lag; multiples of the period are marked."""
    signal, period = drawn.periodicity.signal, drawn.periodicity.period
    if not signal.values.std() > 0.0:
        raise FigureUnavailableError(
            "figure 'autocorrelation'", needs="a signal that changes", hint="see --figure signal."
        )
    values = autocorrelation(signal)
    end = signal.interval * (len(values) - 1)
    if period is not None:
        end = min(end, LAGS * period.seconds)
    lags = np.linspace(0.0, end, POINTS)
    unit = time_unit(end)
    (axes,) = canvas.panels()
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    heights = np.interp(lags, signal.interval * np.arange(len(values)), values)
    axes.plot(lags / unit.size, heights, color=BLUE, linewidth=0.8)
    legend: list[Artist] = [Line2D([], [], color=BLUE, label="autocorrelation")]
    if period is not None:
        style: dict[str, Any] = {"color": VERMILION, "linestyle": "--", "linewidth": 0.8}
        for number in range(1, int(end / period.seconds) + 1):
            axes.axvline(number * period.seconds / unit.size, **style)
        name = f"multiples of {format_seconds(period.seconds)}"
        legend.append(Line2D([], [], label=name, **style))
    axes.set_ylabel("correlation")
    axes.set_ylim(min(-0.2, float(heights.min()) * 1.05), 1.05)
    axes.set_xlim(0.0, end / unit.size)
    axes.set_xlabel(f"lag ({unit.name})")
    few_ticks(axes.yaxis, most=5)
    canvas.legend(legend)


def draw_correlation(canvas: Canvas, drawn: DrawnPeriodicity) -> None:
    """The smoothed signal with its dominant wave, and how well they agree over time."""
    signal = drawn.periodicity.signal
    options = drawn.options
    detected = analyse_hybrid(signal, wavelet=options.wavelet, level=options.level)
    if detected is None:
        raise FigureUnavailableError(
            "figure 'correlation'",
            needs="a dominant frequency (hybrid method)",
            hint="the signal has none; look at --figure spectrum.",
        )
    upper, lower = canvas.panels(2, height=0.85, ratios=(3, 2))
    unit, amount = _draw_curve(upper, drawn, colour=GREY)
    smooth = detected.approximation
    edges, values = _means(smooth)
    upper.stairs(values / amount.size, edges / unit.size, color=BLUE, linewidth=0.8, fill=False)
    times = np.linspace(signal.start, signal.end, POINTS)
    mean = Component(0.0, float(smooth.values.mean()), 0.0)
    wave = Component(detected.frequency, detected.amplitude, detected.phase)
    holds = np.any([(times >= a) & (times <= b) for a, b in detected.valid_ranges], axis=0)
    values = np.where(holds, synthesise((mean, wave), times), np.nan)
    upper.plot(times / unit.size, values / amount.size, color=VERMILION)
    # A window of one period that begins in the last period would reach beyond the signal.
    whole = max(1, len(signal.values) - round(1 / (detected.frequency * signal.interval)))
    edges, values = _means(Signal(signal.start, signal.interval, detected.correlation()[:whole]))
    lower.stairs(values, edges / unit.size, color=BLACK, linewidth=0.8, baseline=None)
    lower.set_ylabel("correlation")
    lower.set_ylim(min(0.0, float(values.min(initial=0.0))), 1.05)
    few_ticks(lower.yaxis, most=3)
    for axes in (upper, lower):
        _shade(axes, detected.valid_ranges, unit)
    time_axis(lower, signal.start, signal.end, unit)
    canvas.figure.align_ylabels()
    canvas.legend([
        Line2D([], [], color=GREY, label="signal"),
        Line2D([], [], color=BLUE, label=f"approximation, level {detected.level}"),
        Line2D([], [], color=VERMILION, label=f"wave of {format_seconds(1 / detected.frequency)}"),
        Patch(facecolor=GREEN, alpha=0.15, label="valid range"),
    ])  # fmt: skip
