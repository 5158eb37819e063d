"""What somebody may put into a trace, or beside it, to do harm; used by `tests.fuzz`."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import socket
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path

PRECIOUS = b"this file is none of ours"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
# Names that ioprism and other tools keep beside or in a trace.
BESIDE = ("{name}.gzidx", ".{name}.gzidx.part", "{name}.zindex", "{name}.idx", ".{name}.lock",
          ".lock", "recorder.mt", "0.cst", "ug.cfg", "traces.otf2", "ioprism-trace.json",
          "ioprism-servers.json", "ledger.json", "a.darshan", "a.pfw", "a.jsonl")  # fmt: skip
STATEMENTS = (
    f"CREATE VIEW checkpoints AS {ENDLESS} SELECT i AS uc_offset, 1 AS uc_size, 1 AS c_offset, "
    "0 AS bits, zeroblob(9999) AS dict_compressed FROM n",
    f"CREATE VIEW OST_DATA AS {ENDLESS} SELECT i AS OST_ID, i AS TS_ID, i AS READ_BYTES, "
    "i AS WRITE_BYTES FROM n; CREATE TABLE TIMESTAMP_INFO (TS_ID, TIMESTAMP)",
    "CREATE TABLE OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES AS (zeroblob(999999999))); "
    "CREATE TABLE TIMESTAMP_INFO (TS_ID, TIMESTAMP); INSERT INTO OST_DATA VALUES (1, 1, 1)",
    "CREATE VIRTUAL TABLE OST_DATA USING fts5(OST_ID); CREATE TABLE TIMESTAMP_INFO (TS_ID)",
    "CREATE TABLE checkpoints (uc_offset, uc_size, c_offset, bits, dict_compressed); "
    "INSERT INTO checkpoints VALUES (5, 1e300, -1, 'x', x'00')",
)
# What to do to a file of the trace, beside a precious one; returns its new name if it has one.
Harm = Callable[[Path, Path, random.Random], Path | None]


def harm(source: Path, precious: Path, chance: random.Random, *, among: int) -> Path:
    """Do one of so many things to what is to be read, or beside it; return what to read then."""
    files = sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]
    renamed = chance.choice(HARMS[:among])(chance.choice(files), precious, chance)
    return source if renamed is None or source.is_dir() else renamed


def _special(place: Path, precious: Path, chance: random.Random) -> None:
    """Make something that is no plain file."""
    with suppress(FileNotFoundError):
        place.unlink()
    kind = chance.randrange(8)
    if kind == 0:
        os.mkfifo(place)
    elif kind == 1:
        place.mkdir()
    elif kind == 2:
        with suppress(OSError), closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind(str(place))
    else:
        targets = ("/dev/zero", "/dev/urandom", "/dev/full", str(place), "/nowhere/at/all")
        place.symlink_to(chance.choice((*targets, str(precious))))


def _in_place(path: Path, precious: Path, chance: random.Random) -> None:
    _special(path, precious, chance)


def _beside(path: Path, precious: Path, chance: random.Random) -> None:
    for name in chance.sample(BESIDE, 4):
        place = path.with_name(name.format(name=path.name))
        if place != path and not place.exists():
            _special(place, precious, chance)


def _database(path: Path, _: Path, chance: random.Random) -> None:
    """Put a database that computes in the file's place, or beside it as its index."""
    place = chance.choice((path, path.with_name(f"{path.name}.zindex")))
    place.unlink(missing_ok=True)
    with closing(sqlite3.connect(place)) as made, made:
        made.executescript(chance.choice(STATEMENTS))


