"""Whether a module's records can be true: damage that no checksum shows.

Darshan counts every read and write twice: once as such, once in a histogram of sizes. Where
the two disagree, or a count is negative, the record was damaged.
"""

from __future__ import annotations

import polars as pl

from ioprism.formats.darshan.meaning import MODULES
from ioprism.model.sizes import LARGEST_PLAUSIBLE, SIZE_BINS


def contradictions(table: pl.DataFrame, module: str) -> int:
    """Count the records that contradict themselves or hold impossible numbers."""
    counts = [
        name
        for name in table.columns
        if name.endswith(("_READS", "_WRITES", "OPENS", "_BYTES_READ", "_BYTES_WRITTEN"))
    ]
    wrong = [
        pl.col(name).is_between(-1, LARGEST_PLAUSIBLE).not_().fill_null(False) for name in counts
    ]
    meaning = MODULES.get(module)
    if meaning is not None and meaning.sizes_add_up:
        for direction, calls in meaning.calls.items():
            bins = (meaning.size_counter(direction, size.counter) for size in SIZE_BINS)
            counted = pl.sum_horizontal(meaning.named(name) for name in calls)
            wrong.append(pl.sum_horizontal(bins) != counted)
    return int(table.select(pl.any_horizontal(wrong).sum()).item()) if wrong else 0
