"""Count events the way Darshan counts calls: one record per file and rank."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ioprism.model.trace import SIZE_BINS

KEYS = ("file", "rank")
MEMORY_ALIGNMENT = 8
FILE_MODE = 0o644
VALUES_KEPT = 4  # most common sizes and strides
DIRECTIONS = ("read", "write")
PREFIXES = {"posix": "POSIX", "mpiio": "MPIIO", "stdio": "STDIO"}

Timer = pl.Enum(["read", "write", "meta"])

_FLUSHES = (pl.col("function") == "fflush").fill_null(value=False)
_DURATION = pl.col("end") - pl.col("start")
_IS_DATA = (pl.col("operation") == "read") | (pl.col("operation") == "write")
_LAST_BYTE = pl.col("offset") + pl.col("bytes") - 1


def tally(events: pl.DataFrame, *, layer: str, file_alignment: int) -> pl.DataFrame:
    """Count one layer's events; events without a file count nowhere.

    Returns:
        One row per file and rank, sorted, with the counters of the layer's module that
        events tell of. Where ranks are slow or fast is left to `reduce`.
    """
    calls = _in_order(events.filter((pl.col("layer") == layer) & pl.col("file").is_not_null()))
    prefix = PREFIXES[layer]
    counters = [*_COUNTERS[layer](file_alignment), *_moments(), *_times()]
    table = calls.group_by(KEYS).agg(counters).with_columns(*_constants(layer, file_alignment))
    if layer != "stdio":
        for direction in DIRECTIONS:
            table = table.join(_slowest_call(calls, direction), on=KEYS, how="left")
        accesses = calls.filter(_IS_DATA).select(*KEYS, value="bytes")
        table = table.join(most_common(accesses, "ACCESS"), on=KEYS, how="left")
    if layer == "posix":
        strides = calls.filter(_IS_DATA).select(*KEYS, value="stride")
        table = table.join(most_common(strides, "STRIDE"), on=KEYS, how="left")
    renamed = {name: f"{prefix}_{name}" for name in table.columns if name not in KEYS}
    return table.rename(renamed).sort(KEYS).with_columns(pl.exclude(KEYS).fill_null(0))


def most_common(values: pl.DataFrame, name: str) -> pl.DataFrame:
    """The most frequent values of each record: `{name}1_{name}`, `{name}1_COUNT` and on.

    Takes one row per value, with a `count` if it stands for several. Zero is no value, as
    Darshan has it.
    """
    weight = pl.col("count").sum() if "count" in values.columns else pl.len()
    place = pl.int_range(1, pl.len() + 1).over(KEYS)
    ranked = (
        values.filter(pl.col("value") != 0)
        .group_by(*KEYS, "value")
        .agg(count=weight.cast(pl.Int64))
        .sort(*KEYS, "count", "value", descending=[False, False, True, True])
        .with_columns(place=place)
        .filter(pl.col("place") <= VALUES_KEPT)
    )
    columns = [
        _where(pl.col("place") == i, what).max().fill_null(0).alias(f"{name}{i}_{label}")
        for what, label in (("value", name), ("count", "COUNT"))
        for i in range(1, VALUES_KEPT + 1)
    ]
    return ranked.group_by(KEYS).agg(columns)


def _in_order(calls: pl.DataFrame) -> pl.DataFrame:
    """Sort each record's calls by their ends and tell each what came before it."""
    # Darshan forgets where the last access ended when the file is opened again.
    episode = (pl.col("operation") == "open").cum_sum().over(KEYS).alias("episode")
    timer = (
        pl.when(_calls("read"))
        .then(pl.lit("read", Timer))
        .when(_calls("write") | _calls("sync") | _FLUSHES)
        .then(pl.lit("write", Timer))
        .otherwise(pl.lit("meta", Timer))
    )
    same_kind = (*KEYS, "operation", "episode")
    # Darshan counts a call when it returns.
    calls = calls.sort(*KEYS, "end", "start", maintain_order=True)
    calls = calls.with_columns(episode, timer=timer, duration=_DURATION)
    calls = calls.with_columns(
        previous_byte=_LAST_BYTE.shift(1).over(same_kind).fill_null(0),
        # Time is counted once where a rank's threads overlap.
        busy_until=pl.col("end").cum_max().shift(1).over(*KEYS, "timer"),
        turned=_turned(),
    )
    return calls.with_columns(
        stride=_stride(),
        gain=(pl.col("end") - pl.max_horizontal("start", "busy_until")).clip(lower_bound=0.0),
    )


def _turned() -> pl.Expr:
    """Whether the last data access of the record went the other way."""
    code = pl.when(_IS_DATA).then(pl.col("operation").to_physical().cast(pl.Int8))
    before = code.forward_fill().shift(1).over(KEYS)
    return (code != before).fill_null(value=False)


def _stride() -> pl.Expr:
    offset, previous = pl.col("offset"), pl.col("previous_byte")
    onwards = (offset > previous) & (previous != 0)
    return pl.when(onwards).then(offset - previous - 1).otherwise(0)


