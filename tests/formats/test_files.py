"""Pipes are refused instead of waited for; what is closed to us is said, never left out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ioprism import BrokenTraceError, read
from ioprism.cli import main
from ioprism.formats.reading import files_below
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
OTHER = TEST_DATA / "darshan/e_mpiio_collective.darshan"
PFW = TEST_DATA / "dftracer/v2.2.0-md1-plain.pfw"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(LOG, tmp_path / "a.darshan")
    return tmp_path


@pytest.fixture
def closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that nobody may look into; for root there is none, so the system is asked to lie."""
    place = folder / "closed"
    place.mkdir()
    access, scan = os.access, os.scandir

    def refused(path: str | Path, mode: int) -> bool:
        return Path(path) != place and access(path, mode)

    def unseen(path: str | Path) -> object:
        if Path(path) == place:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "access", refused)
        patched.setattr(os, "scandir", unseen)
        yield place


def test_a_pipe_is_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    with pytest.raises(BrokenTraceError, match=r"this is a pipe.*\n.*Hint: write it to a file"):
        read(folder / "pipe")
    trace = read(folder)
    assert trace.job.ranks == 4
    assert any("pipe" in warning for warning in trace.completeness.warnings)


def test_a_closed_folder_is_refused_and_said(folder: Path, closed: Path) -> None:
    with pytest.raises(BrokenTraceError, match="permission denied"):
        read(closed)
    trace = read(folder)

    assert any("permission denied" in warning for warning in trace.completeness.warnings)


def test_files_of_a_folder_are_listed_with_what_is_closed(folder: Path, closed: Path) -> None:
    (folder / "inner").mkdir()
    shutil.copy(LOG, folder / "inner/b.darshan")

    assert files_below(folder) == [folder / "a.darshan", closed, folder / "inner/b.darshan"]


def test_traces_of_processes_beside_a_closed_folder_are_not_read_as_if_they_were_all(
    tmp_path: Path, closed: Path
) -> None:
    (closed.parent / "a.darshan").unlink()
    shutil.copy(PFW, tmp_path / "run-1.pfw")

    with pytest.raises(BrokenTraceError, match="closed: permission denied"):
        read(tmp_path, format="dftracer")


def said(*words: object) -> Any:
    done = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_many_logs_beside_a_closed_folder_are_judged(folder: Path, closed: Path) -> None:
    found = said("insights", folder)

    assert [job["paths"] for job in found["jobs"]] == [[str(folder / "a.darshan")]]
    assert str(closed) in str(found["failures"])


def test_a_site_says_what_it_could_not_look_into(folder: Path, closed: Path) -> None:
    shutil.copy(OTHER, folder / "b.darshan")
    found = said("site", "add", folder, "--store", folder.parent / "site")

    assert (found["added"], found["known"]) == (2, 0)
    assert [text.partition(": ")[0] for text in found["failed"]] == [str(closed)]
