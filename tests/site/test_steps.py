"""Logs are added once by their content, however a run ends, and names can be hidden everywhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from ioprism import NoSuchTraceError, UsageError, characterise, diagnose, read, site
from ioprism.model.pseudonyms import read_key
from ioprism.site.steps import (
    SiteOptions,
    add_logs,
    content_digest,
    follow_logs,
    parse_day,
)
from ioprism.site.store import SITE_TABLES, SiteStore, make_site
from tests.conftest import TEST_DATA

LOGS = sorted((TEST_DATA / "darshan").glob("*.darshan"))
FEW = [TEST_DATA / "darshan" / f"{name}.darshan" for name in
       ("c_rank0_all_io", "g_straggler_rank2", "e_mpiio_collective")]  # fmt: skip
ONE_BY_ONE = """
import sys
from pathlib import Path
from ioprism.site import steps as site
from ioprism.site.store import make_site
site.AT_ONCE = 1
site.add_logs(make_site(Path(sys.argv[1])), [Path(name) for name in sys.argv[2:]],
              options=site.SiteOptions(processes=1),
              progress=lambda done: print(done, flush=True))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SiteStore:
    """A store of all test logs."""
    store = make_site(tmp_path_factory.mktemp("site") / "store")
    add_logs(store, [TEST_DATA / "darshan"], options=SiteOptions(processes=1))
    return store


def check_against_single_commands(store: SiteStore, logs: Sequence[Path]) -> None:
    """Bytes, files, stall time and causes are what `characterise` and `diagnose` say."""
    jobs = {row["path"]: row for row in store.table("jobs").rows(named=True)}
    causes = store.table("causes")
    for path in logs:
        trace, row = read(path), jobs[str(path)]
        said, found = characterise(trace), diagnose(trace)
        assert row["bytes_read"] == said.by_operation["read"].bytes
        assert row["bytes_written"] == said.by_operation["write"].bytes
        assert row["files"] == said.files
        assert row["io_stall"] == pytest.approx(found.io_stall.seconds)
        codes = causes.filter(job=row["job"])["code"].to_list()
        assert codes == [cause.code for cause in found.causes]


def test_counts_are_those_of_the_single_commands(whole: SiteStore) -> None:
    assert set(whole.table("jobs")["path"]) == {str(path) for path in LOGS}
    check_against_single_commands(whole, FEW)


@pytest.mark.corpus
def test_public_logs_are_all_in_one_store_with_the_counts_of_the_single_commands(
    tmp_path: Path, shared_data: Path
) -> None:
    logs = sorted((shared_data / "darshan" / "public").rglob("*.darshan"))
    store = make_site(tmp_path / "store")

    added = add_logs(store, logs)

    assert (added.added, added.failed) == (len({content_digest(path) for path in logs}), ())
    check_against_single_commands(store, logs[::12])


def test_a_log_counts_once_under_any_name(tmp_path: Path) -> None:
    store = make_site(tmp_path / "store")
    copy = tmp_path / "copy.darshan"
    shutil.copy(FEW[0], copy)

    first = add_logs(store, [FEW[0], copy])
    again = add_logs(store, [copy])

    assert (first.added, first.known) == (1, 1)
    assert (again.added, again.known) == (0, 1)
    assert store.table("jobs").height == 1


def test_what_cannot_be_read_is_skipped_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(FEW[0], folder / "good.darshan")
    (folder / "README").write_text("about these logs")
    (folder / "cut.darshan").write_bytes(FEW[1].read_bytes()[:600])
    named = tmp_path / "named.txt"
    named.write_text("no log")

    found = add_logs(make_site(tmp_path / "store"), [folder, named])

    assert (found.added, found.ignored) == (1, 1)
    assert sorted(Path(message.partition(": ")[0]).name for message in found.failed) == [
        "cut.darshan",
        "named.txt",
    ]


def test_a_path_without_anything_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTraceError):
        add_logs(make_site(tmp_path / "store"), [tmp_path / "nothing"])


