"""Write a trace as DFTracer would have: one file of JSON lines for each process."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from ioprism.model.trace import Trace
from ioprism.storage.atomic import atomic_write

MICROSECONDS = 1e6
CATEGORIES = {"posix": "POSIX", "stdio": "STDIO"}  # other layers: the application's own word
APPLICATION = "app"


def write_dftracer(trace: Trace, folder: Path) -> None:
    """Write `NAME-PID.pfw.gz` for each process of a trace, with hashes for names.

    Stripe layouts have no place in the format; write them beside it for `--layout`.
    """
    paths = dict(trace.files.select("file", "path").iter_rows())
    origin = trace.job.start_time or 0.0
    calls = {key[0]: rows for key, rows in trace.events().group_by("rank", maintain_order=True)}
    for process in trace.processes.iter_rows(named=True):
        own = calls.get(process["rank"])
        lines = _lines(process, own, paths, origin, trace.job.runtime or 0.0)
        text = "[\n" + "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        name = f"{quote(process['application'], safe='')}-{process['pid']}.pfw.gz"
        with atomic_write(folder / name) as aside:
            aside.write_bytes(gzip.compress(text.encode(), 6, mtime=0))


def _hash(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def _lines(
    process: Mapping[str, Any],
    calls: pl.DataFrame | None,
    paths: Mapping[int, str],
    origin: float,
    runtime: float,
) -> Iterator[dict[str, Any]]:
    head = {"pid": process["pid"], "tid": process["pid"]}
    host = {"hhash": _hash(process["host"])}

    def name(kind: str, text: str) -> dict[str, Any]:
        own = {"name": kind, "cat": "dftracer", **head, "ph": "M"}
        return {**own, "args": {**host, "name": text, "value": _hash(text)}}

    program = process["application"]
    yield name("HH", process["host"])
    yield name("SH", program)
    about = {"cmd_hash": _hash(program), "exec_hash": _hash(program), "version": "v2.0.3"}
    begin = round(origin * MICROSECONDS)
    own = {"cat": "dftracer", **head, "dur": 0, "ph": "X"}
    yield {"id": 1, "name": "start", **own, "ts": begin, "args": {**host, **about}}
    if calls is not None:
        for file in calls["file"].drop_nulls().unique(maintain_order=True).to_list():
            yield name("FH", paths[file])
        yield from _calls(calls, paths, head, host, origin)
    last = round((origin + runtime) * MICROSECONDS)
    yield {"id": 2, "name": "end", **own, "ts": last, "args": host}


def _calls(
    calls: pl.DataFrame,
    paths: Mapping[int, str],
    head: Mapping[str, Any],
    host: Mapping[str, Any],
    origin: float,
) -> Iterator[dict[str, Any]]:
    for number, call in enumerate(calls.iter_rows(named=True), start=3):
        arguments = dict(host)
        if call["bytes"] is not None:
            arguments |= {"ret": call["bytes"], "count": call["bytes"]}
            if call["offset"] is not None:
                arguments["offset"] = call["offset"]
        if call["file"] is not None:
            arguments["fhash"] = _hash(paths[call["file"]])
        start = round((origin + call["start"]) * MICROSECONDS)
        yield {
            "id": number,
            "name": call["function"],
            "cat": CATEGORIES.get(call["layer"], APPLICATION),
            **head,
            "ts": start,
            "dur": round((call["end"] - call["start"]) * MICROSECONDS),
            "ph": "X",
            "args": arguments,
        }
