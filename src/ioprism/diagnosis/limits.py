"""The numbers that decide what a diagnosis claims: meaning, unit, and source or measurement.

`python -m benchmarks.sensitivity` moves each of them and shows what changes over all logs with
known answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
Pair = tuple[float, float]
Triple = tuple[float, float, float]


def _limit(default: T, meaning: str, *, unit: str, source: str) -> T:
    value: T = field(default=default, metadata={"meaning": meaning, "unit": unit, "source": source})
    return value


# Shares of calls, bytes, seconds or ranks, where checks need no finer distinction.
NEARLY_ALL = 0.9  # convention
DOMINANT = 0.8  # convention
MAJORITY = 0.5  # by definition
MINOR = 0.1  # convention; Drishti's limit for small and misaligned requests

REAL = "measured on before/after pairs of real programs"
SPEC = "definition of a cause"
CUSTOM = "convention"


@dataclass(frozen=True, slots=True)
class Limits:
    """What checks compare with. Shares are from 0 to 1."""

    # What is worth reporting.
    min_share: float = _limit(
        0.01, "smallest saving of a cause", unit="share of the run", source=SPEC
    )
    min_seconds: float = _limit(0.05, "smallest saving of a cause", unit="s", source=SPEC)
    min_stall_share: float = _limit(
        0.02, "smallest saving of a cause", unit="share of the stall time", source=REAL
    )
    min_core_hours: float = _limit(
        1000.0,
        "waste that is a cause whatever its share of the run",
        unit="core-hours",
        source=CUSTOM,
    )
    run_noise: float = _limit(
        0.15, "run times of one program differ by this much", unit="share of a saving", source=REAL
    )
    significance: float = _limit(
        0.01,
        "probability that a contrast is chance, after correction",
        unit="probability",
        source=CUSTOM,
    )
    checks_without_peers: float = _limit(
        12.0,
        "checks that each log is put to without peers (Bonferroni)",
        unit="checks",
        source="number of checks",
    )
    trimmed_calls: float = _limit(
        0.05, "calls that may be long by chance", unit="share", source=REAL
    )

    # Ranks that wait for each other.
    lateness_kept: float = _limit(
        0.5,
        "lateness that lasts to the next burst: ranks do not wait",
        unit="share",
        source="simulated ranks with and without barriers",
    )
    busy_rank_share: float = _limit(
        1 / 3,
        "I/O of the busiest rank from which few ranks count as few",
        unit="share",
        source="simulated ranks with and without barriers",
    )
    min_intervals: int = _limit(
        8,
        "intervals for a verdict on few ranks",
        unit="intervals",
        source="simulated ranks with and without barriers",
    )
    chance_variance: Pair = _limit(
        (0.5, 1.6),
        "variance of concurrent ranks over that of independent ones",
        unit="ratio",
        source="simulated ranks with and without barriers",
    )
    steady_variance: Pair = _limit(
        (0.25, 4.0),
        "its range over the run",
        unit="ratio",
        source="simulated ranks with and without barriers",
    )

    # Storage.
    service_share: Triple = _limit(
        (0.25, 0.7, 1.0),
        "part of an uncontended call that occupies the target: least, likely, most",
        unit="share",
        source="simulated storage; physics allows all of it",
    )
    service_error: float = _limit(
        0.15,
        "error of service times that waiting calls show",
        unit="share",
        source="simulated storage",
    )
    target_rate: Triple = _limit(
        (150e6, 400e6, 1200e6),
        "transfer rate of a storage target: slow, usual, fast",
        unit="B/s",
        source="disk arrays to NVMe servers; IO500 lists",
    )
    block: int = _limit(
        2**20,
        "request that file systems serve as one, and lock block without a layout",
        unit="B",
        source="Lustre and GPFS defaults",
    )
    system_call: float = _limit(
        20e-6,
        "duration of a call that only copies to or from memory, without its bytes",
        unit="s",
        source=f"{REAL}: median up to 21 µs where request size did not matter, else from 43 µs",
    )
    memory_rate: float = _limit(
        2e9,
        "rate of copies to and from the page cache",
        unit="B/s",
        source="one core of current servers",
    )
    stalled_ratio: float = _limit(
        150.0,
        "longest call over the mean from which few calls hold the time (counters)",
        unit="ratio",
        source=f"{REAL}: 80 to 90 with a latency per request, 250 to 15,000 with write-back",
    )

    # Parts of the system that are slow.
    slower: float = _limit(
        1.25,
        "duration of the same work from which a part is slow",
        unit="ratio",
        source="simulated storage; sound parts differ by less",
    )
    part_spread: float = _limit(
        0.05,
        "spread that parts of a healthy system have at least",
        unit="log of seconds",
        source="simulated storage",
    )
    min_peers: int = _limit(
        4, "parts of one kind for a test of outliers", unit="parts", source=SPEC
    )
    min_phases: int = _limit(4, "phases for a test of outliers", unit="phases", source=SPEC)
    min_in_turn: float = _limit(
        4.0,
        "requests one after the other: fewer may be one incident",
        unit="requests",
        source="simulated storage",
    )

    # Work that is spread unevenly.
    uneven: float = _limit(1.5, "load of a part over an even share", unit="ratio", source=CUSTOM)
    serial_share: float = _limit(
        0.9, "bytes of one rank that make it the only writer", unit="share", source=CUSTOM
    )
    min_ranks: int = _limit(
        4, "ranks for which balance and sharing matter", unit="ranks", source=CUSTOM
    )
    saturated: float = _limit(
        0.6,
        "part of a phase that a target is busy when it limits the phase",
        unit="share",
        source="simulated storage",
    )
    parallel_gain: float = _limit(
        0.15,
        "part of a synchronous request that other ranks' requests can overlap",
        unit="share",
        source=f"{REAL}: network and client time",
    )

    # Requests.
    many_requests: int = _limit(100, "small requests that are many", unit="requests", source=CUSTOM)
    copies: float = _limit(
        3.0, "times that the same bytes are read by different ranks", unit="ratio", source=CUSTOM
    )
    disordered: float = _limit(
        0.5, "requests out of order, or in blocks of other ranks", unit="share", source=CUSTOM
    )

    # Metadata and program start.
    tiny_file: int = _limit(
        2**16,
        "file that costs more to open than to move",
        unit="B",
        source="metadata and transfer rates of parallel file systems",
    )
    program_file: int = _limit(
        2**26, "larger files are data rather than programs", unit="B", source=CUSTOM
    )
    many_files: int = _limit(10, "files per rank that are many", unit="files", source=CUSTOM)
