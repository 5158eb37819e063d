"""Databases and HDF5 files of others run nothing, and lead to no other file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ioprism import BrokenTraceError
from ioprism.formats import isolation
from ioprism.formats.isolation import opened_tables
from ioprism.model.counters import ReadingOptions, Tally
from ioprism.servers.formats.monitoring import LmtReader, TokioReader

h5py = pytest.importorskip("h5py")
SOON = 20.0  # seconds; what never ends takes longer
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
PLAIN = """
    CREATE TABLE TIMESTAMP_INFO (TS_ID INTEGER, TIMESTAMP TEXT);
    CREATE TABLE OST_INFO (OST_ID INTEGER, OST_NAME TEXT);
    INSERT INTO TIMESTAMP_INFO VALUES (1, '2018-01-28 00:00:00');
    INSERT INTO OST_INFO VALUES (7, 'OST0');
"""
OST_DATA = "CREATE TABLE OST_DATA (OST_ID INTEGER, TS_ID INTEGER, READ_BYTES, WRITE_BYTES);"


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(PLAIN + "".join(statements))
    return path


def samples(path: Path) -> pl.DataFrame:
    return pl.concat(list(LmtReader().read(path, ReadingOptions(), Tally())))


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE VIEW OST_DATA AS {ENDLESS} SELECT 7 AS OST_ID, 1 AS TS_ID, i AS READ_BYTES,"
        " i AS WRITE_BYTES FROM n;",
        "CREATE TABLE OST_DATA (OST_ID INTEGER, TS_ID INTEGER, READ_BYTES,"
        " WRITE_BYTES AS (length(zeroblob(900000000))));"
        "INSERT INTO OST_DATA VALUES (7, 1, 1);",
        "CREATE VIRTUAL TABLE OST_DATA USING fts5(OST_ID, TS_ID, READ_BYTES, WRITE_BYTES);",
    ],
    ids=["endless view", "computed column", "virtual table"],
)
def test_a_database_that_computes_is_refused_at_once(tmp_path: Path, statement: str) -> None:
    path = database(tmp_path / "lmt.db", statement)
    begun = time.monotonic()

    assert not LmtReader().recognises(path)
    with pytest.raises(BrokenTraceError, match="the database cannot be read"):
        samples(path)
    assert time.monotonic() - begun < SOON


def test_equal_keys_do_not_multiply(tmp_path: Path) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
    path = database(
        tmp_path / "lmt.db",
        OST_DATA,
        f"INSERT INTO OST_INFO {many} SELECT 7, 'OST0' FROM n;",
        f"INSERT INTO TIMESTAMP_INFO {many} SELECT 1, '2018-01-28 00:00:00' FROM n;",
        f"INSERT INTO OST_DATA {many} SELECT 7, 1, i, i FROM n;",
    )
    begun = time.monotonic()

    assert samples(path).height == 20_000
    assert time.monotonic() - begun < SOON


def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
    path = database(
        tmp_path / "lmt.db", OST_DATA, f"INSERT INTO OST_DATA {many} SELECT 7, 1, i, i FROM n;"
    )
    for size in range(path.stat().st_size - 1, 4 * 4096, -4001):
        os.truncate(path, size)

        with pytest.raises(BrokenTraceError, match="cannot be read"):
            samples(path)


def test_reading_a_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = database(tmp_path / "lmt.db", OST_DATA, "INSERT INTO OST_DATA VALUES (7, 1, 10, 20);")
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode = WAL")
    for left in tmp_path.glob("lmt.db-*"):
        left.unlink()

    with opened_tables(path, "OST_DATA") as tables:
        assert next(tables.rows("OST_DATA", "WRITE_BYTES")) == (20,)
        assert list(tmp_path.iterdir()) == [path]
    assert samples(path)["bw"].to_list() == [20]
    assert list(tmp_path.iterdir()) == [path]


def test_a_scan_ends_after_the_steps_that_its_size_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
    path = database(
        tmp_path / "lmt.db", OST_DATA, f"INSERT INTO OST_DATA {many} SELECT 7, 1, i, i FROM n;"
    )
    for name in ("LEAST_STEPS", "STEPS_PER_BYTE"):
        monkeypatch.setattr(isolation, name, 0)

    with pytest.raises(BrokenTraceError, match="interrupted"):
        samples(path)


def test_other_tables_cannot_be_read_nor_more_steps_made_than_a_scan_needs(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", OST_DATA, "CREATE TABLE secret (a);")
    with opened_tables(path, "OST_DATA") as tables:
        for statement in (
            "SELECT * FROM secret",
            f"{ENDLESS} SELECT count(*) FROM n",
            "ATTACH 'b.db' AS b",
            "PRAGMA journal_mode",
            "SELECT load_extension('a')",
        ):
            with pytest.raises(sqlite3.DatabaseError):
                tables._connection.execute(statement).fetchall()
        with pytest.raises(sqlite3.DatabaseError, match="not a plain table"):
            next(tables.rows("secret2", "a"))

    assert not (tmp_path / "b.db").exists()


Change = Callable[[Any, Path], None]


def _external_data(group: Any, folder: Path) -> None:
    (folder / "passwd").write_bytes(b"root:x:0:0:..." * 100)
    group.create_dataset(
        "writebytes", (4, 2), "f8", external=[(str(folder / "passwd"), 0, h5py.h5f.UNLIMITED)]
    )


def _external_link(group: Any, folder: Path) -> None:
    with h5py.File(folder / "other.hdf5", "w") as other:
        other["secret"] = np.ones((4, 2))
    group["writebytes"] = h5py.ExternalLink(str(folder / "other.hdf5"), "/secret")


def _soft_link(group: Any, _: Path) -> None:
    group.file["elsewhere"] = np.ones((4, 2))
    group["writebytes"] = h5py.SoftLink("/elsewhere")


def _virtual(group: Any, folder: Path) -> None:
    layout = h5py.VirtualLayout((4, 2), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.hdf5"), "secret", (4, 2))
    group.create_virtual_dataset("writebytes", layout)


def _pipe(group: Any, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    group.create_dataset("writebytes", (4, 2), "f8", external=[(str(folder / "pipe"), 0, 64)])


def _text(group: Any, _: Path) -> None:
    group.create_dataset("writebytes", (2**16, 2), f"S{2**20}", chunks=(1, 1))  # 128 GiB


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_external_data, "stored in another file"),
        (_external_link, "is a link"),
        (_soft_link, "is a link"),
        (_virtual, "stored in another file"),
        (_pipe, "stored in another file"),
        (_text, "not numbers"),
    ],
)
def test_a_series_stored_elsewhere_is_refused(tmp_path: Path, change: Change, why: str) -> None:
    path = tmp_path / "series.hdf5"
    with h5py.File(path, "w") as file:
        group = file.create_group("datatargets")
        group["timestamps"] = np.arange(4) * 10 + 1000
        group["readbytes"] = np.ones((4, 2))
        group["readbytes"].attrs["columns"] = np.array([b"OST0", b"OST1"])
        change(group, tmp_path)
    failed: list[str] = []

    def read() -> None:
        try:
            list(TokioReader().read(path, ReadingOptions(), Tally()))
        except BrokenTraceError as error:
            failed.append(str(error))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(SOON)

    assert failed and why in failed[0]
