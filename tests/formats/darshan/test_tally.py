"""Events are counted as Darshan would have counted the calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.synthetic.darshan_reduce import reduce_shared
from benchmarks.synthetic.darshan_tally import PREFIXES, tally
from ioprism import EVENTS, read
from ioprism.formats.darshan.meaning import FIXED
from ioprism.model.schema import Operation
from ioprism.model.trace import SIZE_BINS

MODULES = {"posix": "POSIX", "mpiio": "MPI-IO", "stdio": "STDIO"}
ALIGNMENT = 4096


def events(layer: str, *, rows: int = 600, seed: int = 5) -> pl.DataFrame:
    """Calls of three ranks to two files, one after the other, in random order of kinds."""
    rng = np.random.default_rng(seed)
    kinds = ["read", "write", "open", "close", "sync", "seek", "stat"]
    operation = rng.choice(kinds, rows, p=[0.35, 0.35, 0.06, 0.06, 0.06, 0.06, 0.06])
    data = np.isin(operation, ["read", "write"])
    start = np.sort(rng.random(rows)) * 100 + 0.1
    sizes = rng.choice([0, 1, 100, 101, 1024, 4096, 65536, 2**20, 2**20 + 1, 2**30 + 1], rows)
    table = pl.DataFrame(
        {
            "start": start,
            "end": start + rng.random(rows) * 1e-4,
            "rank": rng.integers(0, 3, rows),
            "process": 0,
            "file": rng.integers(0, 2, rows),
            "operation": operation,
            "collective": rng.random(rows) < 0.5,
            "offset": np.where(rng.random(rows) < 0.6, np.arange(rows) * 4096, 512),
            "bytes": sizes,
        }
    )
    empty = [
        pl.when(pl.Series(data)).then(pl.col(name)).alias(name) for name in ("offset", "bytes")
    ]
    return EVENTS.conform(table.with_columns(*empty, layer=pl.lit(layer)))


def size_bin(size: int) -> str:
    pairs = ((size.counter, size.high) for size in SIZE_BINS)
    return next(name for name, largest in pairs if largest is None or size <= largest)


class Record:
    """One file and rank, counted call by call."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.sizes: Counter[int] = Counter()
        self.strides: Counter[int] = Counter()
        self.times = {"read": 0.0, "write": 0.0, "meta": 0.0}
        self.last_byte = {"read": 0, "write": 0}
        self.last_kind: str | None = None

    def add(self, call: dict[str, object]) -> None:
        kind = str(call["operation"])
        timer = "write" if kind == "sync" else kind if kind in self.last_byte else "meta"
        self.times[timer] += float(call["end"]) - float(call["start"])  # type: ignore[arg-type]
        self.counts[kind] += 1
        if kind == "open":
            self.last_byte = {"read": 0, "write": 0}
        if kind in self.last_byte:
            self._add_data(kind, int(call["offset"]), int(call["bytes"]))  # type: ignore[call-overload]

    def _add_data(self, kind: str, offset: int, size: int) -> None:
        name, last = kind.upper(), self.last_byte[kind]
        self.counts[f"SEQ_{name}S"] += offset > last
        self.counts[f"CONSEC_{name}S"] += offset == last + 1
        self.counts["FILE_NOT_ALIGNED"] += offset % ALIGNMENT != 0
        self.counts[f"SIZE_{name}_{size_bin(size)}"] += 1
        self.counts["RW_SWITCHES"] += self.last_kind not in (None, kind)
        self.counts[f"bytes {kind}"] += size
        highest = f"MAX_BYTE_{'READ' if kind == 'read' else 'WRITTEN'}"
        self.counts[highest] = max(self.counts[highest], offset + size - 1)
        self.sizes[size] += 1
        self.strides[offset - last - 1 if offset > last and last != 0 else 0] += 1
        self.last_kind, self.last_byte[kind] = kind, offset + size - 1


def counted_one_by_one(table: pl.DataFrame) -> dict[tuple[int, int], Record]:
    found: dict[tuple[int, int], Record] = defaultdict(Record)
    for call in table.iter_rows(named=True):
        found[call["file"], call["rank"]].add(call)
    return found


def top_four(values: Counter[int]) -> list[tuple[int, int]]:
    ranked = sorted(((n, value) for value, n in values.items() if value), reverse=True)
    return [(value, n) for n, value in ranked[:4]]


def kept(row: dict[str, int], name: str) -> list[tuple[int, int]]:
    pairs = [
        (row[f"{name}{i}_{name.split('_')[-1]}"], row[f"{name}{i}_COUNT"]) for i in range(1, 5)
    ]
    return [pair for pair in pairs if pair[1]]


