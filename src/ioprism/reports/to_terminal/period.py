"""What `ioprism period` shows a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ioprism.model.signal import Signal
from ioprism.periodicity.asynchronous import RequiredBandwidth
from ioprism.periodicity.many import JobPeriod, PeriodTable
from ioprism.periodicity.results import NextPhase, Period, Rhythm
from ioprism.periodicity.steps import PartRhythm
from ioprism.reports.to_terminal import facts, heading, name, table
from ioprism.reports.to_terminal.plot import bars, columns
from ioprism.units import format_bytes, format_counted, format_rate, format_seconds

WIDTH, ROWS = 72, 6
MOST_RANGES = 5
MOST_RHYTHMS = 20


def show(rhythm: Rhythm, console: Console) -> None:
    """Print the verdict, a small picture, and the numbers behind it."""
    heading(console, rhythm.summary())
    _picture(rhythm, console)
    if rhythm.period is not None:
        facts(console, _facts(rhythm.period, rhythm))
    _others(rhythm, console)
    _candidates(rhythm, console)
    _components(rhythm, console)


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


def show_parts(parts: Sequence[PartRhythm], console: Console, *, key: str) -> None:
    """Print which files, ranks or directories carry a rhythm."""
    heading(console, f"The period by {key}")
    rows = [
        (
            name(part.name),
            format_bytes(part.bytes),
            format_seconds(part.rhythm.period.seconds) if part.rhythm.period else "none",
            f"{part.rhythm.period.false_alarm_probability:.1e}" if part.rhythm.period else "",
        )
        for part in parts
    ]
    table(console, (key, "bytes", "period", "false alarm"), rows)


def show_many(periods: PeriodTable, console: Console) -> None:
    """Print one row per job."""
    heading(console, periods.summary())
    rows = [
        (
            name(job.application or Path(job.path).name),
            job.direction if job.pattern == "periodic" else "",
            format_seconds(job.seconds) if job.seconds is not None else job.pattern,
            _share(job.duty_cycle),
            "" if job.phase_bytes is None else format_bytes(job.phase_bytes),
            _share(job.bytes_share),
            "" if job.confidence is None else f"{_doubt(job)}{job.confidence:.0%}",
            name(Path(job.path).name),
        )
        for job in periods.jobs
    ]
    columns = ("application", "of", "period", "duty", "per phase", "bytes", "confidence", "trace")
    table(console, columns, rows)


def _doubt(job: JobPeriod) -> str:
    return "possibly, " if job.certainty == "maybe" else ""


def _others(rhythm: Rhythm, console: Console) -> None:
    """All periods with what they explain, where there is more than the answer."""
    if (len(rhythm.rhythms) < 2 and rhythm.period is not None) or not rhythm.rhythms:
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
        for one in rhythm.rhythms[:MOST_RHYTHMS]
    ]
    table(console, ("period", "of", "bytes", "holds in", "false alarm", "confidence"), rows)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _picture(rhythm: Rhythm, console: Console) -> None:
    signal = rhythm.signal
    heights = columns(signal, width=WIDTH)
    for row in bars(heights, rows=ROWS):
        console.print(Text(f"  {row}", style="cyan"))
    if rhythm.period is not None:
        console.print(Text(f"  {_range_line(rhythm.signal, rhythm.period)}", style="green"))
    left, right = (f"{moment:.4g} s" for moment in (signal.start, signal.end))
    console.print(Text(f"  {left}{right:>{WIDTH - len(left)}}", style="dim"))
    console.print(Text(f"  highest {format_rate(float(heights.max()))}", style="dim"))


def _range_line(signal: Signal, period: Period) -> str:
    """Underline where the period holds."""
    width = (signal.end - signal.start) / WIDTH
    middles = [signal.start + (i + 0.5) * width for i in range(WIDTH)]
    return "".join(
        "─" if any(a <= m <= b for a, b in period.valid_ranges) else " " for m in middles
    )


def _agreement(period: Period) -> str:
    """How far `ioprism phases` shows the same."""
    return f"{len(period.phases)}, of which `ioprism phases` shows {period.confirmed}"


def _facts(period: Period, rhythm: Rhythm) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [
        ("period", f"{period.seconds:.6g} s, standard deviation {period.spread:.3g} s"),
        ("frequency", f"{period.frequency:.6g} Hz"),
        ("false alarm", _false_alarm(period)),
        ("confidence", f"{period.confidence:.0%} ({period.method}){_why_maybe(period)}"),
        ("holds in", _ranges(period)),
    ]
    if period.bytes_share is not None and period.time_share is not None:
        what = "bytes" if rhythm.direction == "both" else f"bytes of all {rhythm.direction}s"
        shares = (
            f"{_share(period.bytes_share)} of the {what}, {_share(period.time_share)} of the time"
        )
        rows.append(("explains", shares))
    if period.phases and period.confirmed is not None:
        rows.append(("phases", _agreement(period)))
    if rhythm.burst is not None:
        burst = rhythm.burst
        rows.append(
            (
                "each phase",
                f"{format_bytes(burst.bytes)}, nearly all that it moves, within "
                f"{format_seconds(burst.width)} ({burst.duty_cycle:.0%} of the period)",
            )
        )
    if rhythm.next_phase is not None:
        rows.append(("next phase", _next(rhythm.next_phase)))
    return rows


def _why_maybe(period: Period) -> str:
    if period.certainty == "sure":
        return ""
    if period.repetitions < 3:
        return ", uncertain: only two repetitions"
    if period.alike:
        return ", uncertain: the phases are alike, but their distances vary strongly"
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


def _next(phase: NextPhase) -> str:
    return f"from {phase.start:.4g} to {phase.end:.4g} s, about {format_bytes(phase.bytes)}"


def _candidates(rhythm: Rhythm, console: Console) -> None:
    if not rhythm.candidates:
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
            for c in rhythm.candidates
        ],
    )


def _components(rhythm: Rhythm, console: Console) -> None:
    waves = rhythm.fit.components if rhythm.fit else rhythm.components
    if not waves:
        return
    heading(console, "The signal as cosine waves" + (", fitted" if rhythm.fit else ""))
    rows = [
        (f"{w.frequency:.6g} Hz", format_rate(w.amplitude), f"{w.phase:+.3f} rad") for w in waves
    ]
    table(console, ("frequency", "amplitude", "phase"), rows)
    if rhythm.fit:
        gain = 1 - rhythm.fit.mse_after / rhythm.fit.mse_before if rhythm.fit.mse_before else 0.0
        console.print(f"  fitting lowered the mean square error by {gain:.1%}")
