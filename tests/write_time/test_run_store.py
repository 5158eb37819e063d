"""A store keeps runs whole, once, and of one system."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from ioprism import TraceError
from ioprism.write_time import Run, WritePattern
from ioprism.write_time.run_store import open_store

SYSTEM = ("little", "name = 'little'")
PATTERN = WritePattern(2, 4, 10**6, None, None, (0, 5), "a")


def test_runs_of_one_pattern_become_one_sample(tmp_path: Path) -> None:
    runs = [Run(PATTERN, 1.0), Run(PATTERN, 2.0), Run(WritePattern(1, 1, 5), 3.0)]
    with open_store(tmp_path / "s.db", create_for=SYSTEM) as store:
        store.add_runs(runs, origin="x.csv", content=b"x")

    with open_store(tmp_path / "s.db") as store:
        samples = store.samples()

        assert store.system() == SYSTEM
        assert [(s.pattern, s.times) for s in samples] == [
            (PATTERN, (1.0, 2.0)),
            (WritePattern(1, 1, 5), (3.0,)),
        ]


def test_the_same_file_is_not_added_twice(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=SYSTEM) as store:
        store.add_runs([Run(PATTERN, 1.0)], origin="x.csv", content=b"x")
        with pytest.raises(TraceError, match=r"already contains the same runs \(from x\.csv\)"):
            store.add_runs([Run(PATTERN, 1.0)], origin="y.csv", content=b"x")

        assert store.samples()[0].times == (1.0,)


def test_a_failed_import_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=SYSTEM) as store:
        store.add_runs([Run(PATTERN, 1.0)], origin="x", content=b"x")
    with (
        pytest.raises(TraceError, match="cannot be used"),
        open_store(tmp_path / "s.db") as store,
    ):
        store.add_runs([Run(PATTERN, 5.0), Run(PATTERN, -1.0)], origin="y", content=b"y")

    with open_store(tmp_path / "s.db") as store:
        assert store.samples()[0].times == (1.0,)


def test_unfinished_runs_are_discarded(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=SYSTEM) as store:
        assert store.add_plan([PATTERN]) == 1
        number = store.planned()[0].number
        store.finish(store.begin(number), seconds=2.0, details={})
        lost = store.begin(number)

        assert store.discard_unfinished() == [lost]
        assert store.planned()[0].times == (2.0,)
        assert store.measured_rate() == 4 * 10**6 / 2.0


def test_nodes_chosen_at_run_time_are_kept(tmp_path: Path) -> None:
    free = WritePattern(2, 4, 10**6)
    with open_store(tmp_path / "s.db", create_for=SYSTEM) as store:
        store.add_plan([free])
        store.place(store.planned()[0], (3, 9))

        assert store.planned()[0].pattern.node_list == (3, 9)


def test_another_systems_runs_are_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=SYSTEM):
        pass
    with (
        pytest.raises(TraceError, match="'little', not of this 'big'"),
        open_store(tmp_path / "s.db", create_for=("big", "x")),
    ):
        pass


def test_files_that_are_no_store_are_left_as_they_are(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("my notes, not a database, and longer than a header")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = text.read_bytes(), other.read_bytes()

    for path in (text, other):
        with pytest.raises(TraceError), open_store(path, create_for=SYSTEM):
            pass

    assert (text.read_bytes(), other.read_bytes()) == before


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such store"), open_store(tmp_path / "none.db"):
        pass

    assert not (tmp_path / "none.db").exists()


def test_a_store_damaged_within_a_name_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path, create_for=SYSTEM):
        pass
    whole = path.read_bytes()
    damaged = re.sub(
        rb"tablerun(run.)CREATE",
        lambda m: b"tabler\xdfn" + m[1] + b"CREAT_",
        whole,
        flags=re.DOTALL,
    )
    path.write_bytes(damaged)

    assert damaged != whole
    with pytest.raises(TraceError, match="cannot be used"), open_store(path):
        pass
