"""A validation load: jobs of known behaviour and the counters that servers would keep of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import BYTES, COUNTERS, DIRECTIONS, JOBS, OPERATIONS, SECOND, TABLE

Floats = NDArray[np.float64]
LANES = (8, 4, 2, 1, 1, 12, 16, 4, 2)  # servers that one job at a time has for itself
EPOCH = 1_767_225_600  # 2026-01-01 00:00 UTC
REQUEST = 2**20  # bytes per operation
HOUR = 3600.0
RUNTIME = (0.7 * HOUR, 14 * HOUR)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a kind of job reads and writes; ranges are drawn from evenly, in log scale."""

    name: str
    likelihood: float
    direction: str
    pause: tuple[float, float]  # seconds from one burst to the next
    duration: tuple[float, float]  # seconds a burst takes
    rate: tuple[float, float]  # bytes per second and server
    servers: float  # share of the job's servers that take part


BEHAVIOURS = (
    Behaviour("checkpoint", 0.35, "write", (900, 3600), (30, 240), (1e6, 4e8), 1.0),
    Behaviour("analysis", 0.25, "read", (600, 5400), (60, 900), (1e5, 2e8), 0.5),
    Behaviour("logger", 0.15, "write", (60, 60), (60, 60), (1e2, 3e4), 0.0),
    Behaviour("stream", 0.10, "read", (300, 300), (300, 300), (1e5, 5e7), 1.0),
    Behaviour("serial", 0.10, "write", (1200, 7200), (20, 600), (1e6, 1e8), 0.0),
    Behaviour("idle", 0.05, "write", (HOUR, HOUR), (1, 1), (0, 0), 0.0),
)


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How large the machine is and how long it is watched."""

    servers: int = 16
    days: float = 2.0
    interval: float = 120.0  # seconds
    seed: int = 1
    faults: bool = False  # lose some samples, reset some counters
    jobs_at_once: int = 1  # on each group of servers


@dataclass(frozen=True)
class Simulation:
    """Jobs, every burst of theirs, and the counters that follow from them."""

    settings: SimulationSettings
    jobs: pl.DataFrame  # the columns of JOBS
    bursts: pl.DataFrame  # job, server, direction, start, end (seconds since EPOCH), bytes

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers' names."""
        return tuple(f"ion{number:03d}" for number in range(self.settings.servers))

    @cached_property
    def _by_server(self) -> dict[str, pl.DataFrame]:
        groups = self.bursts.partition_by("server", as_dict=True)
        return {str(server): table for (server,), table in groups.items()}

    def counters(self) -> Iterator[pl.DataFrame]:
        """Yield each server's samples, with the columns of COUNTERS."""
        for number, server in enumerate(self.servers):
            times = self._sample_times(number)
            table = self.counters_at(server, times)
            yield self._with_faults(table, number) if self.settings.faults else table

    def _sample_times(self, number: int) -> Floats:
        """Servers are sampled regularly, but not at the same moments."""
        rng = np.random.default_rng([self.settings.seed, 1, number])
        step = self.settings.interval
        count = int(self.settings.days * 24 * HOUR / step) + 2
        first = rng.uniform(-step, 0.0)
        return np.round(first + step * np.arange(count) + rng.uniform(0, 0.01, count), 6)

    def counters_at(self, server: str, times: Floats) -> pl.DataFrame:
        """Return what a perfect observer would read off a server at these moments."""
        number = self.servers.index(server)
        bursts = self._by_server.get(server, self.bursts.clear())
        columns: dict[str, NDArray[np.int64]] = {}
        for direction in DIRECTIONS:
            moved = moved_until(bursts.filter(direction=direction), times)
            columns[BYTES[direction]] = 10**12 + number * 10**9 + moved
            columns[OPERATIONS[direction]] = -(-moved // REQUEST)
        opened = np.searchsorted(bursts["start"].sort().to_numpy(), times, side="right")
        columns["oc"] = opened.astype(np.int64)
        columns["cc"] = opened.astype(np.int64)
        micro = np.rint(times * SECOND).astype(np.int64) + EPOCH * SECOND
        table = pl.DataFrame({"time_us": micro, **columns}).with_columns(
            server=pl.lit(server), part=pl.lit(""), source=pl.lit(TABLE)
        )
        return COUNTERS.conform(table)

    def _with_faults(self, table: pl.DataFrame, number: int) -> pl.DataFrame:
        rng = np.random.default_rng([self.settings.seed, 2, number])
        kept = table.filter(pl.Series(rng.random(table.height) > 0.005))
        if number % 4:
            return kept
        place = int(rng.integers(1, max(kept.height, 2)))
        names = [*BYTES.values(), *OPERATIONS.values(), "oc", "cc"]
        after = pl.int_range(pl.len()) >= place
        return kept.with_columns(
            pl.when(after)
            .then(pl.col(name) - pl.col(name).get(place - 1))
            .otherwise(name)
            .alias(name)
            for name in names
        )


def moved_until(bursts: pl.DataFrame, times: Floats) -> NDArray[np.int64]:
    """Return the bytes that had moved at each moment; a burst moves evenly."""
    if not bursts.height:
        return np.zeros(len(times), dtype=np.int64)
    start, end = bursts["start"].to_numpy(), bursts["end"].to_numpy()
    rate = bursts["bytes"].to_numpy() / (end - start)
    knots, place = np.unique(np.concatenate([start, end]), return_inverse=True)
    slope = np.cumsum(np.bincount(place, np.concatenate([rate, -rate]), len(knots)))
    total = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(knots))])
    moved = np.rint(np.interp(times, knots, total)).astype(np.int64)
    return np.asarray(np.maximum.accumulate(moved))


