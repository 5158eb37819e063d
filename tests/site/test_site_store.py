"""A site store holds each job once, whatever interrupts it, and other tools open it directly."""

from __future__ import annotations

import fcntl
from pathlib import Path

import polars as pl
import pytest

from ioprism import BrokenTraceError, OutputError
from ioprism.site import store as site_store
from ioprism.site.store import LOCK, MANIFEST, SITE_TABLES, SiteStore, make_site, open_site


def batch(*names: str) -> dict[str, pl.DataFrame]:
    """A job for each name, with one row in every table."""
    return {
        table.name: pl.DataFrame(
            {
                column.name: list(names)
                if column.name == "job"
                else pl.Series([0] * len(names)).cast(column.dtype)
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


def test_a_batch_that_the_manifest_does_not_list_was_interrupted_and_is_cleared_away(
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


def test_a_manifest_that_lists_fewer_parts_is_not_believed(store: SiteStore) -> None:
    manifest = store.folder / MANIFEST
    text = manifest.read_text()
    manifest.write_text(text.replace("1,\n  2", "1"))
    assert manifest.read_text() != text

    with pytest.raises(BrokenTraceError, match="its content was changed"):
        store.table("jobs")


def test_small_parts_are_merged_and_every_job_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_store, "MERGED_PARTS", 4)
    made = make_site(tmp_path / "store")
    names = [f"job{number}" for number in range(11)]

    with made.adding():
        for name in names:
            made.add(batch(name))

    for table in SITE_TABLES:
        assert sorted(made.table(table)["job"]) == sorted(names)
        assert len(list((made.folder / table).glob("*.parquet"))) < 4


def test_a_merge_that_is_interrupted_loses_nothing(
    store: SiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_store, "MERGED_PARTS", 3)
    whole = site_store._write_manifest
    written: list[object] = []

    def once(folder: Path, *, parts: list[int]) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(parts)
        whole(folder, parts=parts)

    with monkeypatch.context() as interrupted, store.adding():
        interrupted.setattr(site_store, "_write_manifest", once)
        with pytest.raises(KeyboardInterrupt):
            store.add(batch("d"))
    before = store.known()
    with store.adding():
        store.add(batch("e"))

    assert before == {"a", "b", "c", "d"}
    assert store.known() == {"a", "b", "c", "d", "e"}


def test_a_reader_beside_a_merge_sees_every_job(
    store: SiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts that a reader has listed are gone when it comes to open them."""
    monkeypatch.setattr(site_store, "MERGED_PARTS", 3)
    listed = SiteStore._parts
    stale = [listed(store)]
    with store.adding():
        store.add(batch("d"))

    def first_stale(self: SiteStore) -> list[int]:
        return stale.pop() if stale else listed(self)

    monkeypatch.setattr(SiteStore, "_parts", first_stale)

    assert store.known() == {"a", "b", "c", "d"}


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
