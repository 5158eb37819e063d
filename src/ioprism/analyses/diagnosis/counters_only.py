"""The same causes from counters alone: one record per file and rank, with wider intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.attribution import WORTH, attributed, ledger
from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.counter_records import CounterRecords, counter_records
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.not_checked import not_checked_in_counters
from ioprism.analyses.diagnosis.observations import with_file_rows
from ioprism.analyses.diagnosis.overheads import TINY
from ioprism.analyses.diagnosis.queues import LEAST, LIKELY, MOST
from ioprism.analyses.diagnosis.request_cost import FAST, SLOW, USUAL
from ioprism.analyses.diagnosis.result import CallGroup, Contrast, Diagnosis, HeldUp
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, outlier_test, rank_test
from ioprism.analyses.diagnosis.situation import Candidate
from ioprism.analyses.diagnosis.slow_parts import FEWEST_PEERS, SLOWER, SPREAD
from ioprism.analyses.diagnosis.uneven_load import HEAVY, MANY, SERIAL, UNEVEN, even_placement
from ioprism.model.trace import Trace

BLOCK = 2**20  # bytes: one request of a file system
COPIES = 3.0
REQUEST = 2e-4  # seconds: what a request costs whatever its size, on usual storage


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Records with the seconds that the slowest rank spends in calls."""

    records: CounterRecords
    trace: Trace
    by_rank: Floats  # seconds of each rank
    held: float

    def candidate(
        self, code: str, culprit: dict[str, object], after: tuple[float, float, float],
        some: Flags, peers: Flags | None = None, *, p_value: float = 0.0, **facts: object,
    ) -> Candidate:  # fmt: skip
        """Return a candidate from the seconds that remain: likely, at least, at most."""
        likely, least, most = (float(np.clip(x, 0.0, self.held)) for x in after)
        group = None if peers is None or not peers.any() else self.group(peers)
        return Candidate(
            code, culprit, np.array([self.held - likely]), self.held - most, self.held - least,
            p_value, Contrast(code, self.group(some), group), facts,
        )  # fmt: skip

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


def diagnose_counters(trace: Trace) -> Diagnosis:
    """Return what counters tell of what holds the job up."""
    runtime = trace.job.runtime or _last_moment(trace)
    found = counter_records(trace)
    if found is None or not len(found):
        return Diagnosis(runtime, HeldUp(0.0, 0.0, "nothing"))
    by_rank = found.by_rank(found.seconds)
    held = slowest_rank(trace, found, runtime)
    how = HeldUp(held, held / runtime if runtime > 0 else 0.0, "counters")
    missing = not_checked_in_counters(any(found.targets))
    if how.share < WORTH:
        return Diagnosis(runtime, how, ledger=ledger((), held, held), not_checked=missing)
    at = Counted(found, trace, by_rank, held)
    kept = attributed(find(at), np.array([held]), runtime)
    left = float(kept.left.sum())
    return Diagnosis(
        runtime, how, kept.causes, ledger(kept.causes, left, left), not_checked=missing
    )


def _last_moment(trace: Trace) -> float:
    """When the last recorded call ended: for jobs that were killed."""
    latest = [
        float(table[name].max() or 0.0)  # type: ignore[arg-type]
        for table in (trace.counters[key] for key in trace.counters if key != "HEATMAP")
        for name in table.columns
        if name.endswith("END_TIMESTAMP") and table.height
    ]
    return max(latest, default=0.0)


def slowest_rank(trace: Trace, found: CounterRecords, runtime: float) -> float:
    """Seconds that the slowest rank spends in calls of the lowest layer it entered."""
    own = ~found.shared
    single = np.bincount(
        np.clip(found.rank[own], 0, found.ranks - 1), found.seconds[own], minlength=found.ranks
    )
    together = found["slowest"][found.shared]
    evenly = found.seconds[found.shared] / found.ranks
    seconds = float(single.max()) + float(np.maximum(together, evenly).sum())
    if "MPI-IO" in trace.counters:
        table = trace.counters["MPI-IO"]
        above = table.filter(pl.col("rank") < 0)["MPIIO_F_SLOWEST_RANK_TIME"].sum()
        seconds = max(seconds, float(above or 0.0))
    return min(seconds, runtime)


