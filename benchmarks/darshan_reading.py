"""Reading Darshan logs, beside pydarshan and beside inflating the same bytes.

CPU seconds are those of the reading itself, start-up excluded; memory is the peak of the
whole process, start-up included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.peers import BENCH, OURS, SHARED, Cost, peer, row, run
from benchmarks.synthetic.darshan_records import (
    Counters,
    Dxt,
    DxtRecord,
    LogContent,
    Segments,
)
from benchmarks.synthetic.darshan_writer import write_log
from ioprism.model.trace import Job

MILLION = 1_000_000
RANKS = 1024

TIMED = """
import json, resource, sys, time
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
{setup}
began = cpu()
{work}
print(json.dumps({{"cpu": cpu() - began, "rows": int(rows)}}))
"""

OUR_SETUP = """
from pathlib import Path
import numpy.ma, polars  # polars loads the first for its first column
from ioprism.formats.darshan.reader import DarshanReader
"""
OUR_EVENTS = "rows = DarshanReader().read(Path(sys.argv[1])).events().height"
# Block by block, as views read: nothing is kept.
OUR_BATCHES = """
partitions = DarshanReader().read(Path(sys.argv[1])).partitions
rows = sum(b.collect().height for p in partitions for b in p.batches(print))
"""
OUR_COUNTERS = "rows = DarshanReader().read(Path(sys.argv[1])).counters[sys.argv[2]].height"

INFLATE_SETUP = """
from pathlib import Path
from isal import isal_zlib
from ioprism.formats.darshan.log import read_log
region = read_log(Path(sys.argv[1])).modules[sys.argv[2]]
"""
# Nothing but inflating: what comes out is counted, and thrown away or kept.
INFLATE = """
rows, kept, left, stream = 0, [], region.length, isal_zlib.decompressobj()
with open(sys.argv[1], "rb") as file:
    file.seek(region.offset)
    while left > 0:
        data = file.read(min(65536, left))
        left -= len(data)
        while data:
            piece = stream.decompress(data)
            rows += len(piece)
            {keep}
            if not stream.eof:
                break
            data, stream = stream.unused_data, isal_zlib.decompressobj()
