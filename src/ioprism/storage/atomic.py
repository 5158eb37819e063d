"""Write a file or folder so that it is there whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ioprism.errors import OutputError


@contextmanager
def atomic_write(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a path beside `target` to write to; it takes `target`'s place at the end.

    Raises:
        OutputError: the target exists and is not to be replaced.
    """
    if target.exists() and not replace:
        raise OutputError(
            f"{target} exists already and is left as it is.\n"
            "Hint: choose another name, or say --force to replace it."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    mark = secrets.token_hex(4)
    aside = target.with_name(f".{target.name}.{mark}.new")
    old = target.with_name(f".{target.name}.{mark}.old")
    try:
        yield aside
        if target.is_dir():
            # A folder cannot be replaced in one step: the old one stays until the new is there.
            target.rename(old)
        aside.rename(target)
    finally:
        _remove(aside)
        _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
