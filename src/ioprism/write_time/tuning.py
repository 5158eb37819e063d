"""Which configuration writes the same data faster, and how often to write it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ioprism.errors import UsageError
from ioprism.model.result import Result, pick
from ioprism.model.samples import WritePattern
from ioprism.model.trace import MIB
from ioprism.write_time.estimate import Estimate, estimate_write
from ioprism.write_time.model import WriteTimeModel


@dataclass(frozen=True, slots=True)
class TuningLimits:
    """What may be varied."""

    cores: tuple[int, int]  # writing cores per node, fewest and most
    nodes: tuple[int, int]  # writing (aggregator) nodes, fewest and most
    stripe_counts: tuple[int, int] | None = None  # None: leave it as it is
    burst_bytes: int | None = None  # largest burst that fits a process


@dataclass(frozen=True, slots=True)
class Alternative:
    """A configuration that writes the same bytes, and its predicted time."""

    estimate: Estimate
    speedup: float  # over the configuration asked about
    clear: bool  # whether the two intervals do not overlap
    data_moves: bool  # whether other processes must first send their data to the writers
    hints: tuple[MiddlewareHint, ...]  # middleware settings for it

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**pick(self, "speedup", "clear", "data_moves", "hints"), **self.estimate.to_dict()}


@dataclass(frozen=True, slots=True)
class CheckpointAdvice:
    """How often to write a checkpoint that takes this long."""

    write_seconds: float
    young: float | None  # seconds of computing between writes that lose least time to failures
    daly: float | None
    io_share: float | None
    least_interval: float | None  # seconds of computing between writes that keep the share


@dataclass(frozen=True, slots=True, repr=False)
class Tuning(Result):
    """Configurations that write the same bytes, fastest first, and how often to write."""

    now: Estimate
    choices: tuple[Alternative, ...]
    advice: CheckpointAdvice

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism write-time tune --json` says."""
        advice = self.advice
        return {
            "now": self.now.to_dict(),
            "choices": [choice.to_dict() for choice in self.choices],
            "checkpoint": {
                **pick(advice, "write_seconds", "io_share", "least_interval"),
                "young_interval": advice.young,
                "daly_interval": advice.daly,
            },
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per configuration."""
        rows = [
            {**c.estimate.pattern.to_dict(), "seconds": c.estimate.seconds, "speedup": c.speedup}
            for c in self.choices
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def summary(self) -> str:
        """Return the answer in one line."""
        fastest = max((choice.speedup for choice in self.choices), default=1.0)
        return f"{self.now.seconds:.4g} s now, {max(fastest, 1.0):.3g} times faster at best"


def rank_alternatives(
    pattern: WritePattern, *, model: WriteTimeModel, limits: TuningLimits
) -> tuple[Estimate, tuple[Alternative, ...]]:
    """Rank configurations that write the same bytes by predicted time, fastest first.

    Returns:
        The estimate for the pattern itself, and the choices.
    """
    now = estimate_write(pattern, model=model)
    choices = [
        _choice(now, candidate, model)
        for candidate in _candidates(pattern, limits, model)
        if _configuration(candidate) != _configuration(pattern)
    ]
    return now, tuple(sorted(choices, key=lambda choice: choice.estimate.seconds))


def checkpoint_advice(
    write_seconds: float, *, mean_time_between_failures: float | None, io_share: float | None
) -> CheckpointAdvice:
    """Advise how often to write, after Young (1974) and Daly (2006).

    Raises:
        UsageError: a share outside 0 to 1, or a time that is not positive.
    """
    if mean_time_between_failures is not None and not mean_time_between_failures > 0:
        raise UsageError("the time between failures must be positive.\nHint: give 86400 for a day.")
    if io_share is not None and not 0 < io_share < 1:
        raise UsageError(
            "the share of time for I/O must be between 0 and 1.\nHint: give 0.05, for example."
        )
    young = daly = least = None
    if mean_time_between_failures is not None:
        young = math.sqrt(2 * write_seconds * mean_time_between_failures)
        # Daly's higher-order optimum; the time between failures where writes are as long.
        ratio = write_seconds / (2 * mean_time_between_failures)
        daly = young * (1 + math.sqrt(ratio) / 3 + ratio / 9) - write_seconds
        daly = mean_time_between_failures if ratio >= 1 else daly
    if io_share is not None:
        least = write_seconds * (1 - io_share) / io_share
    return CheckpointAdvice(write_seconds, young, daly, io_share, least)


def _candidates(
    pattern: WritePattern, limits: TuningLimits, model: WriteTimeModel
) -> Iterator[WritePattern]:
    for nodes in _steps(*limits.nodes, pattern.nodes):
        for cores in _steps(*limits.cores, pattern.cores_per_node):
            burst = -(-pattern.total_bytes // (nodes * cores))
            if limits.burst_bytes is not None and burst > limits.burst_bytes:
                continue
            for stripes in _stripe_counts(pattern, limits, model):
                yield replace(
                    pattern,
                    nodes=nodes,
                    cores_per_node=cores,
                    burst_bytes=burst,
                    stripe_count=stripes,
                    node_list=_spread(pattern.node_list, nodes),
                )


def _stripe_counts(
    pattern: WritePattern, limits: TuningLimits, model: WriteTimeModel
) -> Sequence[int | None]:
    if limits.stripe_counts is None or model.system.filesystem != "lustre":
        return [pattern.stripe_count]
    now = pattern.stripe_count or model.system.storage.stripe_count
    return _steps(*limits.stripe_counts, now)


def _steps(low: int, high: int, now: int) -> list[int]:
    """Powers of two within the limits, the limits themselves, and the present value."""
    powers = {2**power for power in range(high.bit_length()) if low <= 2**power <= high}
    return sorted(powers | {low, high} | ({now} if low <= now <= high else set()))


def _spread(node_list: tuple[int, ...] | None, count: int) -> tuple[int, ...] | None:
    """Choose nodes evenly from the job's own, so that writers share as little as possible."""
    if node_list is None:
        return None
    return tuple(node_list[number * len(node_list) // count] for number in range(count))


def _configuration(pattern: WritePattern) -> tuple[int, int, int | None]:
    return pattern.nodes, pattern.cores_per_node, pattern.stripe_count


def _choice(now: Estimate, candidate: WritePattern, model: WriteTimeModel) -> Alternative:
    estimated = estimate_write(candidate, model=model)
    return Alternative(
        estimate=estimated,
        speedup=now.seconds / estimated.seconds,
        clear=estimated.high < now.low or estimated.low > now.high,
        data_moves=candidate.files < now.pattern.files,
        hints=hints(now.pattern, candidate),
    )


MPI_INFO = "MPI_Info of MPI_File_open, or the file that ROMIO_HINTS names"
ENGINE = "parameters of the engine BP5"


@dataclass(frozen=True, slots=True)
class MiddlewareHint:
    """Settings of one middleware."""

    middleware: str
    where: str  # where the settings go
    settings: Mapping[str, str]

    @property
    def listed(self) -> str:
        """The settings in one line."""
        return ", ".join(f"{key}={value}" for key, value in self.settings.items())


def hints(now: WritePattern, better: WritePattern) -> tuple[MiddlewareHint, ...]:
    """Return settings that turn one configuration into the other.

    Fewer writers are aggregators: other processes send them their data. More writers than now
    cannot be had from middleware.
    """
    listed: list[MiddlewareHint] = []
    stripes = better.stripe_count if better.stripe_count != now.stripe_count else None
    if better.files < now.files:
        mpi_io = {
            "romio_cb_write": "enable",
            "cb_nodes": str(better.files),
            "cb_config_list": f"*:{better.cores_per_node}",
            "cb_buffer_size": str(min(64 * MIB, max(MIB, better.burst_bytes))),
        }
        if better.stripe_count is not None:
            mpi_io["striping_factor"] = str(better.stripe_count)
        adios = {"NumAggregators": str(better.files), "NumSubFiles": str(better.files)}
        listed += [
            MiddlewareHint("MPI-IO", MPI_INFO, mpi_io),
            MiddlewareHint("ADIOS2", ENGINE, {"AggregationType": "TwoLevelShm", **adios}),
        ]
    if stripes is not None:
        command = {"lfs setstripe": f"-c {stripes} FOLDER"}
        listed.append(MiddlewareHint("Lustre", "before the files are created", command))
    return tuple(listed)
