"""The period and the phases of a job's I/O, printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ioprism.model.arrays import Signal
from ioprism.periodicity.many import PeriodTable
from ioprism.periodicity.of_job import PartPeriodicity, RequiredBandwidth
from ioprism.periodicity.results import Period, Periodicity
from ioprism.reports.to_terminal import (
    bars,
    columns,
    facts,
    heading,
    name,
    picture_width,
    table,
    time_axis,
)
from ioprism.units import format_bytes, format_count, format_counted, format_rate, format_seconds

if TYPE_CHECKING:  # a signal has no phases, and needs no table library
    from ioprism.phase_detection.find import LayerPhases, Phase, Phases, RankTime

ROWS = 6
MOST_RANGES = 5
MAX_PERIODS = 20


def show_period(periodicity: Periodicity, console: Console) -> None:
    """Print the verdict, a small picture, and the numbers."""
    heading(console, periodicity.summary())
    _picture(periodicity, console)
    if periodicity.period is not None:
        facts(console, _facts(periodicity.period, periodicity))
    _others(periodicity, console)
    _candidates(periodicity, console)
    _components(periodicity, console)


def show_asynchronous(every: Sequence[RequiredBandwidth], console: Console) -> None:
    """Print how fast the file system must be so that asynchronous I/O stays hidden."""
    for one in every:
        heading(console, f"Asynchronous {one.direction}s")
        needs = format_rate(one.required_peak)
        facts(
            console,
            [
                ("required", f"{needs} so that all of them stay hidden (B, highest of all ranks)"),
                ("measured", f"{format_rate(one.measured_peak)} at most (T)"),
                ("hidden", f"{one.hidden:.0%} of {format_counted(one.requests, 'request')}"),
                ("waited", f"{format_seconds(one.waited)} over all ranks"),
            ],
        )


def show_parts(parts: Sequence[PartPeriodicity], console: Console, *, key: str) -> None:
    """Print which files, ranks or directories carry a periodicity."""
    heading(console, f"The period by {key}")
    rows = [
        (
            name(part.name),
            format_bytes(part.bytes),
            format_seconds(period.seconds) if period else "none",
            f"{period.false_alarm_probability:.1e}" if period else "",
        )
        for part in parts
        for period in (part.periodicity.period,)
    ]
    table(console, (key, "bytes", "period", "false alarm"), rows)


def show_many(jobs: PeriodTable, console: Console) -> None:
    """Print one row per job."""
    heading(console, jobs.summary())
    rows = [
        (
            name(job.application or Path(job.path).name),
            job.direction if job.pattern == "periodic" else "",
            format_seconds(job.seconds) if job.seconds is not None else job.pattern,
            _share(job.duty_cycle),
            "" if job.phase_bytes is None else format_bytes(job.phase_bytes),
            _share(job.bytes_share),
            ""
            if job.confidence is None
            else f"{'possibly, ' * (job.certainty == 'maybe')}{job.confidence:.0%}",
            name(Path(job.path).name),
        )
        for job in jobs.jobs
    ]
    columns = ("application", "of", "period", "duty", "per phase", "bytes", "confidence", "trace")
    table(console, columns, rows)


def _others(periodicity: Periodicity, console: Console) -> None:
    """All periods with what they explain, where there is more than the answer."""
    if (len(periodicity.periods) < 2 and periodicity.period is not None) or not periodicity.periods:
        return
    heading(console, "All periods")
    rows = [
        (
            format_seconds(one.period.seconds),
            one.direction if one.part is None else name(one.part),
            _share(one.period.bytes_share),
            _ranges(one.period),
            _percent(one.period.false_alarm_probability),
            f"{one.period.confidence:.0%}",
        )
        for one in periodicity.periods[:MAX_PERIODS]
    ]
    table(console, ("period", "of", "bytes", "holds in", "false alarm", "confidence"), rows)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _picture(periodicity: Periodicity, console: Console) -> None:
    signal = periodicity.signal
    width = picture_width(console)
    heights = columns(signal, width=width)
    for row in bars(heights, rows=ROWS):
        console.print(Text(f"  {row}", style="cyan"))
    if periodicity.period is not None:
        console.print(Text(f"  {_range_line(signal, periodicity.period, width)}", style="green"))
    console.print(time_axis(signal.start, signal.end, width))
    console.print(Text(f"  highest {format_rate(float(heights.max()))}", style="dim"))


def _range_line(signal: Signal, period: Period, width: int) -> str:
    """Underline where the period holds."""
    column = (signal.end - signal.start) / width
    middles = [signal.start + (i + 0.5) * column for i in range(width)]
    return "".join(
        "─" if any(a <= m <= b for a, b in period.valid_ranges) else " " for m in middles
    )


def _facts(period: Period, periodicity: Periodicity) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [
        ("period", f"{period.seconds:.6g} s, standard deviation {period.spread:.3g} s"),
        ("frequency", f"{period.frequency:.6g} Hz"),
        ("false alarm", _false_alarm(period)),
        ("confidence", f"{period.confidence:.0%} ({period.method}){_why_maybe(period)}"),
        ("holds in", _ranges(period)),
    ]
    if period.bytes_share is not None and period.time_share is not None:
        way = periodicity.direction
        what = "bytes" if way == "both" else f"bytes of all {way}s"
        time = f"{_share(period.time_share)} of the time"
        rows.append(("explains", f"{_share(period.bytes_share)} of the {what}, {time}"))
    if period.phases and period.confirmed is not None:
        shown = f"{len(period.phases)}, of which `ioprism phases` shows {period.confirmed}"
        rows.append(("phases", shown))
    if periodicity.burst is not None:
        burst = periodicity.burst
        rows.append(
            (
                "each phase",
                f"{format_bytes(burst.bytes)}, nearly all that it moves, within "
                f"{format_seconds(burst.width)} ({burst.duty_cycle:.0%} of the period)",
            )
        )
    phase = periodicity.next_phase
    if phase is not None:
        span = f"from {phase.start:.4g} to {phase.end:.4g} s, about {format_bytes(phase.bytes)}"
        rows.append(("next phase", span))
    return rows


def _why_maybe(period: Period) -> str:
    if period.certainty == "sure":
        return ""
    if period.repetitions < 3:
        return ", uncertain: only two repetitions"
    if period.alike:
        return ", uncertain: the phases are equally long, but their distances vary strongly"
    return ", uncertain: the phases differ and their distances vary"


def _false_alarm(period: Period) -> str:
    without = _percent(period.false_alarm_probability)
    random = period.chance_of_random_bursts
    if period.certainty == "sure" or random >= period.false_alarm_probability:
        return f"{without}: how often a signal without a period looks like this"
    return (
        f"{without} against a program with irregular pauses, "
        f"{_percent(random)} against bursts at random times"
    )


def _percent(chance: float) -> str:
    if chance < 1e-4:
        return "less than 0.01 %"
    return f"{100 * chance:.2g} %" if chance < 0.1 else f"{chance:.0%}"


def _ranges(period: Period) -> str:
    shown = [f"{a:.4g} to {b:.4g} s" for a, b in period.valid_ranges[:MOST_RANGES]]
    more = len(period.valid_ranges) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more > 0 else "")


def _candidates(periodicity: Periodicity, console: Console) -> None:
    if not periodicity.candidates:
        return
    heading(console, "Frequencies that stand out in the spectrum")
    table(
        console,
        ("frequency", "period", "power", "score", "confidence"),
        [
            (
                f"{c.frequency:.6g} Hz",
                format_seconds(1.0 / c.frequency),
                f"{c.power_share:.1%}",
                f"{c.score:.1f}",
                f"{c.confidence:.0%}",
            )
            for c in periodicity.candidates
        ],
    )


def _components(periodicity: Periodicity, console: Console) -> None:
    waves = periodicity.fit.components if periodicity.fit else periodicity.components
    if not waves:
        return
    heading(console, "The signal as cosine waves" + (", fitted" if periodicity.fit else ""))
    rows = [
        (f"{w.frequency:.6g} Hz", format_rate(w.amplitude), f"{w.phase:+.3f} rad") for w in waves
    ]
    table(console, ("frequency", "amplitude", "phase"), rows)
    if periodicity.fit:
        before, after = periodicity.fit.mse_before, periodicity.fit.mse_after
        gain = 1 - after / before if before else 0.0
        console.print(f"  fitting lowered the mean square error by {gain:.1%}")


LEAST = ("fastest rank", "calls", "ranks", "kind", "rate")
SHOWN = 40  # phases of a layer; the rest is in the JSON


def show_phases(segmented: Phases, console: Console) -> None:
    """Print the phases of each layer."""
    if not segmented.layers:
        console.print("\n  No I/O was recorded.")
    for layer, phases in segmented.layers.items():
        heading(console, f"{layer}: {format_counted(len(phases.phases), 'phase')}{_border(phases)}")
        columns = ("start", "length", "kind", "ranks", "calls", "bytes", "rate", "fastest rank",
                   "slowest rank")  # fmt: skip
        rows = [_row(phase) for phase in phases.phases[:SHOWN]]
        table(console, columns, rows, least=LEAST)
        if len(phases.phases) > SHOWN:
            console.print(f"  … and {len(phases.phases) - SHOWN} more (--json shows them)")


def _border(phases: LayerPhases) -> str:
    if phases.resolution is not None:
        return f", from a heat map: times in bins of {format_seconds(phases.resolution)}"
    if phases.bursts:
        return ", bursts of a continuous stream"
    if len(phases.phases) == 1:
        return ""
    return f", separated by gaps of at least {format_seconds(phases.gap_threshold)}"


def _row(phase: Phase) -> tuple[str, ...]:
    length = phase.end - phase.start
    return (
        f"{phase.start:.3f} s",
        format_seconds(length),
        phase.kind,
        format_count(phase.ranks),
        "–" if phase.operations is None else format_count(phase.operations),
        format_bytes(phase.bytes),
        format_rate(phase.bytes / length) if length > 0 and phase.bytes else "",
        _rank(phase.fastest),
        _rank(phase.slowest),
    )


def _rank(time: RankTime) -> str:
    return f"{time.rank} ({format_seconds(time.time)})"
