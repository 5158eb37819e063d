"""Read the description of a workload to schedule, as TOML.

bandwidth = "10GB"        # of the file system, per second
horizon = 8000            # seconds to simulate

[[jobs]]
name = "climate"
count = 4                 # jobs of this kind
period = 100              # seconds from one phase to the next, alone on the machine
io_share = 0.1            # of the period spent in I/O, or: bytes = "50GB"
nodes = 64
variation = 0.05          # of the computing time, from step to step
spread = 0.2              # of the period, from job to job
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError, UsageError
from ioprism.model.machine import JobClass, Workload
from ioprism.text import read_toml
from ioprism.units import parse_bytes

KNOWN = {
    "name", "count", "period", "io_share", "bytes", "nodes", "variation", "spread", "bandwidth"
}  # fmt: skip
MOST_JOBS = 1000


def read_workload(path: Path) -> Workload:
    """Read a description.

    Raises:
        BrokenTraceError: it cannot be read, or makes no sense.
    """
    try:
        return _workload(read_toml(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenTraceError(f"this is not TOML ({error})", source=path) from error
    except (ValueError, TypeError, KeyError, UsageError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BrokenTraceError(
            f"the workload makes no sense: {said}.\n"
            "Hint: see `ioprism schedule --example` for one that does.",
            source=path,
        ) from error


def _workload(document: Mapping[str, Any]) -> Workload:
    unknown = set(document) - {"bandwidth", "horizon", "jobs"}
    if unknown:
        raise ValueError(f"nothing is called {', '.join(sorted(unknown))}")
    defaults = Workload(())
    bandwidth = _rate(document.get("bandwidth", defaults.bandwidth))
    horizon = _positive(document.get("horizon", defaults.horizon), "horizon")
    jobs = document.get("jobs", [])
    if not isinstance(jobs, list) or not jobs:
        raise ValueError("it has no [[jobs]]")
    classes = tuple(_class(job, bandwidth) for job in jobs)
    if sum(one.count for one in classes) > MOST_JOBS:
        raise ValueError(f"it has more than {MOST_JOBS} jobs")
    return Workload(classes, bandwidth, horizon)


def _class(job: Mapping[str, Any], bandwidth: float) -> JobClass:
    unknown = set(job) - KNOWN
    if unknown:
        raise ValueError(f"nothing of a job is called {', '.join(sorted(unknown))}")
    period = _positive(job["period"], "period")
    own = _rate(job["bandwidth"]) if "bandwidth" in job else None
    if "bytes" in job:
        moved = job["bytes"]
        volume = parse_bytes(moved) if isinstance(moved, str) else float(moved)
        share = volume / min(own or bandwidth, bandwidth) / period
    else:
        share = float(job["io_share"])
    if not 0.0 < share < 1.0:
        raise ValueError(f"a job spends {share:.2g} of its period in I/O, not between 0 and 1")
    count, nodes = (int(job.get(name, 1)) for name in ("count", "nodes"))
    if count < 1 or nodes < 1:
        raise ValueError("count and nodes are at least 1")
    variation, spread = (
        _share(job.get(name, default), name)
        for name, default in (("variation", 0.05), ("spread", 0.2))
    )
    name = str(job.get("name", f"every {period:g} s"))
    return JobClass(name, count, period, share, variation, spread, nodes, own)


def _rate(value: object) -> float:
    return _positive(parse_bytes(value) if isinstance(value, str) else value, "bandwidth")


def _positive(value: Any, name: str) -> float:  # noqa: ANN401 - whatever TOML holds
    number = float(value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} = {value} is not a positive number")
    return number


def _share(value: Any, name: str) -> float:  # noqa: ANN401
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} = {value} is not between 0 and 1")
    return number
