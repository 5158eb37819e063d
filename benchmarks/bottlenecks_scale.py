"""Bottlenecks of 1 to 50 M events from the Parquet store: cost, memory limit, Dask overhead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.peers import BENCH, OURS, Cost, measure, row
from ioprism.model.schema import EVENTS, PROCESSES, Layer, Operation, file_table
from ioprism.model.trace import Job, Trace, Warn
from ioprism.storage.trace_store import write_store

PROCESSES_COUNT, FILES, SECONDS = 64, 2000, 600.0
BLOCK = 1_000_000
CALLS = ("read", "write", "open", "close", "seek", "stat", "sync")
FUNCTIONS = ("pread64", "pwrite64", "open64", "close", "lseek64", "stat64", "fsync")
SHARES = (0.5, 0.3, 0.04, 0.04, 0.06, 0.04, 0.02)
WIDTHS = (52, 10, 10, 14)
EMPTY_CLUSTER = """
from ioprism.engine.cluster import ClusterSettings, connect
if __name__ == "__main__":
    with connect(ClusterSettings(workers=2)):
        pass
"""


@dataclass(frozen=True, slots=True)
class Block:
    """A million calls in a stretch of the job."""

    seed: int
    start: float
    end: float

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:  # noqa: ARG002 - nothing is lost
        """Yield the calls in one piece."""
        rng = np.random.default_rng(self.seed)
        start = np.sort(rng.uniform(self.start, self.end, BLOCK))
        process = rng.integers(0, PROCESSES_COUNT, BLOCK)
        file = (process * 31 + start.astype(np.int64) * 7 + rng.integers(0, 8, BLOCK)) % FILES
        kind = rng.choice(len(CALLS), BLOCK, p=SHARES)
        moves = kind < 2
        size = np.left_shift(64, (file * 7) % 18 + (rng.random(BLOCK) < 0.2))
        place = np.where(file % 3 == 0, rng.integers(0, 2**34, BLOCK), np.arange(BLOCK) * 4096)
        table = pl.DataFrame(
            {
                "start": start,
                "end": start + rng.lognormal(-9.0, 1.2, BLOCK),
                "rank": process,
                "process": process,
                "file": file,
                "operation": pl.Series(np.array(CALLS)[kind]).cast(Operation),
                "function": np.array(FUNCTIONS)[kind],
                "offset": pl.Series(place).set(pl.Series(~moves), None),
                "bytes": pl.Series(size).set(pl.Series(~moves), None),
            }
        )
        yield EVENTS.conform(table.with_columns(layer=pl.lit("posix", dtype=Layer))).lazy()


def main() -> None:
    row("ioprism bottlenecks, 15 views, start-up included", "CPU s", "peak MB", "CPU s per M",
        widths=WIDTHS)  # fmt: skip
    costs = {millions: _line(millions) for millions in (1, 10, 50)}
    _line(50, "--memory-limit", "1GB")
    cluster = _line(10, "--engine", "dask", "--workers", "2")
    idle = measure([str(OURS), "-c", EMPTY_CLUSTER]).cpu
    print(
        f"Dask over local at 10 M: {cluster.cpu / costs[10].cpu:.2f} times the CPU, "
        f"{(cluster.cpu - idle) / costs[10].cpu:.2f} without starting the cluster ({idle:.1f} s)"
    )
    fixed = costs[1].cpu
    slopes = [(costs[m].cpu - fixed) / (m - 1) for m in (10, 50)]
    print(f"per million beyond the first: {slopes[0]:.2f} s at 10 M, {slopes[1]:.2f} s at 50 M")


def _line(millions: int, *options: str) -> Cost:
    command = [str(OURS), "-m", "ioprism", "bottlenecks", str(store_of(millions)), "--json"]
    cost = measure([*command, *options])
    label = " ".join([f"{millions} M events", *options])
    row(label, f"{cost.cpu:.1f}", f"{cost.peak / 1e6:.0f}", f"{cost.cpu / millions:.2f}",
        widths=WIDTHS)  # fmt: skip
    return cost


def store_of(millions: int) -> Path:
    folder = BENCH / f"events-{millions}M.store"
    if not folder.is_dir():
        write_store(_trace(millions), folder)
    return folder


def _trace(millions: int) -> Trace:
    step = SECONDS / millions
    rank = pl.int_range(PROCESSES_COUNT, dtype=pl.Int64)
    processes = PROCESSES.conform(
        pl.select(
            process=rank,
            rank=rank,
            application=pl.lit("simulation"),
            host=pl.format("node{}", rank // 8),
        )
    )
    return Trace(
        "synthetic",
        (),
        Job(ranks=PROCESSES_COUNT, runtime=SECONDS),
        tuple(Block(n, n * step, (n + 1) * step) for n in range(millions)),
        load_files=lambda: file_table([f"/scratch/{n % 20}/data.{n}" for n in range(FILES)]),
        load_processes=lambda: processes,
    )


if __name__ == "__main__":
    main()
