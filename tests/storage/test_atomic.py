"""A write that finds no room says which file it was for."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ioprism.errors import OutputError
from ioprism.storage.atomic import atomic_folder, atomic_write, atomic_write_text


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    target = tmp_path / "page.html"

    with pytest.raises(OSError, match="No space left") as caught, atomic_write(target):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert caught.value.filename == str(target)
    assert list(tmp_path.iterdir()) == []


def test_other_failures_keep_the_name_they_came_with(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError) as caught, atomic_write(tmp_path / "page.html"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    assert caught.value.filename is None


@pytest.mark.parametrize("address", ["s3://bucket/page.html", "gs://bucket/run.store"])
def test_nothing_is_written_to_a_folder_that_looks_like_an_address(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(OutputError, match=f"^{address}: .*\nHint: write it here, and copy"):
        atomic_write_text(Path(address), "text")
    with pytest.raises(OutputError), atomic_folder(Path(address), marker="mark"):
        pass
    assert not list(tmp_path.iterdir())
