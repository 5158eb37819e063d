"""Which storage targets each call touches, from the layout of its file."""

from __future__ import annotations

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import SYNC, Calls, Flags, Ints
from ioprism.records import dataclass

MOST_PIECES = 8_000_000  # rows; calls beyond that are left out of what is told of targets


@dataclass(frozen=True, slots=True, eq=False)
class TargetPieces:
    """One row for every call and target that it touches."""

    call: Ints
    target: Ints  # place in `targets`
    targets: tuple[int | str, ...]  # names of the targets
    group: Ints  # of each call: the set of targets it touches; -1 where unknown
    first: Ints  # of each call: place of the target that holds its first byte; -1 unknown

    @property
    def known(self) -> Flags:
        """For which calls the targets are known."""
        return self.group >= 0


def target_pieces(calls: Calls, files: pl.DataFrame) -> TargetPieces:
    """Lay calls over the targets of their files."""
    striped = (
        files.with_row_index("place")
        .filter((pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0))
        .select("place", "stripe_size", "targets")
    )
    nowhere = np.full(len(calls), -1, np.int64)
    if not striped.height or not len(calls):
        none = np.empty(0, np.int64)
        return TargetPieces(none, none, (), nowhere, nowhere)
    flat = striped["targets"].explode().to_numpy()
    names, places = np.unique(flat, return_inverse=True)
    counts_by_row = striped["targets"].list.len().cast(pl.Int64).to_numpy()
    begins = np.concatenate(([0], np.cumsum(counts_by_row)[:-1]))
    row_of = np.full(int(max(files.height, calls.file.max() + 1)), -1, np.int64)
    row_of[striped["place"].cast(pl.Int64).to_numpy()] = np.arange(striped.height)
    row = np.where(calls.file >= 0, row_of[np.maximum(calls.file, 0)], -1)
    moves = calls.moves_data & (calls.bytes > 0) & (calls.offset >= 0)
    chosen = np.flatnonzero((row >= 0) & (moves | (calls.kind == SYNC)))
    row = row[chosen]
    size = striped["stripe_size"].to_numpy()[row]
    count = counts_by_row[row]
    whole = calls.kind[chosen] == SYNC  # a sync concerns all targets of its file
    low = np.where(whole, 0, calls.offset[chosen]) // size
    spans = (calls.offset[chosen] + calls.bytes[chosen] - 1) // size - low + 1
    turns = np.where(whole, count, np.minimum(spans, count))
    within = np.cumsum(turns) <= MOST_PIECES
    chosen, row, low, turns, count = (x[within] for x in (chosen, row, low, turns, count))
    step = np.arange(int(turns.sum())) - np.repeat(np.cumsum(turns) - turns, turns)
    place = np.repeat(begins[row], turns) + (np.repeat(low, turns) + step) % np.repeat(count, turns)
    group, first = nowhere.copy(), nowhere.copy()
    # Calls touch the same set of targets where file layout, first target and number are the same.
    first_place = places[begins[row] + low % count]
    layout = _layouts(striped)[row]
    keys = (layout * (len(names) + 1) + first_place) * (int(turns.max(initial=1)) + 1) + turns
    group[chosen] = np.unique(keys, return_inverse=True)[1]
    first[chosen] = first_place
    return TargetPieces(
        np.repeat(chosen, turns), places[place], tuple(names.tolist()), group, first
    )


def _layouts(striped: pl.DataFrame) -> Ints:
    """A number for each distinct list of targets."""
    texts = striped["targets"].list.eval(pl.element().cast(pl.String)).list.join(",")
    return texts.rank("dense").cast(pl.Int64).to_numpy()
