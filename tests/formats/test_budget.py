"""Small files that stand for much are refused before they take memory; the limit can be set."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ioprism import OverBudgetError, Trace, UsageError, read, servers
from ioprism.cli import main
from ioprism.formats.reading import BASE, PER_BYTE, VARIABLE, allowance
from ioprism.model.counters import ReadingOptions, Tally
from ioprism.model.samples import parse_node_list
from ioprism.servers.formats.records import HostlistError, expand_hosts, read_server_map
from ioprism.servers.raw_files import read_jobs
from ioprism.write_time.run_files import read_runs
from tests.conftest import TEST_DATA
from tests.counted_work import lines_run
from tests.fuzz_hostile import darshan_bomb

MEMORY = 1_500  # MB that a process may take for a small file
SOON = 30.0  # seconds of processor time


def darshan(folder: Path) -> Path:
    (folder / "a.darshan").write_bytes(darshan_bomb(size=2**33, chance=random.Random(1)))
    return folder / "a.darshan"


def darshan_names(folder: Path) -> Path:
    """A table of names that is all zeros: a name every nine bytes."""
    chosen = next(n for n in range(99) if random.Random(n).randrange(1, 12) == 1)
    (folder / "a.darshan").write_bytes(darshan_bomb(size=2**26, chance=random.Random(chosen)))
    return folder / "a.darshan"


def blob(size: int) -> bytes:
    packed = zlib.compress(bytes(2**20) * (size // 2**20), 9)
    return struct.pack("<QQ", len(packed), size) + packed


def recorder(folder: Path) -> Path:
    """Many blobs, none of which is too large by itself."""
    trace = folder / "trace"
    shutil.copytree(TEST_DATA / "recorder/gotcha-hdf5", trace)
    (trace / "ug.cfg").write_bytes(blob(2**26) * 120)
    return trace


def jobs(folder: Path) -> Path:
    lines = ["job_id,start,end,servers"]
    lines += [f"{n},1000,2000,{'n' * 200}[1-199{n:03}]" for n in range(200)]
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    return folder / "jobs.csv"


def read_job_list(path: Path) -> object:
    return read_jobs(path, ReadingOptions(timezone="UTC"), Tally())


def server_map(folder: Path) -> Path:
    (folder / "map.csv").write_text("node,server\n" + "n[1-199999],s\n" * 500)
    return folder / "map.csv"


def runs(folder: Path) -> Path:
    heading = "nodes,cores_per_node,burst_bytes,node_list,seconds\n"
    (folder / "runs.csv").write_text(
        heading + "".join(f"900000,1,1,{n}-{n + 899_999},1.0\n" for n in range(300))
    )
    return folder / "runs.csv"


def packed_runs(folder: Path) -> Path:
    text = "nodes,cores_per_node,burst_bytes,seconds\n" + "1,1,1,1\n" * 2_000_000
    (folder / "runs.csv.gz").write_bytes(gzip.compress(text.encode(), 9))
    return folder / "runs.csv.gz"


START = (
    '{"id":1,"name":"start","cat":"dftracer","pid":1,"tid":1,"ts":%d,"dur":0,"ph":"X","args":{}}'
)
BEGUN = 10**15  # microseconds


def sums_of_a_long_time(folder: Path) -> Path:
    """Two sums for each process, months apart: a heat map of them has a bin for each second."""
    sums = [
        {"id": 2, "name": "write", "cat": "POSIX", "pid": pid, "tid": pid,
         "ts": BEGUN + 10**6 * second, "ph": "C", "args": {"dft_cnt": 1, "ret_sum": 5}}
        for pid in range(1, 3)
        for second in (0, 9_000_000)
    ]  # fmt: skip
    lines = ["[", START % BEGUN, *(json.dumps(one, separators=(",", ":")) for one in sums), ""]
    (folder / "a.pfw").write_text("\n".join(lines))
    return folder / "a.pfw"


def packed_names(folder: Path) -> Path:
    """DFTracer's names of files, each of nearly a megabyte."""
    name = (
        '{"name":"FH","cat":"dftracer","pid":1,"tid":1,"ts":1,"dur":0,"ph":"M",'
        '"args":{"name":"%s%d","value":"%016x"}}\n'
    )
    with gzip.open(folder / "a.pfw.gz", "wt", compresslevel=6) as file:
        file.write(f"[\n{START % BEGUN}\n")
        for number in range(20):
            file.write(name % ("a" * 900_000, number, number))
    return folder / "a.pfw.gz"


def packed_table(folder: Path) -> Path:
    with gzip.open(folder / "a.csv.gz", "wb", compresslevel=6) as file:
        file.write(b"start,end,operation,file\n")
        for number in range(6):
            file.write(b"%d,%d,read,%d%s\n" % (number, number + 1, number, b"a" * 14_000_000))
    return folder / "a.csv.gz"


def begun_events(folder: Path) -> Path:
    event = b'{"ph":"B","name":"read","ts":%d,"pid":1,"tid":1,"args":{"file":"%s"}},\n'
    with gzip.open(folder / "a.json.gz", "wb", compresslevel=6) as file:
        file.write(b'[{"ph":"X","name":"read","ts":1,"dur":1,"pid":1,"tid":1},\n')
        for number in range(2):
            file.write(event % (number, b"a" * 15_000_000))
    return folder / "a.json.gz"


OPEN = '100 %d.5 openat(AT_FDCWD, "%s", O_RDONLY) = %d <0.1>\n'


def forked_files(folder: Path) -> Path:
    """A process with many open files, and many children: each has all of them."""
    opened = "".join(OPEN % (10**9, "/a", number) for number in range(3000))
    forks = (f"100 1000000000.9 fork() = {1000 + number} <0.1>\n" for number in range(100))
    (folder / "a.strace").write_text(opened + "".join(forks))
    return folder / "a.strace"