def simulate(settings: SimulationSettings) -> Simulation:
    """Fill a machine with jobs, one or some at a time on each group of servers."""
    rng = np.random.default_rng(settings.seed)
    jobs: dict[str, list[object]] = {name: [] for name in JOBS.names}
    bursts: list[pl.DataFrame] = []
    names = [f"ion{number:03d}" for number in range(settings.servers)]
    for lane in [lane for lane in _lanes(names) for _ in range(settings.jobs_at_once)]:
        clock = round(rng.uniform(0.0, HOUR))  # schedulers keep whole seconds
        while (end := clock + round(_drawn(rng, RUNTIME))) < settings.days * 24 * HOUR:
            job = str(len(jobs["job"]) + 1000)
            kind = BEHAVIOURS[rng.choice(len(BEHAVIOURS), p=[b.likelihood for b in BEHAVIOURS])]
            bursts.append(_bursts_of(rng, kind, job, lane, clock, end))
            _note_job(jobs, rng, job, kind, lane, clock, end)
            clock = end + round(rng.uniform(5.0, 600.0))
    tables = [table for table in bursts if table.height]
    empty = _bursts_of(rng, BEHAVIOURS[-1], "", ["ion000"], 0.0, 1.0)
    return Simulation(settings, pl.DataFrame(jobs, schema=JOBS.schema), pl.concat([empty, *tables]))


def _lanes(names: list[str]) -> Iterator[list[str]]:
    turn = 0
    while names:
        size = LANES[turn % len(LANES)]
        yield names[:size]
        names = names[size:]
        turn += 1


def _drawn(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    low, high = limits
    return low if low == high else float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _bursts_of(
    rng: np.random.Generator,
    kind: Behaviour,
    job: str,
    lane: list[str],
    start: float,
    end: float,
) -> pl.DataFrame:
    pause, duration = _drawn(rng, kind.pause), _drawn(rng, kind.duration)
    rate = _drawn(rng, kind.rate) if kind.rate[0] else 0.0
    servers = lane[: max(1, round(kind.servers * len(lane)))]
    begins = np.arange(float(start), end - duration, pause) if rate else np.zeros(0)
    # Whole milliseconds: counters can be read exactly when a burst begins and ends.
    begins, ends = np.round(begins, 3), np.round(np.minimum(begins + duration, end), 3)
    sizes = np.rint(rate * (ends - begins)).astype(np.int64)
    each = pl.DataFrame({"start": begins, "end": ends, "bytes": sizes}).with_columns(
        job=pl.lit(job), direction=pl.lit(kind.direction)
    )
    return each.join(pl.DataFrame({"server": servers}), how="cross")


def _note_job(
    jobs: dict[str, list[object]],
    rng: np.random.Generator,
    job: str,
    kind: Behaviour,
    lane: list[str],
    start: float,
    end: float,
) -> None:
    user = f"user{int(rng.integers(1, 13)):02d}"
    facts = {
        "job": job,
        "start_us": round(start + EPOCH) * SECOND,
        "end_us": round(end + EPOCH) * SECOND,
        "servers": lane,
        "nodes": len(lane),
        "user": user,
        "account": f"project-{'abcd'[int(user[-2:]) % 4]}",
        "partition": "large" if len(lane) > 4 else "small",
        "name": kind.name,
        "state": "COMPLETED",
    }
    for name, column in jobs.items():
        column.append(facts[name])
