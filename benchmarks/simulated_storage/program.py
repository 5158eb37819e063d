"""What a parallel program does: steps of computing and calls, with or without barriers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MiB = 1 << 20
Operation = Literal["open", "close", "stat", "sync", "read", "write", "compute"]


class Call(NamedTuple):
    """One call of one rank; `compute` is a pause, its seconds are in `seconds`."""

    operation: Operation
    file: int = -1
    offset: int = 0
    bytes: int = 0
    seconds: float = 0.0


Script = Sequence[Call]


@dataclass(frozen=True, slots=True)
class File:
    """A file and where it lies; no targets: one target, chosen by its number."""

    path: str
    targets: tuple[int, ...] = ()
    stripe_size: int = MiB


class Asked(NamedTuple):
    """What a rank asks of MPI-IO in one call."""

    operation: Literal["read", "write"]
    file: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """Computing, then calls; ranks that are not named make none.

    With `asked`, the calls are made by the MPI-IO library below one call of each rank. In a
    collective call, all ranks wait for the last, exchange data over the links, and leave together.
    """

    scripts: Mapping[int, Script] = field(default_factory=dict)
    compute: float | Sequence[float] = 0.0  # seconds, of all or of each rank
    asked: Mapping[int, Asked] = field(default_factory=dict)
    collective: bool = False
    exchanged: int = 0  # bytes that go from rank to rank
    receivers: int = 0  # nodes that take part in receiving them


@dataclass(frozen=True, slots=True)
class Program:
    """A job: its files and steps. Ranks meet after each step unless they are independent."""

    ranks: int
    files: Sequence[File]
    steps: Sequence[Step]
    independent: bool = False
    executable: str = "/home/user/app"
    metadata: Mapping[str, str] = field(default_factory=dict)
    applications: Mapping[int, str] = field(default_factory=dict)  # of ranks, in a workflow