def find(at: Counted) -> Iterator[Candidate]:
    """Find causes, those of storage and load before those of requests."""
    serial = list(_serial(at))
    yield from serial
    if not serial:
        slow = [found for found in _slow_target(at) if found.p_value <= SIGNIFICANT]
        yield from slow
        uneven = list(_imbalance(at))
        yield from uneven
        if not slow and not uneven:
            yield from _hot_target(at)
    repeated = list(_redundant(at))
    yield from repeated
    if not repeated:
        yield from _few_targets(at)
    yield from _layers(at)
    yield from _sync(at)
    yield from _metadata(at)
    yield from _small(at)


def _serial(at: Counted) -> Iterator[Candidate]:
    """One rank moves the data of all."""
    found = at.records
    own = ~found.shared & (found.moved > 0)
    if found.ranks < MANY or not own.any() or found.moved[found.shared].sum() > 0:
        return
    moved = np.bincount(found.rank[own], found.moved[own], minlength=found.ranks)
    rank = int(np.argmax(moved))
    if moved[rank] < SERIAL * moved.sum():
        return
    mine = own & (found.rank == rank)
    seconds = float(found.seconds[mine].sum())
    rest = max(0.0, at.held - seconds)
    shares = [seconds * max(1 / found.ranks, _even(at, mine) * s) for s in (LIKELY, LEAST, MOST)]
    yield at.candidate(
        "serial-io", {"rank": rank}, tuple(s + rest for s in shares), mine, ranks=found.ranks
    )  # type: ignore[arg-type]


def _even(at: Counted, some: Flags) -> float:
    """The part of all targets that one request of these records keeps busy."""
    sizes, counts = [], []
    for record in np.flatnonzero(some):
        if at.records.targets[record] and at.records.requests[record]:
            size = at.records.moved[record] / at.records.requests[record]
            stripes = np.ceil(size / max(1, at.records.stripe_size[record]))
            sizes.append(min(stripes, len(at.records.targets[record])))
            counts.append(len(at.records.targets[record]))
    return float(np.mean(sizes) / np.mean(counts)) if sizes else 1 / at.records.ranks


def _levels(at: Counted) -> tuple[Flags, Floats]:
    """Single-rank records that move data, and the logarithm of their seconds per request."""
    found = at.records
    some = ~found.shared & (found.requests > 0)
    busy = found["read_time"] + found["write_time"]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log(np.maximum(busy, 1e-9) / found.requests)
    return some & (busy > 0), level


def _target_of(at: Counted) -> Ints:
    """First target of each record's file; -1 unknown."""
    return np.array([names[0] if names else -1 for names in at.records.targets], np.int64)


def _slow_target(at: Counted) -> Iterator[Candidate]:
    """Files on one target take longer for the same work than files on others."""
    some, level = _levels(at)
    target = _target_of(at)
    some &= target >= 0
    if some.sum() < 4:
        return
    names = np.unique(target[some])
    if len(names) < 2:
        return
    loads = np.array([at.records.moved[some & (target == name)].sum() for name in names])
    levels = np.array([np.median(level[some & (target == name)]) for name in names])
    # More work on a target makes its calls wait: that is no slowness of the target.
    waits = np.log(np.maximum(1.0, loads / np.median(loads)))
    slow = int(np.argmax(levels - waits))
    others = np.delete(levels - waits, slow)
    excess = float(levels[slow] - waits[slow] - np.median(others))
    inside = some & (target == names[slow])
    test = len(names) * (
        outlier_test(float(levels[slow] - waits[slow]), others, floor=SPREAD)
        if len(others) >= FEWEST_PEERS
        else rank_test(level[inside], level[some & ~inside])
    )
    if excess < np.log(SLOWER):
        return
    after = _slowest_without(at, inside, np.exp(-excess))
    yield at.candidate(
        "slow-target", _targets_culprit(at, inside), (after, 0.6 * after, 1.4 * after), inside,
        some & ~inside, p_value=min(1.0, test),
    )  # fmt: skip