def _packed_again(path: Path, _: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    for _number in range(chance.randrange(1, 4)):
        data = chance.choice((gzip.compress, bz2.compress, zlib.compress))(data)
    path.write_bytes(data)


def _bomb(path: Path, _: Path, chance: random.Random) -> None:
    """Repeat what is there, or a piece of it, until it is large; and pack it."""
    data = path.read_bytes()
    begin = chance.randrange(len(data) + 1)
    piece = data[begin : begin + chance.choice((1, 16, 4096, len(data)))] or b"\0"
    filler = chance.choice((piece, b"\0", b"[", b"{}", b"9", b"\x90", b"\n"))
    size = 2 ** chance.randrange(20, 28)
    long = data[:begin] + filler * (size // len(filler)) + data[begin:]
    path.write_bytes(gzip.compress(long, 1) if chance.random() < 0.7 else long[: 2**24])


def _darshan_bomb(path: Path, _: Path, chance: random.Random) -> None:
    path.write_bytes(darshan_bomb(size=2 ** chance.randrange(24, 33), chance=chance))


ZEROS = 2**24


@cache
def _zeros() -> bytes:
    return bz2.compress(bytes(ZEROS))


def darshan_bomb(*, size: int, chance: random.Random) -> bytes:
    """A log whose regions inflate to so many zeros, by bzip2."""
    packed = _zeros() * max(1, size // ZEROS)
    job = bz2.compress(struct.pack("<4q", 0, 1, 2, 4) + bytes(4096))
    slot = chance.randrange(1, 12)
    head = bytearray(1328)
    head[:8], head[16] = b"3.41\0\0\0\0", 1
    struct.pack_into("<q", head, 8, 6567223)
    at = len(head) + len(job)
    struct.pack_into("<2Q", head, 32, at, len(packed) if slot == 1 else 0)
    struct.pack_into("<2Q", head, 48 + 16 * slot, at, len(packed))
    for number in range(64):
        struct.pack_into("<I", head, 1072 + 4 * number, chance.randrange(1, 6))
    return bytes(head) + job + packed


ODD_NAMES = (b"\xff\xfe\x80", "\u202eexe.nahsrad".encode(), b"a\nb\tc", b"-rf",
             b"\x1b[2J\x1b]0;x\x07", b"<img src=x onerror=alert(1)>",
             b"=cmd|'-C calc'!A0", b"a" * 250, b"*[?]{a,b}",
             b"%s%n{0}$(id)`id`", b" ", b"~", b"s3:", b"'; DROP TABLE jobs; --")  # fmt: skip


def _odd_name(path: Path, _: Path, chance: random.Random) -> Path:
    """Call it something that a terminal, a page, a shell, a table or a pattern interprets."""
    ending = chance.choice((b"", os.fsencode(path.suffix)))
    return path.rename(path.parent / os.fsdecode(chance.choice(ODD_NAMES)[:240] + ending))


def _sparse(path: Path, _: Path, chance: random.Random) -> None:
    """Let a bomb, or what is there, look large: a hole takes no room on the disk."""
    if chance.random() < 0.5:
        path.write_bytes(darshan_bomb(size=2**33, chance=chance))
    os.truncate(path, path.stat().st_size + 2 ** chance.randrange(24, 30))


def _packed_otherwise(path: Path, _: Path, chance: random.Random) -> None:
    data, piece, pieces = path.read_bytes(), b"", 0
    if chance.random() < 0.5:
        # Packed once and repeated: bzip2 needs 1 s for 4 MiB, counted as the reader's.
        piece, pieces = chance.choice((b"\0", b"\n", data[-64:])) * 2**14, 2**6
    pack = partial(lzma.compress, preset=0) if chance.random() < 0.5 else bz2.compress
    path.write_bytes(pack(data) + pack(piece) * pieces)


def _headers(path: Path, _: Path, chance: random.Random) -> None:
    """Add many places that look as if a compressed piece began there."""
    piece = chance.choice(
        (b"\x1f\x8b\x08", b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\x78\x9c", b"BZh9", b"PAR1")
    )
    with path.open("ab") as file:
        file.write((piece + chance.randbytes(chance.randrange(4))) * (2**24 // len(piece)))


def _nested(path: Path, _: Path, chance: random.Random) -> None:
    """Nest values deeper than a parser that calls itself can follow."""
    opening, closing = chance.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"\x91", b""), (b"\x81\xa1a", b""), (b"- ", b""))
    )
    deep = chance.choice((500, 10_000, 1_000_000))
    inner = opening * deep + b"1" + closing * deep
    data = path.read_bytes()
    begin = chance.choice((0, chance.randrange(len(data) + 1), len(data)))
    path.write_bytes(data[:begin] + inner + data[begin:])


HARMS: tuple[Harm, ...] = (
    _in_place, _beside, _beside, _database, _packed_again, _bomb, _bomb, _darshan_bomb,
    _odd_name, _sparse, _packed_otherwise, _headers, _nested,
)  # fmt: skip
