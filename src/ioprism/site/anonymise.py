"""Hide who ran what: the same name gives the same digest under the same key, in every table."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

# Columns that hold one name. `pattern` is a path too.
NAMES = ("user", "application", "path", "job_id", "pattern", "host", "file", "file_system")
PLAIN = ("operation",)  # of a culprit: words of ioprism, not of the user

Rows = Mapping[str, list[dict[str, Any]]]


def anonymous(rows: Rows, key: bytes) -> Rows:
    """Replace names by digests, and sentences that may hold names by the code of their cause."""
    return {table: [_row(row, key) for row in lines] for table, lines in rows.items()}


def _row(row: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    hidden = {
        name: _hidden(name, value, key) if name in NAMES else value for name, value in row.items()
    }
    return hidden if "culprit" not in row else {**hidden, **_cause(row, key)}


def _cause(row: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    culprit = {
        name: value if name in PLAIN else _hidden(name, value, key)
        for name, value in json.loads(row["culprit"]).items()
    }
    return {
        "culprit": json.dumps(culprit),
        "subject": ", ".join(f"{name} {value}" for name, value in culprit.items()),
        "title": row["code"].replace("-", " ").capitalize(),
        "advice": None,
    }


def _hidden(name: str, value: Any, key: bytes) -> Any:  # noqa: ANN401 - cells are of any kind
    if isinstance(value, list):
        return [_hidden(name, one, key) for one in value]
    if not isinstance(value, str):
        return value
    digest = hmac.new(key, value.encode(errors="surrogateescape"), "sha256").hexdigest()
    return f"{name}-{digest[:12]}"
