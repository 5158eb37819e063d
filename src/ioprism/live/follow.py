"""Follow a file that grows, is rotated, replaced or truncated.

The file is asked for its size a few times a second: that works on network file systems, where
the kernel sends no notice of what other machines write.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ioprism.errors import BrokenTraceError
from ioprism.live.decode import Lines, Packed
from ioprism.live.intake import Intake
from ioprism.live.state import Journal

CHUNK = 2**20  # bytes taken before an answer is given
HEAD = 256  # bytes by which a file is known again


class Follower:
    """Reads what is added to one file."""

    def __init__(self, path: Path, *, job: str, largest: int) -> None:
        if path.exists() and not path.is_file():
            what = "folder" if path.is_dir() else "pipe or device"
            raise BrokenTraceError(
                f"a {what} cannot be followed.\nHint: name the file that grows.", source=path
            )
        self.path = path
        self.address = str(path)
        self.job = job
        self._largest = largest
        self._file: BinaryIO | None = None
        self._decoder: Lines | Packed | None = None
        self._resume: Mapping[str, Any] | None = None

    def read(self, intake: Intake, journal: Journal | None = None) -> bool:  # noqa: ARG002 - the file stays
        """Take what was added; return whether there may be more."""
        file = self._file or self._open()
        if file is None:
            return False
        if os.fstat(file.fileno()).st_size < file.tell():
            self._begin_anew(intake)
        chunk = file.read(CHUNK)
        if chunk:
            self._decode(chunk, intake)
            return True
        if self._was_replaced(file):
            self._begin_anew(intake, reopen=True)
            return self._file is not None
        return False

    def waits_on(self) -> None:
        """Nothing to sleep on: files on network file systems have to be polled."""

    def note_empty(self) -> None:
        """Do nothing: when something was added is not known."""

    def state(self) -> dict[str, Any]:
        """Return how far the file was read, and how to know it again."""
        if self._file is None:
            return dict(self._resume or {})
        left = 0 if self._decoder is None else self._decoder.left
        offset = self._file.tell() - left
        return {"path": str(self.path), "offset": offset, "head": _head(self._file, offset)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume where a saved state stopped, if the file is still the same."""
        self._resume = state

    def close(self) -> None:
        """Stop reading."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            file = self._file = self.path.open("rb")
        except FileNotFoundError:
            return None
        saved, self._resume = self._resume, None
        if saved and _head(file, int(saved["offset"])) == saved["head"]:
            file.seek(int(saved["offset"]))
        return file

    def _was_replaced(self, file: BinaryIO) -> bool:
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(file.fileno())
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def _begin_anew(self, intake: Intake, *, reopen: bool = False) -> None:
        intake.counts.files_replaced += 1
        if self._decoder is not None and self._decoder.left:
            intake.counts.malformed += 1  # its end will never come
        self._decoder = None
        if reopen:
            self.close()
            self._open()
        elif self._file is not None:
            self._file.seek(0)

    def _decode(self, chunk: bytes, intake: Intake) -> None:
        intake.counts.received_bytes += len(chunk)
        if self._decoder is None:
            text = chunk.lstrip()[:1] in (b"{", b"")
            self._decoder = (Lines if text else Packed)(self._largest)
        for value in self._decoder.feed(chunk, intake.counts):
            intake.receive_value(value, job=self.job)


def _head(file: BinaryIO, offset: int) -> bytes:
    """A fingerprint of the beginning, up to where it was read."""
    beginning = os.pread(file.fileno(), min(offset, HEAD), 0)
    return hashlib.blake2b(beginning, digest_size=16).digest()
