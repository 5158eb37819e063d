"""How close does a job come to what the machine can do?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ioprism.characteristics.totals import Amount, Characteristics
from ioprism.model.ceiling import Ceiling


@dataclass(frozen=True, slots=True)
class Relation:
    """One of the job's rates beside the benchmark's.

    The job's rate is what its processes reach together while they are in these calls: bytes
    (or calls) over the mean time a process spends in them.
    """

    operation: str  # read, write, metadata
    measure: str  # bandwidth (bytes a second), operations (a second)
    job: float
    ceiling: float

    @property
    def share(self) -> float:
        """The job's rate as a part of the ceiling; above 1 where caches help."""
        return self.job / self.ceiling


@dataclass(frozen=True, slots=True)
class Comparison:
    """A job beside one benchmark."""

    ceiling: Ceiling
    relations: tuple[Relation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "tool": self.ceiling.tool,
            "path": str(self.ceiling.path),
            "processes": self.ceiling.processes,
            "request_size": self.ceiling.request_size,
            "relations": [{**asdict(one), "share": one.share} for one in self.relations],
        }


def relate(characteristics: Characteristics, ceiling: Ceiling) -> Comparison:
    """Compare the job's rates with the benchmark's, where both have one."""
    ranks = characteristics.job.ranks or 1
    relations = []
    for measure, rates in (("bandwidth", ceiling.bandwidth), ("operations", ceiling.operations)):
        for operation, best in rates.items():
            amount = characteristics.by_operation.get(operation)
            rate = None if amount is None else _rate(amount, measure, ranks)
            if rate is not None and best > 0:
                relations.append(Relation(operation, measure, rate, best))
    return Comparison(ceiling, tuple(relations))


def _rate(amount: Amount, measure: str, ranks: int) -> float | None:
    moved = amount.bytes if measure == "bandwidth" else amount.operations
    return moved * ranks / amount.time if moved and amount.time > 0 else None