"""

THEIR_SETUP = "import darshan, pandas\nfrom darshan.report import DarshanReport"
THEIR_FRAMES = """
report = DarshanReport(sys.argv[1], read_all=False)
report.mod_read_all_dxt_records("DXT_POSIX", dtype="pandas")
records = report.records["DXT_POSIX"]
rows = sum(len(r["read_segments"]) + len(r["write_segments"]) for r in records)
"""
THEIR_TO_DF = """
report = DarshanReport(sys.argv[1], read_all=False)
report.mod_read_all_dxt_records("DXT_POSIX")
records = report.records["DXT_POSIX"].to_df()
rows = sum(len(r["read_segments"]) + len(r["write_segments"]) for r in records)
"""
THEIR_COUNTERS = """
report = DarshanReport(sys.argv[1], read_all=False)
report.mod_read_all_records(sys.argv[2])
rows = len(report.records[sys.argv[2]].to_df()["counters"])
"""


def main() -> None:
    theirs = peer("pydarshan", "darshan==3.5.0")
    one = SHARED / "darshan/made/big/synth_dxt_1M.darshan"
    widths = (34, 12, 12, 12, 12)
    row("", "CPU s", "ratio", "peak MB", "ratio", widths=widths)
    for label, log, frames in (
        ("1 M segments", one if one.exists() else dxt_log(MILLION), (THEIR_TO_DF, THEIR_FRAMES)),
        ("10 M segments", dxt_log(10 * MILLION), (THEIR_TO_DF, THEIR_FRAMES)),
    ):
        print(label)
        ours = timed(OURS, OUR_SETUP, OUR_EVENTS, log, runs=3)
        show("  ioprism, to a DataFrame", ours, ours, widths)
        streamed = timed(OURS, OUR_SETUP, OUR_BATCHES, log, runs=3)
        show("  ioprism, block by block", streamed, ours, widths)
        for name, keep in (("thrown away", "pass"), ("kept", "kept.append(piece)")):
            code = INFLATE.format(keep=keep)
            alone = timed(OURS, INFLATE_SETUP, code, log, "DXT_POSIX", runs=3)
            show(f"  inflating alone, {name}", alone, ours, widths)
        for name, code in zip(("to_df()", 'dtype="pandas"'), frames, strict=True):
            other = timed(theirs, THEIR_SETUP, code, log)
            assert other.said["rows"] == ours.said["rows"]
            show(f"  pydarshan, {name}", other, ours, widths)
    log = counter_log(200_000)
    for module in ("POSIX", "MPI-IO", "STDIO"):
        print(f"200,000 {module} records")
        ours = timed(OURS, OUR_SETUP, OUR_COUNTERS, log, module)
        show("  ioprism, to a DataFrame", ours, ours, widths)
        other = timed(theirs, THEIR_SETUP, THEIR_COUNTERS, log, module)
        assert other.said["rows"] == ours.said["rows"]
        show("  pydarshan, to_df()", other, ours, widths)


def timed(python: Path, setup: str, work: str, *args: object, runs: int = 1) -> Cost:
    """The median of a few processes: a tenth of a second is easily disturbed."""
    costs = [run(python, TIMED.format(setup=setup, work=work), *args) for _ in range(runs)]
    return sorted(costs, key=lambda cost: float(cost.said["cpu"]))[runs // 2]


def show(label: str, cost: Cost, ours: Cost, widths: tuple[int, ...]) -> None:
    cpu = cost.said["cpu"]
    row(
        label,
        f"{cpu:.2f}",
        f"{cpu / ours.said['cpu']:.2f}x",
        f"{cost.peak / 1e6:.0f}",
        f"{cost.peak / ours.peak:.2f}x",
        widths=widths,
    )


def dxt_log(segments: int) -> Path:
    """A log of this many segments over up to 1,024 ranks, made once."""
    path = BENCH / f"dxt-{segments}.darshan"
    if path.exists():
        return path
    BENCH.mkdir(exist_ok=True)
    ranks = min(RANKS, segments // 100)
    names = {rank + 1: f"/scratch/run/out.{rank:05d}" for rank in range(ranks)}
    content = LogContent(
        Job(ranks=ranks, start_time=1.7e9, end_time=1.7e9 + 600, runtime=600.0, executable="bench"),
        names,
        (Dxt("DXT_POSIX", dxt_records(ranks, segments // ranks), 1),),
    )
    write_log(path, content)
    return path


def dxt_records(ranks: int, per_rank: int) -> Iterator[DxtRecord]:
    for rank in range(ranks):
        chance = np.random.default_rng(rank)
        half = per_rank // 2
        reads, writes = (random_segments(chance, count) for count in (half, per_rank - half))
        yield DxtRecord(rank + 1, rank, writes, reads, host=f"node{rank // 64:04d}")


def random_segments(chance: np.random.Generator, count: int) -> Segments:
    start = np.sort(chance.uniform(0, 600, count)).round(6)
    length = chance.choice([4096, 65536, 1 << 20], count).astype(np.int64)
    offset = np.cumsum(length) - length
    return Segments(offset, length, start, start + chance.exponential(1e-3, count).round(7))


def counter_log(records: int) -> Path:
    """A log with this many records of three modules, made once."""
    from ioprism.formats.darshan.meaning import FIXED

    path = BENCH / f"counters-{records}.darshan"
    if path.exists():
        return path
    BENCH.mkdir(exist_ok=True)
    chance = np.random.default_rng(1)
    ids = np.arange(1, records + 1, dtype=np.uint64)
    modules = []
    for name in ("POSIX", "MPI-IO", "STDIO"):
        version = max(FIXED[name])
        layout = FIXED[name][version]
        counters = {c: chance.integers(0, 1000, records) for c in layout.counters}
        times = {c: chance.uniform(0, 100, records) for c in layout.times}
        ranks = (np.arange(records) % RANKS).astype(np.int64)
        table = pl.DataFrame({"id": ids, "rank": ranks, **counters, **times})
        modules.append(Counters(name, table, version))
    names = {int(i): f"/scratch/run/file.{i:06d}" for i in ids}
    job = Job(ranks=RANKS, start_time=1.7e9, end_time=1.7e9 + 600, runtime=600.0, executable="b")
    write_log(path, LogContent(job, names, tuple(modules)))
    return path


if __name__ == "__main__":
    main()
