"""What a machine can do at best, as a benchmark measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best rates of one benchmark run, of all its processes together."""

    tool: str  # IOR, mdtest, fio
    path: Path
    processes: int | None = None
    bandwidth: Mapping[str, float] = field(default_factory=dict)  # read, write: bytes a second
    operations: Mapping[str, float] = field(default_factory=dict)  # read, write, metadata: a second
    request_size: int | None = None  # bytes