def _targets_culprit(at: Counted, some: Flags) -> dict[str, object]:
    names = at.records.targets[int(np.flatnonzero(some)[0])]
    return {"target": names[0]} if len(names) == 1 else {"target": names[0], "targets": list(names)}


def _slowest_without(at: Counted, some: Flags, factor: float) -> float:
    """Seconds of the slowest rank when these records take a part of their time."""
    seconds = np.where(some, at.records.seconds * factor, at.records.seconds)
    ratio = at.held / max(float(at.by_rank.max()), 1e-12)
    return float(at.records.by_rank(seconds).max()) * ratio


def _imbalance(at: Counted) -> Iterator[Candidate]:
    """Some ranks move much more."""
    found = at.records
    own = ~found.shared
    if not own.any() or found.moved[found.shared].sum() > 0.5 * found.moved.sum():
        return
    moved = np.bincount(found.rank[own], found.moved[own], minlength=found.ranks)
    active = moved > 0
    if active.sum() < MANY:
        return
    heavy = np.flatnonzero(moved > HEAVY * np.median(moved[active]))
    if not 0 < len(heavy) <= 0.5 * active.sum() or moved[heavy].sum() < 0.1 * moved.sum():
        return
    light = np.setdiff1d(np.flatnonzero(active), heavy)
    if at.by_rank[heavy].max() < 0.8 * at.by_rank.max():
        return
    cost = float(np.median(at.by_rank[light] / moved[light]))
    bare = float(np.min(at.by_rank[active] / moved[active]))
    even = float(moved.sum() / active.sum())
    mine = own & np.isin(found.rank, heavy)
    yield at.candidate(
        "data-imbalance", {"ranks": [int(rank) for rank in heavy]},
        (even * cost, even * bare, even * cost * 1.5), mine, own & ~mine,
        bytes=float(moved[heavy].mean()), even_bytes=even,
    )  # fmt: skip


def _hot_target(at: Counted) -> Iterator[Candidate]:
    """More single-rank files lie on one target than on others."""
    found = at.records
    some = ~found.shared & (found.moved > 0)
    names = sorted({name for record in np.flatnonzero(some) for name in found.targets[record]})
    if len(names) < 2:
        return
    load = dict.fromkeys(names, 0.0)
    single = 0.0
    for record in np.flatnonzero(some):
        for name in found.targets[record]:
            part = found.moved[record] / len(found.targets[record])
            load[name] += part
            single = max(single, part)
    total = np.array([load[name] for name in names])
    hot = int(np.argmax(total))
    ideal = even_placement(float(total.sum()), single, max(len(names), max(names) + 1))
    inside = np.array([names[hot] in found.targets[r] for r in range(len(found))]) & some
    _, level = _levels(at)
    if total[hot] < UNEVEN * ideal or not (some & ~inside).any():
        return
    waits = float(np.median(level[inside]) - np.median(level[some & ~inside]))
    if waits < np.log(SLOWER):  # more lies there, and nobody waits for it
        return
    after = float(found.by_rank(found.seconds).max()) * ideal / total[hot]
    chain = float(np.min(at.by_rank[np.unique(found.rank[some])]))
    yield at.candidate(
        "hot-target", {"target": names[hot]},
        (max(after, chain), 0.8 * max(after, chain), 1.3 * max(after, chain)), inside,
        some & ~inside, p_value=rank_test(level[inside], level[some & ~inside]),
        targets=len(names),
    )  # fmt: skip


