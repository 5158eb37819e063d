"""Runs before and after a change side by side: what it promised, and what it delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ioprism.comparison.changes import ComparedRun, Comparison, compare
from ioprism.formats.reading import Reading
from ioprism.formats.registry import Grouping, read_trace
from ioprism.model.trace import Trace
from ioprism.report_steps import Document, document_of
from ioprism.storage.recordings import recorded_runs


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side of a comparison: the documents of its runs, and how long they took."""

    documents: tuple[Document, ...]
    seconds: tuple[float, ...] | None = None  # as `record` measured them; None: ask the traces

    @property
    def typical(self) -> Document:
        """The run of median length, to be drawn."""
        order = sorted(self.documents, key=lambda document: document.trace.job.runtime or 0.0)
        return order[(len(order) - 1) // 2]


Prepare = Callable[[Trace], Trace]  # gives a trace what the user knows about it
Analyse = Callable[[Trace], Document]


def run_folders(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the runs that paths stand for: a recording stands for all that succeeded."""
    return tuple(folder for path in paths for folder in recorded_runs(path) or (path,))


def read_side(
    given: Sequence[Trace | str | Path],
    *,
    format_name: str | None = None,
    grouping: Grouping = "auto",
    reading: Reading | None = None,
    prepare: Prepare = lambda trace: trace,
    analyse: Analyse = document_of,
) -> Side:
    """Analyse the runs of one side: traces, or what paths stand for."""
    documents: list[Document] = []
    seconds: list[float] = []
    for one in given:
        if isinstance(one, Trace):
            documents.append(analyse(prepare(one)))
            continue
        for folder in run_folders([Path(one)]):
            trace = read_trace(folder, format_name=format_name, grouping=grouping, reading=reading)
            documents.append(analyse(prepare(trace)))
            seconds += (run.seconds for run in recorded_runs(folder).values())
    measured = len(seconds) == len(documents)
    return Side(tuple(documents), tuple(seconds) if measured else None)


def compare_sides(before: Side, after: Side) -> Comparison:
    """Compare two sides; times that `record` measured count if both sides have them."""
    sides = (before, after)
    measured = all(side.seconds is not None for side in sides)
    return compare(*(_runs(side, side.seconds if measured else None) for side in sides))


def _runs(side: Side, seconds: Sequence[float] | None) -> list[ComparedRun]:
    own = [document.trace.job.runtime for document in side.documents]
    lengths: Sequence[float | None] = own if seconds is None else seconds
    return [
        ComparedRun(
            characteristics=document.characteristics,
            findings=document.findings,
            runtime=length,
            stall=stall_of(document),
            causes=document.verdict.causes,
            format=document.trace.format,
        )
        for document, length in zip(side.documents, lengths, strict=True)
    ]


def stall_of(document: Document) -> float | None:
    """Return the stall seconds of a run; None where it cannot be judged."""
    verdict = document.verdict
    return None if verdict.status == "cannot-judge" else float(verdict.io_stall.seconds)
