"""Damage samples of every format, for as long as one likes, and watch the readers: `make fuzz`.

A case is a number: it says which sample is damaged, and how. A reader may refuse what it gets
with an error of ours, or read it; it must not raise anything else, die, hang, or lose calls that
the damage took away without a word. Numbers of cases that went wrong are printed, and repeated
with `--case`; those in `tests/data/fuzz_cases.txt` are repeated by the tests.

Usage: python -m tests.fuzz [--seconds 600] [--first 0] [--case NUMBER]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ioprism.errors import IoprismError
from ioprism.formats.chrome.writer import write_chrome
from ioprism.formats.registry import read_trace
from ioprism.formats.tables.export import write_events
from ioprism.model.counters import EARLIEST, LATEST, ReadingOptions
from ioprism.model.trace import Trace
from ioprism.pipeline.ingest import ingest
from ioprism.storage.counter_store import open_store
from ioprism.storage.trace_store import write_store

DATA = Path(__file__).parent / "data"
PATIENCE = 120.0  # seconds; longer is a hang
TOKENS = (b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"99999999999999999999", b"-1", b"1e999",
          b"NaN", b"null", b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\\")  # fmt: skip
Sums = tuple[int, int]  # calls and bytes, or records and their sum


@dataclass(frozen=True, slots=True)
class Sample:
    """Something that can be read, and whether it can notice that its end is missing."""

    name: str
    make: Callable[[Path], Path]  # writes it into a folder; returns what to read
    read: Callable[[Path], tuple[Sums, bool]]  # the sums, and whether something was said
    notices_cuts: bool = True


def _copied(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        source, target = DATA / name, folder / Path(name).name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("_text"))
        else:
            shutil.copy(source, target)
        return target

    return make


def _events(path: Path) -> tuple[Sums, bool]:
    trace = read_trace(path)
    events = trace.events()
    sums = events.height, int(events["bytes"].sum() or 0)
    for table in trace.counters.values():
        sums = sums[0] + table.height, sums[1]
    return sums, not trace.completeness.whole


@cache
def _dftracer() -> Trace:
    return read_trace(DATA / "dftracer/v2.2.0-ns.pfw")


def _table(folder: Path) -> Path:
    write_events(_dftracer(), folder / "t.csv")
    return folder / "t.csv"


def _packed_table(folder: Path) -> Path:
    text = _table(folder).read_bytes()
    (folder / "t.csv").unlink()
    (folder / "t.csv.gz").write_bytes(gzip.compress(text, 1))
    return folder / "t.csv.gz"


def _chrome(folder: Path) -> Path:
    write_chrome(_dftracer(), folder / "t.json")
    return folder / "t.json"


def _store(folder: Path) -> Path:
    write_store(_dftracer(), folder / "t.store")
    return folder / "t.store"


def _counter_store(folder: Path) -> Path:
    raw = DATA / "servers/A_aligned.counters.csv"
    ingest([raw], folder / "servers", options=ReadingOptions())
    return folder / "servers"


def _stored_counters(path: Path) -> tuple[Sums, bool]:
    store = open_store(path)
    tables = [store.counters(s, start_us=EARLIEST, end_us=LATEST) for s in store.servers()]
    return (sum(t.height for t in tables), sum(int(t["bw"].sum() or 0) for t in tables)), False


def _raw_counters(path: Path) -> tuple[Sums, bool]:
    with tempfile.TemporaryDirectory() as place:
        outcomes = ingest([path], Path(place) / "store", options=ReadingOptions())
        sums, _ = _stored_counters(Path(place) / "store")
        return sums, any(outcome.warnings for outcome in outcomes)


SAMPLES = (
    *(Sample(f"darshan {n}", _copied(f"darshan/{n}.darshan"), _events)
      for n in ("a_ckpt_fpp_period5s", "e_mpiio_collective", "n_hdf5_collective_write")),
    *(Sample(f"recorder {n}", _copied(f"recorder/{n}"), _events)
      for n in ("gotcha-hdf5", "v2.4.0-mpiio_coll", "pilgrim-ckpt_interproc", "master-ckpt")),
    *(Sample(f"dftracer {n}", _copied(f"dftracer/{n}"), _events, notices_cuts=n.endswith("gz"))
      for n in ("v2.2.0-md1-plain.pfw", "v2.2.0-agg.pfw", "v2.0.3-md1.pfw.gz")),
    Sample("strace", _copied("strace/randread_np2.strace"), _events, notices_cuts=False),
    Sample("table", _table, _events, notices_cuts=False),
    Sample("packed table", _packed_table, _events),
    Sample("chrome", _chrome, _events),
    Sample("store", _store, _events),
    Sample("counter store", _counter_store, _stored_counters),
    Sample("counters", _copied("servers/A_aligned.counters.csv"), _raw_counters,
           notices_cuts=False),
)  # fmt: skip


@cache
def _whole(number: int) -> Sums:
    with tempfile.TemporaryDirectory() as place:
        sample = SAMPLES[number]
        return sample.read(sample.make(Path(place)))[0]


def outcome(case: int) -> tuple[str, str]:
    """Return what became of a case: fine, or what is wrong; and which sample it was."""
    chance = random.Random(case)
    number = chance.randrange(len(SAMPLES))
    sample, whole = SAMPLES[number], _whole(number)
    with tempfile.TemporaryDirectory() as place:
        source = sample.make(Path(place))
        kind = _damage(source, chance)
        try:
            sums, said = sample.read(source)
        except IoprismError as error:
            return ("refused" if str(error) else "an error without a message"), sample.name
        except BaseException:  # noqa: BLE001 - that is what is looked for
            return f"traceback: {traceback.format_exc(limit=-3)}", sample.name
    lost = kind in ("cut", "removed") and sample.notices_cuts and sums[0] < whole[0]
    return ("silent loss" if lost and not said else "read"), sample.name


def _damage(source: Path, chance: random.Random) -> str:
    """Damage one file of what is to be read; return how."""
    files = sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]
    path = chance.choice([file for file in files if file.name != ".lock"])
    kind = chance.choice(["cut", "flip", "insert", "token", "removed" if len(files) > 1 else "cut"])
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data) + 1)
    if kind == "removed":
        path.unlink()
        return kind
    if kind == "cut":
        del data[at:]
    elif kind == "flip":
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == "insert":
        data[at:at] = chance.randbytes(chance.randrange(1, 16))
    else:
        data[at : at + chance.randrange(8)] = chance.choice(TOKENS)
    path.write_bytes(data)
    return kind


def work() -> None:
    """Answer the numbers of cases on standard input; native code may end this process."""
    for line in sys.stdin:
        told, sample = outcome(int(line))
        sys.stdout.write(json.dumps([told, sample]) + "\n")
        sys.stdout.flush()


@contextmanager
def _worker() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz", "--work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _asked(process: subprocess.Popen[str], case: int) -> tuple[str, str]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the worker has no pipes")
    process.stdin.write(f"{case}\n")
    process.stdin.flush()
    if not select.select([process.stdout], [], [], PATIENCE)[0]:
        return "hang", "?"
    line = process.stdout.readline()
    if not line:
        return f"ended by {process.wait()}", "?"
    told, sample = json.loads(line)
    return str(told), str(sample)


def run(seconds: float, first: int) -> Counter[str]:
    """Try cases from a number on until the time is over; return what became of them."""
    until, case = time.monotonic() + seconds, first
    results: Counter[str] = Counter()
    while time.monotonic() < until:
        with _worker() as process:
            told = "fine"
            while time.monotonic() < until and told != "hang" and not told.startswith("ended"):
                told, sample = _asked(process, case)
                results[told.partition(":")[0]] += 1
                if told not in ("refused", "read"):
                    sys.stdout.write(f"case {case} ({sample}): {told}\n")
                    sys.stdout.flush()
                case += 1
    return results


def main() -> None:
    """Fuzz, or repeat one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
    elif options.case is not None:
        sys.stdout.write(": ".join(outcome(options.case)) + "\n")
    else:
        results = run(options.seconds, options.first)
        listed = ", ".join(f"{number} {told}" for told, number in sorted(results.items()))
        sys.stdout.write(f"{results.total()} cases: {listed}\n")
        if set(results) - {"refused", "read"}:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
