"""Figures of `ioprism report`: one job, from its calls, heat maps or counters."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ioprism.characteristics.totals import NOT_INTERFACES
from ioprism.engine.base import LocalEngine
from ioprism.errors import FigureUnavailableError, NotEnoughDetailError
from ioprism.model.arrays import FloatArray, StepFunction
from ioprism.model.trace import HEIGHT, TITLES, SizeBin, counted_layers
from ioprism.phase_detection.find import Phase
from ioprism.report_steps import Document
from ioprism.reports.figures.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    OF_DIRECTION,
    PURPLE,
    VERMILION,
    Canvas,
    amount_axis,
    bytes_unit,
    few_ticks,
    rate_bar,
    rate_image,
    round_bytes,
    swatches,
    time_axis,
    time_unit,
)
from ioprism.reports.to_terminal.diagnose import LEDGER
from ioprism.text import printable, shorten
from ioprism.units import format_seconds
from ioprism.views.bandwidth import bandwidth
from ioprism.views.timeline import NO_RANK

PER_CALL = "a per-call trace (DXT, DFTracer, Recorder, strace)"
RECORD_CALLS = "record the job with DXT enabled: export DXT_ENABLE_IO_TRACE=1"
KINDS = {"read": BLUE, "write": VERMILION, "metadata": GREEN, "other": PURPLE}
COLUMNS = 2100  # of pictures of ranks over time: 600 per inch of a column
MOST_ROWS = 1200  # of them, likewise; more ranks share rows
BINS = 400  # of curves over time: more are narrower than a line
MOST_TARGET_LABELS = 8
FEWEST_BARS = 8  # a figure has room for at least these many
TITLE_LINES = 3  # of a cause in the ledger
FAINTEST = 0.3  # opacity of a cell in which a call is, however short: visible, not strong
Span = tuple[float, float]


def _need_calls(figure: str, *, heat_map: bool = True) -> FigureUnavailableError:
    needs = f"{PER_CALL} or a heat map" if heat_map else PER_CALL
    return FigureUnavailableError(f"figure {figure!r}", needs=needs, hint=RECORD_CALLS)


def _span(document: Document) -> Span:
    """The whole run in seconds, as the page shows it."""
    shown = document.timeline
    end = max(shown.end, document.trace.job.runtime or 0.0)
    return min(0.0, shown.start), end if end > 0 else 1.0


def draw_timeline(canvas: Canvas, document: Document) -> None:
    """The calls of every rank over time: one panel for each interface, the program's on top."""
    shown = document.timeline
    if shown.source != "calls" or not shown.marks.height:
        raise _need_calls("timeline", heat_map=False)
    marks = shown.marks.with_columns(
        pl.col("layer").cast(pl.String),
        kind=pl.col("operation").cast(pl.String).replace_strict(
            {name: name for name in ("read", "write", "other")}, default="metadata"
        ),
    )  # fmt: skip
    layers = _interfaces(marks["layer"].unique().to_list())
    marks = marks.filter(pl.col("layer").is_in(layers))
    span, rows = _span(document), _PictureRows.of(document)
    unit = time_unit(span[1] - span[0])
    panels = canvas.panels(len(layers), height=0.25 + 0.3 * len(layers))
    for axes, layer in zip(panels, layers, strict=True):
        picture = _occupancy_picture(marks.filter(layer=layer), span, rows)
        axes.imshow(picture, extent=rows.extent(span, unit.size), origin="lower")
        axes.set_title(TITLES[layer], loc="left", fontsize=8, pad=2)
        rows.label(axes)
    time_axis(panels[-1], *span, unit)
    present = set(marks["kind"].unique().to_list())
    canvas.legend(swatches({name: tone for name, tone in KINDS.items() if name in present}))


def _interfaces(layers: Iterable[str]) -> list[str]:
    """The I/O interfaces among layers, the program's on top; all layers if none is one."""
    ordered = sorted(layers, key=lambda name: (-HEIGHT[name], name))
    return [name for name in ordered if name not in NOT_INTERFACES] or ordered