def _calls(operation: str) -> pl.Expr:
    return pl.col("operation") == operation


def _where(condition: pl.Expr, value: str | pl.Expr) -> pl.Expr:
    """The values that meet a condition; the others are null, so that aggregations skip them."""
    chosen = pl.col(value) if isinstance(value, str) else value
    return pl.when(condition).then(chosen)


def _count(name: str, condition: pl.Expr) -> pl.Expr:
    return condition.sum().cast(pl.Int64).alias(name)


def _bytes(*, highest: bool) -> Iterator[pl.Expr]:
    for direction, name in (("read", "READ"), ("write", "WRITTEN")):
        calls = _calls(direction)
        yield _where(calls, "bytes").sum().alias(f"BYTES_{name}")
        if highest:
            yield _where(calls, _LAST_BYTE.clip(lower_bound=0)).max().alias(f"MAX_BYTE_{name}")


def _sizes(aggregate: str) -> Iterator[pl.Expr]:
    for direction in DIRECTIONS:
        for size in SIZE_BINS:
            inside = pl.col("bytes") >= size.low
            inside = inside if size.high is None else inside & (pl.col("bytes") <= size.high)
            name = f"SIZE_{direction.upper()}_{aggregate}{size.counter}"
            yield _count(name, _calls(direction) & inside)


def _slowest_call(calls: pl.DataFrame, direction: str) -> pl.DataFrame:
    """How long the longest call of each record took, and how much the first such call moved."""
    chosen = calls.filter(_calls(direction))
    slowest = chosen.filter(pl.col("duration") == pl.col("duration").max().over(KEYS))
    name = direction.upper()
    return slowest.group_by(KEYS, maintain_order=True).agg(
        pl.col("duration").first().alias(f"F_MAX_{name}_TIME"),
        pl.col("bytes").first().alias(f"MAX_{name}_TIME_SIZE"),
    )


def _posix(file_alignment: int) -> Iterator[pl.Expr]:
    offset, previous = pl.col("offset"), pl.col("previous_byte")
    for operation in ("open", "read", "write", "seek", "stat"):
        yield _count(f"{operation.upper()}S", _calls(operation))
    only_data = _calls("sync") & (pl.col("function") == "fdatasync").fill_null(value=False)
    yield _count("FDSYNCS", only_data)
    yield _count("FSYNCS", _calls("sync") & ~only_data)
    yield from _bytes(highest=True)
    for direction in DIRECTIONS:
        calls = _calls(direction)
        yield _count(f"CONSEC_{direction.upper()}S", calls & (offset == previous + 1))
        yield _count(f"SEQ_{direction.upper()}S", calls & (offset > previous))
    yield _count("RW_SWITCHES", pl.col("turned"))
    yield _count("FILE_NOT_ALIGNED", _IS_DATA & (offset % file_alignment != 0))
    yield from _sizes("")


def _mpiio(_: int) -> Iterator[pl.Expr]:
    together = pl.col("collective").fill_null(value=False)
    pending = pl.col("nonblocking").fill_null(value=False)
    yield _count("COLL_OPENS", _calls("open") & together)
    yield _count("INDEP_OPENS", _calls("open") & ~together)
    for direction in DIRECTIONS:
        calls = _calls(direction)
        name = f"{direction.upper()}S"
        yield _count(f"COLL_{name}", calls & together & ~pending)
        yield _count(f"INDEP_{name}", calls & ~together & ~pending)
        yield _count(f"NB_{name}", calls & pending)
    yield _count("SYNCS", _calls("sync"))
    yield from _bytes(highest=False)
    yield _count("RW_SWITCHES", pl.col("turned"))
    yield from _sizes("AGG_")


def _stdio(_: int) -> Iterator[pl.Expr]:
    for operation in ("open", "read", "write", "seek"):
        yield _count(f"{operation.upper()}S", _calls(operation))
    yield _count("FLUSHES", _FLUSHES)
    yield from _bytes(highest=True)


_COUNTERS = {"posix": _posix, "mpiio": _mpiio, "stdio": _stdio}


def _constants(layer: str, file_alignment: int) -> Iterator[pl.Expr]:
    if layer != "stdio":
        yield pl.lit(FILE_MODE, pl.Int64).alias("MODE")
    if layer == "posix":
        yield pl.lit(file_alignment, pl.Int64).alias("FILE_ALIGNMENT")
        yield pl.lit(MEMORY_ALIGNMENT, pl.Int64).alias("MEM_ALIGNMENT")


def _moments() -> Iterator[pl.Expr]:
    for operation in ("open", "read", "write", "close"):
        calls = _calls(operation)
        name = f"F_{operation.upper()}"
        yield _where(calls, "start").min().alias(f"{name}_START_TIMESTAMP")
        yield _where(calls, "end").max().alias(f"{name}_END_TIMESTAMP")


def _times() -> Iterator[pl.Expr]:
    for timer in ("read", "write", "meta"):
        gain = _where(pl.col("timer") == timer, "gain")
        yield gain.sum().alias(f"F_{timer.upper()}_TIME")
