"""Ask for counters now: commands, files and Prometheus endpoints, each with a time-out.

An answer is kept in a file, so that every reader of raw counters can read it, and a large one
takes no memory.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import urlsplit

from ioprism.errors import UsageError

MAX_ANSWER = 2 * 2**30  # bytes; 10,000 jobs on every one of 60 targets are about 700 MB
MAX_COMPLAINT = 200  # characters of a failed command's message that are shown
COPY_BLOCK = 2**20  # bytes


class NoAnswerError(Exception):
    """A source did not answer; the message says why."""


class PolledSource(Protocol):
    """Something that can be asked for counters."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def follows(self) -> bool:
        """Whether an answer holds only what is new."""
        ...

    def fetch(self, target: Path, timeout: float) -> bool:
        """Write an answer to a file; return whether there is one.

        Raises:
            NoAnswerError: there is none, or it did not come in time.
        """
        ...


@dataclass(slots=True)
class CommandSource:
    """Runs a command; without a shell unless that is asked for."""

    name: str
    shell: bool = False
    follows: bool = False

    def fetch(self, target: Path, timeout: float) -> bool:
        """Run the command with its output in a file; end it and its children when it is late."""
        words = self.name if self.shell else _words(self.name)
        complaints = target.with_suffix(".err")
        try:
            with target.open("wb") as output, complaints.open("wb") as errors:
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    words,
                    shell=self.shell,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
        except OSError as error:
            raise NoAnswerError(f"cannot be run ({error.strerror})") from error
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"no answer within {timeout:g} s") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status:
            with complaints.open("rb") as file:
                text = file.read(MAX_COMPLAINT).decode("utf-8", "replace").strip()
            raise NoAnswerError(f"exit code {status}{': ' if text else ''}{text}")
        return True


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise NoAnswerError(f"not a command ({error})") from error


@dataclass(slots=True)
class FileSource:
    """Reads a whole file again in every round, such as one below /proc or /sys."""

    path: Path
    follows: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)

    def fetch(self, target: Path, timeout: float) -> bool:  # noqa: ARG002 - files answer at once
        """Copy the file: its size may be unknown until it is read."""
        try:
            with self.path.open("rb") as file:
                _copy(file, target)
        except OSError as error:
            raise NoAnswerError(error.strerror or "cannot be read") from error
        return True


@dataclass(slots=True)
class FollowedFile:
    """Reads what was appended to a file of one record per line since the last round."""

    path: Path
    follows: bool = True
    place: int = 0
    inode: int = 0
    heading: bytes = field(default=b"", repr=False)

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)

    def fetch(self, target: Path, timeout: float) -> bool:  # noqa: ARG002 - files answer at once
        """Copy the new whole lines below the heading; a file that was replaced is begun again."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self.inode or status.st_size < self.place:
                    self.place, self.inode = 0, status.st_ino
                    self.heading = file.readline(COPY_BLOCK)
                file.seek(self.place)
                new = file.read(MAX_ANSWER // 16)  # the rest follows in the next round
        except OSError as error:
            raise NoAnswerError(error.strerror or "cannot be read") from error
        whole = new[: new.rfind(b"\n") + 1]
        if not whole:
            return False
        table = self.heading.count(b",") and not self.heading[:1].isdigit()
        target.write_bytes((self.heading if table and self.place else b"") + whole)
        self.place += len(whole)
        return True


@dataclass(slots=True)
class EndpointSource:
    """Asks a Prometheus endpoint."""

    name: str
    follows: bool = False

    def __post_init__(self) -> None:
        address = urlsplit(self.name)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UsageError(
                f"{self.name} is not the address of a Prometheus endpoint.\n"
                "Hint: give one such as http://127.0.0.1:9169/metrics."
            )

    def fetch(self, target: Path, timeout: float) -> bool:
        """Ask for the text format."""
        request = urllib.request.Request(self.name, headers={"Accept": "text/plain"})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:  # noqa: S310
                _copy(reply, target)
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise NoAnswerError(str(getattr(error, "reason", error)) or "no answer") from error
        return True


def _copy(source: IO[bytes], target: Path) -> None:
    left = MAX_ANSWER
    with target.open("wb") as file:
        while data := source.read(COPY_BLOCK):
            left -= len(data)
            if left < 0:
                raise OSError(errno.EFBIG, "the answer is implausibly long")
            file.write(data)