class _PictureRows:
    """Which row of a picture belongs to a rank, from the bottom up."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.count = min(MOST_ROWS, last - first + 1)

    @classmethod
    def of(cls, document: Document) -> _PictureRows:
        """All ranks of the job, and those of its marks; -1 stands for calls without a rank."""
        ranks = document.timeline.marks["rank"]
        low, high = int(ranks.min() or 0), int(ranks.max() or 0)  # type: ignore[arg-type]
        first = min(0, low) if high >= 0 else low
        return cls(first, max(high, (document.trace.job.ranks or 1) - 1 if high >= 0 else high))

    def number(self, ranks: FloatArray) -> npt.NDArray[np.int64]:
        """The rows of ranks."""
        return ((ranks - self.first) * self.count // (self.last - self.first + 1)).astype(np.int64)

    def extent(self, span: Span, size: float) -> tuple[float, float, float, float]:
        """The edges of the picture: time in units of this size, and ranks."""
        return span[0] / size, span[1] / size, self.first - 0.5, self.last + 0.5

    def label(self, axes: Axes) -> None:
        """Label the y axis."""
        if self.last == NO_RANK:
            axes.set_ylabel("all calls")
            axes.yaxis.set_major_locator(NullLocator())
            return
        axes.set_ylabel("rank")
        few_ticks(axes.yaxis, most=4 if self.last > self.first else 1, integer=True)
        axes.set_ylim(self.first - 0.5, self.last + 0.5)


def _occupancy_picture(
    marks: pl.DataFrame, span: Span, rows: _PictureRows
) -> npt.NDArray[np.float32]:
    """Colours of cells: the kind of call that takes most of the cell, fainter if it takes less."""
    kinds = [name for name in KINDS if (marks["kind"] == name).any()]
    shares = np.zeros((len(kinds), rows.count, COLUMNS))
    touched = np.zeros((len(kinds), rows.count, COLUMNS), dtype=bool)
    for number, kind in enumerate(kinds):
        of_kind = marks.filter(kind=kind)
        start, end, seconds = (of_kind[name].to_numpy() for name in ("start", "end", "seconds"))
        length = end - start
        busy = np.divide(seconds, length, out=np.ones_like(length), where=length > 0)
        row = rows.number(of_kind["rank"].to_numpy())
        scale = COLUMNS / (span[1] - span[0])
        shares[number] = spread(row, (start - span[0]) * scale, (end - span[0]) * scale,
                                busy, (rows.count, COLUMNS))  # fmt: skip
        first = np.clip(((start - span[0]) * scale).astype(np.int64), 0, COLUMNS - 1)
        touched[number, row, first] = True
    weight = np.where(touched, np.maximum(shares, 1e-12), shares)
    strongest = weight.argmax(axis=0)
    present = weight.max(axis=0)
    opacity = np.where(present > 0, FAINTEST + (1 - FAINTEST) * np.minimum(present, 1.0), 0.0)
    tones = np.array([to_rgb(KINDS[kind]) for kind in kinds], dtype=np.float32)
    return np.concatenate((tones[strongest], opacity[..., None].astype(np.float32)), axis=2)


def spread(
    row: npt.NDArray[np.int64],
    start: FloatArray,
    end: FloatArray,
    weight: FloatArray,
    shape: tuple[int, int],
) -> FloatArray:
    """Add up intervals in cells: `weight` for each whole cell, less where an interval ends in it.

    Args:
        row: of each interval.
        start: in columns; may be outside of the picture.
        end: likewise.
        weight: of each interval.
        shape: rows and columns.
    """
    rows, columns = shape
    start, end = np.clip(start, 0.0, columns), np.clip(end, 0.0, columns)
    first = np.minimum(start.astype(np.int64), columns - 1)
    last = np.minimum(end.astype(np.int64), columns - 1)
    same = first == last

    def cell_sums(column: npt.NDArray[np.int64], amount: FloatArray) -> FloatArray:
        sums = np.bincount(row * columns + column, amount, rows * columns)
        return sums.astype(np.float64).reshape(shape)

    sums = cell_sums(first, weight * np.where(same, end - start, first + 1 - start))
    sums += cell_sums(last, weight * np.where(same, 0.0, end - last))
    begin = np.minimum(first + 1, columns - 1)  # of the cells that are covered whole

    def running(amount: FloatArray) -> FloatArray:
        return np.cumsum(cell_sums(begin, amount) - cell_sums(last, amount), axis=1)

    whole = running(np.where(same, 0.0, weight))
    covered = running(np.where(same, 0.0, 1.0)) > 0  # counts are exact, sums leave a remainder
    return sums + np.where(covered, whole, 0.0)


def draw_bandwidth(canvas: Canvas, document: Document) -> None:
    """Read and write bandwidth over time, in equal bins of a round length."""
    curves: dict[str, StepFunction] = {}
    for direction in OF_DIRECTION:
        try:
            curves[direction] = bandwidth(document.trace, LocalEngine(), direction=direction)
        except NotEnoughDetailError:
            continue
    if not curves:
        raise _need_calls("bandwidth")
    span = _span(document)
    edges = round_bins(span)
    rates = {name: mean_rates(steps, edges) for name, steps in curves.items()}
    unit = time_unit(span[1] - span[0])
    draw_rates(canvas, edges / unit.size, rates)
    time_axis(canvas.figure.axes[-1], *span, unit)


def round_bins(span: Span) -> FloatArray:
    """Return the edges of at most `BINS` bins whose length is 1, 2 or 5 times a power of ten."""
    least = (span[1] - span[0]) / BINS
    power = 10.0 ** math.floor(math.log10(least))
    length = next(power * step for step in (1, 2, 5, 10) if power * step >= least * (1 - 1e-9))
    first = math.floor(span[0] / length)
    return np.arange(first, math.ceil(span[1] / length - 1e-9) + 1, dtype=np.float64) * length


def mean_rates(steps: StepFunction, edges: FloatArray) -> FloatArray:
    """Return the mean of a step function in each bin; no byte is lost."""
    volume = np.concatenate(([0.0], np.cumsum(steps.values * np.diff(steps.edges))))
    return np.diff(np.interp(edges, steps.edges, volume)) / np.diff(edges)


def draw_rates(canvas: Canvas, edges: FloatArray, rates: Mapping[str, FloatArray]) -> None:
    """Draw read and write rates as filled curves, reads above writes."""
    panels = canvas.panels(len(rates), height=0.25 + 0.3 * len(rates))
    for axes, (name, values) in zip(panels, rates.items(), strict=True):
        highest = float(values.max(initial=0.0))
        unit = bytes_unit(highest, suffix="/s")
        axes.stairs(values / unit.size, edges, color=OF_DIRECTION[name], fill=True, alpha=0.25)
        axes.stairs(values / unit.size, edges, color=OF_DIRECTION[name], linewidth=0.8)
        axes.set_ylim(0.0, highest / unit.size * 1.05 or 1.0)
        amount_axis(axes.yaxis, name, unit)
    canvas.figure.align_ylabels()


PHASE_TONES = {
    "read": BLUE, "write": VERMILION, "read and write": PURPLE, "metadata": GREEN,
}  # fmt: skip


def draw_phases(canvas: Canvas, document: Document) -> None:
    """Each phase as wide as it lasts, as high as its slowest rank is in I/O; median rank solid."""
    layers = {} if document.phases is None else dict(document.phases.layers)
    layers = {name: found for name, found in layers.items() if found.phases}
    if not layers:
        raise _need_calls("phases")
    layers = {name: layers[name] for name in _interfaces(layers)}
    span = _span(document)
    unit = time_unit(span[1] - span[0])
    panels = canvas.panels(len(layers), height=0.25 + 0.32 * len(layers))
    for axes, name in zip(panels, layers, strict=True):
        _draw_layer_phases(axes, layers[name].phases, span, unit.size)
        axes.set_title(TITLES[name], loc="left", fontsize=8, pad=2)
    time_axis(panels[-1], *span, unit)
    kinds = {phase.kind for found in layers.values() for phase in found.phases}
    entries = swatches({kind: tone for kind, tone in PHASE_TONES.items() if kind in kinds})
    entries += [Patch(facecolor=GREY, label="median rank"),
                Patch(facecolor=GREY, alpha=0.35, label="slowest rank")]  # fmt: skip
    canvas.legend(entries)


def _draw_layer_phases(axes: Axes, phases: tuple[Phase, ...], span: Span, size: float) -> None:
    start = np.array([phase.start for phase in phases])
    # A phase is at least as wide as a line, or a long run would hide it.
    width = np.maximum([phase.end - phase.start for phase in phases], (span[1] - span[0]) / BINS)
    tones = [PHASE_TONES[phase.kind] for phase in phases]
    slowest = np.array([phase.slowest.time for phase in phases])
    unit = time_unit(float(slowest.max()))
    for heights, opacity in ((slowest, 0.35), (np.array([p.typical for p in phases]), 1.0)):
        axes.bar(start / size, heights / unit.size, width / size, align="edge", color=tones,
                 alpha=opacity, linewidth=0)  # fmt: skip
    amount_axis(axes.yaxis, "I/O time per rank", unit)


def draw_targets(canvas: Canvas, document: Document) -> None:
    """Data, cumulative I/O time and rate of each storage target."""
    table = document.by_target.filter(pl.col("operations") > 0).sort("target")
    if not table.height:
        raise FigureUnavailableError(
            "figure 'targets'",
            needs="the striping of files (Darshan's Lustre module)",
            hint="load a Darshan that was built with its Lustre module.",
        )
    place = np.arange(table.height)  # side by side, whatever gaps their numbers have
    panels = canvas.panels(3, height=1.0)
    tones = _stack_data(panels[0], place, table)
    seconds = table["seconds"].to_numpy()
    time = time_unit(float(seconds.max()))
    panels[1].bar(place, seconds / time.size, 0.8, color=GREY)
    amount_axis(panels[1].yaxis, "cumulative\nI/O time", time)
    rate = table["rate"].to_numpy().astype(np.float64)
    speed = bytes_unit(float(np.nanmax(rate, initial=0.0)), suffix="/s")
    panels[2].plot(place, rate / speed.size, ".", color=BLACK, markersize=3)
    panels[2].set_ylim(bottom=0.0)
    amount_axis(panels[2].yaxis, "rate", speed)
    panels[2].set_xlabel("storage target")
    labelled = place[:: -(-table.height // MOST_TARGET_LABELS)]
    panels[2].set_xticks(labelled, [f"{table['target'][int(one)]}" for one in labelled])
    margin = max(0.6, (FEWEST_BARS - table.height) / 2)  # one bar does not fill the figure
    panels[2].set_xlim(-margin, table.height - 1 + margin)
    canvas.figure.align_ylabels()
    canvas.legend(swatches(tones))


def _stack_data(axes: Axes, place: npt.NDArray[np.int64], table: pl.DataFrame) -> dict[str, str]:
    """Draw bytes read and written on top of each other; return the colours used."""
    columns = {"read": "bytes_read", "write": "bytes_written"}
    moved = {name: table[column].to_numpy().astype(np.float64) for name, column in columns.items()}
    moved = {name: values for name, values in moved.items() if values.any()}
    below = np.zeros(table.height)
    unit = bytes_unit(float(sum(moved.values(), below).max()))
    for name, values in moved.items():
        axes.bar(place, values / unit.size, 0.8, below, color=OF_DIRECTION[name])
        below = below + values / unit.size
    amount_axis(axes.yaxis, "data", unit)
    return {name: OF_DIRECTION[name] for name in moved}


def draw_heatmap(canvas: Canvas, document: Document) -> None:
    """Bandwidth of every rank over time, reads above writes."""
    every = {name: _data_marks(document, name) for name in OF_DIRECTION}
    pictures = {name: marks for name, marks in every.items() if marks.height}
    if document.timeline.source == "counters" or not pictures:
        raise _need_calls("heatmap")
    span, rows = _span(document), _PictureRows.of(document)
    shape = rows.count, _heat_columns(document, span)
    length = (span[1] - span[0]) / shape[1]
    rates = {}
    for name, marks in pictures.items():
        start, end = ((marks[side].to_numpy() - span[0]) / length for side in ("start", "end"))
        end = np.maximum(end, start + 1e-6)  # a call without length moves its bytes all the same
        moved = marks["bytes"].to_numpy() / (end - start) / length
        rates[name] = spread(rows.number(marks["rank"].to_numpy()), start, end, moved, shape)
    unit = time_unit(span[1] - span[0])
    high = max(float(values.max()) for values in rates.values())
    panels = canvas.panels(len(rates), height=0.25 + 0.35 * len(rates))
    for axes, (name, values) in zip(panels, rates.items(), strict=True):
        image = rate_image(axes, values, rows.extent(span, unit.size), high=high)
        axes.set_title(f"{name}s", loc="left", fontsize=8, pad=2)
        rows.label(axes)
    time_axis(panels[-1], *span, unit)
    shared = -(-(rows.last - rows.first + 1) // rows.count)
    per = "rank" if shared == 1 else f"{shared} ranks"
    rate_bar(canvas, image, panels, f"bandwidth per {per}")


def _data_marks(document: Document, direction: str) -> pl.DataFrame:
    """The marks of one direction, at the layers at which its bytes count."""
    marks = document.timeline.marks.with_columns(pl.col("layer", "operation").cast(pl.String))
    moving = marks.filter((pl.col("operation") == direction) & (pl.col("bytes") > 0))
    by_layer = dict(moving.group_by("layer").agg(pl.col("bytes").sum()).iter_rows())
    return moving.filter(pl.col("layer").is_in(counted_layers(by_layer, direction)))


def _heat_columns(document: Document, span: Span) -> int:
    """As many columns as Darshan's heat map has bins, or as a figure shows."""
    shown = document.timeline
    if shown.source == "heat map" and shown.width:
        return max(1, min(BINS, math.ceil((span[1] - span[0]) / shown.width)))
    return BINS


