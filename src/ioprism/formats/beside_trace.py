"""What users know beside a trace: machine benchmarks, stripe layouts, workloads to schedule.

A workload is TOML:

bandwidth = "10GB"        # of the file system, per second
horizon = 8000            # seconds to simulate

[[jobs]]
name = "climate"
count = 4                 # jobs of this kind
period = 100              # seconds from one phase to the next, alone on the machine
io_share = 0.1            # of the period spent in I/O, or: bytes = "50GB"
nodes = 64
variation = 0.05          # of the computing time, from step to step
spread = 0.2              # of the period, from job to job
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError, UsageError
from ioprism.formats.reading import check_file
from ioprism.formats.text import open_text
from ioprism.model.machine import Ceiling, JobClass, Workload
from ioprism.model.trace import MIB
from ioprism.model.usage import Striping
from ioprism.text import read_toml
from ioprism.units import parse_bytes

MAX_RESULT_BYTES = 64 * 2**20  # bytes of a result file
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
    text = _text(path, MAX_RESULT_BYTES)
    for read in (_from_json, _ior_text, _mdtest):
        ceiling = read(text, path)
        if ceiling is not None and (ceiling.bandwidth or ceiling.operations):
            return ceiling
    raise BrokenTraceError(
        "this is not a benchmark result with rates.\nHint: give IOR's JSON or text, "
        "mdtest's text, or what `fio --output-format=json` writes.",
        source=path,
    )


def _text(path: Path, most: int) -> str:
    with open_text(path) as file:
        return file.read(most).decode("utf-8", "replace")


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


def _finite_rate(value: object) -> float | None:
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
            rate = _finite_rate(result.get("bwMiB"))
            _keep(bandwidth, access, None if rate is None else rate * MIB)
            _keep(operations, access, _finite_rate(result.get("iops")))
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
                rate = _finite_rate(side.get(key))
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


MAX_LAYOUT_BYTES = 256 * 2**20  # bytes of a layout file
USUAL_STRIPE = 2**20  # bytes, where the layout does not say: the default of Lustre
_TEXT_FIELD = re.compile(r"^\s*(?:-\s*)?(?:lmm_|lcme_)?(stripe_count|stripe_size):\s*(\d{1,18})\b")
_TEXT_OBJECT = re.compile(r"^\s+(\d{1,18})\s+\d+\s+0x[0-9a-f]+\s+\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,18}")
_YAML_OBJECT = re.compile(r"l_ost_idx:\s*(\d{1,18})\b")


def read_layout(path: Path) -> Mapping[str, Striping]:
    """Read a layout file: the targets of each path, in stripe order.

    Raises:
        NoSuchTraceError: the file does not exist.
        BrokenTraceError: nothing in it is a layout.
    """
    check_file(path)
    text = _text(path, MAX_LAYOUT_BYTES)
    columns = {name.strip().lower() for name in text.lstrip().partition("\n")[0].split(",")}
    try:
        layouts = dict(_from_csv(text) if columns >= {"path", "targets"} else _from_getstripe(text))
    except csv.Error as error:
        raise BrokenTraceError(
            f"it is not a CSV table ({error}).\nHint: check its quotes.", source=path
        ) from error
    if not layouts:
        raise BrokenTraceError(
            "it does not list the storage targets of any file.\nHint: give a CSV with the columns "
            "path,targets[,stripe_size], or the output of `lfs getstripe -r DIR`.",
            source=path,
        )
    return layouts


def _from_csv(text: str) -> Iterator[tuple[str, Striping]]:
    for row in csv.DictReader(io.StringIO(text.lstrip()), skipinitialspace=True):
        fields = {str(key).strip().lower(): value for key, value in row.items() if key}
        targets = [name for name in re.split(r"[;\s]+", fields.get("targets") or "") if name]
        if not all(map(_NUMBER.fullmatch, targets)) or not targets or not fields.get("path"):
            continue
        size = (fields.get("stripe_size") or "").strip()
        stripe = int(size) if _NUMBER.fullmatch(size) else 0
        yield (
            str(fields["path"]),
            Striping(stripe or USUAL_STRIPE, tuple(int(name) for name in targets)),
        )


def _from_getstripe(text: str) -> Iterator[tuple[str, Striping]]:
    """A path stands alone on its line; fields and objects of the file follow it."""
    path: str | None = None
    size, targets = USUAL_STRIPE, list[int]()
    for line in text.splitlines():
        named = line.removeprefix("lmm_fid:").strip()
        field, item = _TEXT_FIELD.match(line), _YAML_OBJECT.search(line) or _TEXT_OBJECT.match(line)
        if item is not None:
            targets.append(int(item.group(1)))
        elif field is not None:
            size = int(field.group(2)) if field.group(1) == "stripe_size" else size
        elif named.startswith(("/", "./")) and ":" not in named:
            if path is not None and targets:
                yield path, Striping(size, tuple(targets))
            path, size, targets = named, USUAL_STRIPE, []
    if path is not None and targets:
        yield path, Striping(size, tuple(targets))


KNOWN = {
    "name", "count", "period", "io_share", "bytes", "nodes", "variation", "spread", "bandwidth"
}  # fmt: skip
MOST_JOBS = 1000


def read_workload(path: Path) -> Workload:
    """Read a description.

    Raises:
        BrokenTraceError: it cannot be read, or makes no sense.
    """
    try:
        return _workload(read_toml(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenTraceError(f"this is not TOML ({error})", source=path) from error
    except (ValueError, TypeError, KeyError, UsageError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BrokenTraceError(
            f"the workload makes no sense: {said}.\n"
            "Hint: see `ioprism schedule --example` for one that does.",
            source=path,
        ) from error


def _workload(document: Mapping[str, Any]) -> Workload:
    unknown = set(document) - {"bandwidth", "horizon", "jobs"}
    if unknown:
        raise ValueError(f"nothing is called {', '.join(sorted(unknown))}")
    defaults = Workload(())
    bandwidth = _rate(document.get("bandwidth", defaults.bandwidth))
    horizon = _positive(document.get("horizon", defaults.horizon), "horizon")
    jobs = document.get("jobs", [])
    if not isinstance(jobs, list) or not jobs:
        raise ValueError("it has no [[jobs]]")
    classes = tuple(_class(job, bandwidth) for job in jobs)
    if sum(one.count for one in classes) > MOST_JOBS:
        raise ValueError(f"it has more than {MOST_JOBS} jobs")
    return Workload(classes, bandwidth, horizon)


def _class(job: Mapping[str, Any], bandwidth: float) -> JobClass:
    unknown = set(job) - KNOWN
    if unknown:
        raise ValueError(f"nothing of a job is called {', '.join(sorted(unknown))}")
    period = _positive(job["period"], "period")
    own = _rate(job["bandwidth"]) if "bandwidth" in job else None
    if "bytes" in job:
        moved = job["bytes"]
        volume = parse_bytes(moved) if isinstance(moved, str) else float(moved)
        share = volume / min(own or bandwidth, bandwidth) / period
    else:
        share = float(job["io_share"])
    if not 0.0 < share < 1.0:
        raise ValueError(f"a job spends {share:.2g} of its period in I/O, not between 0 and 1")
    count, nodes = (int(job.get(name, 1)) for name in ("count", "nodes"))
    if count < 1 or nodes < 1:
        raise ValueError("count and nodes are at least 1")
    variation, spread = (
        _share(job.get(name, default), name)
        for name, default in (("variation", 0.05), ("spread", 0.2))
    )
    name = str(job.get("name", f"every {period:g} s"))
    return JobClass(name, count, period, share, variation, spread, nodes, own)


def _rate(value: object) -> float:
    return _positive(parse_bytes(value) if isinstance(value, str) else value, "bandwidth")


def _positive(value: Any, name: str) -> float:  # noqa: ANN401 - whatever TOML holds
    number = float(value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} = {value} is not a positive number")
    return number


def _share(value: Any, name: str) -> float:  # noqa: ANN401
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} = {value} is not between 0 and 1")
    return number
