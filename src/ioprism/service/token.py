"""A secret kept in a file, for pages whose address should stay the same."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from ioprism.errors import UsageError
from ioprism.storage.atomic import atomic_write
from ioprism.text import printable

TOKEN = re.compile(r"[A-Za-z0-9_-]{20,200}")


def read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read; made if there is none.

    Raises:
        UsageError: the file holds something else, or others can read it.
    """
    if not path.exists():
        with atomic_write(path, private=True) as aside:
            aside.write_text(f"{secrets.token_urlsafe(24)}\n", encoding="ascii")
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
