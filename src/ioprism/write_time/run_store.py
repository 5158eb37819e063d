"""Keep measured runs in one SQLite file that survives crashes and is never half written."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ioprism.errors import TraceError
from ioprism.model.samples import (
    ACCESSES,
    Run,
    Sample,
    WritePattern,
    format_node_list,
    parse_node_list,
)

APPLICATION = 0x494F5057  # marks the file as ours
VERSION = 2
VERSION_OF_ACCESSES = 3  # of stores with other patterns than writes of a file per process
UNSEALED = 1  # the version whose stores do not notice damage; they are sealed when written to
PATIENCE = 30.0  # seconds to wait for another process that writes

SCHEMA = """
CREATE TABLE system (name TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE source (
    digest TEXT PRIMARY KEY, path TEXT NOT NULL, runs INTEGER NOT NULL, imported REAL NOT NULL
);
CREATE TABLE pattern (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    nodes INTEGER NOT NULL,
    cores_per_node INTEGER NOT NULL,
    burst_bytes INTEGER NOT NULL,
    stripe_bytes INTEGER,
    stripe_count INTEGER,
    node_list TEXT,
    planned INTEGER NOT NULL
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    pattern INTEGER NOT NULL REFERENCES pattern (id),
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'discarded')),
    seconds REAL CHECK (state != 'done' OR seconds > 0),
    began REAL,
    details TEXT
);
CREATE INDEX run_of_pattern ON run (pattern, state);
CREATE TABLE seal (digest TEXT NOT NULL);
"""
SEALED = ("system", "source", "pattern", "run")  # tables whose content the seal names


@dataclass(frozen=True, slots=True)
class PlannedPattern:
    """A pattern to sample, and the times it took so far."""

    number: int
    pattern: WritePattern
    times: tuple[float, ...]


class RunStore:
    """Runs of one system."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def system(self) -> tuple[str, str]:
        """Return the name and the description of the runs' system."""
        name, text = self._connection.execute("SELECT name, description FROM system").fetchone()
        return str(name), str(text)

    def add_plan(self, patterns: Iterable[WritePattern]) -> int:
        """Add patterns to sample; return how many are new."""
        with self._sealing():
            before = self._count("pattern")
            for pattern in patterns:
                self._pattern_number(pattern, planned=True)
            return self._count("pattern") - before

    def add_runs(self, runs: Sequence[Run], *, origin: str, content: bytes) -> None:
        """Add all runs of a file, or none.

        Raises:
            TraceError: the same content was imported before.
        """
        digest = hashlib.sha256(content).hexdigest()
        with self._sealing():
            known = self._connection.execute(
                "SELECT path FROM source WHERE digest = ?", (digest,)
            ).fetchone()
            if known:
                raise TraceError(
                    f"it already contains the same runs (from {known[0]}).\n"
                    "Hint: nothing needs to be done; each run counts once.",
                    source=self.path,
                )
            patterns = dict.fromkeys(run.pattern for run in runs)
            numbers = {pattern: self._pattern_number(pattern) for pattern in patterns}
            self._connection.executemany(
                "INSERT INTO run (pattern, state, seconds) VALUES (?, 'done', ?)",
                [(numbers[run.pattern], run.seconds) for run in runs],
            )
            self._connection.execute(
                "INSERT INTO source VALUES (?, ?, ?, ?)", (digest, origin, len(runs), time.time())
            )

    def samples(self) -> list[Sample]:
        """Return every pattern that was measured, in the order the patterns came in."""
        return [Sample(p.pattern, p.times) for p in self._patterns("1") if p.times]

    def planned(self) -> list[PlannedPattern]:
        """Return every pattern to sample, with its times so far."""
        return self._patterns("pattern.planned")

    def place(self, planned: PlannedPattern, node_list: tuple[int, ...]) -> WritePattern:
        """Note on which nodes a pattern without a node list is sampled from now on."""
        placed = replace(planned.pattern, node_list=node_list)
        with self._sealing():
            self._connection.execute(
                "UPDATE pattern SET key = ?, node_list = ? WHERE id = ?",
                (_key(placed), format_node_list(node_list), planned.number),
            )
        return placed

    def begin(self, number: int) -> int:
        """Note that a run of this pattern starts; return the run's number."""
        with self._sealing():
            cursor = self._connection.execute(
                "INSERT INTO run (pattern, state, began) VALUES (?, 'running', ?)",
                (number, time.time()),
            )
        return int(cursor.lastrowid or 0)

    def finish(self, run: int, *, seconds: float, details: Mapping[str, object]) -> None:
        """Note how long a run took."""
        with self._sealing():
            self._connection.execute(
                "UPDATE run SET state = 'done', seconds = ?, details = ? WHERE id = ?",
                (seconds, json.dumps(details), run),
            )

    def discard(self, run: int, *, reason: str) -> None:
        """Note that a run failed, and why."""
        with self._sealing():
            self._connection.execute(
                "UPDATE run SET state = 'discarded', details = ? WHERE id = ?",
                (json.dumps({"failure": reason}), run),
            )

    def discard_unfinished(self) -> list[int]:
        """Mark runs that never finished, and return their numbers."""
        with self._sealing():
            running = self._connection.execute("SELECT id FROM run WHERE state = 'running'")
            numbers = [int(number) for (number,) in running]
            self._connection.execute("UPDATE run SET state = 'discarded' WHERE state = 'running'")
        return numbers

    def measured_rate(self) -> float | None:
        """Bytes per second and node over all finished runs, or None without any."""
        row = self._connection.execute(
            "SELECT SUM(1.0 * cores_per_node * burst_bytes), SUM(seconds) FROM run"
            " JOIN pattern ON pattern.id = run.pattern WHERE state = 'done'"
        ).fetchone()
        return float(row[0]) / float(row[1]) if row[1] else None

    @contextmanager
    def _sealing(self) -> Iterator[None]:
        """Write in one transaction, and seal the new content with it."""
        with self._connection:
            yield
            seal(self._connection)

    def _count(self, table: str) -> int:
        query = f"SELECT COUNT(*) FROM {table}"  # noqa: S608 - our own table names
        return int(self._connection.execute(query).fetchone()[0])

    def _patterns(self, condition: str) -> list[PlannedPattern]:
        query = (
            "SELECT pattern.id, label, nodes, cores_per_node, burst_bytes, stripe_bytes,"  # noqa: S608 - our own conditions
            " stripe_count, node_list, json_extract(key, '$[7]'),"
            " json_group_array(seconds) FILTER (WHERE state = 'done')"
            " FROM pattern LEFT JOIN run ON run.pattern = pattern.id"
            f" WHERE {condition} GROUP BY pattern.id ORDER BY pattern.id"
        )
        return [_pattern_of_row(row) for row in self._connection.execute(query)]

    def _pattern_number(self, pattern: WritePattern, *, planned: bool = False) -> int:
        key = _key(pattern)
        nodes = json.loads(key)[6]
        self._connection.execute(
            "INSERT OR IGNORE INTO pattern (key, label, nodes, cores_per_node, burst_bytes,"
            " stripe_bytes, stripe_count, node_list, planned) VALUES (?,?,?,?,?,?,?,?,?)",
            (key, *pattern.key[:6], nodes, planned),
        )
        known = self._connection.execute("SELECT id FROM pattern WHERE key = ?", (key,))
        return int(known.fetchone()[0])


