"""Keys for ZeroMQ over TCP and the page's token: whoever has none is not heard, and hears nothing.

`ioprism watch --keygen FOLDER` makes two files that only their owner can read: the server's keys,
and those that senders and subscribers need. Messages are encrypted with them on the way (CURVE).
The live page is protected by a token instead, which may be kept in a file.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioprism.errors import OutputError, UsageError
from ioprism.live.addresses import zeromq
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import printable

SERVER, CLIENT = "server.key", "client.key"
LARGEST = 65536  # bytes of a file of keys
DOMAIN = "ioprism"
KEY_LENGTH = 40  # characters of Z85


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """What the service needs: its own pair, and the public keys of those it hears."""

    public: str
    secret: str
    clients: tuple[str, ...]

    def protect(self, socket: Any) -> None:  # noqa: ANN401 - zmq is loaded late
        """Let a socket hear only clients whose keys are known; before it binds."""
        socket.setsockopt(zeromq("keys").ZAP_DOMAIN, DOMAIN.encode())
        socket.curve_publickey, socket.curve_secretkey = self.public.encode(), self.secret.encode()
        socket.curve_server = True

    def callback(self, domain: str, key: bytes) -> bool:  # noqa: ARG002 - pyzmq's own signature
        """Whether a client may connect; pyzmq's authenticator asks."""
        return key.decode("ascii", "replace") in self.clients


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """What a sender or subscriber needs: its own pair, and whom it talks to."""

    server: str
    public: str
    secret: str

    def use(self, socket: Any) -> None:  # noqa: ANN401 - zmq is loaded late
        """Show a socket's keys to the server; before it connects."""
        socket.curve_serverkey = self.server.encode()
        socket.curve_publickey, socket.curve_secretkey = self.public.encode(), self.secret.encode()


def make_keys(folder: Path) -> tuple[Path, Path]:
    """Write new keys for a server and its clients; return where they are.

    Raises:
        OutputError: there are keys already.
    """
    zmq = zeromq("ioprism watch --keygen")
    (public, secret), (own, hidden) = (
        [key.decode() for key in zmq.curve_keypair()] for _ in range(2)
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    server, client = folder / SERVER, folder / CLIENT
    if server.exists():
        raise OutputError(f"{server} already exists.\nHint: choose another folder for new keys.")
    # A client without its server is what a killed run left.
    _write(client, {"server": public, "public": own, "secret": hidden}, replace=True)
    _write(server, {"public": public, "secret": secret, "clients": [own]}, replace=False)
    return server, client


def _write(path: Path, keys: dict[str, Any], *, replace: bool) -> None:
    atomic_write_text(path, json.dumps(keys, indent=1) + "\n", replace=replace, private=True)


def server_keys(folder: Path) -> ServerKeys:
    """Read a server's keys from their folder, or from the file itself.

    Raises:
        UsageError: there are none, or others can read them.
    """
    path = folder / SERVER if folder.is_dir() else folder
    read = _read(path, ("public", "secret"))
    clients = read.get("clients")
    if not isinstance(clients, list) or not all(map(_is_key, clients)):
        raise _unusable(path, "it has no clients")
    return ServerKeys(read["public"], read["secret"], tuple(clients))


def client_keys(folder: Path) -> ClientKeys:
    """Read a client's keys from their folder, or from the file itself.

    Raises:
        UsageError: there are none, or others can read them.
    """
    path = folder / CLIENT if folder.is_dir() else folder
    read = _read(path, ("server", "public", "secret"))
    return ClientKeys(read["server"], read["public"], read["secret"])


def _read(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise _unusable(path, "others can read it", hint=f"chmod 600 {path}")
            read = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(path, str(error)[:100]) from error
    if not isinstance(read, dict) or not all(_is_key(read.get(name)) for name in names):
        raise _unusable(path, f"it lacks {', '.join(names)}")
    return read


def _is_key(value: object) -> bool:
    return isinstance(value, str) and len(value) == KEY_LENGTH and value.isascii()


def _unusable(path: Path, why: str, *, hint: str = "") -> UsageError:
    return UsageError(
        f"{printable(str(path))} contains no usable keys: {why}.\n"
        f"Hint: {hint or 'make some with `ioprism watch --keygen FOLDER`.'}"
    )


@contextmanager
def guarded(context: Any, keys: ServerKeys | None) -> Iterator[Any]:  # noqa: ANN401 - zmq
    """Yield a context whose protected sockets ask who may connect."""
    if keys is None:
        yield context
        return
    from zmq.auth.thread import ThreadAuthenticator

    guard = ThreadAuthenticator(context)
    guard.start()
    guard.configure_curve_callback(domain=DOMAIN, credentials_provider=keys)
    try:
        yield context
    finally:
        guard.stop()


TOKEN = re.compile(r"[A-Za-z0-9_-]{20,200}")


def read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read; made if there is none.

    Raises:
        UsageError: the file holds something else, or others can read it.
    """
    if not path.exists():
        atomic_write_text(path, f"{secrets.token_urlsafe(24)}\n", private=True)
    with path.open("rb") as file:
        shared = os.fstat(file.fileno()).st_mode & 0o077
        text = file.read(1000).decode("ascii", "replace").strip()
    if shared or not TOKEN.fullmatch(text):
        why = "others can read it" if shared else "it holds no token"
        raise UsageError(
            f"{printable(str(path))} cannot be used: {why}.\n"
            f"Hint: remove it, and a new one is made."
        )
    return text
