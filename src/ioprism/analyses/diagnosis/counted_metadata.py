"""Metadata and sync seconds that Darshan only counts, placed in time as far as records tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import METADATA, UNKNOWN, WRITE, Calls, Floats, Ints
from ioprism.analyses.diagnosis.counters.records import believable_metadata
from ioprism.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CountedTimes:
    """Opens and closes whose moments are known, and the seconds of the others by rank."""

    exact: Calls
    metadata: Floats  # seconds by rank, without those of `exact`
    sync: Floats
    syncs: Floats  # number of sync calls by rank
    opens: Floats  # number of opens by rank


def counted_times(
    counters: Mapping[str, pl.DataFrame],
    ranks: int,
    numbers: Ints,
    calls: Calls,
    *,
    share: float,
    runtime: float | None,
) -> CountedTimes:
    """Return what the POSIX counters tell beyond the traced calls.

    A file that is opened once has the exact moments of its open and close. Where calls of a
    trace include metadata calls, counters add nothing. `share` is the part of the job's I/O that
    the calls stand for.
    """
    nothing = np.zeros(len(numbers))
    if "POSIX" not in counters or (calls.kind == METADATA).any():
        return CountedTimes(_no_calls(), nothing, nothing, nothing, nothing)
    table = counters["POSIX"].filter(pl.col("file").is_not_null())
    meta = table["POSIX_F_META_TIME"].fill_null(0).to_numpy()
    if not believable_metadata(table["rank"].to_list(), meta.tolist(), runtime):
        return CountedTimes(_no_calls(), nothing, nothing, nothing, nothing)
    places = {int(number): place for place, number in enumerate(numbers)}
    own = table.filter(pl.col("rank").is_in(list(places)))
    shared = table.filter(pl.col("rank") < 0)
    exact, rest = _exact(own, places)
    if share < 1:
        placed = np.bincount(exact.rank, exact.duration, minlength=len(numbers))
        exact, rest = _no_calls(), (np.arange(len(numbers)), np.asarray(placed, np.float64))
    metadata = nothing.copy()
    np.add.at(metadata, rest[0], rest[1])
    everyone = max(ranks, len(numbers))
    metadata += float(shared["POSIX_F_META_TIME"].sum()) / everyone
    sync = _sync(own, shared, places, calls, everyone, share)
    rows = [places[int(number)] for number in own["rank"].to_list()]
    syncs = np.full(len(numbers), _syncs(shared) / everyone)
    np.add.at(syncs, rows, _each_syncs(own))
    opens = np.full(len(numbers), float(shared["POSIX_OPENS"].sum()) / everyone)
    np.add.at(opens, rows, own["POSIX_OPENS"].to_numpy())
    return CountedTimes(exact, metadata * share, sync, syncs * share, opens * share)


def _exact(own: pl.DataFrame, places: dict[int, int]) -> tuple[Calls, tuple[Ints, Floats]]:
    """Opens and closes of files opened once; and rank and other metadata seconds of records."""
    begin, finish = "POSIX_F_OPEN_START_TIMESTAMP", "POSIX_F_OPEN_END_TIMESTAMP"
    closing, closed = "POSIX_F_CLOSE_START_TIMESTAMP", "POSIX_F_CLOSE_END_TIMESTAMP"
    rank = np.array([places[int(number)] for number in own["rank"].to_list()], np.int64)
    meta = own["POSIX_F_META_TIME"].to_numpy()
    opened, ready, shut, gone = (own[name].to_numpy() for name in (begin, finish, closing, closed))
    once = (own["POSIX_OPENS"].to_numpy() == 1) & (ready >= opened) & (opened > 0)
    # Time in stat calls and the like has no moment of its own: it lies behind the open, where
    # the next call of the file leaves room, and then before the close.
    writes, reads = (own[f"POSIX_F_{k}_START_TIMESTAMP"].to_numpy() for k in ("WRITE", "READ"))
    follows = np.minimum.reduce([np.where(t > 0, t, np.inf) for t in (writes, reads, shut)])
    rest = np.maximum(0.0, meta - (ready - opened) - np.maximum(0.0, gone - shut))
    until = np.where(once, np.minimum(ready + rest, np.maximum(ready, follows)), 0.0)
    done = np.maximum.reduce(
        [own[f"POSIX_F_{k}_END_TIMESTAMP"].to_numpy() for k in ("WRITE", "READ")]
    )
    shut = np.maximum(np.maximum(until, done), shut - (rest - (until - ready)))
    closes = once & (gone > shut)
    file = own["file"].cast(pl.Int64).to_numpy()
    exact = _metadata_calls(
        np.concatenate((opened[once], shut[closes])),
        np.concatenate((until[once], gone[closes])),
        np.concatenate((rank[once], rank[closes])),
        np.concatenate((file[once], file[closes])),
    )
    placed = np.where(once, until - opened, 0.0) + np.where(closes, gone - shut, 0.0)
    return exact, (rank, np.maximum(0.0, meta - placed))


def _sync(
    own: pl.DataFrame,
    shared: pl.DataFrame,
    places: dict[int, int],
    calls: Calls,
    everyone: int,
    share: float,
) -> Floats:
    """Seconds in sync calls: Darshan adds them to the write time, extended tracing does not."""
    traced = np.bincount(
        calls.rank[calls.kind == WRITE], calls.duration[calls.kind == WRITE],
        minlength=len(places),
    )  # fmt: skip
    if not _syncs(own) and not _syncs(shared):
        return np.zeros(len(places))
    counted = np.full(len(places), float(shared["POSIX_F_WRITE_TIME"].sum()) / everyone)
    rank = [places[int(number)] for number in own["rank"].to_list()]
    np.add.at(counted, rank, own["POSIX_F_WRITE_TIME"].to_numpy())
    return np.maximum(0.0, counted * share - traced)


def _each_syncs(table: pl.DataFrame) -> Floats:
    return (table["POSIX_FSYNCS"] + table["POSIX_FDSYNCS"]).cast(pl.Float64).to_numpy()


def _syncs(table: pl.DataFrame) -> float:
    return float(_each_syncs(table).sum())


def _metadata_calls(start: Floats, end: Floats, rank: Ints, file: Ints) -> Calls:
    count = len(start)
    return Calls(start, end, rank, file, np.full(count, METADATA), np.full(count, UNKNOWN),
                 np.zeros(count, np.int64), np.ones(count, np.bool_))  # fmt: skip


def _no_calls() -> Calls:
    empty = np.empty(0)
    whole = np.empty(0, np.int64)
    return _metadata_calls(empty, empty, whole, whole)
