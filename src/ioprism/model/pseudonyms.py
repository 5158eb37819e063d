"""Other names for files, users, hosts and programs: the same under the same key, in every trace.

What the analyses read from names stays: which folder holds what, endings that name a format,
where digits stand, folders of the system, and words that name a language or an MPI library.
Words become letters of a keyed digest. Numbers of four digits and more, which may be job or
user numbers, are exchanged one to one; shorter ones count ranks, steps and versions.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ioprism.errors import UsageError
from ioprism.model.trace import Completeness, Job, LazyTables, Mount, Trace
from ioprism.text import SMALL_FILE, open_plain

if TYPE_CHECKING:
    import polars as pl

VARIABLE = "IOPRISM_ANONYMISE"  # the path of a key file: processes that are started know it too
FEWEST_BYTES = 16  # of a key: 128 bits cannot be guessed
LETTERS = 10  # of a word's digest: 26^10 words, so that a million names rarely share one
MOST_DIGITS = 255  # of a number in a name; longer ones are words, as are names no file can have
KEPT_DIGITS = 3
ROUNDS = 4  # of the exchange of numbers; three are enough against guessing (Luby, Rackoff 1988)

# Folders that every system has, and which tell data from programs (`model/usage.py`).
_SYSTEM = frozenset(
    ("proc", "sys", "dev", "shm", "usr", "bin", "sbin", "lib", "lib64", "etc", "site-packages")
)
_PYTHON = re.compile(r"python[\d.]*")
# Words that decide advice: languages, frameworks and MPI libraries.
_TELLING = ("python", "openmpi", "open mpi", "ompio", "cray", "torch")
# Options that say how many processes there are, and which one this is (`diagnosis/from_calls.py`).
_OPTION = re.compile(r"--?[a-z_-]*(?:rank|proc|task|worker|size)[a-z_-]*")
_ENDING = re.compile(
    r"(?:\.so(?:\.[0-9.]+)?|-journal|-wal|\.(?:py|pyc|pyo|pth|egg|whl|conf|cfg|ini|h5|hdf5|he5|nc|"
    r"nc4|cdf|bp|db|sqlite|sqlite3|txt|dat|bin|csv|json|xml|ya?ml|toml|npy|npz|pt|pkl|tfrecord|"
    r"parquet|arrow|log|out|err|gz|bz2|xz|zst|tar|zip|png|jpe?g|tiff?|fits|root|vtk|vtu|md|sh|"
    r"darshan|pfw|strace|store))+$",
    re.IGNORECASE,
)
_RUN = re.compile(r"\d+|\D+")
_SOURCE = re.compile(r"trace-[a-z]{10}(?:\..*)?")


def read_key(path: Path) -> bytes:
    """Read the key that names are hashed with.

    Raises:
        UsageError: the file cannot be read, or is too short to keep a secret.
    """
    try:
        with open_plain(path) as file:
            key = file.read(SMALL_FILE).strip()
    except OSError as error:
        raise UsageError(
            f"{path}: the key cannot be read ({error.strerror}).\n"
            "Hint: head -c 32 /dev/urandom > KEYFILE makes one; keep it secret."
        ) from error
    if len(key) < FEWEST_BYTES:
        raise UsageError(
            f"{path}: a key needs at least {FEWEST_BYTES} bytes.\n"
            "Hint: head -c 32 /dev/urandom > KEYFILE makes one; keep it secret."
        )
    return key


@contextmanager
def anonymised_by(path: Path) -> Iterator[None]:
    """Let traces that are read meanwhile, here and in processes started, have other names."""
    read_key(path)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(path.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def chosen_pseudonyms() -> Pseudonyms | None:
    """Return the names that traces are to have; None: their own."""
    path = os.environ.get(VARIABLE)
    return Pseudonyms(read_key(Path(path))) if path else None


def shown_message(text: str) -> str:
    """Return a message without names, where traces have other names."""
    names = chosen_pseudonyms()
    return text if names is None else names.text(text)


@dataclass(slots=True)
class Pseudonyms:
    """Gives names under one key, and remembers them."""

    key: bytes = field(repr=False)
    _known: dict[str, str] = field(default_factory=dict, repr=False)

    def word(self, text: str) -> str:
        """Return letters instead of a text; those of public words stay behind them."""
        if text not in self._known:
            number = self._number(f"word {text}", 26**LETTERS)
            letters = [chr(ord("a") + number // 26**place % 26) for place in range(LETTERS)]
            telling = [word for word in _TELLING if word in text.lower()]
            self._known[text] = "-".join(("".join(letters), *telling))
        return self._known[text]

    def component(self, name: str) -> str:
        """Return another name of a file or folder: its ending and its short numbers stay."""
        if name in _SYSTEM or name in ("", ".", "..") or _PYTHON.fullmatch(name):
            return name
        ending = _ENDING.search(name)
        stem = name[: ending.start()] if ending else name
        parts = ("".join(map(self._run, _RUN.findall(part))) for part in stem.split("."))
        return ".".join(parts) + (ending[0] if ending else "")

    def _run(self, run: str) -> str:
        if not run.isdecimal() or len(run) > MOST_DIGITS:
            return run if run in "-_" else self.word(run)
        return run if len(run) <= KEPT_DIGITS or not int(run) else self.digits(run)

    def digits(self, number: str) -> str:
        """Exchange a number for one of as many digits; zero, which begins counts, stays."""
        half = len(number) // 2
        left, right = number[:half], number[half:]
        for place in range(ROUNDS):
            left = self._shift(left, f"{place} left {right}")
            right = self._shift(right, f"{place} right {left}")
        exchanged = left + right
        return exchanged if int(exchanged) else self.digits(exchanged)

    def _shift(self, digits: str, by: str) -> str:
        size = 10 ** len(digits)
        return f"{(int(digits) + self._number(by, size)) % size:0{len(digits)}}"

    def _number(self, text: str, below: int) -> int:
        data = text.encode(errors="surrogateescape")
        return int.from_bytes(hmac.digest(self.key, data, "sha256")) % below

    def path(self, path: str) -> str:
        """Return another path; words of the tracer that are not paths stay as they are."""
        if path.startswith("<"):
            return path
        return "/".join(map(self.component, path.split("/")))

    def command(self, text: str) -> str:
        """Return another command line: options that count processes, and Python, stay."""
        return " ".join(self._argument(word) for word in text.split(" "))

    def _argument(self, word: str) -> str:
        option, equals, value = word.partition("=")
        if _OPTION.fullmatch(option.lower()):
            return f"{option}{equals}{self.path(value)}"
        return self.path(word)

    def host(self, name: str) -> str:
        """Return another name of a host."""
        return f"host-{self.word(name)}"

    def user(self, number: int) -> int:
        """Return another number of a user."""
        return self._number(f"user {number}", 10**9)

    def source(self, path: Path) -> Path:
        """Return another name of a trace, without its folder."""
        if _SOURCE.fullmatch(path.name):
            return Path(path.name)
        ending = _ENDING.search(path.name)
        return Path(f"trace-{self.word(path.name)[:LETTERS]}{ending[0] if ending else ''}")

    def text(self, text: str, sources: Iterable[Path] = ()) -> str:
        """Return a message without the names of traces, and without paths."""
        for path in sources:
            shown = self.source(path).name
            text = text.replace(str(path), shown).replace(path.name, shown)
        return re.sub(r"[^\s:,()'\"]*/[^\s:,()'\"]+", lambda found: self.path(found[0]), text)


class AnonymousCompleteness(Completeness):
    """Messages about a trace without its names."""

    def __init__(self, inner: Completeness, names: Pseudonyms, sources: Sequence[Path]) -> None:
        super().__init__()
        self._inner, self._names, self._sources = inner, names, sources

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every message so far."""
        every = (*self._inner.warnings, *super().warnings)
        return tuple(self._names.text(message, self._sources) for message in every)


