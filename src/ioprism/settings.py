"""What can be tuned: one frozen class per analysis; every default names its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from ioprism.errors import UsageError
from ioprism.text import read_toml

PAPER = "Table II of Drishti's paper"
PEER = "Drishti's default"
OURS = "ours"
INFINITE = float("inf")


def _limit(default: float, meaning: str, *, unit: str = "share", source: str = OURS) -> float:
    value: float = field(
        default=default, metadata={"meaning": meaning, "unit": unit, "source": source}
    )
    return value


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a rule fires. Shares are from 0 to 1, sizes bytes, times seconds of one rank."""

    negligible_share: float = _limit(
        0.01, "findings below this share of the run time (of the rank most affected) are not high"
    )
    negligible_seconds: float = _limit(
        0.05, "findings below this time (of the rank most affected) are not high", unit="s"
    )
    small_bytes: float = _limit(2**20, "requests below this size are small", unit="B", source=PAPER)
    small_requests: float = _limit(0.1, "share of reads or writes that are small", source=PAPER)
    random_operations: float = _limit(
        0.2, "share of reads or writes that jump backwards", source=PAPER
    )
    sequential_operations: float = _limit(
        0.8, "share of reads or writes that go forward: sequential from here on", source=PAPER
    )
    misaligned_requests: float = _limit(
        0.1, "share of requests not aligned in file or memory", source=PAPER
    )
    redundant_bytes: float = _limit(
        0.1, "share of bytes already moved before, at the same place of the same file"
    )
    sieved_bytes: float = _limit(
        0.1, "bytes MPI-IO reads from files the program only writes, relative to the bytes written"
    )
    stdio_bytes: float = _limit(
        0.1, "share of bytes that pass through STDIO, without console streams", source=PAPER
    )
    operation_imbalance: float = _limit(
        0.1, "difference of reads and writes, relative to their sum", source=PEER
    )
    metadata_seconds: float = _limit(30.0, "metadata time of one rank", unit="s", source=PAPER)
    metadata_share: float = _limit(0.1, "metadata time of one rank, relative to the run time")
    metadata_of_io: float = _limit(0.5, "metadata time of all ranks, relative to their I/O time")
    rank_0_factor: float = _limit(
        1.5, "rank 0's calls and bytes relative to the next busiest rank", unit="ratio"
    )
    rank_data_imbalance: float = _limit(
        0.15, "how far the mean rank's bytes are below those of the busiest rank", source=PAPER
    )
    rank_time_imbalance: float = _limit(
        0.3, "how far the mean rank's I/O time is below that of the slowest; 0.15 in Drishti's "
        "paper, for a sum that grows with the ranks: balanced public logs reach 0.27"
    )  # fmt: skip
    imbalance_seconds: float = _limit(
        0.5, "ranks that wait less than this for the slowest are balanced", unit="s"
    )
    straggler_factor: float = _limit(
        2.0, "a straggler's I/O time relative to the median rank", unit="ratio"
    )
    file_imbalance: float = _limit(
        0.3,
        "standard deviation relative to the mean of the bytes that ranks move in one file",
        source=PEER,
    )
    imbalance_bytes: float = _limit(
        2**20, "files with less traffic are not checked for imbalance", unit="B"
    )
    collective_operations: float = _limit(
        0.5, "share of MPI-IO calls that are collective: collective use from here on", source=PEER
    )
    collective_storage: float = _limit(
        0.1, "share of the time in collective calls below which storage is not what they wait for"
    )
    aggregator_share: float = _limit(
        0.9, "share of a collective file's bytes that pass through one rank"
    )
    small_total: float = _limit(2**20, "jobs that move less per rank move little data", unit="B")
    phases: float = _limit(100, "more phases than this are too many", unit="count")
    phase_stragglers: float = _limit(0.5, "share of the phases that wait for one rank")
    hideable_share: float = _limit(
        0.05, "share of the run time in phases that the following gap could hide"
    )
    tiny_file_bytes: float = _limit(2**20, "a file with less traffic is tiny", unit="B")
    tiny_files: float = _limit(1000, "more tiny files than this are too many", unit="count")
    seeks: float = _limit(0.5, "seeks per read or write", unit="ratio")
    syncs_per_write: float = _limit(0.1, "syncs per write", unit="ratio")
    syncs: float = _limit(10, "syncs of one file by one rank", unit="count")
    read_after_write: float = _limit(
        0.5, "share of read bytes that come from files the job wrote itself"
    )
    scattered_selections: float = _limit(
        0.1, "share of HDF5 selections that are irregular or single points"
    )
    target_share: float = _limit(0.5, "share of bytes on one storage target")
    target_imbalance: float = _limit(
        0.3, "how far the mean storage target's bytes are below those of the busiest"
    )
    target_ranks: float = _limit(64, "ranks that share one storage target", unit="count")
    slow_target_factor: float = _limit(
        2.0, "rate of the slowest other storage target relative to that of a slow one", unit="ratio"
    )
    others_load: float = _limit(
        0.5, "what other jobs move on the servers while the job runs, relative to the most that "
        "all jobs moved in any period of that length in the week before and after (at most 5000 "
        "periods on each side)"
    )  # fmt: skip
    alignment: float = _limit(4096, "alignment to assume where the trace names none", unit="B")

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 <= value < INFINITE
            ):
                raise UsageError(
                    f"the threshold {limit.name} is {value!r}, which is not a finite "
                    "number of at least 0.\n"
                    f"Hint: its default is {limit.default}."
                )


@dataclass(frozen=True, slots=True)
class PhaseSettings:
    """How busy intervals are joined to phases."""

    deviations: float | None = None  # the mean gap and this many deviations; DXT Explorer's is 1
    gap: float | None = None  # seconds; both None: read off the gaps

    def __post_init__(self) -> None:
        if any(value is not None and not value >= 0 for value in (self.deviations, self.gap)):
            raise UsageError(
                f"phases cannot be joined with {self.deviations} deviations and a gap of "
                f"{self.gap} s.\nHint: give numbers of at least 0."
            )


def read_thresholds(path: Path | None) -> Thresholds:
    """Read a TOML file of `name = number`; what it does not name keeps its default.

    Raises:
        UsageError: the file is not TOML, names an unknown threshold, or gives no number.
    """
    if path is None:
        return Thresholds()
    try:
        given = read_toml(path)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: this is not TOML ({error}).\nHint: write lines such as small_requests = 0.2"
        ) from error
    table = given.get("thresholds", given)
    if not isinstance(table, dict):
        raise UsageError(f"{path}: thresholds is not a table.\nHint: write [thresholds] on a line.")
    _check_names(path, table)
    return Thresholds(**table)


def _check_names(path: Path, given: Mapping[str, object]) -> None:
    from difflib import get_close_matches

    known = [limit.name for limit in fields(Thresholds)]
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "see `ioprism rules --thresholds`."
            raise UsageError(f"{path}: there is no threshold {name!r}.\nHint: {hint}")
