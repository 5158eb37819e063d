"""What `ioprism characterise --ceiling` shows a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ioprism.analyses.ceiling import Comparison, Relation
from ioprism.reports.to_terminal import heading, table
from ioprism.units import format_bytes, format_count, format_counted, format_rate


def show(comparisons: Sequence[Comparison], console: Console) -> None:
    """Print the job's rates beside each benchmark's."""
    for one in comparisons:
        ceiling = one.ceiling
        of = "" if ceiling.processes is None else f", {format_counted(ceiling.processes, 'task')}"
        size = (
            ""
            if ceiling.request_size is None
            else f", requests of {format_bytes(ceiling.request_size)}"
        )
        heading(console, f"Beside {ceiling.tool}{of}{size}")
        if not one.relations:
            console.print("  The job and the benchmark have no rate in common.")
            continue
        rows = [_row(relation) for relation in one.relations]
        table(console, ("", "job, while in calls", "benchmark", "share"), rows)


def _row(relation: Relation) -> tuple[str, ...]:
    bytes_moved = relation.measure == "bandwidth"
    job, best = (
        format_rate(rate) if bytes_moved else f"{format_count(rate)} calls/s"
        for rate in (relation.job, relation.ceiling)
    )
    return relation.operation, job, best, f"{relation.share:.0%}"