def test_a_killed_run_loses_and_doubles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    process = subprocess.Popen(
        [sys.executable, "-c", ONE_BY_ONE, str(folder), *map(str, LOGS)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(2):
        process.stdout.readline()
    time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    store = make_site(folder)
    kept = store.known()
    found = add_logs(store, LOGS, options=SiteOptions(processes=1))

    jobs = store.table("jobs")["job"]
    assert len(kept) >= 2
    assert found.known == len(kept)
    assert sorted(jobs) == sorted({content_digest(path) for path in LOGS})
    assert set(store.table("causes")["job"]) <= set(jobs)


def test_several_processes_find_the_same(tmp_path: Path, whole: SiteStore) -> None:
    store = make_site(tmp_path / "store")

    add_logs(store, [TEST_DATA / "darshan"], options=SiteOptions(processes=2))

    for name in SITE_TABLES:
        tables = (kept.table(name) for kept in (store, whole))
        first, second = (table.sort(table.columns) for table in tables)
        assert first.equals(second)


def test_a_cluster_finds_the_same(tmp_path: Path, whole: SiteStore) -> None:
    pytest.importorskip("distributed")
    from ioprism.engine.cluster import ClusterSettings, Session

    store = make_site(tmp_path / "store")

    with closing(Session(ClusterSettings(workers=1))) as session:
        found = add_logs(store, FEW, cluster=session)

    digests = [content_digest(path) for path in FEW]
    kept = whole.table("jobs").filter(pl.col("job").is_in(digests))
    assert found.added == len(FEW)
    assert store.table("jobs").sort("job").equals(kept.sort("job"))


def test_hidden_names_are_stable_and_nowhere_in_clear(tmp_path: Path, whole: SiteStore) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef0123")
    options = SiteOptions(key=read_key(key), processes=1)
    stores = [make_site(tmp_path / name) for name in ("first", "second")]
    for store, logs in zip(stores, (LOGS, FEW), strict=True):
        add_logs(store, logs, options=options)

    first, second = (
        dict(store.table("jobs").select("job", "application").rows()) for store in stores
    )
    assert len(second) == len(FEW)
    assert second.items() <= first.items()
    assert len(set(first.values())) == whole.table("jobs")["application"].n_unique()
    clear = whole.table("jobs")
    secrets = {str(value) for name in ("application", "path") for value in clear[name].drop_nulls()}
    secrets |= set(whole.table("files")["pattern"]) | set(whole.table("hosts")["host"])
    secrets |= {path for log in LOGS for path in read(log).files["path"] if len(path) > 6}
    for name in SITE_TABLES:
        text = stores[0].table(name).write_csv()
        assert not [secret for secret in secrets if len(secret) > 3 and secret in text], name


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")

    with pytest.raises(UsageError, match="at least 16 bytes"):
        site.add(*FEW, store=tmp_path / "store", anonymise=tmp_path / "key")


def test_a_followed_folder_gives_each_log_once_when_it_is_whole(tmp_path: Path) -> None:
    store = make_site(tmp_path / "store")
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(FEW[0], folder / "one.darshan")
    coming = follow_logs(store, folder, options=SiteOptions(), every=0.01)

    first = next(coming)
    shutil.copy(FEW[1], folder / "two.darshan")
    second = next(coming)

    assert (first.added, second.added) == (1, 1)
    assert store.table("jobs").height == 2


def test_a_file_that_vanishes_while_it_is_looked_at_does_not_end_following(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, is_file = tmp_path / "logs", Path.is_file
    folder.mkdir()
    shutil.copy(FEW[0], folder / "one.darshan")
    (folder / "gone").symlink_to("nowhere")
    monkeypatch.setattr(Path, "is_file", lambda path: path.name == "gone" or is_file(path))

    first = next(follow_logs(make_site(tmp_path / "store"), folder, options=SiteOptions(), every=0))

    assert first.added == 1


def test_days_are_in_utc_and_other_words_are_refused() -> None:
    assert parse_day("1970-01-02") == 86400.0
    assert parse_day(None) is None
    with pytest.raises(UsageError, match="not a date"):
        parse_day("yesterday")


def test_files_of_one_run_are_one_job(tmp_path: Path) -> None:
    """`strace -ff` writes a file for each process; `sh` starts both programs."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for pid in (101, 102):
        (logs / f"run.{pid}").write_text(
            f'1700000000.1 openat(AT_FDCWD, "/data/{pid}", O_WRONLY|O_CREAT, 0644) = 3 <0.1>\n'
            '1700000001.2 write(3, "x"..., 1048576) = 1048576 <0.5>\n'
            "1700000002.0 close(3) = 0 <0.1>\n1700000002.5 +++ exited with 0 +++\n"
        )
    shutil.copy(FEW[0], logs / "other.darshan")
    store = make_site(tmp_path / "store")

    first = add_logs(store, [logs], options=SiteOptions(processes=1))
    again = add_logs(store, [logs], options=SiteOptions(processes=1))

    assert (first.added, first.known, first.failed) == (2, 0, ())
    assert (again.added, again.known) == (0, 3)
    assert min(store.table("jobs")["bytes_written"]) == 2 * 2**20
