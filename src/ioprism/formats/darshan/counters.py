"""Fixed-size records of a module become one typed table."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.darshan.log import ByteOrder, Log, Region, pieces
from ioprism.formats.darshan.meaning import MODULES
from ioprism.formats.darshan.records import FIXED, PADDING, PLAIN_COUNTS, WITHOUT_FILES, Layout
from ioprism.model.sizes import LARGEST_PLAUSIBLE, SIZE_BINS
from ioprism.model.trace import Warn
from ioprism.units import format_counted

Words = npt.NDArray[np.uint64]
TIMES = pl.col(pl.Float64)
BROKEN = pl.any_horizontal(TIMES.is_finite().not_()).sum()
TABLE_BYTES = 4 * 2**30  # a table beyond this is damage, or needs another machine


@dataclass(frozen=True, slots=True)
class FileCodes:
    """Turns Darshan's record identifiers into rows of the file table."""

    sorted_ids: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, ids: npt.NDArray[np.uint64]) -> FileCodes:
        """Number identifiers by their position."""
        order = np.argsort(ids, kind="stable")
        return cls(ids[order], order.astype(np.uint32))

    def series(self, name: str, ids: npt.NDArray[np.uint64]) -> pl.Series:
        """Return the rows of identifiers, null where an identifier has no name."""
        if not len(self.sorted_ids):
            return pl.Series(name, [None] * len(ids), dtype=pl.UInt32)
        place = np.searchsorted(self.sorted_ids, ids).clip(max=len(self.sorted_ids) - 1)
        known = pl.Series(self.sorted_ids[place] == ids)
        rows = pl.Series(name, self.rows[place])
        return rows if known.all() else rows.zip_with(known, pl.Series([None], dtype=pl.UInt32))


def read_counters(
    log: Log, region: Region, codes: FileCodes, *, ranks: int, warn: Warn
) -> pl.DataFrame:
    """Read a module's records into a table with the columns of its newest version.

    Columns that this version lacks are null. Records that name an impossible rank are
    dropped with a warning.
    """
    versions = FIXED[region.name]
    newest = versions[max(versions)]
    layout = versions.get(region.version)
    if layout is None:
        warn(
            f"{log.path.name}: {region.name} records have the unknown version {region.version} "
            "and are not read"
        )
        return _table(np.empty((0, newest.words), np.uint64), newest, codes, log.byte_order)
    tables = []
    dropped = 0
    for block in record_blocks(log, region, layout.words, warn):
        plausible = _plausible(block, ranks)
        dropped += len(block) - int(plausible.sum())
        sound = block if plausible.all() else block[plausible]
        tables.append(_table(sound, layout, codes, log.byte_order))
    if dropped:
        damaged = format_counted(dropped, f"damaged {region.name} record")
        warn(f"{log.path.name}: {damaged} left out")
    if not tables:
        nothing = np.empty((0, layout.words), np.uint64)
        tables = [_table(nothing, layout, codes, log.byte_order)]
    table = pl.concat(tables) if len(tables) > 1 else tables[0]
    table = _finite(_modernise(table, region.name, newest), log, region, warn)
    if wrong := contradictions(table, region.name):
        warn(
            f"{log.path.name}: {format_counted(wrong, f'inconsistent {region.name} record')}; "
            "numbers derived from damaged records may be wrong"
        )
    nameless = 0 if region.name == WITHOUT_FILES else table["file"].null_count()
    if nameless:
        records = format_counted(nameless, f"{region.name} record")
        warn(f"{log.path.name}: {records} of files without a name")
    return table