def anonymise_trace(trace: Trace, names: Pseudonyms) -> Trace:
    """Return a trace with the same calls and counters, and other names."""
    sources = [inner for path in trace.paths for inner in (path, *_files_in(path))]
    return replace(
        trace,
        paths=tuple(map(names.source, trace.paths)),
        job=_job(trace.job, names),
        counters=LazyTables(
            {name: partial(_counters, trace.counters, name, names) for name in trace.counters}
        ),
        series={names.text(name, sources): one for name, one in trace.series.items()},
        load_files=lambda: _files(trace.files, names),
        load_processes=lambda: _processes(trace.processes, names),
        completeness=AnonymousCompleteness(trace.completeness, names, sources),
    )


def _files_in(path: Path) -> list[Path]:
    return [inner for inner in path.rglob("*") if inner.is_file()] if path.is_dir() else []


def _job(job: Job, names: Pseudonyms) -> Job:
    return replace(
        job,
        executable=None if job.executable is None else names.command(job.executable),
        user=None if job.user is None else names.user(job.user),
        job_id=None if job.job_id is None else f"job-{names.word(job.job_id)}",
        mounts=tuple(Mount(names.path(one.path), one.filesystem) for one in job.mounts),
        metadata={names.word(key): names.word(text) for key, text in job.metadata.items()},
    )


def _files(files: pl.DataFrame, names: Pseudonyms) -> pl.DataFrame:
    import polars as pl

    from ioprism.model.schema import DERIVED, FILES

    changed = files.with_columns(
        path=pl.Series([names.path(path) for path in files["path"]], dtype=pl.String),
        mount=_map_column(files["mount"], names.path),
        # Darshan's identifier is a digest of the path that everyone can compute.
        id=pl.lit(None, dtype=pl.UInt64),
    )
    return FILES.conform(changed.with_columns(*DERIVED))


def _processes(processes: pl.DataFrame, names: Pseudonyms) -> pl.DataFrame:
    return processes.with_columns(
        host=_map_column(processes["host"], names.host),
        application=_map_column(processes["application"], names.component),
    )


def _counters(tables: Mapping[str, pl.DataFrame], module: str, names: Pseudonyms) -> pl.DataFrame:
    """Names of nodes, pools and containers are the only texts among counters."""
    import polars as pl

    table = tables[module]
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        _map_column(table[name], names.host if name == "host" else names.word) for name in texts
    )


def _map_column(column: pl.Series, rename: Callable[[str], str]) -> pl.Series:
    import polars as pl

    known = {name: rename(name) for name in column.drop_nulls().unique()}
    return column.replace_strict(known, default=None, return_dtype=pl.String).alias(column.name)
