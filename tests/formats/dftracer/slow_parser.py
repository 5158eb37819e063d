"""DFTracer's lines read the straightforward way: `json.loads`, one line after the other."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READS = {"read", "pread", "pread64", "readv", "preadv"}
WRITES = {"write", "pwrite", "pwrite64", "writev", "pwritev"}


@dataclass
class Totals:
    """What all calls of a trace add up to."""

    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    paths: Counter[str] = field(default_factory=Counter)


def lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return [json.loads(line.rstrip(b",")) for line in text.splitlines() if len(line.strip()) > 1]


def slow_totals(path: Path) -> Totals:
    objects = lines(path)
    names: dict[object, str] = {}
    tick = 1e-6
    for one in objects:
        arguments = one.get("args", {})
        if one["name"] == "FH":
            names[arguments["value"]] = arguments["name"]
        if one["name"] == "CM" and arguments.get("value") == "NS":
            tick = 1e-9
    totals = Totals()
    for one in objects:
        if str(one["ph"]) not in ("X", "1") or one["cat"] not in ("POSIX", "STDIO"):
            continue
        arguments = one.get("args", {})
        totals.calls[one["name"]] += 1
        totals.seconds += int(one["dur"]) * tick
        if one["name"] in READS | WRITES and "ret" in arguments:
            totals.bytes["read" if one["name"] in READS else "write"] += max(
                0, int(arguments["ret"])
            )
        path_of = arguments.get("fname") or names.get(arguments.get("fhash"))
        if path_of:
            totals.paths[path_of] += 1
    return totals