def record_blocks(log: Log, region: Region, words: int, warn: Warn) -> Iterator[Words]:
    """Yield whole records as rows of native 8-byte words."""
    size = words * 8
    rest = b""
    total = 0
    for piece in pieces(log, region, warn):
        data = rest + piece if rest else piece
        whole = len(data) - len(data) % size
        rest = data[whole:]
        total += whole
        if total > TABLE_BYTES:
            warn(
                f"{log.path.name}: there are implausibly many {region.name} records; "
                "only part of them is read"
            )
            return
        if whole:
            raw = np.frombuffer(data, dtype=f"{log.byte_order}u8", count=whole // 8)
            yield raw.astype(np.uint64, copy=False).reshape(-1, words)
    if rest:
        warn(f"{log.path.name}: the last {region.name} record is cut off")


def _plausible(block: Words, ranks: int) -> npt.NDArray[np.bool_]:
    rank = block[:, 1].astype(np.int64)
    return (rank >= -1) & (rank < ranks)


def _table(block: Words, layout: Layout, codes: FileCodes, byte_order: ByteOrder) -> pl.DataFrame:
    keys = [codes.series("file", block[:, 0]), pl.Series("rank", block[:, 1].astype(np.int32))]
    if layout.has_parent:
        keys.append(codes.series("parent", block[:, 2]))
    times = len(keys) + len(layout.counters)
    tail = times + len(layout.times)
    parts = [
        pl.DataFrame(keys),
        _named(block[:, len(keys) : times].view(np.int64), layout.counters),
        _named(block[:, times:tail].view(np.float64), layout.times),
        pl.DataFrame(_tail(block[:, tail:].T, layout, byte_order)),
    ]
    return pl.concat([part for part in parts if part.width], how="horizontal")


def _named(values: npt.NDArray[np.generic], names: Sequence[str]) -> pl.DataFrame:
    """Name the columns all at once: one by one, that takes longer than reading a small log."""
    if not names:
        return pl.DataFrame()
    table = pl.Series(np.ascontiguousarray(values)).arr.to_struct(names).struct.unnest()
    return table.drop(PADDING) if PADDING in names else table


def _tail(columns: Words, layout: Layout, byte_order: ByteOrder) -> Iterator[pl.Series]:
    position = 0
    for name in layout.tail:
        if name.endswith("_UUID"):
            # These are bytes, not numbers: undo what the byte order did to them.
            pairs = columns[position : position + 2].T.astype(f"{byte_order}u8").tobytes()
            texts = [str(uuid.UUID(bytes=pairs[i : i + 16])) for i in range(0, len(pairs), 16)]
            yield pl.Series(name, texts, dtype=pl.String)
            position += 2
        else:
            yield pl.Series(name, columns[position])
            position += 1


def _modernise(table: pl.DataFrame, module: str, newest: Layout) -> pl.DataFrame:
    """Give an older version's table the newest columns; counters it alone has stay behind."""
    if module == "PNETCDF_FILE" and "PNETCDF_FILE_INDEP_OPENS" in table.columns:
        opens = pl.col("PNETCDF_FILE_INDEP_OPENS") + pl.col("PNETCDF_FILE_COLL_OPENS")
        table = table.with_columns(opens.alias("PNETCDF_FILE_OPENS"))
    parent = {"parent": pl.UInt32} if newest.has_parent else {}
    counters, times = (
        dict.fromkeys(newest.counters, pl.Int64),
        dict.fromkeys(newest.times, pl.Float64),
    )
    wanted = {**parent, **counters, **times}
    ordered, present = ["file", "rank", *wanted], table.columns
    if present[: len(ordered)] == ordered:
        return table
    missing = [
        pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in wanted.items()
        if name not in present
    ]
    return table.with_columns(missing).select(
        *ordered, *(name for name in present if name not in ordered)
    )


def _finite(table: pl.DataFrame, log: Log, region: Region, warn: Warn) -> pl.DataFrame:
    broken = table.select(BROKEN).item()
    if not broken:
        return table
    records = format_counted(broken, f"{region.name} record")
    warn(f"{log.path.name}: {records} with times that are not numbers")
    return table.with_columns(pl.when(TIMES.is_finite()).then(TIMES).name.keep())


def contradictions(table: pl.DataFrame, module: str) -> int:
    """Count the records that contradict themselves or hold impossible numbers."""
    wrong = _wrong(tuple(table.columns), module)
    return 0 if wrong is None else int(table.select(wrong).item())


@lru_cache(maxsize=32)  # thousands of small logs have the same modules
def _wrong(columns: tuple[str, ...], module: str) -> pl.Expr | None:
    counts = [name for name in columns if name.endswith(PLAIN_COUNTS)]
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
