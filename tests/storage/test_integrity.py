"""A changed byte or a missing file never changes an answer unnoticed."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ioprism import BrokenTraceError, IoprismError, TraceError, servers
from ioprism.model.counters import EARLIEST, LATEST
from ioprism.servers.store import JOBS_FILE, LEDGER, MANIFEST, open_store
from ioprism.storage.checked import (
    ChangedContentError,
    digest_of,
    read_checked,
    write_checked,
)
from ioprism.write_time import Run, WritePattern, run_store
from tests.conftest import TEST_DATA

FLIPS = 120


def flipped(path: Path, *, seed: int) -> Iterator[int]:
    """Flip one bit at a time, each at another place; the file is whole again afterwards."""
    whole = path.read_bytes()
    places = random.Random(seed)
    for _ in range(FLIPS):
        place = places.randrange(len(whole))
        changed = bytearray(whole)
        changed[place] ^= 1 << places.randrange(8)
        path.write_bytes(changed)
        yield place
    path.write_bytes(whole)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rows = [
        f"ion{server},{120 * n},{n * 11},{n * 7},{n},{n},{n % 3},{n}"
        for server in range(2)
        for n in range(200)
    ]
    raw = tmp_path / "raw.csv"
    raw.write_text("\n".join(["server,t,br,bw,rdc,wc,oc,cc", *rows]))
    servers.ingest(raw, store=tmp_path / "store")
    return tmp_path / "store"


def answers(folder: Path) -> list[pl.DataFrame]:
    opened = open_store(folder)
    return [opened.counters(s, start_us=EARLIEST, end_us=LATEST) for s in opened.servers()]


def test_a_flipped_bit_of_a_partition_never_changes_an_answer(store: Path) -> None:
    true = answers(store)
    partition = next(store.glob("counters/server=ion0/*/counters.parquet"))
    noticed = 0
    for place in flipped(partition, seed=3):
        try:
            found = answers(store)
        except IoprismError as error:
            noticed += "damaged" in str(error)
        else:
            assert all(a.equals(b) for a, b in zip(found, true, strict=True)), place

    assert noticed > FLIPS / 2  # a few bits of a file mean nothing


@pytest.mark.parametrize("name", [MANIFEST, LEDGER])
def test_a_flipped_bit_of_a_document_never_changes_what_it_says(store: Path, name: str) -> None:
    true = open_store(store).ledger()
    for place in flipped(store / name, seed=4):
        try:
            assert open_store(store).ledger() == true, place
        except IoprismError as error:
            assert "damaged" in str(error) or "version" in str(error)


def test_a_missing_partition_is_said(store: Path) -> None:
    shutil.rmtree(store / "counters/server=ion1")

    with pytest.raises(BrokenTraceError, match=r"server=ion1/.*counters.parquet is missing"):
        open_store(store)


def test_a_missing_table_of_jobs_is_said(tmp_path: Path) -> None:
    raw = TEST_DATA / "servers"
    sources = [raw / "A_aligned.counters.csv", raw / "A_aligned.jobs.csv"]
    servers.ingest(*sources, store=tmp_path / "store")
    (tmp_path / "store" / JOBS_FILE).unlink()

    with pytest.raises(BrokenTraceError, match=r"jobs\.parquet is missing"):
        open_store(tmp_path / "store")


def test_a_partition_without_a_digest_is_not_believed(store: Path) -> None:
    partition = next(store.glob("counters/server=ion0/*/counters.parquet"))
    pl.read_parquet(partition, hive_partitioning=False).write_parquet(partition)

    with pytest.raises(BrokenTraceError, match="its content was changed"):
        answers(store)


def test_a_store_of_an_older_version_is_refused_with_a_hint(store: Path) -> None:
    (store / MANIFEST).write_text(json.dumps({"ioprism_server_store": 1}))

    with pytest.raises(BrokenTraceError, match=r"version 1.*\nHint: ingest the raw files"):
        open_store(store)


def test_every_value_and_every_gap_is_part_of_a_digest(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "whole": [1, None, 0],
            "share": [0.5, 0.0, None],
            "text": ["ab", "c", None],
            "names": [["x"], [], None],
        }
    )
    others = [
        table.with_columns(whole=pl.Series([1, 0, 0])),
        table.with_columns(share=pl.Series([0.5, None, None], dtype=pl.Float64)),
        table.with_columns(text=pl.Series(["a", "bc", None])),
        table.with_columns(text=pl.Series(["ab", "c", ""])),
        table.with_columns(names=pl.Series([["x"], None, None])),
        table.with_columns(names=pl.Series([["x"], ["x"], None])),
        table.rename({"whole": "other"}),
        table.head(2),
    ]

    assert len({digest_of(one) for one in [table, *others]}) == 1 + len(others)
    write_checked(table, tmp_path / "t.parquet")
    assert read_checked(tmp_path / "t.parquet").equals(table)
    with pytest.raises(ChangedContentError, match="not a readable Parquet"):
        (tmp_path / "t.parquet").write_bytes(b"PAR1")
        read_checked(tmp_path / "t.parquet")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    measured = [
        Run(WritePattern(nodes, 2, size * 10**6, None, 4, None, "p"), 1.5 + size)
        for nodes in (1, 2, 4)
        for size in range(1, 9)
    ]
    with run_store.open_store(path, create_for=("titan", "name")) as opened:
        opened.add_runs(measured, origin="here", content=b"content")
    connection = sqlite3.connect(path)  # all of it into the one file
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path


def samples(path: Path) -> object:
    with run_store.open_store(path) as opened:
        return opened.samples(), opened.system()


def test_a_flipped_bit_of_a_store_of_runs_never_changes_an_answer(runs: Path) -> None:
    true = samples(runs)
    noticed = 0
    for place in flipped(runs, seed=6):
        try:
            assert samples(runs) == true, place
        except TraceError:
            noticed += 1
        for working in runs.parent.glob("runs.db-*"):
            working.unlink()

    assert noticed


def test_a_changed_time_in_a_store_of_runs_is_noticed(runs: Path) -> None:
    connection = sqlite3.connect(runs)
    with connection:
        connection.execute("UPDATE run SET seconds = seconds + 1 WHERE id = 3")
    connection.close()

    with pytest.raises(TraceError, match="the store is damaged: its content was changed"):
        samples(runs)


def test_a_store_of_the_first_version_is_read_and_sealed_when_it_is_written_to(runs: Path) -> None:
    connection = sqlite3.connect(runs)
    with connection:
        connection.execute("DROP TABLE seal")
        connection.execute(f"PRAGMA user_version = {run_store.UNSEALED}")
    connection.close()
    before = samples(runs)
    with run_store.open_store(runs) as opened:
        opened.discard_unfinished()
    connection = sqlite3.connect(runs)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()

    assert version == run_store.VERSION
    assert samples(runs) == before