def packed_calls(folder: Path) -> Path:
    with gzip.open(folder / "a.strace.gz", "wt", compresslevel=6) as file:
        for number in range(30):
            file.write(OPEN % (10**9, "/" + "a" * 900_000, number))
    return folder / "a.strace.gz"


def packed_jobs(folder: Path) -> Path:
    text = b"job_id,start,end,servers\n" + b"1,1,2,\n" * 50_000
    (folder / "jobs.csv.gz").write_bytes(gzip.compress(text, 6))
    return folder / "jobs.csv.gz"


def packed_scrape(folder: Path) -> Path:
    line = b'lustre_write_bytes_total{target="%s"} 1 1000000000000\n' % (b"a" * 500_000)
    (folder / "a.prom.gz").write_bytes(gzip.compress(line * 10, 6))
    return folder / "a.prom.gz"


def ingest(path: Path) -> None:
    servers.ingest(path, store=path.with_name("store"))


CASES = [(darshan, read), (darshan_names, read), (recorder, read), (jobs, read_job_list),
         (server_map, read_server_map),
         (runs, read_runs), (packed_runs, read_runs)]  # fmt: skip


def _read(path: Path, reader: Callable[[Path], object]) -> None:
    found = reader(path)
    if isinstance(found, Trace):
        found.events()
        dict(found.counters)


@pytest.mark.parametrize(("make", "reader"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_a_small_file_never_takes_the_machine(
    tmp_path: Path, make: Callable[[Path], Path], reader: Callable[[Path], object]
) -> None:
    path = make(tmp_path)
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(OverBudgetError, match=r"\nHint: .*--reading-budget \d+GB"):
        _read(path, reader)
    assert time.process_time() - begun < SOON
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY * 1000


SMALL_CASES = [(sums_of_a_long_time, read), (packed_names, read), (packed_table, read),
               (begun_events, read), (forked_files, read), (packed_calls, read),
               (packed_jobs, read_job_list), (packed_scrape, ingest)]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "reader"), SMALL_CASES, ids=[make.__name__ for make, _ in SMALL_CASES]
)
def test_what_is_held_is_counted(
    tmp_path: Path,
    make: Callable[[Path], Path],
    reader: Callable[[Path], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "16MB")  # the same as above, and as much smaller
    with pytest.raises(OverBudgetError):
        _read(make(tmp_path), reader)


def test_the_limit_follows_the_size_of_the_file_and_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(1000))
    assert allowance(path) == BASE + 1000 * PER_BYTE

    os.truncate(path, 2**40)  # a hole takes no room on the disk
    assert allowance(path) < BASE + 2**16 * PER_BYTE

    monkeypatch.setenv(VARIABLE, "4GB")
    assert allowance(path) == 4 * 10**9
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(UsageError, match="not a size"):
        allowance(path)


@pytest.mark.parametrize("words", [["--reading-budget", "1kB"], ["--reading-budget=1kB"]])
@pytest.mark.parametrize("first", [True, False])
def test_the_option_stands_anywhere(
    words: list[str], first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    log = str(TEST_DATA / "darshan/e_mpiio_collective.darshan")
    asked = ["characterise", log]
    result = CliRunner().invoke(main, [*words, *asked] if first else [*asked, *words])

    assert result.exit_code == 1
    assert "--reading-budget" in result.stderr
    assert VARIABLE not in os.environ  # it was meant for this command
    assert CliRunner().invoke(main, asked).exit_code == 0


def test_a_limit_that_is_no_size_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["formats", "--reading-budget", "much"]).exit_code == 2


def test_a_trace_of_a_hundred_thousand_ranks_needs_the_files_of_as_many(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(TEST_DATA / "recorder/gotcha-hdf5", trace)
    header = bytearray((trace / "recorder.mt").read_bytes())
    header[:4] = struct.pack("<i", 9_999_999)
    (trace / "recorder.mt").write_bytes(header)

    def refused() -> None:
        with pytest.raises(Exception, match="names 9999999 ranks, but its files hold fewer"):
            read(trace)

    assert lines_run(refused) < 1_000_000  # not a line for each rank


@pytest.mark.parametrize(
    "text", ["n" * 40_000 + "[1-200000]", "a[1-9]" * 100, "[1-2]" * 200 + "x" * 300]
)
def test_names_of_hosts_are_no_longer_than_names_can_be(text: str) -> None:
    with pytest.raises(HostlistError):
        expand_hosts(text)


@pytest.mark.parametrize("text", ["9" * 400_000, "0-999999,1000000-1999999", "0-" + "9" * 400_000])
def test_a_list_of_more_nodes_than_there_are_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="node"):
        parse_node_list(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.json", '{"b": [1%s], "t": [0, 1]}' % ("0" * 400_000)),
        ("run.jsonl", '{"start": 1%s, "end": 2, "operation": "read"}\n' % ("0" * 400_000)),
        ("run.csv", "start,end,operation,bytes\n0,1,read,1%s\n" % ("0" * 400_000)),
        ("run.strace", '1 1700000000.0 read(3, "x", 1) = 1%s <0.1>\n' % ("0" * 400_000)),
        ("run.txt", "job_id,start,end,servers\n1,1%s,2,n\n" % ("0" * 400_000)),
    ],
)
def test_a_number_of_many_digits_is_one_clear_answer(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    command = ["characterise", str(path), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ioprism", *command], capture_output=True, text=True
    )

    assert "should not have happened" not in done.stderr
    assert done.returncode in (0, 1)
    assert done.returncode == 1 or json.loads(done.stdout)
