"""What a simulation of policies answers with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING, Any

from ioprism.model.result import Result
from ioprism.scheduling.machine import MachineRun

if TYPE_CHECKING:
    import polars as pl

BASELINE = "fair-share"  # what file systems do without a scheduler


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What one job of a workload experienced, on average over the seeds."""

    name: str
    nodes: int
    phases: float  # that ended
    io_slowdown: float  # I/O time over that without other jobs
    stretch: float  # run time over that without other jobs


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """What a policy does to a machine."""

    policy: str
    phases: str  # who told the periods: none, given, live or ftio
    utilisation: Interval  # share of node time spent computing
    io_slowdown: Interval  # mean over jobs
    max_stretch: Interval  # of the job that suffers most
    jobs: tuple[JobOutcome, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """The turns of one job under one policy, for a picture: asked, served, end (seconds)."""

    policy: str
    phases: str
    job: str
    turns: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Schedule(Result):
    """Policies compared on the same jobs."""

    source: str
    bandwidth: float  # bytes per second
    horizon: float  # seconds
    seeds: int
    load: float  # share of the time in which the file system would be busy without waiting
    outcomes: tuple[PolicyOutcome, ...]
    lanes: tuple[Lane, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism schedule --json` prints."""
        return {
            "workload": {
                "source": self.source, "bandwidth": self.bandwidth, "horizon": self.horizon,
                "seeds": self.seeds, "load": self.load,
            },
            "outcomes": [{**asdict(one), "gain": self.gain(one)} for one in self.outcomes],
        }  # fmt: skip

    def to_frame(self) -> pl.DataFrame:
        """Return one row per policy."""
        import polars as pl

        rows = []
        for one in self.outcomes:
            row: dict[str, Any] = {"policy": one.policy, "phases": one.phases}
            for name in ("utilisation", "io_slowdown", "max_stretch"):
                value: Interval = getattr(one, name)
                row |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
            rows.append(row)
        return pl.DataFrame(rows)

    def find(self, policy: str, phases: str | None = None) -> PolicyOutcome | None:
        """The outcome of a policy."""
        wanted = (one for one in self.outcomes if one.policy == policy)
        return next((one for one in wanted if phases in (None, one.phases)), None)

    def gain(self, one: PolicyOutcome) -> Mapping[str, float] | None:
        """What a policy gains over fair share: relative changes; null without fair share."""
        base = self.find(BASELINE)
        if base is None:
            return None
        return {
            "utilisation": one.utilisation.mean / base.utilisation.mean - 1.0,
            "io_slowdown": 1.0 - one.io_slowdown.mean / base.io_slowdown.mean,
        }

    def summary(self) -> str:
        """Return the answer in one line."""
        best = max(
            (one for one in self.outcomes if one.policy != "clairvoyant"),
            key=lambda one: one.utilisation.mean,
        )
        gain = self.gain(best)
        change = "" if gain is None or best.policy == BASELINE else (
            f": utilisation {gain['utilisation']:+.1%}, "
            f"I/O slowdown {-gain['io_slowdown']:+.0%} against fair share"
        )  # fmt: skip
        told = "" if best.phases == "none" else f" with {best.phases} periods"
        return f"Best policy: {best.policy}{told}{change}"


def interval(values: Sequence[float]) -> Interval:
    """Return the mean and its 95 % interval by Student's distribution."""
    count, mean = len(values), fmean(values)
    if count < 2:
        return Interval(mean, mean, mean)
    reach = _student(count - 1) * stdev(values) / math.sqrt(count)
    return Interval(mean, mean - reach, mean + reach)


def outcome(policy: str, phases: str, runs: Sequence[MachineRun]) -> PolicyOutcome:
    """Sum the runs of all seeds up."""
    jobs = [
        JobOutcome(
            name=same[0].name,
            nodes=same[0].nodes,
            phases=fmean(run.phases for run in same),
            io_slowdown=fmean(run.io_slowdown for run in same),
            stretch=fmean(run.stretch for run in same),
        )
        for same in zip(*(run.jobs for run in runs), strict=True)
    ]
    return PolicyOutcome(
        policy,
        phases,
        interval([run.utilisation for run in runs]),
        interval([run.io_slowdown for run in runs]),
        interval([run.max_stretch for run in runs]),
        tuple(jobs),
    )


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution (Cornish and Fisher, 1938)."""
    z, n = NormalDist().inv_cdf(0.975), float(freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
