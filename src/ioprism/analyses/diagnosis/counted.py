"""Counter records with the seconds that the slowest rank spends in calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Flags, Floats
from ioprism.analyses.diagnosis.counter_records import CounterRecords
from ioprism.analyses.diagnosis.heat_phases import HeatPhases
from ioprism.analyses.diagnosis.observations import with_file_rows
from ioprism.analyses.diagnosis.overheads import TINY
from ioprism.analyses.diagnosis.queues import LEAST, LIKELY
from ioprism.analyses.diagnosis.result import CallGroup, Contrast
from ioprism.analyses.diagnosis.significance import TRIED, WORTH, counted_test
from ioprism.analyses.diagnosis.situation import Candidate
from ioprism.analyses.diagnosis.target_pieces import at_least
from ioprism.model.trace import Trace
from ioprism.views.counters.usage import system_targets

NEARLY_ALL = 0.9  # of the bytes that pass MPI-IO: with fewer below, records are missing


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Records with the seconds that the slowest rank spends in calls."""

    records: CounterRecords
    trace: Trace
    by_rank: Floats  # seconds of each rank
    held: float
    heat: HeatPhases | None = None

    def candidate(
        self, code: str, culprit: dict[str, object], after: tuple[float, float, float],
        some: Flags, peers: Flags | None = None, *, p_value: float | None = None, **facts: object,
    ) -> Candidate:  # fmt: skip
        """Return a candidate from the seconds that remain: likely, at least, at most."""
        likely, least, most = (float(np.clip(x, 0.0, self.held)) for x in after)
        group = None if peers is None or not peers.any() else self.group(peers)
        test = self.chance(some) if p_value is None else p_value
        return Candidate(
            code, culprit, np.array([self.held - likely]), self.held - most, self.held - least,
            test, Contrast(code, self.group(some), group), facts,
        )  # fmt: skip

    @property
    def targets_known(self) -> int:
        """How many targets the file system has at least."""
        names = {name for record in self.records.targets for name in record}
        return at_least(names, system_targets(self.trace) or 0)

    def busiest(self, seconds: Floats) -> float:
        """What the busiest rank spends of these seconds of records.

        Of a file that all share, the slowest rank's time divides as the time of all does.
        """
        found, own = self.records, ~self.records.shared
        alone = found.by_rank(np.where(own, seconds, 0.0)).max()
        part = seconds / np.maximum(found.seconds, 1e-12)
        together = np.maximum(found["slowest"], found.seconds / found.ranks) * part
        return float(alone + together[found.shared].sum())

    def chance(self, some: Flags) -> float:
        """How likely the busiest rank's calls of these records cost next to nothing next time."""
        found, runtime = self.records, self.trace.job.runtime or self.held
        calls = found.requests + found["opens"] + found["stats"] + found["syncs"]
        seconds, count = (found.by_rank(np.where(some, x, 0.0)) for x in (found.seconds, calls))
        rank = int(np.argmax(seconds))
        # Of files that all share, the calls of all tell what one rank's take.
        together = some & found.shared
        spent = max(float(seconds[rank]), float(found["slowest"][together].sum()))
        number = float(count[rank] + calls[together].sum())
        return min(1.0, TRIED * counted_test(spent, number, WORTH * runtime))

    def group(self, some: Flags) -> CallGroup:
        """Sum up records."""
        found = self.records
        calls = float(found.requests[some].sum())
        seconds, moved = float(found.seconds[some].sum()), float(found.moved[some].sum())
        return CallGroup(
            int(calls or some.sum()),
            int(moved) or None,
            seconds / calls if calls else None,
            moved / seconds if seconds > 0 and moved else None,
        )


def slowest_rank(trace: Trace, found: CounterRecords, runtime: float) -> tuple[float, float, float]:
    """Seconds that the slowest rank spends in calls, those beyond calls to storage, and unknown.

    Calls are of the layer that the program entered: in MPI-IO, ranks also exchange data and
    wait for each other. Where calls to storage are missing from the log, it is not known which.
    """
    own = ~found.shared
    single = np.bincount(
        np.clip(found.rank[own], 0, found.ranks - 1), found.seconds[own], minlength=found.ranks
    )
    together = found["slowest"][found.shared]
    evenly = found.seconds[found.shared] / found.ranks
    below = min(runtime, float(single.max()) + float(np.maximum(together, evenly).sum()))
    if "MPI-IO" not in trace.counters:
        return below, 0.0, 0.0
    table = trace.counters["MPI-IO"]
    above = float(table.filter(pl.col("rank") < 0)["MPIIO_F_SLOWEST_RANK_TIME"].sum() or 0.0)
    times = pl.sum_horizontal(*(f"MPIIO_F_{kind}_TIME" for kind in ("READ", "WRITE", "META")))
    alone = table.filter(pl.col("rank") >= 0).group_by("rank").agg(times.sum().alias("seconds"))
    seconds = min(runtime, max(below, above + float(alone["seconds"].max() or 0.0)))  # type: ignore[arg-type]
    unknown = min(seconds - below, _without_calls_below(table, found))
    return seconds, seconds - below - unknown, unknown


def _without_calls_below(table: pl.DataFrame, found: CounterRecords) -> float:
    """Seconds of MPI-IO on files of which the log lacks calls to storage."""
    below = np.bincount(found.file, found.moved, minlength=found.files.height)
    files = with_file_rows(table, found.files).drop_nulls("file")
    moved = files.select(pl.sum_horizontal("MPIIO_BYTES_READ", "MPIIO_BYTES_WRITTEN")).to_series()
    missing = below[files["file"].to_numpy()] < NEARLY_ALL * moved.to_numpy()
    return float(files["MPIIO_F_SLOWEST_RANK_TIME"].to_numpy()[missing].sum())


def work_left(
    at: Counted, busy: Floats, gone: float, service: Floats | None = None
) -> tuple[float, float, float]:
    """Seconds that `busy` alone keeps the slowest rank, or the targets: likely, least, most.

    No less than what is held up without the calls that go. `service` is for how long records
    keep targets busy, where part of `busy` is known to be waiting for others.
    """
    chain = max(float(at.records.by_rank(busy).max()), at.held - gone)
    targets = {name for names in at.records.targets for name in names}
    work = busy if service is None else service
    even = float(work.sum()) / len(targets) if targets else 0.0
    return max(chain, LIKELY * even), max(chain, LEAST * even), max(chain, 1.2 * even)


def even_part(at: Counted, some: Flags) -> float:
    """The part of all targets that one request of these records keeps busy."""
    sizes, counts = [], []
    moved, requests = at.records.moved, at.records.requests
    for record in np.flatnonzero(some):
        if at.records.targets[record] and requests[record]:
            size = moved[record] / requests[record]
            stripes = np.ceil(size / max(1, at.records.stripe_size[record]))
            sizes.append(min(stripes, len(at.records.targets[record])))
            counts.append(len(at.records.targets[record]))
    return float(np.mean(sizes) / np.mean(counts)) if sizes else 1 / at.records.ranks


def tiny_files(found: CounterRecords) -> Flags:
    """Records of files that hold next to nothing, where there are many for each rank."""
    some = (found.moved > 0) & (found.moved < TINY) & ~found.shared
    return some if some.sum() >= 10 * found.ranks else np.zeros(len(found), np.bool_)
