"""Write or read one burst from one core, and say when it began and ended.

The sampler starts one of these for every core: ``burst_writer FILE BYTES CORE OFFSET ACCESS``. It
says ``ready`` when it can begin, waits for a line, does its part, and prints two times of the
monotonic clock, which all processes of a machine share. What is to be read is written before it
is ready, and dropped from the cache.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

BLOCK = 4 * 2**20


def write_burst(
    path: str, size: int, parent: int, offset: int = 0, *, shared: bool = False
) -> tuple[float, float]:
    """Write `size` bytes, force them to storage, and return when that began and ended."""
    block = memoryview(os.urandom(min(BLOCK, size)))
    began = time.monotonic()
    only = 0 if shared else os.O_EXCL
    target = os.open(path, os.O_WRONLY | os.O_CREAT | only, 0o600)
    try:
        left = size
        while left:
            place = offset + size - left
            left -= os.pwrite(target, block[: min(left, len(block))], place)
            _check_parent(parent)
        os.fsync(target)
        os.posix_fadvise(target, offset, size, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(target)
    return began, time.monotonic()


def read_burst(path: str, size: int, parent: int, offset: int) -> tuple[float, float]:
    """Read `size` bytes, and return when that began and ended."""
    began = time.monotonic()
    source = os.open(path, os.O_RDONLY)
    try:
        left = size
        while left:
            count = len(os.pread(source, min(left, BLOCK), offset + size - left))
            if not count:
                raise OSError("the burst is shorter than it was written")
            left -= count
            _check_parent(parent)
    finally:
        os.close(source)
    return began, time.monotonic()


def _check_parent(parent: int) -> None:
    if os.getppid() != parent:
        raise InterruptedError("the sampler is gone")


def main() -> None:
    """Take part in one run."""
    path, size, core, offset = sys.argv[1], *map(int, sys.argv[2:5])
    access, parent = sys.argv[5], os.getppid()
    shared = access.startswith("shared-")
    with suppress(OSError):
        os.sched_setaffinity(0, {core})
    try:
        if access.endswith("read"):
            write_burst(path, size, parent, offset, shared=shared)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if not sys.stdin.readline():
            return
        if access.endswith("read"):
            began, ended = read_burst(path, size, parent, offset)
        else:
            began, ended = write_burst(path, size, parent, offset, shared=shared)
    except OSError as error:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - this program starts often and loads no pathlib
        sys.exit(error.strerror or str(error))
    sys.stdout.write(f"{began!r} {ended!r}\n")


if __name__ == "__main__":
    main()
