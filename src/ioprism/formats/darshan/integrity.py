"""Whether a module's records can be true: damage that no checksum shows.

Darshan counts every read and write twice: once as such, once in a histogram of sizes. Where
the two disagree, or a count is negative, the record was damaged.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from ioprism.formats.darshan.meaning import MODULES
from ioprism.model.sizes import LARGEST_PLAUSIBLE, SIZE_BINS


def contradictions(table: pl.DataFrame, module: str) -> int:
    """Count the records that contradict themselves or hold impossible numbers."""
    wrong = _wrong(tuple(table.columns), module)
    return 0 if wrong is None else int(table.select(wrong).item())


@lru_cache(maxsize=32)  # thousands of small logs have the same modules
def _wrong(columns: tuple[str, ...], module: str) -> pl.Expr | None:
    counts = [
        name
        for name in columns
        if name.endswith(("_READS", "_WRITES", "OPENS", "_BYTES_READ", "_BYTES_WRITTEN"))
    ]
    if not counts:
        return None
    wrong = [pl.col(counts).is_between(-1, LARGEST_PLAUSIBLE).not_().fill_null(False)]
    meaning = MODULES.get(module)
    if meaning is not None and meaning.sizes_add_up:
        for direction, calls in meaning.calls.items():
            bins = (meaning.size_counter(direction, size.counter) for size in SIZE_BINS)
            counted = pl.sum_horizontal(meaning.named(name) for name in calls)
            wrong.append(pl.sum_horizontal(bins) != counted)
    return pl.any_horizontal(wrong).sum()
