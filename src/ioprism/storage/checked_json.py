"""JSON documents that notice when a byte of them has changed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ioprism.storage.checked_parquet import ChangedContentError

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
        document = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, ChangedContentError):
            raise
        raise ChangedContentError(f"it cannot be read ({error})") from error
    told = document.pop(CHECKSUM, None)
    return document, told == _checksum(document)


def _checksum(document: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())
