"""Read the write times of IOR runs from its JSON or its text output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError, UsageError
from ioprism.model.samples import Run, WritePattern
from ioprism.units import format_counted, parse_bytes

SHARED = "a test writes one shared file: only file per process (-F) can be used"
_OPTION = re.compile(r"\s*([A-Za-z][\w\s/-]*)[:=]\s(.*)")
_CLIENTS = re.compile(r"(\d+)\s*\((\d+) per node\)")  # IOR before 3.2


def read_ior_json(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read what IOR wrote with ``-O summaryFormat=JSON``; its times have four decimals."""
    try:
        content = json.loads(text)
        tests = content["tests"]
        runs: list[Run] = []
        warnings: list[str] = []
        for test in tests:
            pattern = _json_pattern(test)
            if pattern is None:
                warnings.append(SHARED)
                continue
            runs += _timed(pattern, _json_times(test), source, skip_bad, warnings)
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


def _json_pattern(test: Mapping[str, Any]) -> WritePattern | None:
    given, options = test["Parameters"], test["Options"]
    if not int(given.get("filePerProc", 0)):
        return None
    tasks = int(options["tasks"])
    per_node = int(options.get("clients per node") or given["tasksPerNode"])
    return WritePattern(
        nodes=-(-tasks // per_node),
        cores_per_node=per_node,
        burst_bytes=int(given["blockSize"]) * int(given["segmentCount"]),
        label=f"ior {tasks}x{per_node}",
    )


def _json_times(test: Mapping[str, Any]) -> list[float]:
    return [float(r["totalTime"]) for r in test["Results"] if r["access"] == "write"]


def read_ior_text(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read what IOR printed, of version 3.0 or later."""
    runs: list[Run] = []
    warnings: list[str] = []
    options: dict[str, str] = {}
    for line in text.splitlines():
        columns = line.split()
        if len(columns) >= 9 and columns[0] == "write" and columns[-1].isdecimal():
            pattern = _text_pattern(options, source)
            if pattern is None:
                warnings.append(SHARED)
                continue
            # The row ends with the total time and the iteration in every version.
            runs += _timed(pattern, [_number(columns[-2])], source, skip_bad, warnings)
        elif option := _OPTION.match(line):
            options[option[1].strip().lower()] = option[2].strip()
    return runs, list(dict.fromkeys(warnings))


def _text_pattern(options: Mapping[str, str], source: Path) -> WritePattern | None:
    if options.get("access") != "file-per-process":
        return None
    try:
        if "clients" in options and (clients := _CLIENTS.match(options["clients"])):
            tasks, per_node = int(clients[1]), int(clients[2])
        else:
            tasks, per_node = int(options["tasks"]), int(options["clients per node"])
        burst = _size(options["blocksize"]) * int(options.get("segments", "1"))
        return WritePattern(-(-tasks // per_node), per_node, burst, label=f"ior {tasks}x{per_node}")
    except (KeyError, ValueError, UsageError, ZeroDivisionError) as error:
        raise BrokenTraceError(
            f"IOR's options cannot be read before its results ({error}).\n"
            "Hint: keep IOR's whole output, from its first line on.",
            source=source,
        ) from error


def _size(text: str) -> int:
    return parse_bytes(text.replace("bytes", "").strip())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _timed(
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
