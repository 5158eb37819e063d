"""A store holds each record once, in whatever order files come and however often it is killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.simulated_servers import SimulationSettings, simulate, write_simulation
from ioprism import BrokenTraceError, NoSuchTraceError, OutputError, UnknownFormatError, servers
from ioprism.servers.store import file_name, open_store

HEADING = "server,t,br,bw,rdc,wc,oc,cc"
# Many small writes, so that a kill at any moment hits one.
SLOW_INGEST = """
import sys
from ioprism.servers import raw_files
raw_files.ROWS_IN_MEMORY = 1
print("ready", flush=True)
raw_files.ingest(sys.argv[1], store=sys.argv[2])
"""


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a store; the lock is no content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def take(folder: Path, *sources: Path) -> None:
    servers.ingest(*sources, store=folder)


def lines() -> list[str]:
    return [
        f"{server},{120 * n + 2_678_000},{n},{n * 7},{n},{n},{n},{n}"
        for server in ("ion0", "ion/../1", "..")
        for n in range(12)
    ]


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.permutations(lines()), st.lists(st.integers(1, 35), max_size=4), st.booleans())
def test_pieces_and_repetition_change_nothing(
    tmp_path: Path, rows: list[str], cuts: list[int], again: bool
) -> None:
    place = tmp_path / str(time.monotonic_ns())
    place.mkdir()
    (place / "whole.csv").write_text("\n".join([HEADING, *lines()]))
    bounds = [0, *sorted(cuts), len(rows)]
    pieces = []
    for number, (first, last) in enumerate(pairwise(bounds)):
        piece = place / f"piece{number}.csv"
        extra = rows[max(first - 2, 0) : last]  # pieces that overlap
        piece.write_text("\n".join([HEADING, *extra]))
        pieces.append(piece)

    take(place / "one", place / "whole.csv")
    for piece in pieces:
        take(place / "many", piece)
    if again:
        take(place / "many", *reversed(pieces))

    one, many = content(place / "one"), content(place / "many")
    assert {k: v for k, v in one.items() if k != "ledger.json"} == {
        k: v for k, v in many.items() if k != "ledger.json"
    }
    assert open_store(place / "many").servers() == ["..", "ion/../1", "ion0"]


def test_a_file_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("\n".join([HEADING, *lines()]))
    take(tmp_path / "store", raw)
    before = content(tmp_path / "store")

    outcomes = servers.ingest(raw, store=tmp_path / "store")

    assert [outcome.known for outcome in outcomes] == [True]
    assert content(tmp_path / "store") == before


def test_of_two_records_that_contradict_the_larger_counts_in_any_order(tmp_path: Path) -> None:
    for number, values in enumerate(("1,1,1,1,1,1", "2,2,2,2,2,2")):
        (tmp_path / f"{number}.csv").write_text(f"{HEADING}\nion0,0,{values}\n")
    take(tmp_path / "a", tmp_path / "0.csv", tmp_path / "1.csv")
    take(tmp_path / "b", tmp_path / "1.csv", tmp_path / "0.csv")

    for name in ("a", "b"):
        found = open_store(tmp_path / name).counters("ion0", start_us=-1, end_us=1)
        assert found["bw"].to_list() == [2]


def test_partitions_are_by_server_and_month(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("\n".join([HEADING, *lines()]))
    take(tmp_path / "store", raw)

    files = sorted(
        str(p.relative_to(tmp_path / "store/counters"))
        for p in (tmp_path / "store").rglob("counters.parquet")
    )

    assert files == [
        f"server={server}/month=1970-{month}/counters.parquet"
        for server in ("%2E.", "ion%2F..%2F1", "ion0")
        for month in ("01", "02")
    ]
    table = pl.read_parquet(tmp_path / "store/counters/**/*.parquet", hive_partitioning=False)
    assert table.height == 36


@pytest.mark.parametrize("name", ["a/b", "..", ".", "~", "a~b", "x" * 400, "é", "%2E"])
def test_names_of_servers_are_safe_and_distinct_as_folders(name: str) -> None:
    safe = file_name(name)

    assert "/" not in safe
    assert not safe.startswith(".")
    assert len(safe) <= 120
    assert safe != file_name(f"{name}x")


def test_a_very_long_name_is_kept_in_the_table(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text(f"{HEADING}\n{'n' * 300},0,1,1,1,1,1,1\n")
    take(tmp_path / "store", raw)

    assert open_store(tmp_path / "store").servers() == ["n" * 300]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("\n".join([HEADING, *lines()]))

    with pytest.raises(OutputError, match="contains something other"):
        take(tmp_path, raw)
    with pytest.raises(BrokenTraceError, match="not a store of server counters"):
        open_store(tmp_path)
    with pytest.raises(NoSuchTraceError):
        take(tmp_path / "store", tmp_path / "nothing")


def test_what_nobody_reads_is_refused_if_named_and_skipped_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "notes.txt").write_text("hello\n")
    (folder / "raw.csv").write_text("\n".join([HEADING, *lines()]))

    outcomes = servers.ingest(folder, store=tmp_path / "store")

    assert [outcome.format for outcome in outcomes] == ["", "counter-table"]
    with pytest.raises(UnknownFormatError):
        take(tmp_path / "store", folder / "notes.txt")


def test_what_was_read_before_a_failure_is_not_read_again(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "scrape.txt"
    good.write_text("\n".join([HEADING, *lines()]))
    bad.write_text('lustre_read_bytes_total{target="x"} 1\n')

    with pytest.raises(BrokenTraceError, match="--time"):
        take(tmp_path / "store", good, bad)
    outcomes = servers.ingest(good, bad, store=tmp_path / "store", time=1e9)

    assert [outcome.known for outcome in outcomes] == [False, False]  # other options, other records
    with pytest.raises(BrokenTraceError, match="--time"):
        take(tmp_path / "store", good, bad)
    assert len(open_store(tmp_path / "store").ledger()) == 3


def test_two_runs_do_not_write_at_once(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("\n".join([HEADING, *lines()]))
    take(tmp_path / "store", raw)

    with (tmp_path / "store/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="another run is writing"):
            take(tmp_path / "store", raw)


def test_a_damaged_partition_is_one_clear_error(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("\n".join([HEADING, *lines()]))
    take(tmp_path / "store", raw)
    for path in (tmp_path / "store").rglob("counters.parquet"):
        path.write_bytes(b"PAR1 nonsense")

    with pytest.raises(BrokenTraceError, match="the store is damaged"):
        open_store(tmp_path / "store").counters("ion0", start_us=0, end_us=10**14)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "raw"
    write_simulation(simulate(SimulationSettings(servers=24, days=1.0, seed=4)), folder)
    (folder / "truth.json").unlink()
    return folder


def start(raw: Path, store: Path) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW_INGEST, str(raw), str(store)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child.stdout as said:
        assert said.readline() == b"ready\n"
    return child


def test_a_run_killed_at_any_moment_and_run_again_gives_the_store_of_a_clean_run(
    raw: Path, tmp_path: Path
) -> None:
    began = time.monotonic()
    child = start(raw, tmp_path / "clean")
    ready = time.monotonic()
    assert child.wait() == 0
    duration = time.monotonic() - ready
    assert ready > began
    clean = content(tmp_path / "clean")

    killed = 0
    for round_, shares in enumerate([(0.02, 0.3, 0.6), (0.1, 0.45, 0.2), (0.75, 0.9, 0.05)]):
        store = tmp_path / f"killed{round_}"
        for share in shares:
            child = start(raw, store)
            time.sleep(share * duration)
            os.kill(child.pid, signal.SIGKILL)
            in_time = child.wait() == -signal.SIGKILL
            killed += in_time
            duration *= 1.0 if in_time else 0.5  # the machine was busier when it was measured
        assert start(raw, store).wait() == 0
        assert content(store) == clean
    assert killed >= 5
