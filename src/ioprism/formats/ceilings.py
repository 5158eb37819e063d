"""What the machine can do: results of IOR (JSON and text), mdtest and fio (JSON)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError
from ioprism.formats.files import check_file
from ioprism.formats.text import open_text
from ioprism.model.layers import MIB
from ioprism.model.machine import Ceiling

LARGEST = 64 * 2**20  # bytes of a result file
_IOR_MAX = re.compile(r"^Max (Write|Read):\s+([\d.]+) MiB/sec", re.MULTILINE)
_IOR_ROW = re.compile(
    r"^(write|read)\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+", re.MULTILINE
)
_IOR_TASKS = re.compile(r"^[^\S\n]*tasks\s*:\s*(\d{1,9})\s*$", re.MULTILINE)
_MDTEST = re.compile(r"mdtest[\w.+-]* was launched with (\d{1,9}) total task")
_MDTEST_ROW = re.compile(
    r"^[^\S\n]*(?:File|Directory) (?:creation|stat|read|removal|rename)\s*:?\s+([\d.]+)",
    re.MULTILINE,
)


def read_ceiling(path: Path) -> Ceiling:
    """Read a benchmark's result; its kind is recognised from its content.

    Raises:
        NoSuchTraceError: the file does not exist.
        BrokenTraceError: its kind of result is not known.
    """
    check_file(path)
    text = _text(path)
    for read in (_from_json, _ior_text, _mdtest):
        ceiling = read(text, path)
        if ceiling is not None and (ceiling.bandwidth or ceiling.operations):
            return ceiling
    raise BrokenTraceError(
        "this is not a benchmark result with rates.\nHint: give IOR's JSON or text, "
        "mdtest's text, or what `fio --output-format=json` writes.",
        source=path,
    )


def _text(path: Path) -> str:
    with open_text(path) as file:
        return file.read(LARGEST).decode("utf-8", "replace")


def _from_json(text: str, path: Path) -> Ceiling | None:
    begin = text.find("{")  # fio may print notes before its JSON
    if begin < 0:
        return None
    try:
        read, _ = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    known: dict[str, Callable[[Mapping[str, Any], Path], Ceiling]] = {"tests": _ior, "jobs": _fio}
    for key, understand in known.items():
        if isinstance(read.get(key), list):
            return understand(read, path)
    return None


def _dicts(values: object) -> Iterable[Mapping[str, Any]]:
    return (v for v in values if isinstance(v, dict)) if isinstance(values, list) else ()


def _rate(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value <= sys.float_info.max else None


def _ior(read: Mapping[str, Any], path: Path) -> Ceiling:
    bandwidth: dict[str, float] = {}
    operations: dict[str, float] = {}
    processes = request = None
    for test in _dicts(read["tests"]):
        options, parameters = (test.get(key) or {} for key in ("Options", "Parameters"))
        processes = _whole(options, "tasks") or processes
        request = _whole(parameters, "transferSize") or request
        for result in _dicts(test.get("Results")):
            access = str(result.get("access"))
            rate = _rate(result.get("bwMiB"))
            _keep(bandwidth, access, None if rate is None else rate * MIB)
            _keep(operations, access, _rate(result.get("iops")))
    return Ceiling("IOR", path, processes, bandwidth, operations, request)


def _whole(table: object, key: str) -> int | None:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, int) and value > 0 else None


def _keep(best: dict[str, float], operation: str, rate: float | None) -> None:
    """Remember the highest rate of an operation."""
    if rate is not None and operation in ("read", "write", "metadata"):
        best[operation] = max(rate, best.get(operation, 0.0))


def _fio(read: Mapping[str, Any], path: Path) -> Ceiling:
    """Jobs of one group run together: their rates add up."""
    groups: dict[object, tuple[dict[str, float], dict[str, float]]] = {}
    jobs = list(_dicts(read["jobs"]))
    for job in jobs:
        bandwidth, operations = groups.setdefault(str(job.get("groupid")), ({}, {}))
        for direction in ("read", "write"):
            side = job.get(direction)
            side = side if isinstance(side, dict) else {}
            for sums, key in ((bandwidth, "bw_bytes"), (operations, "iops")):
                rate = _rate(side.get(key))
                if rate is not None:
                    sums[direction] = sums.get(direction, 0.0) + rate
    best: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for group in groups.values():
        for kept, rates in zip(best, group, strict=True):
            for direction, rate in rates.items():
                _keep(kept, direction, rate)
    return Ceiling("fio", path, len(jobs) or None, *best)


def _ior_text(text: str, path: Path) -> Ceiling | None:
    bandwidth: dict[str, float] = {}
    operations: dict[str, float] = {}
    for access, rate, calls in _IOR_ROW.findall(text):
        _keep(bandwidth, access, _number(rate) * MIB)
        _keep(operations, access, _number(calls))
    for access, rate in _IOR_MAX.findall(text):
        _keep(bandwidth, access.lower(), _number(rate) * MIB)
    tasks = _IOR_TASKS.search(text)
    if not bandwidth:
        return None
    return Ceiling("IOR", path, int(tasks[1]) if tasks else None, bandwidth, operations)


def _mdtest(text: str, path: Path) -> Ceiling | None:
    launched = _MDTEST.search(text)
    rates = [_number(rate) for rate in _MDTEST_ROW.findall(text)]
    if launched is None or not rates:
        return None
    return Ceiling("mdtest", path, int(launched[1]), operations={"metadata": max(rates)})


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
