"""One sample of everything that can be read, to be damaged by `tests.fuzz`."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import h5py
import msgpack
import numpy as np

from ioprism import Trace, convert, servers
from ioprism.formats.beside_trace import read_ceiling
from ioprism.formats.registry import read_trace
from ioprism.live.intake import Message
from ioprism.live.watch import Watch, WatchSettings
from ioprism.model.counters import EARLIEST, LATEST
from ioprism.servers import ReadingOptions, Tally
from ioprism.servers.raw_files import read_jobs
from ioprism.servers.store import open_store
from ioprism.site.store import SITE_TABLES, make_site, open_site
from ioprism.write_time import Run, WritePattern, run_store
from tests.formats.recorder.test_parquet_reader import part
from tests.formats.signals.test_ftio_text import COLUMNS, LISTS
from tests.formats.signals.test_signals import BODY, GEKKO, IO_TIME, MODE
from tests.live.running import burst
from tests.servers.test_jobs_formats import SACCT
from tests.site.test_site_store import batch

DATA = Path(__file__).parent / "data"
Sums = tuple[int, int]  # calls and bytes, or records and their sum


@dataclass(frozen=True, slots=True)
class Sample:
    """Something that can be read, and whether it can notice that its end is missing."""

    name: str
    make: Callable[[Path], Path]  # writes it into a folder; returns what to read
    read: Callable[[Path], tuple[Sums, bool]]  # the sums, and whether something was said
    notices_cuts: bool = True
    notices_torn_lines: bool = False  # if it cannot notice a cut between two lines


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
    convert(_dftracer(), folder / "t.csv")
    return folder / "t.csv"


def _packed_table(folder: Path) -> Path:
    text = _table(folder).read_bytes()
    (folder / "t.csv").unlink()
    (folder / "t.csv.gz").write_bytes(gzip.compress(text, 1))
    return folder / "t.csv.gz"


def _chrome(folder: Path) -> Path:
    convert(_dftracer(), folder / "t.json")
    return folder / "t.json"


def _store(folder: Path) -> Path:
    convert(_dftracer(), folder / "t.store")
    return folder / "t.store"


def _counter_store(folder: Path) -> Path:
    raw = DATA / "servers/A_aligned.counters.csv"
    servers.ingest(raw, store=folder / "servers")
    return folder / "servers"


def _stored_counters(path: Path) -> tuple[Sums, bool]:
    store = open_store(path)
    tables = [
        store.counters(server, start_us=EARLIEST, end_us=LATEST, per_job=per_job)
        for server in store.servers()
        for per_job in (False, True)
    ]
    return (sum(t.height for t in tables), sum(int(t["bw"].sum() or 0) for t in tables)), False


def _raw_counters(path: Path) -> tuple[Sums, bool]:
    with tempfile.TemporaryDirectory() as place:
        outcomes = servers.ingest(path, store=Path(place) / "store", time=1e9)
        sums, _ = _stored_counters(Path(place) / "store")
        return sums, any(outcome.warnings for outcome in outcomes)


def _written(name: str, content: bytes | str) -> Callable[[Path], Path]:
    data = content.encode() if isinstance(content, str) else content

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def _recorder_parquet(folder: Path) -> Path:
    (folder / "trace").mkdir()
    for rank in range(3):
        part(rank).write_parquet(folder / f"trace/part.{rank}.parquet")
    return folder / "trace"


def _job_list(path: Path) -> tuple[Sums, bool]:
    tally = Tally()
    jobs = read_jobs(path, ReadingOptions(timezone="UTC"), tally)
    return (jobs.height, 0), bool(tally.warnings())


def _ceiling(path: Path) -> tuple[Sums, bool]:
    read_ceiling(path)
    return (1, 0), False


def _site_store(folder: Path) -> Path:
    with make_site(folder / "site").adding() as store:
        store.add(batch("a", "b"))
        store.add(batch("c"))
    return folder / "site"


def _site_rows(path: Path) -> tuple[Sums, bool]:
    store = open_site(path)
    return (sum(store.table(name).height for name in SITE_TABLES), 0), False


def _runs(folder: Path) -> Path:
    path = folder / "runs.db"
    measured = [Run(WritePattern(n, 2, 10**6, None, 4, None, "p"), 1.5 + n) for n in range(1, 9)]
    with run_store.open_store(path, create_for=("titan", "name")) as opened:
        opened.add_runs(measured, origin="here", content=b"content")
    connection = sqlite3.connect(path)  # all of it into the one file
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path


def _run_rows(path: Path) -> tuple[Sums, bool]:
    with run_store.open_store(path) as opened:
        return (sum(len(sample.times) for sample in opened.samples()), 0), False


def _lmt(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "lmt.db")) as made, made:
        made.executescript(
            "CREATE TABLE TIMESTAMP_INFO (TS_ID, TIMESTAMP);"
            "CREATE TABLE OST_INFO (OST_ID, OST_NAME);"
            "CREATE TABLE OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES);"
            "INSERT INTO OST_INFO VALUES (7, 'OST0')"
        )
        for n in range(200):
            made.execute("INSERT INTO TIMESTAMP_INFO VALUES (?, ?)", (n, 1e9 + n))
            made.execute("INSERT INTO OST_DATA VALUES (7, ?, ?, ?)", (n, n, n))
    return folder / "lmt.db"


def _tokio(folder: Path) -> Path:
    with h5py.File(folder / "series.hdf5", "w") as file:
        group = file.create_group("datatargets")
        group["timestamps"] = np.arange(64) * 10 + 10**9
        group.create_dataset(
            "writebytes", data=np.ones((64, 8)), chunks=(16, 8), compression="gzip"
        )
        group["writebytes"].attrs["columns"] = np.array([f"OST{n}".encode() for n in range(8)])
    return folder / "series.hdf5"


def _watch_state(folder: Path) -> Path:
    (folder / "watch").mkdir()
    service = Watch(WatchSettings(save_to=folder / "watch/state"))
    service.restore()
    for number in range(9):
        service.intake.receive([Message("job", burst(10.0 * number))], arrived=0.0)
    service.close()
    return folder / "watch"


def _watched(path: Path) -> tuple[Sums, bool]:
    said: list[str] = []
    service = Watch(WatchSettings(save_to=path / "state"), notify=said.append)
    try:
        service.restore()
        return (sum(job.messages for job in service.jobs), 0), bool(said)
    finally:
        service.settings = WatchSettings()
        service.close()


EMPTY_MODE = [*MODE[:-1], []]
TMIO_PACKED = b"".join(map(msgpack.packb, (MODE, IO_TIME, MODE, IO_TIME, EMPTY_MODE, IO_TIME)))
NOTHING: dict[str, object] = {"write_sync": {"bandwidth": {}}}
TMIO_LINES = "".join(
    f"{json.dumps(one)}\n{json.dumps({'io_time': {'delta_t_agg': 1}})}\n"
    for one in ({"write_sync": BODY}, {"write_sync": BODY}, NOTHING)
)

SAMPLES = (
    *(Sample(f"darshan {n}", _copied(f"darshan/{n}.darshan"), _events)
      for n in ("a_ckpt_fpp_period5s", "e_mpiio_collective", "n_hdf5_collective_write")),
    *(Sample(f"recorder {n}", _copied(f"recorder/{n}"), _events)
      for n in ("gotcha-hdf5", "v2.4.0-mpiio_coll", "pilgrim-ckpt_interproc", "master-ckpt")),
    *(Sample(f"dftracer {n}", _copied(f"dftracer/{n}"), _events, notices_cuts="agg" not in n,
             notices_torn_lines=True)
      for n in ("v2.2.0-md1-plain.pfw", "v2.2.0-agg.pfw", "v2.0.3-md1.pfw.gz")),
    Sample("strace", _copied("strace/randread_np2.strace"), _events),
    Sample("table", _table, _events, notices_cuts=False, notices_torn_lines=True),
    Sample("packed table", _packed_table, _events),
    Sample("chrome", _chrome, _events),
    Sample("store", _store, _events),
    Sample("counter store", _counter_store, _stored_counters),
    Sample("counters", _copied("servers/A_aligned.counters.csv"), _raw_counters,
           notices_cuts=False, notices_torn_lines=True),
    Sample("tmio lines", _written("2.jsonl", TMIO_LINES), _events),
    Sample("tmio msgpack", _written("4.msgpack", TMIO_PACKED), _events),
    Sample("gekkofs", _written("7.json", json.dumps(GEKKO)), _events),
    Sample("ftio lists", _written("run.txt", LISTS), _events, notices_cuts=False),
    Sample("ftio columns", _written("run.txt", COLUMNS), _events, notices_cuts=False,
           notices_torn_lines=True),
    Sample("recorder text", _copied("recorder/master-hdf5/_text"), _events, notices_cuts=False,
           notices_torn_lines=True),
    Sample("recorder parquet", _recorder_parquet, _events, notices_cuts=False),
    *(Sample(f"counters {name}", _copied(f"counters/{name}.txt"), _raw_counters, notices_cuts=False,
             notices_torn_lines=True)
      for name in ("job_stats", "mmpmon_text", "prometheus", "stats")),
    Sample("sacct", _written("jobs", SACCT), _job_list, notices_cuts=False,
           notices_torn_lines=True),
    Sample("job table", _copied("servers/A_aligned.jobs.csv"), _job_list, notices_cuts=False,
           notices_torn_lines=True),
    *(Sample(f"ceiling {name}", _copied(f"ceilings/{name}.json"), _ceiling)
      for name in ("ior", "fio")),
    Sample("site store", _site_store, _site_rows),
    Sample("store of runs", _runs, _run_rows),
    Sample("watch state", _watch_state, _watched, notices_cuts=False),
    Sample("otf2", _copied("otf2"), _events, notices_cuts=False),
    Sample("lmt", _lmt, _raw_counters),
    Sample("tokio", _tokio, _raw_counters),
)  # fmt: skip