@pytest.mark.parametrize("seed", range(4))
def test_posix_calls_are_counted_like_one_by_one(seed: int) -> None:
    table = events("posix", seed=seed)
    expected = counted_one_by_one(table)

    found = tally(table, layer="posix", file_alignment=ALIGNMENT)

    assert found.height == len(expected) == 6
    for row in found.to_dicts():
        one = expected[row["file"], row["rank"]]
        for kind in ("open", "read", "write", "seek", "stat"):
            assert row[f"POSIX_{kind.upper()}S"] == one.counts[kind]
        assert row["POSIX_FSYNCS"] == one.counts["sync"]
        assert row["POSIX_BYTES_READ"] == one.counts["bytes read"]
        assert row["POSIX_BYTES_WRITTEN"] == one.counts["bytes write"]
        same = [f"{what}_{kind}S" for what in ("SEQ", "CONSEC") for kind in ("READ", "WRITE")]
        same += [
            f"SIZE_{kind}_{size}"
            for kind in ("READ", "WRITE")
            for size in (b.counter for b in SIZE_BINS)
        ]
        same += ["FILE_NOT_ALIGNED", "RW_SWITCHES", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN"]
        assert {name: row[f"POSIX_{name}"] for name in same} == {n: one.counts[n] for n in same}
        for timer, seconds in one.times.items():
            assert row[f"POSIX_F_{timer.upper()}_TIME"] == pytest.approx(seconds)
        assert kept(row, "POSIX_ACCESS") == top_four(one.sizes)
        assert kept(row, "POSIX_STRIDE") == top_four(one.strides)


def test_slowest_calls_and_first_and_last_moments_are_kept() -> None:
    table = events("posix")

    found = tally(table, layer="posix", file_alignment=ALIGNMENT).row(0, named=True)

    own = table.filter(file=found["file"], rank=found["rank"])
    for kind in ("read", "write"):
        calls = own.filter(operation=kind)
        slowest = calls.row(int((calls["end"] - calls["start"]).arg_max() or 0), named=True)
        name = kind.upper()
        assert found[f"POSIX_F_MAX_{name}_TIME"] == slowest["end"] - slowest["start"]
        assert found[f"POSIX_MAX_{name}_TIME_SIZE"] == slowest["bytes"]
        assert found[f"POSIX_F_{name}_START_TIMESTAMP"] == calls["start"].min()
        assert found[f"POSIX_F_{name}_END_TIMESTAMP"] == calls["end"].max()


def test_mpiio_tells_collective_from_independent_calls() -> None:
    table = events("mpiio")

    found = tally(table, layer="mpiio", file_alignment=ALIGNMENT)

    for kind, name in (("read", "READS"), ("write", "WRITES"), ("open", "OPENS")):
        for together, prefix in ((True, "COLL"), (False, "INDEP")):
            calls = table.filter(operation=kind, collective=together).height
            assert found[f"MPIIO_{prefix}_{name}"].sum() == calls
    assert found["MPIIO_SYNCS"].sum() == table.filter(operation="sync").height


def test_stdio_counts_fflush_as_flush_and_into_the_write_time() -> None:
    made = events("stdio")
    flush = pl.col("operation") == "sync"
    table = made.with_columns(
        operation=pl.when(flush).then(pl.lit("metadata", Operation)).otherwise("operation"),
        function=pl.when(flush).then(pl.lit("fflush")).otherwise("function").cast(pl.Categorical),
    )

    found = tally(table, layer="stdio", file_alignment=ALIGNMENT)

    writing = made.filter(pl.col("operation").is_in(["write", "sync"]))
    seconds = (writing["end"] - writing["start"]).sum()
    assert found["STDIO_FLUSHES"].sum() == made.filter(operation="sync").height
    assert found["STDIO_F_WRITE_TIME"].sum() == pytest.approx(seconds)


def test_time_is_counted_once_where_threads_overlap() -> None:
    calls = pl.DataFrame({"start": [1.0, 1.5, 4.0], "end": [2.0, 3.0, 5.0]})
    table = calls.with_columns(rank=0, process=0, file=0, offset=0, bytes=8,
                               layer=pl.lit("posix"), operation=pl.lit("read"))  # fmt: skip

    found = tally(EVENTS.conform(table), layer="posix", file_alignment=ALIGNMENT)

    assert found["POSIX_F_READ_TIME"].item() == pytest.approx(3.0)


@pytest.mark.parametrize("layer", PREFIXES)
def test_every_column_is_a_counter_of_the_newest_record(layer: str) -> None:
    found = tally(events(layer), layer=layer, file_alignment=ALIGNMENT)

    versions = FIXED[MODULES[layer]]
    layout = versions[max(versions)]
    assert set(found.columns) <= {"file", "rank", *layout.counters, *layout.times}


@pytest.mark.parametrize("layer", PREFIXES)
def test_no_events_make_no_records(layer: str) -> None:
    found = tally(EVENTS.empty(), layer=layer, file_alignment=ALIGNMENT)

    assert found.is_empty()


# What DXT does not record, and what follows from it.
BEYOND_DXT = ("OPEN", "CLOSE", "META", "SEEK", "SYNC", "STAT", "MODE", "MMAPS", "MEM_", "FILE_",
              "COLL_", "INDEP_", "RANK", "F_WRITE_TIME", "HINTS", "VIEWS")  # fmt: skip


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    ["a_ckpt_fpp_period5s", "c_rank0_all_io", "e_mpiio_collective", "e_mpiio_independent",
     "g_straggler_rank2", "h_ior_easy_fpp_posix", "k_nonmpi_python_stdio_posix"],
)  # fmt: skip
def test_real_logs_have_the_counters_that_follow_from_their_traced_calls(
    shared_data: Path, name: str
) -> None:
    trace = read(shared_data / "darshan" / "made" / f"{name}.darshan")
    for layer in ("posix", "mpiio"):
        if MODULES[layer] not in trace.counters:
            continue
        real = trace.counters[MODULES[layer]]
        counted = tally(trace.events(), layer=layer, file_alignment=ALIGNMENT)
        ranks = trace.job.ranks or 1
        found = reduce_shared(counted, prefix=PREFIXES[layer], ranks=ranks)
        both = found.join(real, on=["file", "rank"], suffix=" real")

        assert both.height == found.height > 0
        for column in set(found.columns) - {"file", "rank"}:
            if not any(part in column for part in BEYOND_DXT):
                assert both[column].to_list() == pytest.approx(both[f"{column} real"].to_list())
