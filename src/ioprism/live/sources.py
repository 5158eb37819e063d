"""Where the messages of running jobs come from: one protocol, whatever the transport.

A new transport is one class with these methods, and one entry point of the group
`ioprism.transports` that names the scheme of its addresses (`kafka`, for example) and a function
from an address to the source; `ioprism watch --source kafka://...` then opens it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from ioprism.errors import UsageError
from ioprism.live.access import ServerKeys, zeromq
from ioprism.live.intake import Intake, Message
from ioprism.live.state import Journal
from ioprism.plugins import declared, load
from ioprism.text import printable

GROUP = "ioprism.transports"


class StreamSource(Protocol):
    """Hands what has arrived to the intake, and never waits for more."""

    address: str

    def read(self, intake: Intake, journal: Journal | None) -> bool:
        """Take what has arrived; return whether there may be more.

        What could not be read again after a restart is also written to the journal.
        """
        ...

    def waits_on(self) -> Any:  # noqa: ANN401 - a number, or a socket of ZeroMQ
        """A descriptor or ZeroMQ socket to sleep on; None if the source has to be polled."""
        ...

    def note_empty(self) -> None:
        """Nothing had arrived until now: the service has slept on the descriptor."""
        ...

    def state(self) -> dict[str, Any]:
        """How far it was read; empty if a restart cannot resume there."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume where a saved state stopped."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


Opener = Callable[[str], StreamSource]


def open_source(address: str, built_in: Mapping[str, Opener]) -> StreamSource:
    """Open a source by the scheme of its address.

    Args:
        address: such as `tcp://127.0.0.1:5555` or `file:///scratch/me/run.jsonl`.
        built_in: what opens the addresses of each scheme that needs no plug-in.

    Raises:
        UsageError: no transport has this scheme.
    """
    scheme = address.partition("://")[0]
    openers = {one.name: one for one in declared(GROUP)}
    if scheme in built_in:
        return built_in[scheme](address)
    if scheme in openers:
        opened: StreamSource = load(openers[scheme])(address)
        return opened
    known = ", ".join(f"{name}://" for name in sorted({*built_in, *openers}))
    raise UsageError(
        f"no transport opens {printable(address)}.\nHint: addresses begin with {known}."
    )


# Messages of a sender, whatever their size; then it waits. Each takes a buffer of at least 8 KiB,
# so that this is 16 MiB, and a fifth of a second of 10,000 messages/s.
QUEUE = 2000
AT_ONCE = 1000  # messages taken before an answer is given
PATIENCE = 0.01  # seconds of taking in before an answer is given


class PullSource:
    """A socket that binds; senders connect and push."""

    def __init__(
        self,
        context: Any,  # noqa: ANN401 - zmq is loaded late
        address: str,
        *,
        job: str,
        largest: int,
        keys: ServerKeys | None = None,
    ) -> None:
        self._zmq = zeromq("ioprism watch --zmq")
        self.job = job
        self.socket = context.socket(self._zmq.PULL)
        self.socket.setsockopt(self._zmq.LINGER, 0)
        self.socket.setsockopt(self._zmq.RCVHWM, QUEUE)
        # A message much above the limit never reaches memory: its sender is cut off.
        self.socket.setsockopt(self._zmq.MAXMSGSIZE, 4 * largest)
        self.address = bind_socket(self.socket, address, self._zmq, keys)
        tcp = self.address.startswith("tcp://")  # elsewhere only our own user can send
        self._known_by = ("Peer-Address" if keys is None else "User-Id") if tcp else None
        self.empty_at = time.monotonic()  # when nothing waited, the last time it was asked
        self._taken = 0  # messages
        self._reads: deque[tuple[int, float]] = deque()  # since then: what was taken before, when

    def read(self, intake: Intake, journal: Journal | None) -> bool:
        """Take what has arrived; return whether there may be more."""
        empty_at, arrived = self.empty_at, self._earliest_arrival()
        counted = intake.receive(self._waiting(intake.largest), arrived=arrived)
        if journal is not None:
            for message in counted:
                journal.append(message.job, message.raw)
        return self.empty_at == empty_at

    def _earliest_arrival(self) -> float:
        """From when on what waits can have waited.

        That is right after the socket was last found empty. If that is long ago, it is when the
        message was taken that is a queue and one before it: until then the queue was full.
        """
        reads = self._reads
        reads.append((self._taken, time.monotonic()))
        long_ago = self._taken - QUEUE
        while len(reads) > 1 and reads[1][0] < long_ago:
            reads.popleft()
        taken, began = reads[0]
        return max(self.empty_at, began) if taken < long_ago else self.empty_at

    def _waiting(self, most_bytes: int) -> Iterator[Message]:
        """Messages that wait, up to a number and size that can be answered soon."""
        until, size = time.monotonic() + PATIENCE, 0
        for _ in range(AT_ONCE):
            try:
                frames = self.socket.recv_multipart(self._zmq.NOBLOCK, copy=False)
            except self._zmq.Again:
                self.empty_at = time.monotonic()
                self._reads.clear()
                return
            self._taken += 1
            message = self._message(frames)
            yield message
            size += len(message.raw)
            if size > most_bytes or time.monotonic() > until:
                return

    def waits_on(self) -> Any:  # noqa: ANN401 - zmq is loaded late
        """The socket."""
        return self.socket

    def note_empty(self) -> None:
        """Remember that nothing waited until now."""
        self.empty_at = time.monotonic()

    def state(self) -> dict[str, Any]:
        """Nothing: what was taken from a socket is in the journal."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing: this source keeps no state."""

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()

    def _message(self, frames: list[Any]) -> Message:
        """A message of two parts begins with the name of its job; our own user has no name."""
        name = frames[0].bytes.decode("utf-8", "replace") if len(frames) == 2 else ""
        sender = ""
        if self._known_by is not None:
            with suppress(self._zmq.ZMQError):
                sender = str(frames[-1].get(self._known_by))
        return Message(name or self.job, frames[-1].bytes, sender)


def bind_socket(socket: Any, address: str, zmq: Any, keys: ServerKeys | None = None) -> str:  # noqa: ANN401 - zmq is loaded late
    """Bind a socket; return where it really listens.

    A file that it listens on is for our own user alone; on TCP, keys say who is heard.

    Raises:
        UsageError: the address cannot be listened on.
    """
    if keys is not None and address.startswith("tcp://"):
        keys.protect(socket)
    before = os.umask(0o177)  # write access to the file is the right to connect
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        socket.close()
        advice = (
            "choose another port; tcp://127.0.0.1:* takes any that is free."
            if address.startswith("tcp://")
            else "choose a short path in a folder that you can write to."
        )
        raise UsageError(f"cannot listen on {address}: {error}.\nHint: {advice}") from error
    finally:
        os.umask(before)
    return str(socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())
