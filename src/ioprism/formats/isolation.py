"""Try in another process what may take a native library down: foreign Parquet and OTF2."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import polars as pl

from ioprism.formats.budget import BASE, allowance
from ioprism.model.trace import Warn
from ioprism.text import printable


class IsolationError(Exception):
    """The other process failed; the message says how."""


LIBRARIES = 2**30  # bytes; importing polars and reading a small file take half of it
_LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_DATA, ({bytes}, {bytes}))\n"


def attempt(code: str, given: str, *, seconds: float, memory: int = BASE) -> str:
    """Run a piece of Python with `given` as its input; return what it prints.

    Args:
        code: the piece.
        given: its standard input.
        seconds: that it may take.
        memory: bytes that it may take beside what libraries need in any case.

    Raises:
        IsolationError: it raised, crashed, or took more than this.
    """
    limited = _LIMITED.format(bytes=LIBRARIES + memory) + code
    try:
        tried = subprocess.run(  # noqa: S603 - our own interpreter, our own code
            [sys.executable, "-P", "-c", limited],  # -P: nothing is imported from where the user is
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise IsolationError(f"still running after {seconds:.0f} s") from error
    if tried.returncode and "memory allocation" in tried.stderr:
        raise IsolationError("it takes more memory than its size allows; see --reading-budget")
    if tried.returncode:
        said = [line for line in tried.stderr.splitlines() if line and not line.startswith(" ")]
        raise IsolationError(_why(tried.returncode, printable(said[-1]) if said else ""))
    return tried.stdout


def _why(code: int, last_words: str) -> str:
    if code > 0:
        return last_words or f"it ended with {code}"
    known = {number.value for number in signal.Signals}
    name = signal.Signals(-code).name if -code in known else f"signal {-code}"
    return f"reading it crashes the library ({': '.join(filter(None, (name, last_words)))})"


MAGIC = b"PAR1"
SECONDS = 60.0  # that any trial may take, and
PER_SECOND = 1_000_000  # bytes read in one more
_READ_ALL = """
import json, sys, polars
columns = []
for path in json.loads(sys.stdin.read()):
    columns.append(list(polars.scan_parquet(path, glob=False).collect_schema()))
    for batch in polars.scan_parquet(path, glob=False).collect_batches():
        pass
print(json.dumps(columns))
"""
# The trial finds what would end the process; polars may still give up on some columns alone.
UNREADABLE = (OSError, IsolationError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
_Key = tuple[str, int, int]  # path, bytes, time of its last change


def is_parquet(path: Path) -> bool:
    """Whether the file begins like Parquet."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def columns_of(paths: Sequence[Path]) -> list[list[str]]:
    """Return each file's columns, once all of them could be read to their ends.

    Raises:
        IsolationError: one of them could not.
    """
    return _try_files(tuple(_key(path) for path in paths))


@lru_cache(maxsize=16)
def _try_files(files: tuple[_Key, ...]) -> list[list[str]]:
    limit = SECONDS + sum(size for _, size, _ in files) / PER_SECOND
    names = [name for name, _, _ in files]
    memory = max(allowance(Path(name)) for name in names)  # one after the other
    said = attempt(_READ_ALL, json.dumps(names), seconds=limit, memory=memory)
    columns: list[list[str]] = json.loads(said)
    return columns


def first_line(error: BaseException) -> str:
    """What went wrong, without the library's own context."""
    return str(error).partition("\n")[0]


def until_damage(tables: Iterator[pl.DataFrame], name: str, warn: Warn) -> Iterator[pl.DataFrame]:
    """Pass tables on until one cannot be read, and say so."""
    try:
        yield from tables
    except UNREADABLE as error:
        warn(f"{name}: it is damaged ({first_line(error)}); events are missing")


def _key(path: Path) -> _Key:
    stat = path.stat()
    return str(path.resolve()), stat.st_size, stat.st_mtime_ns
