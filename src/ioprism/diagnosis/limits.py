"""The numbers that decide what a diagnosis claims: meaning, unit, and source or measurement.

`python -m benchmarks.sensitivity` moves each of them and shows what changes over all logs with
known answers. Numbers that only bound memory or time stand where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
Pair = tuple[float, float]
Triple = tuple[float, float, float]


def _limit(default: T, unit: str, meaning: str, source: str) -> T:
    value: T = field(default=default, metadata={"meaning": meaning, "unit": unit, "source": source})
    return value


# Shares of calls, bytes, seconds or ranks, where checks need no finer distinction.
NEARLY_ALL = 0.9  # convention
DOMINANT = 0.8  # convention
MAJORITY = 0.5  # by definition
MINOR = 0.1  # convention; Drishti's limit for small and misaligned requests
NEGLIGIBLE = 0.05  # chosen: what launchers and small tools move, or a few calls by chance

SPEC = "definition of a cause"
CUSTOM = "convention"
CHOSEN = "chosen, not measured"
REAL = "measured on before/after pairs of real programs"
SIMULATED = "simulated storage"
RANKS = "simulated ranks with and without barriers"


# fmt: off
@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What checks compare with. Shares are from 0 to 1."""

    # What is worth reporting.
    min_share: float = _limit(0.01, "share of the run", "smallest saving of a cause", SPEC)
    min_seconds: float = _limit(0.05, "s", "smallest saving of a cause", SPEC)
    min_stall_share: float = _limit(
        0.02, "share of the stall time", "smallest saving of a cause", REAL)
    min_core_hours: float = _limit(
        1000.0, "core-hours", "waste that is a cause whatever its share of the run", CUSTOM)
    run_noise: float = _limit(
        0.15, "share of a saving", "run times of one program differ by this much", REAL)
    significance: float = _limit(
        0.01, "probability", "probability that a contrast is chance, after correction", CUSTOM)
    checks_without_peers: float = _limit(
        12.0, "checks", "checks that each log is put to without peers (Bonferroni)",
        "number of checks")
    trimmed_calls: float = _limit(0.05, "share", "calls that may be long by chance", REAL)
    unsure: Pair = _limit(
        (0.7, 1.3), "ratio", "what remains of a cost that the log leaves open: at best, at worst",
        CHOSEN)

    # How many calls or parts a comparison needs.
    min_group: int = _limit(3, "calls", "calls of each kind that are compared", CHOSEN)
    min_calls: int = _limit(8, "calls", "calls for a median, or for a spread", CHOSEN)
    min_served: int = _limit(
        12, "calls", "calls of one kind and size for what a target spends on each", CHOSEN)
    min_peers: int = _limit(4, "parts", "parts of one kind for a test of outliers", SPEC)
    min_phases: int = _limit(4, "phases", "phases for a test of outliers", SPEC)
    min_in_turn: float = _limit(
        4.0, "requests", "requests one after the other: fewer may be one incident", SIMULATED)
    apart: float = _limit(
        1.5, "ratio", "sizes, loads and numbers of calls under way that differ", CHOSEN)
    few: float = _limit(
        0.25, "share", "ranks, requests or seconds that are a small part of all", CHOSEN)

    # Ranks that wait for each other.
    lateness_kept: float = _limit(
        0.5, "share", "lateness that lasts to the next burst: ranks do not wait", RANKS)
    busy_rank_share: float = _limit(
        1 / 3, "share", "I/O of the busiest rank from which few ranks count as few", RANKS)
    min_intervals: int = _limit(8, "intervals", "intervals for a verdict on few ranks", RANKS)
    chance_variance: Pair = _limit(
        (0.5, 1.6), "ratio", "variance of concurrent ranks over that of independent ones", RANKS)
    steady_variance: Pair = _limit((0.25, 4.0), "ratio", "its range over the run", RANKS)

    # Storage.
    service_share: Triple = _limit(
        (0.25, 0.7, 1.0), "share",
        "part of an uncontended call that occupies the target: least, likely, most",
        "simulated storage; physics allows all of it")
    service_error: float = _limit(
        0.15, "share", "error of service times that waiting calls show", SIMULATED)
    target_rate: Triple = _limit(
        (150e6, 400e6, 1200e6), "B/s", "transfer rate of a storage target: slow, usual, fast",
        "disk arrays to NVMe servers; IO500 lists")
    stream_rate: float = _limit(
        20e6, "B/s", "least that one stream gets of storage without a known layout",
        f"{REAL}: devices of 30 to 80 MB/s, shared by four ranks")
    block: int = _limit(
        2**20, "B", "request that file systems serve as one, and lock block without a layout",
        "Lustre and GPFS defaults")
    system_call: float = _limit(
        20e-6, "s", "duration of a call that only copies to or from memory, without its bytes",
        f"{REAL}: median up to 21 µs where request size did not matter, else from 43 µs")
    memory_rate: float = _limit(
        2e9, "B/s", "rate of copies to and from the page cache", "one core of current servers")
    quick_copy: Pair = _limit(
        (0.05, 0.2), "share", "least of a system call and of a copy's time that a write takes",
        CHOSEN)
    stalled_ratio: float = _limit(
        150.0, "ratio", "longest call over the mean from which few calls hold the time (counters)",
        f"{REAL}: 80 to 90 with a latency per request, 250 to 15,000 with write-back")
    long_call: float = _limit(
        10.0, "ratio", "duration over the median from which a call waits", CHOSEN)
    min_wait: float = _limit(
        1e-3, "s", "shorter calls wait for the processor, not for storage", CHOSEN)

    # Parts of the system that are slow.
    slower: float = _limit(
        1.25, "ratio", "duration of the same work from which a part is slow",
        "simulated storage; sound parts differ by less")
    part_spread: float = _limit(
        0.05, "log of seconds", "spread that parts of a healthy system have at least", SIMULATED)
    same_explanation: float = _limit(
        0.98, "share", "explained differences from which two parts explain the same", CHOSEN)
    two_groups: float = _limit(
        2.0, "ratio", "step between sessions of the same work from which they are two groups",
        "below 1.5 where ranks queue for one server, 3 to 10 on GlusterFS with one slow brick")
    split_by_chance: float = _limit(
        0.25, "share", "phases of a healthy run with such a step", f"{REAL}: 0 to 0.2")
    everywhere: float = _limit(
        0.6, "share", "ranks that are slower, for other jobs to be the reason", CHOSEN)
    heat_bins: Pair = _limit(
        (0.4, 2.0), "bins", "error of phases in a heat map; length by which slow ones are longer",
        CHOSEN)
    server_rate: Pair = _limit(
        (0.9, 1.2), "ratio", "servers' rate in a slow time over that of the job: no, yes", CHOSEN)

    # Work that is spread unevenly.
    serial_share: float = _limit(
        0.9, "share", "bytes of one rank that make it the only writer", CUSTOM)
    min_ranks: int = _limit(4, "ranks", "ranks for which balance and sharing matter", CUSTOM)
    saturated: float = _limit(
        0.6, "share", "part of a phase that a target is busy when it limits the phase", SIMULATED)
    parallel_gain: float = _limit(
        0.15, "share", "part of a synchronous request that other ranks' requests can overlap",
        f"{REAL}: network and client time")

    # Requests.
    many_requests: int = _limit(100, "requests", "small requests that are many", CUSTOM)
    copies: float = _limit(
        3.0, "ratio", "times that the same bytes are read by different ranks", CUSTOM)
    repeated: float = _limit(
        0.3, "share", "bytes that move again: less is not what a run waits for", CHOSEN)
    kept_in_memory: float = _limit(
        2.0**31, "B", "what a rank can keep instead of reading it again", CHOSEN)
    cold_share: float = _limit(
        0.6, "share", "reading time of counters that is surely not the first pass", CHOSEN)
    cache_ratio: float = _limit(
        3.0, "ratio", "rate of reading again over that of first reads, for a cache", CHOSEN)
    disordered: float = _limit(
        0.5, "share", "requests out of order, or in blocks of other ranks", CUSTOM)
    fit_error: float = _limit(
        0.08, "share", "error of the fixed cost, beside the spread of the requests", CHOSEN)
    lock_ratio: float = _limit(
        1.3, "ratio", "service in blocks of other ranks over that of other requests", CHOSEN)
    lock_seconds: float = _limit(
        0.2e-3, "s", "part of a request that does not depend on its bytes", CHOSEN)
    extra_bytes: float = _limit(
        0.2, "share", "bytes that a library reads or writes beyond those asked for", CHOSEN)

    # Metadata, program start and loading.
    tiny_file: int = _limit(
        2**16, "B", "file that costs more to open than to move",
        "metadata and transfer rates of parallel file systems")
    program_file: int = _limit(
        2**26, "B", "larger files are data rather than programs", CUSTOM)
    many_files: int = _limit(10, "files", "files per rank that are many", CUSTOM)
    transaction_syncs: int = _limit(
        4, "syncs", "most syncs of a file per open of it that are one transaction",
        f"{REAL}: two or three in SQLite")
    many_syncs: int = _limit(
        50, "syncs", "syncs of a file by each rank that are a habit rather than steps", CHOSEN)
    loads: int = _limit(6, "loads", "loads of a process that are a loop", CHOSEN)
    load_share: float = _limit(
        0.2, "share of the run", "loads that are a loop, without application events", CHOSEN)
    workers: int = _limit(4, "processes", "processes that load samples, as advised", CHOSEN)
