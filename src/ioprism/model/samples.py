"""Repeated runs of one write pattern, as the write-time model learns from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ioprism.errors import UsageError

MEGABYTE = 1_000_000


ACCESSES = ("write", "shared-write", "read", "shared-read")


@dataclass(frozen=True, slots=True)
class WritePattern:
    """Every core of every node writes or reads one burst: its own file, or its part of one."""

    nodes: int
    cores_per_node: int
    burst_bytes: int
    stripe_bytes: int | None = None  # None: the file system's default
    stripe_count: int | None = None
    node_list: tuple[int, ...] | None = None  # None: where it ran is not known
    label: str = ""  # tells repeated measurements of equal configurations apart
    access: str = "write"  # one of ACCESSES

    @property
    def shared(self) -> bool:
        """Whether all processes use one file."""
        return self.access.startswith("shared-")

    @property
    def processes(self) -> int:
        """How many processes write or read at the same time."""
        return self.nodes * self.cores_per_node

    @property
    def files(self) -> int:
        """How many files are used at the same time."""
        return 1 if self.shared else self.processes

    @property
    def file_bytes(self) -> int:
        """The bytes of one file."""
        return self.total_bytes if self.shared else self.burst_bytes

    @property
    def total_bytes(self) -> int:
        """The bytes of all bursts together."""
        return self.processes * self.burst_bytes

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two runs repetitions of each other."""
        return (
            self.label,
            self.nodes,
            self.cores_per_node,
            self.burst_bytes,
            self.stripe_bytes,
            self.stripe_count,
            self.node_list,
            *(() if self.access == "write" else (self.access,)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values."""
        nodes = self.node_list
        return {
            "nodes": self.nodes,
            "cores_per_node": self.cores_per_node,
            "burst_bytes": self.burst_bytes,
            "stripe_count": self.stripe_count,
            "access": self.access,
            "node_list": None if nodes is None else format_node_list(nodes),
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One measured write: seconds from the first open to the last close."""

    pattern: WritePattern
    seconds: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The seconds that identical runs of a pattern took, from first open to last close."""

    pattern: WritePattern
    times: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The mean time, which the model predicts."""
        return sum(self.times) / len(self.times)


MOST_NODES = 1_000_000  # the largest machines have 160,000
LONGEST_NUMBER = 18  # digits


def parse_node_list(text: str) -> tuple[int, ...]:
    """Read node numbers such as ``0-63,128``.

    Raises:
        UsageError: the text is not such a list, or names a node twice.
    """
    nodes: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        sound = first.isdecimal() and (last.isdecimal() if dash else True)
        if not sound or max(len(first), len(last)) > LONGEST_NUMBER:
            raise UsageError(f"{text[:80]!r} is not a node list.\nHint: write it as in 0-63,128.")
        low, high = int(first), int(last or first)
        if high - low + len(nodes) >= MOST_NODES:
            raise UsageError(
                f"the node list {text[:80]!r} names more than {MOST_NODES:,} nodes.\n"
                "Hint: no machine has that many; check it."
            )
        if high < low:
            raise UsageError(f"the node range {part!r} is not ascending.\nHint: write it as 0-63.")
        nodes.extend(range(low, high + 1))
    if len(set(nodes)) != len(nodes):
        raise UsageError(f"the node list {text[:80]!r} names a node twice.\nHint: name each once.")
    return tuple(sorted(nodes))


def format_node_list(nodes: tuple[int, ...]) -> str:
    """Write node numbers in the short form, ``0-63,128``."""
    parts: list[str] = []
    start = previous = None
    for node in [*sorted(nodes), None]:
        if previous is not None and node == previous + 1:
            previous = node
            continue
        if start is not None:
            parts.append(f"{start}" if start == previous else f"{start}-{previous}")
        start = previous = node
    return ",".join(parts)
