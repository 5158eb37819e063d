"""Does a job write as fast as the model says? Compare its measured write phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ioprism.errors import NotEnoughDetailError
from ioprism.model.samples import WritePattern
from ioprism.write_time.estimate import Estimate, estimate
from ioprism.write_time.model import WriteTimeModel


@dataclass(frozen=True, slots=True)
class WritePhase:
    """Many processes writing at the same time, each to a file of its own."""

    start: float  # seconds since the job started
    end: float
    nodes: int
    cores_per_node: int
    burst_bytes: int  # mean over the processes


@dataclass(frozen=True, slots=True)
class Comparison:
    """A phase as measured and as predicted."""

    phase: WritePhase
    estimate: Estimate

    @property
    def measured(self) -> float:
        """Seconds from the first write to the last."""
        return self.phase.end - self.phase.start

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.estimate.seconds


def phases_of(
    intervals: Sequence[Mapping[str, Any]], *, cores_per_node: int, nodes: int | None = None
) -> tuple[WritePhase, ...]:
    """Read n, m and K off intervals of busy writing (start, end, ranks, hosts, bytes).

    Nodes are the hosts that wrote, or else as many as the ranks need with all cores in use.
    """
    return tuple(_phase(interval, cores_per_node, nodes) for interval in intervals)


def _phase(interval: Mapping[str, Any], cores_per_node: int, nodes: int | None) -> WritePhase:
    ranks = int(interval["ranks"])
    used = nodes or int(interval["hosts"] or 0) or -(-ranks // cores_per_node)
    used = min(used, ranks)
    return WritePhase(
        start=float(interval["start"]),
        end=float(interval["end"]),
        nodes=used,
        cores_per_node=-(-ranks // used),
        burst_bytes=max(1, round(int(interval["bytes"]) / ranks)),
    )


def compare_phases(
    phases: Sequence[WritePhase],
    *,
    model: WriteTimeModel,
    node_list: tuple[int, ...] | None = None,
    stripe_count: int | None = None,
) -> tuple[Comparison, ...]:
    """Predict every phase.

    Raises:
        NotEnoughDetailError: there are no phases.
        AnalysisError: the model's system cannot run such a phase.
    """
    if not phases:
        raise NotEnoughDetailError(
            needed="phases in which processes write files of their own",
            has="none",
            hint="give a trace of a job that writes one file per process, with single calls "
            "(for Darshan: DXT enabled).",
        )
    return tuple(
        Comparison(phase, estimate(_pattern(phase, node_list, stripe_count), model=model))
        for phase in phases
    )


def _pattern(
    phase: WritePhase, node_list: tuple[int, ...] | None, stripe_count: int | None
) -> WritePattern:
    return WritePattern(
        nodes=phase.nodes,
        cores_per_node=phase.cores_per_node,
        burst_bytes=phase.burst_bytes,
        stripe_count=stripe_count,
        node_list=node_list if node_list and len(node_list) == phase.nodes else None,
    )
