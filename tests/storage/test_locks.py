"""Locks can be held by those who may write, and leftovers of live writers stay."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ioprism.errors import OutputError
from ioprism.storage import atomic
from ioprism.storage.atomic import atomic_folder, atomic_write, held_alone

NOBODY = 65534


@pytest.mark.parametrize(
    ("folder", "lock"), [(0o755, 0o600), (0o775, 0o660), (0o777, 0o666), (0o1777, 0o600)]
)
def test_a_lock_can_be_opened_by_those_who_may_write(
    tmp_path: Path, folder: int, lock: int
) -> None:
    tmp_path.chmod(folder)
    with held_alone(tmp_path / ".lock", otherwise="taken"):
        assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == lock
    tmp_path.chmod(0o700)


def test_a_lock_of_an_older_version_becomes_private(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch(0o644)
    with held_alone(tmp_path / ".lock", otherwise="taken"):
        pass

    assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_reader_of_a_store_cannot_keep_its_writers_out(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    with held_alone(tmp_path / ".lock", otherwise="taken"):
        pass
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            os.open(tmp_path / ".lock", os.O_RDONLY)
        except PermissionError:
            os._exit(7)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_lock_that_is_held_is_said_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with (
            pytest.raises(OutputError, match="taken"),
            held_alone(tmp_path / ".lock", otherwise="taken"),
        ):
            pass
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(OutputError, match="not a plain file"),
        held_alone(tmp_path / "pipe", otherwise="taken"),
    ):
        pass


def test_what_a_live_writer_in_another_namespace_writes_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.run([sys.executable, "-S", "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(Path, "readlink", lambda _: Path("pid:[1]"))
        there = atomic._here()
    theirs = tmp_path / f".a.txt.{there}-{dead.stdout.strip()}-0{atomic.NEW}"
    theirs.touch()
    atomic.atomic_write_text(tmp_path / "a.txt", "text")

    assert theirs.exists()
    assert there != atomic._here()


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"),
     pl.exceptions.ComputeError("No space left on device (os error 28)"),
     OSError("No space left on device (os error 28)")],
)  # fmt: skip
def test_a_full_disk_is_named_whatever_library_found_it(tmp_path: Path, error: Exception) -> None:
    target = tmp_path / "out"
    for writing in (atomic_write(target), atomic_folder(target, marker="m")):
        with pytest.raises(OSError, match="No space left") as caught, writing:
            raise error
        assert caught.value.filename == str(target)
