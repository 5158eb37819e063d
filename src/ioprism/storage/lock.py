"""Let one process at a time write to a store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ioprism.errors import OutputError

# A link is not followed, and nothing is emptied: the name may be somebody else's file.
FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def held_alone(path: Path, *, otherwise: str) -> Iterator[None]:
    """Hold a lock while writing.

    Args:
        path: the file that stands for the lock, made if it is not there.
        otherwise: what to say if another process holds it.

    Raises:
        OutputError: another process holds the lock.
    """
    file = os.open(path, FLAGS, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise OutputError(otherwise) from None
    try:
        yield
    finally:
        os.close(file)
