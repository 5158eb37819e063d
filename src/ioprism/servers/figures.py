"""Figures of `ioprism servers report`: the load over time, and distributions over jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from ioprism.errors import FigureUnavailableError
from ioprism.model.arrays import FloatArray
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.reports.figures.canvas import (
    BLACK,
    CYCLE,
    DASHES,
    GREY,
    OF_DIRECTION,
    VERMILION,
    Canvas,
    cumulative,
    few_ticks,
    intensity_colours,
    log_bytes_axis,
    log_number_axis,
    rate_bar,
    rate_image,
    round_bytes,
    share_axis,
    time_axis,
    time_unit,
)
from ioprism.reports.figures.job_figures import draw_rates
from ioprism.servers.job_metrics import metric_column
from ioprism.servers.limits import SHARE_OF_JOBS
from ioprism.servers.steps import MachineReport
from ioprism.text import shorten
from ioprism.units import format_bytes, format_moment

MOST_SERVER_NAMES = 12  # labels of rows that a column has room for
LONGEST_SERVER_NAME = 16  # characters
JOB_BINS = 40  # of the picture of jobs, in each direction
MARGIN = 1.2  # beside the smallest and the largest value of a logarithmic axis
NO_JOBS = "choose a shorter --min-runtime, or ingest more counters."


@dataclass(frozen=True, slots=True, eq=False)
class DrawnMachine:
    """The report on a machine, and the file system's peak rates where they are known."""

    report: MachineReport
    peaks: Mapping[str, float | None] = field(default_factory=dict)  # bytes per second


def _times(drawn: DrawnMachine) -> tuple[FloatArray, str]:
    """The edges of the load's bins in seconds since its beginning, and when that was."""
    edges = drawn.report.load.edges_us.astype(np.float64) / SECOND
    return edges - edges[0], "the first sample" if not edges[0] else format_moment(float(edges[0]))


def draw_load(canvas: Canvas, drawn: DrawnMachine) -> None:
    """Read and write bandwidth of all servers together over time."""
    edges, begin = _times(drawn)
    load = drawn.report.load
    rates = {
        direction: load.bytes[number].sum(axis=0) / np.diff(edges)
        for number, direction in enumerate(DIRECTIONS)
    }
    unit = time_unit(float(edges[-1]))
    draw_rates(canvas, edges / unit.size, rates)
    time_axis(canvas.figure.axes[-1], 0.0, float(edges[-1]), unit, since=begin)


def draw_servers(canvas: Canvas, drawn: DrawnMachine) -> None:
    """Bandwidth of every server over time, reads and writes."""
    edges, begin = _times(drawn)
    load = drawn.report.load
    rates = load.bytes / np.diff(edges)
    high = float(rates.max(initial=0.0))
    if high <= 0:
        raise FigureUnavailableError("figure 'servers'", needs="I/O at the servers", hint=NO_JOBS)
    unit = time_unit(float(edges[-1]))
    count = len(load.servers)
    panels = canvas.panels(len(DIRECTIONS), height=1.0)
    for axes, direction, values in zip(panels, DIRECTIONS, rates, strict=True):
        extent = (0.0, float(edges[-1]) / unit.size, -0.5, count - 0.5)
        image = rate_image(axes, values, extent, high=high)
        axes.set_title(f"{direction}s", loc="left", fontsize=8, pad=2)
        _server_axis(axes, load.servers)
    time_axis(panels[-1], 0.0, float(edges[-1]), unit, since=begin)
    rate_bar(canvas, image, panels, "bandwidth per server")


def _server_axis(axes: Axes, servers: tuple[str, ...]) -> None:
    """Name the servers where there is room, else number them."""
    if len(servers) > MOST_SERVER_NAMES:
        axes.set_ylabel("server")
        few_ticks(axes.yaxis, most=5, integer=True)
        return
    names = [shorten(name, LONGEST_SERVER_NAME) for name in servers]
    axes.set_yticks(range(len(names)), names, fontsize=6)


def _draw_amounts(
    canvas: Canvas, drawn: DrawnMachine, *, amount: str, label: str, suffix: str = ""
) -> None:
    """Distributions of an amount of bytes on a logarithmic axis; jobs without I/O are left."""
    every = {name: _values(drawn, f"{name}_{amount}") for name in DIRECTIONS}
    (axes,) = canvas.panels()
    positive = np.concatenate([values[values > 0] for values in every.values()])
    if not len(positive):
        raise FigureUnavailableError("this figure", needs="jobs that do I/O", hint=NO_JOBS)
    axes.set_xscale("log", base=2)
    low, high = float(positive.min()), float(positive.max())
    legend: list[Artist] = []
    for place, (name, values) in enumerate(every.items()):
        if not len(values):
            continue
        # A logarithmic axis has no zero: jobs without I/O are the height at its left end.
        line = cumulative(axes, np.maximum(values, low / 2), color=OF_DIRECTION[name],
                          linestyle=DASHES[place], label=name)  # fmt: skip
        legend.append(line)
        peak = drawn.peaks.get(name) if suffix else None
        if peak:
            high = max(high, peak)
            legend.append(axes.axvline(peak, color=OF_DIRECTION[name], linestyle=":",
                                       label=f"peak {name} {format_bytes(peak)}/s"))  # fmt: skip
    axes.set_xlim(low / MARGIN, high * MARGIN)
    log_bytes_axis(axes.xaxis, low, high, suffix=suffix)
    axes.set_xlabel(label)
    _mark_80_percent(axes)
    canvas.legend(legend)