def _few_targets(at: Counted) -> Iterator[Candidate]:
    """A file that all ranks share lies on fewer targets than there are."""
    found = at.records
    shared = found.shared & (found.moved > 0)
    if not shared.any() or found.ranks < MANY:
        return
    record = int(np.argmax(np.where(shared, found.seconds, 0.0)))
    used = found.targets[record]
    known = {name for names in found.targets for name in names}
    available = max(len(known), max(known, default=-1) + 1)
    rate = found.moved[record] / max(float(found["slowest"][record]), 1e-9)
    if not used or available < 2 * len(used) or rate > FAST * len(used):
        return
    mine = np.arange(len(found)) == record
    seconds = float(max(found["slowest"][record], found.seconds[record] / found.ranks))
    rest = max(0.0, at.held - seconds)
    after = seconds * len(used) / available
    yield at.candidate(
        "few-targets", {"file": found.path(record), "target": used[0]},
        (rest + after, rest + after / 4, rest + 2 * after), mine,
        stripe_count=len(used), targets=available, ranks=found.ranks,
    )  # fmt: skip


def _redundant(at: Counted) -> Iterator[Candidate]:
    """All ranks together read a file's bytes many times."""
    found = at.records
    copies = found["bytes_read"] / np.maximum(found["last_read"] + 1, 1)
    some = found.shared & (copies >= COPIES)
    if not some.any():
        return
    record = int(np.argmax(np.where(some, found["read_time"], 0.0)))
    mine = np.arange(len(found)) == record
    seconds = float(max(found["slowest"][record], found["read_time"][record] / found.ranks))
    rest = max(0.0, at.held - seconds)
    after = seconds / copies[record]
    yield at.candidate(
        "redundant-reads", {"file": found.path(record)},
        (rest + after, rest, rest + 3 * after), mine,
        copies=float(copies[record]), bytes=float(found["last_read"][record]),
    )  # fmt: skip


def _layers(at: Counted) -> Iterator[Candidate]:
    """MPI-IO against POSIX: reads the program did not ask for, and too few aggregators."""
    if "MPI-IO" not in at.trace.counters:
        return
    found = at.records
    table = with_file_rows(at.trace.counters["MPI-IO"], found.files)
    for row in table.filter(pl.col("rank") < 0).iter_rows(named=True):
        record = np.flatnonzero((found.file == row["file"]) & found.shared)
        if not len(record):
            continue
        place = int(record[0])
        mine = np.arange(len(found)) == place
        read, written = found["bytes_read"][place], found["bytes_written"][place]
        asked_read, asked = row["MPIIO_BYTES_READ"], row["MPIIO_BYTES_WRITTEN"]
        seconds = float(found["slowest"][place])
        rest = max(0.0, at.held - seconds)
        if asked and asked_read <= 0.1 * read and read >= 0.2 * asked:
            writes = found["write_time"][place] / max(1e-12, found.seconds[place])
            after = seconds * writes * min(1.0, asked / max(1.0, written))
            yield at.candidate(
                "read-modify-write", {"file": found.path(place)},
                (rest + 0.6 * after, rest, rest + after), mine,
                asked=asked, read=read, written=written,
            )  # fmt: skip
            continue
        mean = found.moved[place] / found.ranks
        aggregators = found.ranks / (1 + found["byte_variance"][place] / max(mean**2, 1.0))
        if row["MPIIO_COLL_WRITES"] + row["MPIIO_COLL_READS"] == 0 or aggregators >= 1.5:
            continue
        if found.ranks < MANY:
            continue
        shares = [seconds * max(1 / found.ranks, _even(at, mine) * s)
                  for s in (LIKELY, LEAST, MOST)]  # fmt: skip
        yield at.candidate(
            "few-aggregators",
            {"rank": int(found["slowest_rank"][place]), "file": found.path(place)},
            (shares[0] + rest, shares[1] + rest, shares[2] + rest), mine, aggregators=1,
        )  # fmt: skip


def _work_left(at: Counted, busy: Floats) -> tuple[float, float, float]:
    """Seconds that data calls alone keep the slowest rank, or the targets: likely, least, most."""
    chain = float(at.records.by_rank(busy).max())
    targets = {name for names in at.records.targets for name in names}
    even = float(busy.sum()) / len(targets) if targets else 0.0
    return max(chain, LIKELY * even), max(chain, LEAST * even), max(chain, 1.2 * even)


