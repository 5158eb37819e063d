"""A folder of our own for what can be made again: nothing is left beside the user's files."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from ioprism.errors import OutputError
from ioprism.text import printable


def cache_folder() -> Path:
    """Return the folder, made for this user alone.

    Raises:
        OutputError: something else has its name, or it belongs to another user.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "ioprism"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise OutputError(
            f"{printable(str(folder))} is not a folder of this user.\n"
            "Hint: remove it, or set XDG_CACHE_HOME."
        )
    return folder


def cached_name(path: Path, *, suffix: str) -> Path:
    """Return where something made of a file is kept; another version has another name."""
    status = path.stat()
    version = (path.resolve(), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    digest = hashlib.blake2b(repr(version).encode("utf-8", "surrogatepass"), digest_size=16)
    return cache_folder() / f"{digest.hexdigest()}{suffix}"
