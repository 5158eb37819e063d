"""A site store holds each job once, whatever interrupts it, and other tools open it directly."""

from __future__ import annotations

import fcntl
from pathlib import Path

import polars as pl
import pytest

from ioprism import BrokenTraceError, OutputError
from ioprism.site import store as site_store
from ioprism.site.columns import SITE_TABLES
from ioprism.site.store import LOCK, MANIFEST, SiteStore, make_site, open_site


def batch(*names: str) -> dict[str, pl.DataFrame]:
    """A job for each name, with one row in every table."""
    return {
        table.name: pl.DataFrame(
            {
                column.name: list(names)
                if column.name == "job"
                else pl.Series(["0"] * len(names)).cast(column.dtype)
                for column in table.columns
            },
            schema=table.schema,
        )
        for table in SITE_TABLES.values()
    }


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    made = make_site(tmp_path / "store")
    with made.adding():
        made.add(batch("a", "b"))
        made.add(batch("c"))
    return made


def test_batches_add_up(store: SiteStore) -> None:
    assert store.known() == {"a", "b", "c"}
    assert {name: store.table(name).height for name in SITE_TABLES} == dict.fromkeys(SITE_TABLES, 3)


def test_a_batch_that_the_manifest_does_not_count_was_interrupted_and_is_cleared_away(
    store: SiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as interrupted, store.adding():
        interrupted.setattr(site_store, "_write_manifest", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.add(batch("lost", "lost too"))

    before = store.table("causes")["job"].to_list()
    with store.adding():
        left = list((store.folder / "causes").glob("*3.parquet"))
        store.add(batch("d"))

    assert before == ["a", "b", "c"] and not left
    assert store.table("causes")["job"].to_list() == ["a", "b", "c", "d"]


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", SITE_TABLES)
@pytest.mark.parametrize("number", [1, 2])
def test_a_file_that_has_vanished_is_said(store: SiteStore, name: str, number: int) -> None:
    (store.folder / name / f"{number:08d}.parquet").unlink()

    with pytest.raises(BrokenTraceError, match=r"parquet: the store is damaged: it is missing"):
        store.table(name)


def test_a_manifest_that_counts_fewer_batches_is_not_believed(store: SiteStore) -> None:
    manifest = store.folder / MANIFEST
    manifest.write_text(manifest.read_text().replace('"batches": 2', '"batches": 1'))

    with pytest.raises(BrokenTraceError, match="its content was changed"):
        store.table("jobs")


def test_a_store_of_the_first_version_is_read_and_counted_when_it_is_added_to(
    store: SiteStore,
) -> None:
    (store.folder / MANIFEST).write_text('{"ioprism_site_store": 1}')
    before = open_site(store.folder).known()
    with store.adding():
        store.add(batch("d"))
    (store.folder / "jobs" / "00000003.parquet").unlink()

    assert before == {"a", "b", "c"}
    with pytest.raises(BrokenTraceError, match="it is missing"):
        store.known()


def test_a_second_writer_is_refused_with_a_hint(store: SiteStore) -> None:
    with (store.folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with (
            pytest.raises(OutputError, match=r"another process is adding[\s\S]*Hint:"),
            store.adding(),
        ):
            pass


def test_other_tools_open_the_tables_as_they_are(store: SiteStore) -> None:
    duckdb = pytest.importorskip("duckdb")
    jobs = store.folder / "jobs"

    assert pl.read_parquet(f"{jobs}/*.parquet").height == 3
    assert duckdb.sql(f"select count(*) from '{jobs}/*.parquet'").fetchall() == [(3,)]


def test_pandas_opens_a_table_by_its_folder(store: SiteStore) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="pandas reads Parquet with it")

    assert len(pandas.read_parquet(store.folder / "jobs")) == 3


def test_a_store_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "store" / "causes").mkdir(parents=True)

    assert make_site(tmp_path / "store").known() == frozenset()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(BrokenTraceError, match="not a site store"):
        open_site(tmp_path)
    with pytest.raises(OutputError, match="not a site store"):
        make_site(tmp_path)


def test_a_store_of_another_version_is_refused(store: SiteStore) -> None:
    (store.folder / "ioprism-site.json").write_text('{"ioprism_site_store": 99}')

    with pytest.raises(BrokenTraceError, match="version 99"):
        open_site(store.folder)


def test_a_damaged_table_is_one_clear_error(store: SiteStore) -> None:
    (store.folder / "jobs" / "00000001.parquet").write_bytes(b"PAR1 not really")

    with pytest.raises(BrokenTraceError, match="damaged"):
        store.table("jobs")
