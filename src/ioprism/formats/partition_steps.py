"""Change the events of any partition on their way out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioprism.model.trace import Partition, Warn

if TYPE_CHECKING:  # small signals are read without a table library
    import polars as pl

    Batches = Iterator[pl.LazyFrame]
    BatchStep = Callable[[Batches, Warn], Batches]  # partitions travel, so it can be pickled


def add_step(partition: Partition, step: BatchStep) -> ChangedPartition:
    """Return a partition whose batches pass through a step."""
    kind = ChangedRange if hasattr(partition, "prepare") else ChangedPartition
    return kind(partition, step)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedPartition:
    """A partition whose batches pass through a step."""

    inner: Any
    step: BatchStep

    def batches(self, warn: Warn) -> Batches:
        """Yield the changed batches."""
        return self.step(self.inner.batches(warn), warn)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedRange(ChangedPartition):
    """The same for a part of a file for which the parts before it matter."""

    @property
    def continues(self) -> int:
        """How many of the partitions in front of it belong to the same file."""
        return int(self.inner.continues)

    def prepare(self) -> ChangedPreparedRange:
        """Read it as far as that is possible without the parts before it."""
        return ChangedPreparedRange(self.inner.prepare(), self.step)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedPreparedRange:
    """A part that was read without the parts before it."""

    inner: Any
    step: BatchStep

    @property
    def moves(self) -> Any:  # noqa: ANN401 - only the format knows
        """What later parts have to know of this one."""
        return self.inner.moves

    def continue_after(self, earlier: Sequence[Any], warn: Warn) -> Batches:
        """Yield the changed batches, given the moves of the parts before this one."""
        return self.step(self.inner.continue_after(earlier, warn), warn)
