"""Make names fit to print: of traces, which are untrusted, and of object storage."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

# Characters that move the cursor, hide text or change its direction.
_DANGEROUS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Of the two slashes of an address, a path keeps one.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)(.*)", re.DOTALL)


def printable(text: str) -> str:
    """Show every control or format character as an escape, everything else as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_show, text))


def address_of(path: Path) -> str | None:
    """Return the address that a path stands for; None for one of this machine."""
    address = _ADDRESS.fullmatch(path.as_posix())
    return None if address is None else f"{address[1]}://{address[2]}"


def name_of(path: Path) -> str:
    """Return a path, or the address that it stands for, as the user gave it."""
    return address_of(path) or str(path)


def harmless(text: str) -> str:
    """Do the same to each line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def _show(character: str) -> str:
    if unicodedata.category(character) not in _DANGEROUS:
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def metric_label(text: str) -> str:
    """Return a text as the value of a Prometheus label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(character if character.isprintable() else "?" for character in escaped)
