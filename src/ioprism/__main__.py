"""``python -m ioprism`` is the command line."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys

# polars gives freed memory back after half a second and then asks for it again, which is a
# tenth of the work on a large trace. A command is short, so it keeps memory for longer.
ALLOCATOR = "_RJEM_MALLOC_CONF"
KEEP = "dirty_decay_ms:10000,muzzy_decay_ms:10000"
# Loading what a command needs makes many objects and no garbage, yet every 700 of them would be
# searched for it.
OBJECTS_BETWEEN_SEARCHES = 50_000
# OpenBLAS starts a thread for every core, and each spins for a while: that costs as much as loading
# NumPy, and no command multiplies matrices that are large enough to need them.
MATRIX_THREADS = "OPENBLAS_NUM_THREADS"
# glibc gives the memory of large arrays back, and every page of the next is cleared again.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # its names of options
KEPT_BY_GLIBC = {TRIM_THRESHOLD: 128 * 2**20, MMAP_THRESHOLD: 32 * 2**20}  # bytes: all, one array


def main() -> None:
    """Run the command line."""
    gc.set_threshold(OBJECTS_BETWEEN_SEARCHES)
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    own = sys.argv[:end]  # what follows belongs to the program that `record` runs
    if not any(word.startswith("--memory-limit") for word in own):
        os.environ.setdefault(ALLOCATOR, KEEP)  # read when polars is loaded
        _keep_large_arrays()
    os.environ.setdefault(MATRIX_THREADS, "1")
    from ioprism.cli import main as commands
    from ioprism.command.output import prepare_streams

    prepare_streams()
    commands()


def _keep_large_arrays() -> None:
    """Let glibc keep what NumPy frees; other systems have no such option."""
    options = getattr(ctypes.CDLL(None), "mallopt", None)
    if options is not None:
        for option, size in KEPT_BY_GLIBC.items():
            options(option, size)


def command() -> None:
    """Run the command line in a process that is there for nothing else."""
    codes: list[object] = []
    atexit.register(_leave, codes)  # the first to register is the last to be called
    try:
        main()
    except SystemExit as end:
        codes.append(end.code)
        raise


def _leave(codes: list[object]) -> None:
    """End the process once all else that must be done at its end is done.

    Python would then take every module apart, object by object, which costs a short command more
    than reading a small log.
    """
    if codes and isinstance(codes[0], int):
        code = codes[0]
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # a full disk: the command has said so where it printed
            code = code or 1
        os._exit(code)


if __name__ == "__main__":
    command()
