"""Make names of traces, which are untrusted, fit to print; read small files that people write."""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

# Characters that move the cursor, hide text or change its direction.
_DANGEROUS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Of the two slashes of an address, a path keeps one.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)(.*)", re.DOTALL)


def printable(text: str) -> str:
    """Show every control or format character as an escape, everything else as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_show, text))


def shorten(name: str, most: int) -> str:
    """Return a name that fits: without control characters, the middle left out if it is long."""
    text = printable(name)
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def address_of(path: Path) -> str | None:
    """Return the address that a path stands for; None for one of this machine."""
    address = _ADDRESS.fullmatch(path.as_posix())
    return None if address is None else f"{address[1]}://{address[2]}"


def name_of(path: Path) -> str:
    """Return a path, or the address that it stands for, as the user gave it."""
    return address_of(path) or str(path)


def is_text(path: Path) -> bool:
    """Whether a path is UTF-8; polars opens no other."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


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


SMALL_FILE = 2**18  # bytes of a file of settings or rules; our longest has 2**14
LONGEST_LINE = 2**12  # characters; parsers take the square of a key or number of many parts
MOST_NESTED = 100  # tables and lists of a file of settings


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return open(handle, "rb")  # noqa: PTH123 - a handle, not a path


def read_small_text(path: Path) -> str:
    """Return the text of a file of settings, rules or descriptions.

    Raises:
        OSError: it cannot be read, or is not a plain file.
        ValueError: it is not text, or larger than anyone writes.
    """
    with open_plain(path) as file:
        content = file.read(SMALL_FILE + 1)
    if len(content) > SMALL_FILE:
        raise ValueError(f"the file is larger than {SMALL_FILE:,} bytes")
    text = content.decode("utf-8")
    if max(map(len, text.split("\n"))) > LONGEST_LINE:
        raise ValueError(f"a line is longer than {LONGEST_LINE:,} characters")
    return text


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        OSError: it cannot be read, or is not a plain file.
        ValueError: it is not TOML, or larger than anyone writes.
    """
    import tomllib

    try:
        content = tomllib.loads(read_small_text(path))
        level: list[object] = [content]
        for _ in range(MOST_NESTED):
            level = [inner for outer in level for inner in _members(outer)]
    except RecursionError:
        level = [path]
    if level:
        raise ValueError(f"its values are nested more than {MOST_NESTED} deep")
    return content


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def metric_lines(
    name: str, kind: str, explained: str, values: Iterable[tuple[str, float]]
) -> Iterator[str]:
    """Yield a metric in Prometheus' text format, with a line for each pair of labels and value."""
    yield f"# HELP {name} {explained}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        yield f"{name}{labels} {value if isinstance(value, int) else format(value, '.10g')}"


def metric_label(text: str) -> str:
    """Return a text as the value of a Prometheus label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(character if character.isprintable() else "?" for character in escaped)
