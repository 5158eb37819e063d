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

from ioprism import OverBudgetError, Trace, UsageError, read
from ioprism.cli import main
from ioprism.formats.reading import BASE, PER_BYTE, VARIABLE, allowance
from ioprism.model.counters import ReadingOptions, Tally
from ioprism.model.samples import parse_node_list
from ioprism.servers.formats.records import HostlistError, expand_hosts, read_server_map
from ioprism.servers.raw_files import read_jobs
from ioprism.write_time.run_files import read_runs
from tests.conftest import TEST_DATA
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
    begun = time.process_time()

    with pytest.raises(Exception, match="names 9999999 ranks, but its files hold fewer"):
        read(trace)
    assert time.process_time() - begun < SOON


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