def _sync(at: Counted) -> Iterator[Candidate]:
    """Syncs, whose time Darshan adds to that of writes."""
    found = at.records
    some = found["syncs"] > 1
    if not some.any():
        return
    # A write takes at most what the longest took, and at least its bytes at a usual rate.
    least = REQUEST * found["writes"] + found["bytes_written"] / USUAL
    likely = np.sqrt(np.maximum(0.5 * found["longest_write"] * found["writes"], least) * least)
    writes = np.where(some, np.minimum(found["write_time"], likely), found["write_time"])
    busy = writes + found["read_time"]
    left = _work_left(at, busy)
    meta = float(at.records.by_rank(found["meta_time"]).max())
    record = int(np.argmax(np.where(some, found["syncs"], 0)))
    yield at.candidate(
        "frequent-sync", {"operation": "sync", "file": found.path(record)},
        (left[0] + meta, 0.7 * left[1] + meta, 1.6 * left[0] + meta), some,
        syncs=float(found["syncs"].sum()),
    )  # fmt: skip


def _metadata(at: Counted) -> Iterator[Candidate]:
    """Opens, stats and closes."""
    found = at.records
    some = found["meta_time"] > 0
    if not some.any():
        return
    busy = np.where(_tiny(found), 0.0, found["read_time"] + found["write_time"])
    left = _work_left(at, busy)
    calls = float(found.by_rank(found["opens"] + found["stats"]).max())
    kept = float(found.by_rank(found["meta_time"]).max()) / max(1.0, calls)
    files = found.file[some]
    culprit: dict[str, object] = {"operation": "open"}
    if len(np.unique(files)) > 2 * found.ranks:
        culprit["directory"] = common_directory(
            found.files["path"].gather(np.unique(files).tolist()).to_list()
        )
    yield at.candidate(
        "metadata", culprit, (left[0] + kept, left[1] + kept, left[2] + kept), some,
        files=len(np.unique(files)), calls=float(found["opens"].sum() + found["stats"].sum()),
    )  # fmt: skip


def _tiny(found: CounterRecords) -> Flags:
    """Records of files that hold next to nothing, where there are many for each rank."""
    some = (found.moved > 0) & (found.moved < TINY) & ~found.shared
    return some if some.sum() >= 10 * found.ranks else np.zeros(len(found), np.bool_)


def _small(at: Counted) -> Iterator[Candidate]:
    """The fixed cost of each request, against rates that storage targets have."""
    found = at.records
    busy = found["read_time"] + found["write_time"]
    with np.errstate(divide="ignore", invalid="ignore"):
        size = found.moved / found.requests
    some = (found.requests > 1) & (size < BLOCK) & (found["syncs"] <= 1)
    if not some.any() or found.requests[some].sum() < 100:
        return
    mean = float(found.moved[some].sum() / found.requests[some].sum())
    targets = {name for names in found.targets for name in names}
    users = len(np.unique(found.rank[some]))
    queue = max(1.0, users / len(targets)) if targets else 1.0
    each = float(busy[some].sum() / found.requests[some].sum()) / queue
    own = float(found.by_rank(np.where(some, busy, 0.0)).max())
    rest = max(0.0, at.held - own)
    fixed = [float(np.clip(1 - mean / rate / max(each, 1e-12), 0, 1)) * (1 - mean / BLOCK)
             for rate in (USUAL, FAST, SLOW)]  # fmt: skip
    record = int(np.argmax(np.where(some, found.requests, 0)))
    yield at.candidate(
        "small-requests", {"bytes_per_request": round(mean), "file": found.path(record)},
        (rest + own * (1 - fixed[0]), rest + own * (1 - fixed[1]), rest + own * (1 - fixed[2])),
        some, requests=float(found.requests[some].sum()), bytes_per_request=mean,
    )  # fmt: skip
