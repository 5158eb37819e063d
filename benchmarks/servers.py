"""Is a machine's counter record characterised fast enough, and within bounded memory?

Each figure is taken in a process of its own; CPU time is user and system, all threads.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from benchmarks.simulated_servers import (
    Simulation,
    SimulationSettings,
    simulate,
    write_simulation,
)
from ioprism.model.counters import SECOND, ReadingOptions, Tally
from ioprism.servers.formats.gpfs import MmpmonReader
from ioprism.servers.job_metrics import job_metrics
from ioprism.servers.load import machine_load
from ioprism.servers.raw_files import ingest
from ioprism.servers.series import MetricSettings
from ioprism.servers.store import (
    CounterStore,
    add_counters,
    add_jobs,
    open_store,
    store_for_writing,
)

SETTINGS = MetricSettings(120 * SECOND)
MONTHS_OF_THE_PAPER = 19


def main() -> None:
    """Print every figure of the server capability."""
    for name in FIGURES:
        subprocess.run([sys.executable, __file__, name], check=True, env=os.environ)


def growth() -> None:
    """All metrics of 60 servers over 90 days, and how the cost grows with the rows."""
    with tempfile.TemporaryDirectory() as place:
        for days in (22.5, 45.0, 90.0, 180.0):
            store = _filled(Path(place) / f"store{days}", SimulationSettings(60, days, seed=2))
            for grid in ("job", "native"):
                _metrics(store, f"60 servers x {days:g} days, grid {grid}", grid)


def shared() -> None:
    """The same machine with one job and with ten at a time on every server, and its account."""
    with tempfile.TemporaryDirectory() as place:
        for jobs in (1, 10):
            settings = SimulationSettings(60, 22.5, seed=2, jobs_at_once=jobs)
            store = _filled(Path(place) / f"store{jobs}", settings)
            _metrics(store, f"60 servers x 22.5 days, {jobs} jobs at once", "job")
            began = time.process_time()
            machine_load(store, store.jobs(), settings=SETTINGS)
            print(f"  the servers' account: {time.process_time() - began:.2f} s CPU")


def memory() -> None:
    """A month of 600 servers: time and memory, and what 19 months would take."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "store"
        command = [sys.executable, __file__, "fill", str(folder)]
        subprocess.run(command, check=True)  # the filling process's memory is not the question
        seconds = _metrics(open_store(folder), "600 servers x 30.4 days, grid job", "job")
        print(f"  extrapolated to {MONTHS_OF_THE_PAPER} months: {19 * seconds:.0f} s CPU")
        _metrics(open_store(folder), "600 servers x 30.4 days, grid native", "native")


def text() -> None:
    """How fast mmpmon's text is read, alone and into a store."""
    with tempfile.TemporaryDirectory() as place:
        raw = Path(place) / "raw"
        write_simulation(simulate(SimulationSettings(60, 12.0, seed=2)), raw)
        joined = Path(place) / "all.mmpmon"
        with joined.open("wb") as file:
            for path in sorted((raw / "counters").iterdir()):
                file.write(path.read_bytes())
        lines = joined.read_bytes().count(b"\n")
        with _timed("mmpmon text", lines, "lines"):
            rows = sum(t.height for t in MmpmonReader().read(joined, ReadingOptions(), Tally()))
        assert rows == lines
        with _timed("mmpmon text into a store", lines, "lines"):
            ingest(joined, store=Path(place) / "store")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  peak memory {peak:.2f} GiB")
        with _timed("the same again", lines, "lines"):
            ingest(joined, store=Path(place) / "store")


def _filled(folder: Path, settings: SimulationSettings) -> CounterStore:
    made = simulate(settings)
    with store_for_writing(folder) as store:
        for table in made.counters():
            add_counters(store, table)
        add_jobs(store, made.jobs)
    return open_store(folder)


def _fill_month(folder: Path) -> None:
    made: Simulation = simulate(SimulationSettings(600, 30.4, seed=2))
    with store_for_writing(folder) as store:
        for table in made.counters():
            add_counters(store, table)
        add_jobs(store, made.jobs)


def _metrics(store: CounterStore, what: str, grid: str) -> float:
    rows = sum(
        pl.scan_parquet(path).select(pl.len()).collect().item()
        for server in store.servers()
        for _, path in store.months(server)
    )
    settings = MetricSettings(120 * SECOND, grid="native" if grid == "native" else "job")
    began = time.process_time()
    found = job_metrics(store, store.jobs(), settings=settings)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: {rows:,} rows, {found.table.height:,} jobs: {seconds:.2f} s CPU, "
          f"{1e6 * seconds / rows:.2f} µs/row, peak memory {peak:.2f} GiB")  # fmt: skip
    return seconds


@contextmanager
def _timed(what: str, amount: int, unit: str) -> Iterator[None]:
    began, wall = time.process_time(), time.perf_counter()
    yield
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    print(f"{what}: {amount:,} {unit}, {amount / seconds:,.0f} {unit}/s of CPU time, "
          f"{amount / wall:,.0f} {unit}/s of wall time")  # fmt: skip


FIGURES: dict[str, Callable[[], None]] = {
    "growth": growth,
    "shared": shared,
    "text": text,
    "memory": memory,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        _fill_month(Path(sys.argv[2]))
    elif len(sys.argv) > 1:
        FIGURES[sys.argv[1]]()
    else:
        main()
