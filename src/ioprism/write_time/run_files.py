"""Read measured writes from a file: a CSV table of runs, or IOR's results as JSON or text."""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError, TraceError, UsageError
from ioprism.formats.reading import Budget, check_readable
from ioprism.model.samples import ACCESSES, Run, WritePattern, parse_node_list
from ioprism.text import printable
from ioprism.units import format_counted, parse_bytes

GZIP = b"\x1f\x8b"
LARGEST_TEXT = 256 * 2**20  # bytes
_OPTION = re.compile(r"\s*([A-Za-z][\w\s/-]*)[:=]\s(.*)")
_CLIENTS = re.compile(r"(\d+)\s*\((\d+) per node\)")  # IOR before 3.2


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a file says, and what of it was left out."""

    format: str
    runs: tuple[Run, ...]
    warnings: tuple[str, ...]
    content: bytes


def read_runs(source: Path, *, skip_bad: bool = False) -> RunFile:
    """Read a CSV table of runs, or IOR's results as JSON or text; the content decides.

    Raises:
        BrokenTraceError: rows are bad, and not to be skipped.
        TraceError: the file does not exist, its format is not known, or it has no usable run.
    """
    if not source.exists():
        raise TraceError(
            "no such file.\nHint: give a table of runs, or IOR's results.", source=source
        )
    if source.is_dir():
        raise TraceError("this is a folder.\nHint: name one file of runs.", source=source)
    check_readable(source)
    content = source.read_bytes()
    text = _text(content, source)
    start = text.lstrip()
    first = start.partition("\n")[0]
    if start.startswith("{"):
        name, read = "ior-json", read_ior_json
    elif "seconds" in first and "burst_bytes" in first:
        name, read = "csv", read_table
    elif "IOR" in start[:2000] and "xfer" in start:
        name, read = "ior-text", read_ior_text
    else:
        raise TraceError(
            "this is neither a table of runs nor IOR's results.\n"
            "Hint: a table starts with the line pattern,nodes,cores_per_node,burst_bytes,"
            "stripe_bytes,stripe_count,node_list,seconds.",
            source=source,
        )
    runs, warnings = read(text, source, skip_bad)
    if not runs:
        raise TraceError(
            "it contains no runs.\nHint: IOR must have written or read something (-w or -r).",
            source=source,
        )
    return RunFile(name, tuple(runs), tuple(warnings), content)


def _text(content: bytes, source: Path) -> str:
    try:
        plain = _inflate(content, source) if content.startswith(GZIP) else content
        return plain.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BrokenTraceError(
            f"the file is damaged or not text ({error}).\nHint: create it again.", source=source
        ) from error


def _inflate(content: bytes, source: Path) -> bytes:
    with gzip.open(BytesIO(content)) as file:
        plain = file.read(LARGEST_TEXT + 1)
    if len(plain) > LARGEST_TEXT:
        raise BrokenTraceError(
            f"its {len(content):,} compressed bytes unpack to more than {LARGEST_TEXT:,}.\n"
            "Hint: give the runs in several files.",
            source=source,
        )
    return plain


BYTES_OF_RUN = 600  # that a run and its pattern take
BYTES_OF_NODE = 40  # that a number takes in a list
NEEDED = ("nodes", "cores_per_node", "burst_bytes", "seconds")
SHOWN = 3  # bad rows named in a message


def read_table(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read every row; refuse the table if one is bad, unless bad rows are to be skipped."""
    rows = csv.DictReader(text.splitlines(), restval=None)
    missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise BrokenTraceError(
            f"the columns {', '.join(missing)} are missing.\n"
            "Hint: the first line must name nodes, cores_per_node, burst_bytes and seconds.",
            source=source,
        )
    runs: list[Run] = []
    bad: list[str] = []
    lists: dict[str, tuple[int, ...]] = {}
    budget = Budget(source)
    while True:
        try:
            budget.take(BYTES_OF_RUN, "the runs")
            runs.append(_run(next(rows), lists, budget))
        except StopIteration:
            break
        except (csv.Error, ValueError, UsageError) as error:
            reason = str(error).partition("\n")[0]
            bad.append(f"line {rows.line_num}: {printable(reason)}")
    if bad and not skip_bad:
        raise BrokenTraceError(
            f"{len(bad)} of {len(runs) + len(bad)} rows are bad; nothing was imported "
            f"({'; '.join(bad[:SHOWN])}{'; …' if len(bad) > SHOWN else ''}).\n"
            "Hint: correct them, or use --skip-bad to import the others.",
            source=source,
        )
    return runs, [f"skipped {entry}" for entry in bad]