def draw_sizes(canvas: Canvas, document: Document) -> None:
    """How many requests have which size."""
    counts = document.characteristics.request_sizes
    counts = {name: counts[name] for name in OF_DIRECTION if any(s.count for s in counts[name])}
    if not counts:
        raise FigureUnavailableError(
            "figure 'sizes'",
            needs="reads or writes",
            hint="the log has none: see `ioprism report`.",
        )
    bins = [size.bin for size in next(iter(counts.values()))]
    (axes,) = canvas.panels(height=0.62)
    width = 0.8 / len(counts)
    for number, (name, sizes) in enumerate(counts.items()):
        heights = [next(s.count for s in sizes if s.bin == one) for one in bins]
        axes.bar(np.arange(len(bins)) + (number - (len(counts) - 1) / 2) * width, heights, width,
                 color=OF_DIRECTION[name])  # fmt: skip
    axes.set_xticks(range(len(bins)), [_size_label(one) for one in bins], rotation=40, ha="right",
                    rotation_mode="anchor")  # fmt: skip
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("request size")
    axes.set_ylabel("requests")
    _count_axis(axes, max(s.count for sizes in counts.values() for s in sizes))
    canvas.legend(swatches({name: OF_DIRECTION[name] for name in counts}))


def _size_label(size: SizeBin) -> str:
    """A bin by its round ends, such as 100 KiB–1 MiB."""
    if size.high is None:
        return f"> {round_bytes(size.low - 1)}"
    return f"{round_bytes(max(0, size.low - 1))}–{round_bytes(size.high)}"