@contextmanager
def open_store(path: Path, *, create_for: tuple[str, str] | None = None) -> Iterator[RunStore]:
    """Open a store of runs, or make one for a system (name, description).

    Raises:
        TraceError: there is none, it is not a store, it is of another system, or it is in use.
    """
    if create_for is None and not path.exists():
        raise TraceError(
            "no such store of runs.\nHint: `ioprism write-time import` or `sample plan` makes one.",
            source=path,
        )
    try:
        connection = sqlite3.connect(path, timeout=PATIENCE)
        try:
            _prepare(connection, path, create_for)
            yield RunStore(path, connection)
        finally:
            connection.close()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # damage may be in a name
        raise TraceError(
            f"the store cannot be used ({error}).\n"
            "Hint: give the path of a store made by ioprism, in a folder you can write to.",
            source=path,
        ) from error


def _prepare(
    connection: sqlite3.Connection, path: Path, create_for: tuple[str, str] | None
) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    empty = not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
    if empty and create_for is not None:
        _create(connection, create_for)
    elif application != APPLICATION or version not in (UNSEALED, VERSION, VERSION_OF_ACCESSES):
        raise TraceError(
            f"this is not a store of runs of version {VERSION}; it is left as it is.\n"
            "Hint: give another --store.",
            source=path,
        )
    else:
        _check(connection, path, sealed=version != UNSEALED)
        name, text = connection.execute("SELECT name, description FROM system").fetchone()
        if create_for is not None and text != create_for[1]:
            raise TraceError(
                f"the store holds runs of the system {name!r}, not of this {create_for[0]!r}.\n"
                "Hint: give another --store, or the description the store was made with.",
                source=path,
            )


def seal(connection: sqlite3.Connection) -> None:
    """Keep a digest of all content, as part of the transaction that changed it."""
    connection.execute("CREATE TABLE IF NOT EXISTS seal (digest TEXT NOT NULL)")
    connection.execute("DELETE FROM seal")
    connection.execute("INSERT INTO seal VALUES (?)", (_digest(connection),))
    others = "SELECT EXISTS (SELECT 1 FROM pattern WHERE json_array_length(key) > 7)"
    version = VERSION_OF_ACCESSES if connection.execute(others).fetchone()[0] else VERSION
    connection.execute(f"PRAGMA user_version = {version}")


def _digest(connection: sqlite3.Connection) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for table in SEALED:
        query = f"SELECT * FROM {table} ORDER BY rowid"  # noqa: S608 - our own table names
        for row in connection.execute(query):
            digest.update(f"{table}{row!r}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _check(connection: sqlite3.Connection, path: Path, *, sealed: bool) -> None:
    """SQLite does not notice a changed byte of a value, and would return another number."""
    try:
        with connection:
            connection.execute("BEGIN")  # the content and its seal are of the same moment
            stored = connection.execute("SELECT digest FROM seal").fetchone() if sealed else None
            sound = not sealed or (stored is not None and stored[0] == _digest(connection))
            problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError) as error:
        sound, problem = False, str(error)
    if not sound or problem != "ok":
        raise TraceError(
            "the store is damaged: its content was changed.\n"
            "Hint: restore a copy, or import the runs into a new store.",
            source=path,
        )


def _create(connection: sqlite3.Connection, system: tuple[str, str]) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO system VALUES (?, ?)", system)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        seal(connection)


def _key(pattern: WritePattern) -> str:
    nodes = None if pattern.node_list is None else format_node_list(pattern.node_list)
    return json.dumps([*pattern.key[:6], nodes, *pattern.key[7:]])


def _pattern_of_row(row: Sequence[Any]) -> PlannedPattern:
    number, label, nodes, cores, burst, stripe_bytes, stripes, node_list, access, times = row
    placed = None if node_list is None else parse_node_list(node_list)
    access = access or ACCESSES[0]
    pattern = WritePattern(nodes, cores, burst, stripe_bytes, stripes, placed, label, access)
    return PlannedPattern(number, pattern, tuple(json.loads(times)))