def _values(drawn: DrawnMachine, name: str) -> FloatArray:
    known = drawn.report.metrics.table[name].cast(pl.Float64).drop_nulls()
    values: FloatArray = known.filter(known.is_finite()).to_numpy()
    return values


def _mark_80_percent(axes: Axes) -> None:
    """The paper's Table II says what 80 % of the jobs stay at or below."""
    share_axis(axes, "share of jobs")
    axes.axhline(SHARE_OF_JOBS, color=GREY, zorder=0)


def _draw_measure(canvas: Canvas, drawn: DrawnMachine, *, measure: str, label: str) -> None:
    """Distributions of a measure for each threshold, reads above writes."""
    panels = canvas.panels(len(DIRECTIONS), height=1.0)
    lines: dict[str, Artist] = {}
    for axes, direction in zip(panels, DIRECTIONS, strict=True):
        for place, threshold in enumerate(drawn.report.metrics.settings.thresholds):
            values = _values(drawn, metric_column(direction, measure, threshold))
            name = f"> {round_bytes(threshold)} per step"
            if len(values):
                lines[name] = cumulative(axes, values, color=CYCLE[place % len(CYCLE)],
                                         linestyle=DASHES[place % len(DASHES)],
                                         label=name)  # fmt: skip
        axes.set_title(f"{direction}s", loc="left", fontsize=8, pad=2)
        _mark_80_percent(axes)
    if not lines:
        raise FigureUnavailableError("this figure", needs="jobs with counters", hint=NO_JOBS)
    panels[-1].set_xlim(-0.02, 1.02)
    panels[-1].set_xlabel(f"{label} (0 to 1)")
    few_ticks(panels[-1].xaxis, most=6)
    canvas.legend(list(lines.values()))


draw_bandwidth_cdf = partial(
    _draw_amounts, amount="max_bandwidth", label="maximum bandwidth of a job", suffix="/s"
)
draw_volume_cdf = partial(_draw_amounts, amount="bytes", label="data of a job")
draw_intensity_cdf = partial(_draw_measure, measure="intensity", label="I/O intensity")
draw_burstiness_cdf = partial(_draw_measure, measure="burstiness", label="burstiness")
draw_parallel_intensity_cdf = partial(
    _draw_measure, measure="parallel_intensity", label="parallel I/O intensity"
)


def draw_jobs(canvas: Canvas, drawn: DrawnMachine) -> None:
    """How many jobs have which volume and maximum bandwidth, reads above writes."""
    every = {
        name: drawn.report.metrics.table.select(
            bytes=pl.col(f"{name}_bytes").cast(pl.Float64),
            rate=pl.col(f"{name}_max_bandwidth").cast(pl.Float64),
        ).filter((pl.col("bytes") > 0) & (pl.col("rate") > 0)).to_numpy()
        for name in DIRECTIONS
    }  # fmt: skip
    active = np.concatenate(list(every.values()))
    if not len(active):
        raise FigureUnavailableError("figure 'jobs'", needs="jobs that do I/O", hint=NO_JOBS)
    peaks = [peak for peak in drawn.peaks.values() if peak]
    lows, highs = active.min(axis=0), active.max(axis=0)
    highs[1] = max([highs[1], *peaks])
    grids = [np.geomspace(low / MARGIN, high * MARGIN, JOB_BINS + 1)
             for low, high in zip(lows, highs, strict=True)]  # fmt: skip
    counts = {
        name: np.histogram2d(jobs[:, 0], jobs[:, 1], bins=grids)[0] for name, jobs in every.items()
    }
    most = max(2.0, *(float(table.max()) for table in counts.values()))
    panels = canvas.panels(len(DIRECTIONS), height=1.25)
    for axes, (name, table) in zip(panels, counts.items(), strict=True):
        mesh = axes.pcolormesh(*grids, np.ma.masked_equal(table.T, 0), cmap=intensity_colours(),
                               norm=LogNorm(1.0, most), rasterized=True)  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        log_bytes_axis(axes.yaxis, float(lows[1]), float(highs[1]), suffix="/s")
        log_bytes_axis(axes.xaxis, float(lows[0]), float(highs[0]))
        axes.set_ylabel("maximum bandwidth")
        axes.set_title(f"{name}s", loc="left", fontsize=8, pad=2)
        if drawn.peaks.get(name):
            axes.axhline(float(drawn.peaks[name] or 0.0), color=BLACK, linestyle=":")
        _add_share(axes, every[name][:, 0])
    panels[-1].set_xlabel("data of a job; line: share of jobs at or below")
    bar = canvas.figure.colorbar(mesh, ax=panels, pad=0.02, aspect=25)
    log_number_axis(bar.ax.yaxis, 1.0, most, integer=True)
    bar.set_label("jobs")


def _add_share(axes: Axes, values: FloatArray) -> None:
    """Lay the cumulative distribution over a picture; its axis is on the right."""
    if not len(values):
        return
    over = axes.twinx()
    cumulative(over, values, color=VERMILION)
    share_axis(over, "share of jobs")
