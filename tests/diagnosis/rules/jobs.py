"""Jobs described in a few words, as the evidence that rules judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ioprism import Completeness, Job, Mount, Phase, Thresholds
from ioprism.diagnosis.evidence import Evidence
from ioprism.model.usage import DIRECTIONS, FileFacts, Moves, RankSpread, Striping, Usage
from ioprism.phase_detection.find import LayerPhases, RankTime

MIB = 2**20


@dataclass(frozen=True)
class Entry:
    """One rank's use of one file; reads and writes are columns of `Moves`."""

    file: int = 0
    rank: int = 0
    read: Mapping[str, float] = field(default_factory=dict)
    write: Mapping[str, float] = field(default_factory=dict)
    metadata_seconds: float = 0.0
    opens: int = 1
    seeks: int = 0
    stats: int = 0
    syncs: int = 0
    misaligned: int | None = 0
    misaligned_memory: int | None = 0
    spread: Mapping[str, float] = field(default_factory=dict)
    extras: Mapping[str, int] = field(default_factory=dict)


def moves(
    operations: int, size: int = 4 * MIB, seconds: float = 10.0, **other: Any
) -> dict[str, Any]:
    """Requests of one size, all forward, none small unless said so."""
    told = {
        "operations": operations,
        "bytes": operations * size,
        "seconds": seconds,
        "small": operations if size < MIB else 0,
        "forward": operations - 1,
        "consecutive": operations - 1,
        "first": 1,
        "extent": operations * size,
        "collective": 0,
        "independent": operations,
        "nonblocking": 0,
        "begin": 1.0,
    }
    return {**told, **other}


_ZERO = moves(0, seconds=0.0, forward=0, consecutive=0, first=0, begin=0.0)


def usage(layer: str, *entries: Entry) -> Usage:
    """Turn entries into columns."""
    plain = {
        name: [getattr(entry, name) for entry in entries]
        for name in ("file", "rank", "metadata_seconds", "opens", "seeks", "stats", "syncs")
    }
    spread = None
    if any(entry.spread for entry in entries):
        names = [f.name for f in fields(RankSpread)]
        told: dict[str, Any] = {n: [e.spread.get(n, 0) for e in entries] for n in names}
        spread = RankSpread(**told)
    extras = sorted({name for entry in entries for name in entry.extras})
    return Usage(
        layer=layer,
        moves={d: _moves(d, entries) for d in DIRECTIONS},
        misaligned=_optional([entry.misaligned for entry in entries]),
        misaligned_memory=_optional([entry.misaligned_memory for entry in entries]),
        spread=spread,
        extras={name: [entry.extras.get(name, 0) for entry in entries] for name in extras},
        **plain,
    )


def _optional(values: list[int | None]) -> list[int] | None:
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _moves(direction: str, entries: tuple[Entry, ...]) -> Moves:
    told = [{**_ZERO, **getattr(entry, direction)} for entry in entries]
    columns: dict[str, Any] = {name: [row[name] for row in told] for name in _ZERO}
    known: dict[str, Any] = {n: None if None in values else values for n, values in columns.items()}
    return Moves(**known)


def evidence(
    *usages: Usage,
    ranks: int = 4,
    runtime: float | None = 100.0,
    executable: str = "./simulation",
    striping: Mapping[int, Striping] | None = None,
    warnings: tuple[str, ...] = (),
    thresholds: Thresholds | None = None,
    filesystem: str = "lustre",
    **more: Any,
) -> Evidence:
    """A job with these usages."""
    completeness = Completeness()
    for text in warnings:
        completeness.warn(text)
    files = {file for one in usages for file in one.file}
    mounts = (Mount("/scratch", filesystem),)
    return Evidence(
        Job(ranks=ranks, runtime=runtime, executable=executable, mounts=mounts),
        {one.layer: one for one in usages},
        FileFacts({f: f"/scratch/file{f}" for f in files}, mounts=mounts, striping=striping or {}),
        completeness,
        thresholds or Thresholds(),
        **more,
    )


def phase(start: float, end: float, *, slowest: float, typical: float, rank: int = 1) -> Phase:
    """A phase of four ranks that wait for one of them."""
    return Phase(
        start,
        end,
        4,
        4,
        4 * MIB,
        0,
        4 * MIB,
        RankTime(0, typical),
        RankTime(rank, slowest),
        typical,
    )


def layer_phases(*phases: Phase) -> LayerPhases:
    """The phases of one layer."""
    return LayerPhases(0.1, phases)
