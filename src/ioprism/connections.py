"""An HTTP server that idle or slow connections cannot block.

A connection is unproven until it has sent a whole request with the right token. Unproven
connections are limited in number, per peer and in total, and in time. Where one too many
arrives, the oldest unproven one is closed: an honest client sends its request at once and is
proven within milliseconds, while one that only holds connections loses them. All users of this
machine share one loopback address, so a limit that refused the newest would let one user lock
the others out.
"""

from __future__ import annotations

import errno
import resource
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any

HEAD_SECONDS = 5.0  # until the request line and all headers with the token have arrived
MOST_UNPROVEN_OF_PEER = 32  # a browser opens six connections per server
MOST_CONNECTIONS = 256  # each has a thread and a descriptor
SHARE_OF_DESCRIPTORS = 4  # connections take at most one in four of those the process may have
REST_WITHOUT_DESCRIPTORS = 0.05  # seconds, or the accept loop would spin
SWEEP = 0.5  # seconds between looks for connections that took too long
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class GuardedServer(ThreadingHTTPServer):
    """Serves every connection in a thread of its own, and keeps few that have not proven theirs."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Any) -> None:  # noqa: ANN401 - a class
        self._unproven: dict[socket.socket, tuple[str, float]] = {}  # peer, monotonic seconds
        self._proven: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._swept = time.monotonic()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = MOST_CONNECTIONS
        if limit != resource.RLIM_INFINITY:
            self._most = max(4, min(self._most, limit // SHARE_OF_DESCRIPTORS))
        super().__init__(address, handler)

    def trust(self, connection: socket.socket) -> None:
        """Keep a connection whose request had the right token."""
        with self._guard:
            if self._unproven.pop(connection, None) is not None:
                self._proven.add(connection)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; without a descriptor to spare, close another one first."""
        try:
            connection, address = self.socket.accept()
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                with self._guard:
                    self._close_oldest(None)
                time.sleep(REST_WITHOUT_DESCRIPTORS)
            raise
        with self._guard:
            self._make_room(address[0])
            self._unproven[connection] = (address[0], time.monotonic())
        return connection, address

    def _make_room(self, peer: str) -> None:
        held = Counter(held for held, _ in self._unproven.values())
        if held[peer] >= min(MOST_UNPROVEN_OF_PEER, self._most - 1):
            self._close_oldest(peer)
        elif len(self._unproven) + len(self._proven) >= self._most and held:
            self._close_oldest(held.most_common(1)[0][0])

    def _close_oldest(self, peer: str | None) -> None:
        for connection, (held, _) in self._unproven.items():
            if peer in (None, held):
                self._end(connection)
                return

    def _end(self, connection: socket.socket) -> None:
        """Wake the thread that waits for this connection; it closes it."""
        self._unproven.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def service_actions(self) -> None:
        """End connections that took too long to ask for something."""
        now = time.monotonic()
        if now - self._swept < SWEEP:
            return
        self._swept = now
        with self._guard:
            late = [one for one, (_, since) in self._unproven.items() if now - since > HEAD_SECONDS]
            for connection in late:
                self._end(connection)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the base's signature
        """Forget a connection that has ended."""
        with self._guard:
            self._unproven.pop(request, None)
            self._proven.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect or send nonsense."""
