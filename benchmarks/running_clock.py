"""Run a command with a clock that stops while its main thread waits for a processor.

On a machine that others use, how long a message waits is mostly how long the others run. Linux
counts that time for every thread (`schedstat`), so it can be taken off.

`python -m benchmarks.running_clock MODULE [ARGUMENT…]`
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Callable

SCHEDSTAT = "/proc/self/schedstat"  # of the main thread: nanoseconds on a processor, and waiting


def running_clock() -> Callable[[], float]:
    """Return a clock like `time.monotonic`, less what the main thread waited for a processor."""
    file, monotonic = os.open(SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC), time.monotonic
    return lambda: monotonic() - int(os.pread(file, 64, 0).split()[1]) / 1e9


if __name__ == "__main__":
    time.monotonic = running_clock()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
