"""Where to listen: on this machine alone, unless told otherwise."""

from __future__ import annotations

import importlib
import ipaddress
from types import ModuleType

from ioprism.errors import MissingPackageError, UsageError

LOOPBACK = "127.0.0.1"


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
    """Refuse an endpoint that any user of the machine, or of others, could use.

    Raises:
        UsageError: it is TCP, there are no keys, and this was not asked for.
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


def is_loopback(host: str) -> bool:
    """Whether a host name or number is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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
