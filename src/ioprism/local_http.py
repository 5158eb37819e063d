"""HTTP servers for one user of this machine: token, host check, headers and limits.

A connection is unproven until it has sent a whole request with the right token. Unproven
connections are limited in number, per peer and in total, and in time. Where one too many
arrives, the oldest unproven one is closed: an honest client sends its request immediately and is
proven within milliseconds, while one that only holds connections loses them. All users of this
machine share one loopback address, so a limit that refused the newest would let one user lock
the others out.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import re
import resource
import secrets
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ioprism.errors import UsageError
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import open_plain, printable

LOOPBACK = "127.0.0.1"
HEAD_SECONDS = 5.0  # until the request line and all headers with the token have arrived
MAX_UNPROVEN_OF_PEER = 32  # a browser opens six connections per server
MAX_CONNECTIONS = 256  # each has a thread and a descriptor
SHARE_OF_DESCRIPTORS = 4  # connections take at most one in four of those the process may have
REST_WITHOUT_DESCRIPTORS = 0.05  # seconds, or the accept loop would spin
SWEEP_INTERVAL = 0.5  # seconds between checks for connections that took too long
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
MAX_ADDRESS = 4096  # characters
TOKEN = re.compile(r"[A-Za-z0-9_-]{20,200}")
JSON = "application/json"
HTML = "text/html; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address contains the token
    "X-Content-Type-Options": "nosniff",
}


def is_loopback(host: str) -> bool:
    """Whether a host name or number is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class LocalServer(ThreadingHTTPServer):
    """Serves every connection in a thread, and keeps few that have not shown the token."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], handler: type[LocalHandler], *, token: str | None = None
    ) -> None:
        self.host = address[0]
        self.token = token or secrets.token_urlsafe(24)
        self._unproven: dict[socket.socket, tuple[str, float]] = {}  # peer, monotonic seconds
        self._proven: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._swept = time.monotonic()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = MAX_CONNECTIONS
        if limit != resource.RLIM_INFINITY:
            self._most = max(4, min(self._most, limit // SHARE_OF_DESCRIPTORS))
        super().__init__(address, handler)

    @property
    def url(self) -> str:
        """Where the server answers; it contains the token."""
        return f"http://{self.host}:{self.server_port}/{self.token}"

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
        per_peer = Counter(owner for owner, _ in self._unproven.values())
        if per_peer[peer] >= min(MAX_UNPROVEN_OF_PEER, self._most - 1):
            self._close_oldest(peer)
        elif len(self._unproven) + len(self._proven) >= self._most and per_peer:
            self._close_oldest(per_peer.most_common(1)[0][0])

    def _close_oldest(self, peer: str | None) -> None:
        for connection, (owner, _) in self._unproven.items():
            if peer in (None, owner):
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
        if now - self._swept < SWEEP_INTERVAL:
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


class BackgroundServer(LocalServer):
    """Serves in a thread beside the command, until it is closed."""

    def __init__(
        self, host: str, port: int, handler: type[LocalHandler], *, token: str | None
    ) -> None:
        try:
            super().__init__((host, port), handler, token=token)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot serve on {host}:{port}: {error}.\n"
                "Hint: choose another --http port; 0 takes any."
            ) from error
        threading.Thread(target=self.serve_forever, args=(0.5,), name="http", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()


class RefusedError(Exception):
    """A request that gets no answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class LocalHandler(BaseHTTPRequestHandler):
    """Answers requests that have the token and come from where they may."""

    server: LocalServer
    server_version, sys_version = "ioprism", ""
    protocol_version = "HTTP/1.1"
    timeout = 60
    # Whether only the page itself may ask, by the server's own name and port. Otherwise any link
    # or tunnel to the page will do.
    same_origin_only = True

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Send the answer to an admitted request; `path` begins after the token."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer, or refuse."""
        try:
            self._check_sender()
            if len(self.path) > MAX_ADDRESS:
                raise RefusedError(404, "there is nothing here")
            address = urlsplit(self.path)
            path = self._path_after_token(address.path)
            self.server.trust(self.connection)
            if not path:  # what pages ask for is relative to them
                self.send_head(
                    HTML, {"Location": f"{address.path}/", "Content-Length": "0"}, status=308
                )
                return
            query = {key: values[-1] for key, values in parse_qs(address.query).items()}
            self.answer(path, query)
        except RefusedError as refusal:
            self.close_connection = self.close_connection or refusal.status == 403
            self.send_json({"error": refusal.reason}, status=refusal.status)
        except ValueError:  # an address or a number that cannot be read
            self.send_json({"error": "malformed request"}, status=400)

    def send_json(self, value: object, *, status: int = 200) -> None:
        """Send a value as JSON."""
        self.send_content(JSON, json.dumps(value).encode(), status=status)

    def send_content(self, kind: str, content: bytes, *, status: int = 200) -> None:
        """Send content of a type."""
        try:
            self.send_head(kind, {"Content-Length": str(len(content))}, status=status)
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page has been closed or moved on

    def send_head(self, kind: str, headers: dict[str, str], *, status: int = 200) -> None:
        """Send the status and all headers."""
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
        """Log nothing: addresses contain the token."""

    def _path_after_token(self, path: str) -> str:
        """The path that is asked for; the token is in the address or in a header."""
        token = self.server.token.encode()
        _, first, *rest = path.split("/", 2)
        if secrets.compare_digest(first.encode(), token):
            return "/".join(("", *rest))
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), token):
            raise RefusedError(403, "the token is missing or wrong")
        return path

    def _check_sender(self) -> None:
        """Refuse other names (DNS rebinding) and, if asked for, other pages (cross-site)."""
        hosts = self.headers.get_all("Host", [])
        if not self.same_origin_only:
            host = hosts[0] if hosts else ""
            name = host.rpartition(":")[0] or host
            if is_loopback(self.server.host) and not is_loopback(name):
                raise RefusedError(403, "this name is not served here")
            return
        allowed = [f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")]
        if len(hosts) != 1 or hosts[0] not in allowed:
            raise RefusedError(403, "this name is not served here")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{name}" for name in allowed]:
            raise RefusedError(403, "this origin is not served")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise RefusedError(403, "this origin is not served")


def read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read; made if there is none.

    Raises:
        UsageError: the file holds something else, or others can read it.
    """
    if not path.exists():
        atomic_write_text(path, f"{secrets.token_urlsafe(24)}\n", private=True)
    try:
        with open_plain(path) as file:
            shared = os.fstat(file.fileno()).st_mode & 0o077
            text = file.read(1000).decode("ascii", "replace").strip()
            why = "others can read it" if shared else "it holds no token"
    except OSError as error:
        shared, text, why = 0, "", str(error.strerror)
    if shared or not TOKEN.fullmatch(text):
        raise UsageError(
            f"{printable(str(path))} cannot be used: {why}.\n"
            f"Hint: remove it, and a new one is made."
        )
    return text