def _run(row: Mapping[str, str | None], lists: dict[str, tuple[int, ...]], budget: Budget) -> Run:
    text = row.get("node_list") or ""
    if text and text not in lists:
        lists[text] = parse_node_list(text)
        budget.take(BYTES_OF_NODE * len(lists[text]), "the lists of nodes")
    pattern = WritePattern(
        nodes=_count(row, "nodes"),
        cores_per_node=_count(row, "cores_per_node"),
        burst_bytes=_count(row, "burst_bytes"),
        stripe_bytes=_count(row, "stripe_bytes") if row.get("stripe_bytes") else None,
        stripe_count=_count(row, "stripe_count") if row.get("stripe_count") else None,
        node_list=lists[text] if text else None,
        label=row.get("pattern") or "",
        access=row.get("access") or ACCESSES[0],
    )
    if pattern.access not in ACCESSES:
        raise ValueError(f"access is {pattern.access[:40]!r}, not one of {', '.join(ACCESSES)}")
    if pattern.node_list is not None and len(pattern.node_list) != pattern.nodes:
        raise ValueError(f"{len(pattern.node_list)} nodes listed, but nodes is {pattern.nodes}")
    return Run(pattern, _seconds(row.get("seconds")))


def _count(row: Mapping[str, str | None], name: str) -> int:
    text = (row.get(name) or "").strip()
    if not text:
        raise ValueError(f"{name} is missing")
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}, not a whole number") from None
    if not 1 <= value <= 10**18:
        raise ValueError(f"{name} is {value}, not a positive number in range")
    return value


def _seconds(text: str | None) -> float:
    if not (text or "").strip():
        raise ValueError("seconds is missing")
    try:
        value = float(text or "")
    except ValueError:
        raise ValueError(f"seconds is {(text or '')[:40]!r}, not a number") from None
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"seconds is {value:g}, not positive")
    return value


def read_ior_json(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read what IOR wrote with ``-O summaryFormat=JSON``; its times have four decimals."""
    try:
        content = json.loads(text)
        tests = content["tests"]
        runs: list[Run] = []
        warnings: list[str] = []
        for test in tests:
            pattern = _json_pattern(test)
            for operation in ("write", "read"):
                made = replace(pattern, access=pattern.access + operation)
                rows = [row for row in test["Results"] if row["access"] == operation]
                times = [float(row["totalTime"]) for row in rows]
                runs += _runs_of_times(made, times, source, skip_bad, warnings)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise BrokenTraceError(
            f"this is not a complete JSON result of IOR ({type(error).__name__}: {error}).\n"
            "Hint: an interrupted IOR leaves half a file; run it again.",
            source=source,
        ) from error
    return runs, warnings


def _json_pattern(test: Mapping[str, Any]) -> WritePattern:
    """Return what a test did; its access still lacks the operation."""
    given, options = test["Parameters"], test["Options"]
    tasks = int(options["tasks"])
    per_node = int(options.get("clients per node") or given["tasksPerNode"])
    return WritePattern(
        nodes=-(-tasks // per_node),
        cores_per_node=per_node,
        burst_bytes=int(given["blockSize"]) * int(given["segmentCount"]),
        label=f"ior {tasks}x{per_node}",
        access="" if int(given.get("filePerProc", 0)) else "shared-",
    )


def read_ior_text(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read what IOR printed, of version 3.0 or later."""
    runs: list[Run] = []
    warnings: list[str] = []
    options: dict[str, str] = {}
    for line in text.splitlines():
        columns = line.split()
        if len(columns) >= 9 and columns[0] in ("write", "read") and columns[-1].isdecimal():
            pattern = _text_pattern(options, columns[0], source)
            # The row ends with the total time and the iteration in every version.
            try:
                seconds = float(columns[-2])
            except ValueError:
                seconds = math.nan
            runs += _runs_of_times(pattern, [seconds], source, skip_bad, warnings)
        elif option := _OPTION.match(line):
            options[option[1].strip().lower()] = option[2].strip()
    return runs, list(dict.fromkeys(warnings))


def _text_pattern(options: Mapping[str, str], operation: str, source: Path) -> WritePattern:
    shared = "" if options.get("access") == "file-per-process" else "shared-"
    try:
        if "clients" in options and (clients := _CLIENTS.match(options["clients"])):
            tasks, per_node = int(clients[1]), int(clients[2])
        else:
            tasks, per_node = int(options["tasks"]), int(options["clients per node"])
        block = parse_bytes(options["blocksize"].replace("bytes", "").strip())
        burst = block * int(options.get("segments", "1"))
        label, access = f"ior {tasks}x{per_node}", f"{shared}{operation}"
        return WritePattern(-(-tasks // per_node), per_node, burst, label=label, access=access)
    except (KeyError, ValueError, UsageError, ZeroDivisionError) as error:
        raise BrokenTraceError(
            f"IOR's options cannot be read before its results ({error}).\n"
            "Hint: keep IOR's whole output, from its first line on.",
            source=source,
        ) from error


def _runs_of_times(
    pattern: WritePattern, times: list[float], source: Path, skip_bad: bool, warnings: list[str]
) -> list[Run]:
    good = [Run(pattern, seconds) for seconds in times if 0 < seconds < float("inf")]
    if len(good) < len(times):
        message = f"{format_counted(len(times) - len(good), 'write time')} missing or not positive"
        if not skip_bad:
            raise BrokenTraceError(
                f"{message}.\nHint: use --skip-bad to import the others.", source=source
            )
        warnings.append(f"skipped: {message}")
    return good
