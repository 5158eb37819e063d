"""Whatever happens while a command writes, old data stay, and there is one message."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioprism import OutputError
from ioprism.storage import atomic
from ioprism.storage.atomic import atomic_folder, atomic_write
from tests.storage.faults import (
    IN_PROCESS,
    ON_DISK,
    after_fault,
    after_kill,
    after_random_kill,
    leftovers,
)
from tests.storage.writers import (
    WRITERS,
    Writer,
    command,
    content,
    prepare_inputs,
    prepare_old,
    run,
    words,
)

every_writer = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def disk(small_disk: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    yield small_disk


@every_writer
@pytest.mark.parametrize("fault", [*IN_PROCESS, *ON_DISK])
def test_old_data_survive_what_goes_wrong_in_the_process_or_with_the_disk(
    writer: Writer, fault: str, inputs: Path, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue("disk" if fault in ON_DISK else "folder")
    found = after_fault(writer, (IN_PROCESS | ON_DISK)[fault], inputs, place)

    assert (found.intact, found.leftovers, found.code, found.messages) == (True, (), 1, 1), found


@every_writer
def test_old_data_survive_a_kill_and_the_next_run_tidies_up(
    writer: Writer, inputs: Path, folder: Path
) -> None:
    found = after_kill(writer, inputs, folder)

    assert (found.intact, found.leftovers, found.code) == (True, (), 0), found


@pytest.mark.parametrize("moment", [0.4, 0.9, 1.6])
@pytest.mark.parametrize("name", ["convert store", "site add", "write-time import"])
def test_a_kill_at_any_moment_leaves_the_old_or_the_new(
    name: str, moment: float, inputs: Path, folder: Path
) -> None:
    writer = next(one for one in WRITERS if one.name == name)
    found = after_random_kill(writer, moment, inputs, folder)

    assert (found.intact, found.leftovers) == (True, ()), found


def in_it(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


class InterruptedWriteError(Exception):
    """Something that goes wrong within a write."""


def test_what_is_written_to_a_file_is_there_whole_or_not_at_all(folder: Path) -> None:
    target = folder / "a.txt"
    with atomic_write(target) as temporary:
        temporary.write_text("old")
    with pytest.raises(InterruptedWriteError), atomic_write(target, replace=True) as temporary:
        temporary.write_text("new")
        raise InterruptedWriteError

    assert target.read_text() == "old"
    assert in_it(folder) == ["a.txt"]


def _folder_with(place: Path, text: str, *, replace: bool = False) -> None:
    with atomic_folder(place, marker="marker", replace=replace) as temporary:
        (temporary / "marker").write_text(text)


@pytest.mark.parametrize("exchange", [True, False], ids=["in one step", "in two steps"])
def test_a_folder_is_replaced_whole(
    folder: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(atomic, "_swap", lambda *_: False)
    _folder_with(folder / "a", "old")
    _folder_with(folder / "a", "new", replace=True)

    assert (folder / "a/marker").read_text() == "new"
    assert in_it(folder) == ["a"]


def test_the_old_folder_comes_back_if_the_second_of_two_renames_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _folder_with(folder / "a", "old")
    monkeypatch.setattr(atomic, "_swap", lambda *_: False)
    rename = Path.rename

    def fails_for_new(path: Path, target: Path) -> Path:
        if path.suffix == atomic.NEW:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails_for_new)
    with pytest.raises(OSError, match="Input/output error"):
        _folder_with(folder / "a", "new", replace=True)

    assert (folder / "a/marker").read_text() == "old"
    assert in_it(folder) == ["a"]


def test_a_folder_that_a_killed_run_had_moved_away_comes_back(folder: Path) -> None:
    _folder_with(folder / "a", "old")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = folder / f".a.{atomic._here()}-{dead.pid}-0{atomic.OLD}"
    (folder / "a").rename(gone)
    with pytest.raises(OutputError, match="already exists"):
        _folder_with(folder / "a", "new")

    assert (folder / "a/marker").read_text() == "old"


def test_what_others_still_write_is_left_alone(folder: Path) -> None:
    mine = folder / f".a.txt.{atomic._here()}-{os.getpid()}-0{atomic.NEW}"
    elsewhere = folder / f".a.txt.00000000-1-0{atomic.NEW}"
    for path in (mine, elsewhere):
        path.write_text("half")
    with atomic_write(folder / "a.txt") as temporary:
        temporary.write_text("new")

    assert mine.exists() and elsewhere.exists()


@pytest.mark.parametrize("kind", ["link", "broken link", "pipe", "device"])
def test_nothing_is_written_through_links_pipes_and_devices(folder: Path, kind: str) -> None:
    target, other = folder / "target", folder / "other"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "device":
        target = Path("/dev/null")
    else:
        target.symlink_to(other)
        other.write_text("kept") if kind == "link" else None
    with pytest.raises(OutputError, match="nothing is written to it"):
        atomic_write(target, replace=True).__enter__()

    assert not other.exists() or other.read_text() == "kept"


@pytest.mark.parametrize("page", ["report", "period", "compare"])
def test_a_folder_is_never_replaced_by_a_page(page: str, inputs: Path, folder: Path) -> None:
    thesis = folder / "page.html"
    thesis.mkdir()
    (thesis / "chapter1.tex").write_text("precious")
    writer = next(one for one in WRITERS if one.name == page)
    done = subprocess.run(
        [sys.executable, "-m", "ioprism", *command(writer, inputs, folder)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1 and "is a folder" in done.stderr
    assert (thesis / "chapter1.tex").read_text() == "precious"


@every_writer
def test_what_exists_is_not_replaced_unasked(writer: Writer, inputs: Path, folder: Path) -> None:
    if not writer.force:
        pytest.skip("it adds to what is there")
    prepare_old(writer, inputs, folder)
    before = content(folder / writer.target)
    code, said = run(words(writer.command, inputs, folder))

    assert code == 1 and "already exists" in said and "--force" in said
    assert content(folder / writer.target) == before
    assert not leftovers(folder)


def test_the_mode_of_a_file_that_is_replaced_stays(folder: Path) -> None:
    target = folder / "a.txt"
    target.write_text("old")
    target.chmod(0o640)
    with atomic_write(target, replace=True) as temporary:
        temporary.write_text("new")

    assert target.stat().st_mode & 0o777 == 0o640


def test_a_name_of_any_length_and_with_any_letters_can_be_written(folder: Path) -> None:
    for name in ("x" * 255, "[*?].txt", "é" * 127):
        with atomic_write(folder / name) as temporary:
            temporary.write_text("new")

    assert len(in_it(folder)) == 3


def test_what_another_running_process_writes_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = folder / "answer.json"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        monkeypatch.setattr(os, "getpid", lambda: other.pid)
        with atomic_write(target) as theirs:
            monkeypatch.undo()
            with atomic_write(target) as ours:
                ours.write_text("ours")
            assert theirs.exists()
            assert other.poll() is None
            target.unlink()
            theirs.write_text("theirs")
        other.communicate(b"\n", timeout=20)

    assert other.returncode == 0
    assert target.read_text() == "theirs"
