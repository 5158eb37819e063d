"""How long do questions to a site store of a million jobs take?

``python -m benchmarks.site_scale STORE [--jobs 1000000]`` multiplies the jobs of a store, such as
one that `benchmarks.site_year --keep` leaves, with other start times and stall times, and asks
for every table, each in a process of its own as users do. CPU seconds tell on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from ioprism.site.store import SITE_TABLES, make_site, open_site

SUBJECTS = ("jobs", "applications", "users", "targets", "hosts", "causes", "files", "periods")
PART = 50_000  # jobs that are added at once
SPREAD = 1e6  # seconds by which copies are shifted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "store"
        print(
            f"{multiply(given.store, large, jobs=given.jobs):,} jobs, {_size(large) / 1e6:.0f} MB"
        )
        for subject in SUBJECTS:
            seconds, used = _ask(subject, large)
            print(f"site {subject}: {seconds:.1f} s, {used:.1f} s of processor time", flush=True)


def multiply(source: Path, target: Path, *, jobs: int) -> int:
    """Write copies of a store's jobs to another store; return how many."""
    tables = {name: open_site(source).table(name) for name in SITE_TABLES}
    each = tables["jobs"].height
    store, chance, copies = make_site(target), np.random.default_rng(1), -(-jobs // each)
    at_once = max(1, PART // each)
    with store.adding():
        for first in range(0, copies, at_once):
            numbers = range(first, min(copies, first + at_once))
            shifts = {number: float(chance.uniform(0, SPREAD)) for number in numbers}
            store.add(
                {name: pl.concat(_copies(table, shifts, chance)) for name, table in tables.items()}
            )
    return copies * each


def _copies(
    table: pl.DataFrame, shifts: dict[int, float], chance: np.random.Generator
) -> Iterator[pl.DataFrame]:
    for number, shift in shifts.items():
        copy = table.with_columns(pl.col("job") + f"-{number}")
        if "start" in table.columns:
            copy = copy.with_columns(pl.col("start") + shift)
        if "io_stall" in table.columns:
            noise = pl.Series(chance.lognormal(0.0, 0.1, table.height))
            copy = copy.with_columns(pl.col("io_stall") * noise)
        yield copy


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def _ask(subject: str, store: Path) -> tuple[float, float]:
    """Seconds, and processor seconds, of one command."""
    began, used = time.perf_counter(), sum(os.times()[2:4])
    command = [sys.executable, "-m", "ioprism", "site", subject, "--store", str(store), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, sum(os.times()[2:4]) - used


if __name__ == "__main__":
    main()
