"""Live messages as datagrams on a Unix socket: `ioprism watch --source datagram:///run/me/io`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ioprism import UsageError
from ioprism.live.intake import Intake, Message
from ioprism.live.state import Journal

AT_ONCE = 1000  # messages taken before an answer is given
LARGEST = 2**16  # bytes


class DatagramSource:
    """A socket in the file system; whoever may write to it may send."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._path = Path(address.partition("://")[2])
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)  # for our own user alone
        try:
            self._socket.bind(str(self._path))
        except OSError as error:
            self._socket.close()
            raise UsageError(
                f"cannot listen on {address}: {error.strerror}.\n"
                "Hint: name a file that is not there yet."
            ) from error
        finally:
            os.umask(before)

    def read(self, intake: Intake, journal: Journal | None) -> bool:
        """Take what has arrived; return whether there may be more."""
        messages = list(self._waiting())
        for message in intake.receive(messages, arrived=time.monotonic()):
            if journal is not None:  # a datagram cannot be read again
                journal.append(message.job, message.raw)
        return len(messages) == AT_ONCE

    def _waiting(self) -> Iterator[Message]:
        for _ in range(AT_ONCE):
            try:
                yield Message("job", self._socket.recv(LARGEST))
            except BlockingIOError:
                return

    def waits_on(self) -> int:
        """The descriptor that the service sleeps on."""
        return self._socket.fileno()

    def note_empty(self) -> None:
        """Do nothing: when a datagram arrived is not known."""

    def state(self) -> dict[str, Any]:
        """Return nothing: what was not read is lost when the service stops."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Begin with what arrives from now on."""

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        self._path.unlink(missing_ok=True)
