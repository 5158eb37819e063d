"""Where to listen, and who may connect.

A bare port is one on this machine alone. TCP is protected by keys (CURVE): `ioprism watch --keygen
FOLDER` makes two files that only their owner can read, one for the server, one for its clients.
Clients without a key are rejected. The live page is protected by a token, which a file may keep.
"""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

from msgspec import Meta, MsgspecError, json

from ioprism.errors import MissingPackageError, OutputError, UsageError
from ioprism.local_http import LOOPBACK, is_loopback
from ioprism.model.trace import MIB
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import open_plain, printable


def endpoint(text: str) -> str:
    """Return a ZeroMQ endpoint; a bare port is one on loopback.

    Raises:
        UsageError: the text is neither a port nor an endpoint.
    """
    if _is_port(text):
        return f"tcp://{LOOPBACK}:{text}"
    scheme, _, rest = text.partition("://")
    if not (rest and (scheme in ("ipc", "inproc") or (scheme == "tcp" and _has_port(rest)))):
        raise UsageError(
            f"{text!r} is neither a port nor a ZeroMQ endpoint.\n"
            "Hint: write for example 5555, tcp://127.0.0.1:5555 or ipc:///tmp/watch.me."
        )
    return text


def _has_port(place: str) -> bool:
    host, _, port = place.rpartition(":")
    return bool(host) and (port == "*" or _is_port(port))


def _is_port(text: str) -> bool:
    return text.isdecimal() and int(text) <= 65535


def check_protected(address: str, *, has_keys: bool, unprotected: bool) -> None:
    """Refuse an endpoint that other users or machines could use.

    Raises:
        UsageError: it is TCP without keys, and --unprotected is not given.
    """
    if address.startswith("tcp://") and not has_keys and not unprotected:
        raise UsageError(
            f"{address} would be open to every user of this machine.\n"
            "Hint: use --keys FOLDER (`ioprism watch --keygen FOLDER` makes them), listen on "
            "ipc://FILE, which only you can access, or use --unprotected."
        )


def is_exposed(address: str) -> bool:
    """Whether other machines can reach an endpoint."""
    scheme, _, rest = address.partition("://")
    return scheme == "tcp" and not is_loopback(rest.rpartition(":")[0])


def zeromq(needed_by: str) -> ModuleType:
    """Load pyzmq.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        return importlib.import_module("zmq")
    except ImportError as error:
        raise MissingPackageError(
            needed_by=needed_by, package="pyzmq", install="'ioprism[server]'"
        ) from error


SERVER, CLIENT = "server.key", "client.key"
PATIENCE = 10.0  # seconds that a client waits for a service
DOMAIN = "ioprism"
Key = Annotated[str, Meta(pattern=r"^[\x00-\x7f]{40}\Z")]  # Z85
Keys = TypeVar("Keys", "ServerKeys", "ClientKeys")


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """What the service needs: its own pair, and the public keys of those it hears."""

    public: Key
    secret: Key
    clients: tuple[Key, ...]

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

    server: Key
    public: Key
    secret: Key

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
    for path, keys in (
        (client, ClientKeys(public, own, hidden)),
        (server, ServerKeys(public, secret, (own,))),
    ):
        text = json.format(json.encode(keys), indent=1).decode()
        atomic_write_text(path, f"{text}\n", replace=path == client, private=True)
    return server, client


def server_keys(folder: Path) -> ServerKeys:
    """Read a server's keys from their folder, or from the file itself.

    Raises:
        UsageError: there are none, or others can read them.
    """
    return _read_keys(folder / SERVER if folder.is_dir() else folder, ServerKeys)


def client_keys(folder: Path) -> ClientKeys:
    """Read a client's keys from their folder, or from the file itself.

    Raises:
        UsageError: there are none, or others can read them.
    """
    return _read_keys(folder / CLIENT if folder.is_dir() else folder, ClientKeys)


def _read_keys(path: Path, kind: type[Keys]) -> Keys:
    hint = "make some with `ioprism watch --keygen FOLDER`."
    try:
        with open_plain(path) as file:
            if not os.fstat(file.fileno()).st_mode & 0o077:
                return json.decode(file.read(MIB), type=kind)
        why, hint = "others can read it", f"chmod 600 {shlex.quote(printable(str(path)))}"
    except (OSError, ValueError, MsgspecError, RecursionError) as error:
        why = str(error)[:100]
    raise UsageError(f"{printable(str(path))} contains no usable keys: {why}.\nHint: {hint}")


@contextmanager
def authenticate_clients(context: Any, keys: ServerKeys | None) -> Iterator[Any]:  # noqa: ANN401 - zmq
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
