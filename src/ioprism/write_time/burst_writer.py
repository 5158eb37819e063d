"""Write one burst to one file from one core, and say when it began and ended.

The sampler starts one of these for every core: ``burst_writer FILE BYTES CORE``. It says ``ready``
when it can begin, waits for a line, writes, and prints two times of the monotonic clock, which
all processes of a machine share.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

BLOCK = 4 * 2**20


def write_burst(path: str, size: int, parent: int) -> tuple[float, float]:
    """Write `size` bytes, force them to storage, and return when that began and ended."""
    block = memoryview(os.urandom(min(BLOCK, size)))
    began = time.monotonic()
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        left = size
        while left:
            left -= os.write(target, block[: min(left, len(block))])
            if os.getppid() != parent:
                raise InterruptedError("the sampler is gone")
        os.fsync(target)
    finally:
        os.close(target)
    return began, time.monotonic()


def main() -> None:
    """Take part in one run."""
    path, size, core = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parent = os.getppid()
    with suppress(OSError):
        os.sched_setaffinity(0, {core})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if not sys.stdin.readline():
        return
    try:
        began, ended = write_burst(path, size, parent)
    except OSError as error:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - this program starts often and loads no pathlib
        sys.exit(error.strerror or str(error))
    sys.stdout.write(f"{began!r} {ended!r}\n")


if __name__ == "__main__":
    main()
