"""Partitions that are the end of the worker which reads them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ioprism.model.trace import Warn


@dataclass(frozen=True)
class DeadlyPartition:
    """Kills its process once, then gives its events and a warning."""

    events: pl.DataFrame
    mark: Path  # exists once a process has died

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        if not self.mark.exists():
            self.mark.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        warn("a warning from a worker")
        yield self.events.lazy()


@dataclass(frozen=True)
class GreedyPartition:
    """Takes far more memory than a worker has, every time."""

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        held = []
        for _ in range(600):
            held.append(b"x" * 10_000_000)
            time.sleep(0.02)
        warn(f"{len(held)} blocks were held")
        yield from ()