def _count_axis(axes: Axes, highest: int) -> None:
    """A logarithmic axis of counts; from below one, so that one request is seen."""
    axes.set_yscale("log")
    axes.set_ylim(0.7, max(10, highest) * 1.6)
    top = math.floor(math.log10(max(10, highest)))
    axes.yaxis.set_major_locator(FixedLocator([10.0**n for n in range(0, top + 1, 1 + top // 6)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def draw_ledger(canvas: Canvas, document: Document) -> None:
    """One bar for each part of the I/O stall time: causes, transfer, the rest."""
    verdict = document.verdict
    lines = [line for line in verdict.ledger if line.seconds > 0]
    if not lines:
        raise FigureUnavailableError(
            "figure 'ledger'",
            needs="I/O that stalls the job",
            hint=f"{printable(verdict.line)}",
        )
    titles = {cause.code: cause.title for cause in verdict.causes}
    names = [titles.get(line.what) or LEDGER.get(line.what, line.what) for line in lines]
    unit = time_unit(max(line.seconds for line in lines))
    texts = [textwrap.wrap(shorten(name, TITLE_LINES * canvas.characters - 20), canvas.characters)
             for name in names]  # fmt: skip
    room = [1.0 + len(text) for text in texts]  # a bar is as high as a line of its title
    (axes,) = canvas.panels(height=0.16 + 0.052 * sum(room))
    for line, text, top in zip(lines, texts, np.cumsum([0.0, *room]), strict=False):
        tone = VERMILION if line.what in titles else BLUE if line.what == "transfer" else GREY
        length, place = line.seconds / unit.size, top + len(text) + 0.4
        axes.barh(place, length, 0.6, color=tone)
        axes.text(0.0, place - 0.45, "\n".join(text), va="bottom", fontsize=7)
        axes.annotate(f" {format_seconds(line.seconds)}", (length, place), va="center", fontsize=7)
    axes.set_ylim(sum(room), 0.0)
    axes.set_xlim(0.0, max(line.seconds for line in lines) / unit.size * 1.2)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    stall, run = format_seconds(verdict.io_stall.seconds), format_seconds(verdict.runtime)
    axes.set_xlabel(f"I/O stall time ({unit.name}); {stall} of the {run} run")
    few_ticks(axes.xaxis, most=7)
