"""Files that notice when a byte of them has changed, and a folder for what can be made again.

Parquet as it is written here has no checksums: a flipped bit is read as another number. So a
file carries a digest of what it holds. It is made of the values, not of the bytes, so that it
is part of the same file, and holds whatever version of a library reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ioprism.errors import OutputError
from ioprism.text import open_plain, printable

KEY = "ioprism_digest"
UNREADABLE = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


class ChangedContentError(ValueError):
    """The file does not hold what was written to it."""


def write_checked(table: pl.DataFrame, path: Path) -> None:
    """Write a table with its digest."""
    table.write_parquet(
        path, compression="zstd", compression_level=3, metadata={KEY: digest_of(table)}
    )


def read_checked(path: Path) -> pl.DataFrame:
    """Read a table that was written by `write_checked`.

    Raises:
        ChangedContentError: it cannot be read, or is not what was written.
    """
    if not path.is_file():
        raise ChangedContentError("it is not a plain file")
    try:
        table = pl.read_parquet(path, hive_partitioning=False, glob=False)
        expected = pl.read_parquet_metadata(path).get(KEY)
    except UNREADABLE as error:
        raise ChangedContentError("it is not a readable Parquet file") from error
    if expected != digest_of(table):
        raise ChangedContentError("its content was changed")
    return table


def check(path: Path) -> None:
    """Read a file whole, unless it was read since it last changed.

    Raises:
        ChangedContentError: it cannot be read, or is not what was written.
    """
    status = path.stat()
    _check_once(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=65536)
def _check_once(path: Path, size: int, changed: int) -> None:  # noqa: ARG001 - they tell versions apart
    read_checked(path)


def digest_of(table: pl.DataFrame) -> str:
    """Name the values of a table, its columns and their types."""
    digest = hashlib.blake2b(digest_size=16)
    for column in table:
        digest.update(f"{column.name}:{column.dtype}:{len(column)}".encode())
        _add(column, digest)
    return digest.hexdigest()


def _add(column: pl.Series, digest: hashlib.blake2b) -> None:
    digest.update(np.packbits(column.is_null().to_numpy()).tobytes())
    if isinstance(column.dtype, pl.List):
        digest.update(column.list.len().fill_null(0).to_numpy().tobytes())
        _add(column.explode(empty_as_null=False, keep_nulls=False), digest)
    elif column.dtype.is_numeric():
        digest.update(column.fill_null(0).to_numpy().tobytes())
    else:
        texts = column.cast(pl.String).fill_null("")
        digest.update(texts.str.len_bytes().to_numpy().tobytes())
        digest.update(texts.str.join("").item().encode() if len(texts) else b"")


CHECKSUM = "checksum"  # of everything else in the document
LARGEST = 256 * 2**20


def checked_text(document: Mapping[str, Any]) -> str:
    """Return a document with its checksum, as text."""
    checked = {**document, CHECKSUM: _checksum(document)}
    return json.dumps(checked, indent=1, sort_keys=True)


def read_document(path: Path) -> tuple[dict[str, Any], bool]:
    """Return a document without its checksum, and whether the two agree.

    Raises:
        ChangedContentError: it cannot be read as such a document.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise ChangedContentError("it is implausibly large")
        with open_plain(path) as file:
            document = dict(json.loads(file.read()))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, ChangedContentError):
            raise
        raise ChangedContentError(f"it cannot be read ({error})") from error
    expected = document.pop(CHECKSUM, None)
    return document, expected == _checksum(document)


def _checksum(document: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())


def cache_folder() -> Path:
    """Return the folder, made for this user alone.

    Raises:
        OutputError: something else has its name, or it belongs to another user.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "ioprism"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    alone = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)  # what others put there misleads
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or not alone:
        raise OutputError(
            f"{printable(str(folder))} is not a folder that only this user can write to.\n"
            "Hint: remove it, or set XDG_CACHE_HOME."
        )
    return folder


def cached_name(path: Path, *, suffix: str) -> Path:
    """Return where something made of a file is kept; another version has another name."""
    status = path.stat()
    version = (path.resolve(), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    digest = hashlib.blake2b(repr(version).encode("utf-8", "surrogatepass"), digest_size=16)
    return cache_folder() / f"{digest.hexdigest()}{suffix}"
