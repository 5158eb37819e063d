"""What `ioprism phases` shows a person."""

from __future__ import annotations

from rich.console import Console

from ioprism.phase_detection.find import LayerPhases, Phase, Phases, RankTime
from ioprism.reports.to_terminal import heading, table
from ioprism.units import format_bytes, format_count, format_counted, format_rate, format_seconds

SHOWN = 40  # phases of a layer; the rest is in the JSON


def show(segmented: Phases, console: Console) -> None:
    """Print the phases of each layer."""
    if not segmented.layers:
        console.print("\n  No I/O was recorded.")
    for layer, phases in segmented.layers.items():
        heading(console, f"{layer}: {format_counted(len(phases.phases), 'phase')}{_border(phases)}")
        columns = ("start", "length", "kind", "ranks", "calls", "bytes", "rate", "fastest rank",
                   "slowest rank")  # fmt: skip
        table(console, columns, [_row(phase) for phase in phases.phases[:SHOWN]])
        if len(phases.phases) > SHOWN:
            console.print(f"  … and {len(phases.phases) - SHOWN} more (--json shows them)")


def _border(phases: LayerPhases) -> str:
    if phases.resolution is not None:
        return f", from a heat map with bins of {format_seconds(phases.resolution)}"
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
        format_count(phase.operations),
        format_bytes(phase.bytes),
        format_rate(phase.bytes / length) if length > 0 and phase.bytes else "",
        _rank(phase.fastest),
        _rank(phase.slowest),
    )


def _rank(time: RankTime) -> str:
    return f"{time.rank} ({format_seconds(time.time)})"
