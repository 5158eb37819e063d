r"""Bandwidths that monitors write (GekkoFS, Metric Proxy), and signals in text files.

Texts have FTIO's own form, or a TOML file describes them: it says where the numbers stand and how
to scale them; nothing in it is run::

    operation = "write"                      # read or write

    [start]
    pattern = 'start_t_micro: \[([^\]]*)\]'   # the first group: numbers, by commas or blanks
    scale = 1e-6                             # to seconds

    [end]
    pattern = 'end_t_micro: \[([^\]]*)\]'
    scale = 1e-6

    [bytes]                                  # or [bandwidth], in bytes per second
    pattern = 'req_size: \[([^\]]*)\]'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from ioprism.errors import BrokenTraceError, UsageError
from ioprism.formats.signals.build import (
    Content,
    Intervals,
    SignalReader,
    build_trace,
    head,
    interval_bytes,
    json_document,
    msgpack_objects,
    numbers,
    steps,
)
from ioprism.formats.text import TORN_END, ends_torn
from ioprism.model.arrays import FloatArray, TimeSeries
from ioprism.model.trace import Completeness, Trace
from ioprism.text import read_toml

MICRO = 1e-6
# The order of the objects in a msgpack report.
GEKKO_FIELDS = (
    "flush_t", "hostname", "pid", "io_type", "start_t_micro", "end_t_micro", "req_size",
    "total_iops", "total_bytes",
)  # fmt: skip
DIRECTIONS = {"w": "write", "r": "read"}


class GekkoReader(SignalReader):
    """Reads the reports of GekkoFS clients, one file a client."""

    name = "gekkofs"
    title = "GekkoFS client reports (.json, .msgpack)"
    tells = frozenset({"calls", "ranks", "hosts"})
    holds = "fields"

    def recognises(self, source: Path) -> bool:
        """Whether the content has GekkoFS's fields. Never raises."""
        start = head(source)
        if start.lstrip()[:1] == b"{":
            return b'"start_t_micro"' in start or b'"avg_thruput_mib"' in start
        return _starts_like_a_report(start)

    def content(self, source: Path, completeness: Completeness) -> Content:
        """Return the requests of one client."""
        return _join_reports(_reports(source, completeness), source)


def _starts_like_a_report(start: bytes) -> bool:
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(start)
    try:
        first = [bare(value) for value in islice(unpacker, 4)]
    except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError):
        return False
    kinds = [type(value) for value in first]
    return kinds == [int, str, int, str] and first[3] in DIRECTIONS


def bare(value: Any) -> Any:  # noqa: ANN401 - any msgpack object
    """A field may come alone or as a map of its name."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _reports(source: Path, completeness: Completeness) -> Iterator[Mapping[str, Any]]:
    if head(source).lstrip()[:1] == b"{":
        yield json_document(source)
        return
    objects = msgpack_objects(source, completeness)
    while fields := [bare(value) for value in islice(objects, len(GEKKO_FIELDS))]:
        if len(fields) < len(GEKKO_FIELDS):
            completeness.warn(f"{source.name}: the last report is cut off and left out")
            return
        yield dict(zip(GEKKO_FIELDS, fields, strict=True))


def _join_reports(reports: Iterator[Mapping[str, Any]], source: Path) -> Content:
    listed = list(reports)
    if not listed:
        raise ValueError("it does not contain a report")
    host, pid = listed[0].get("hostname"), int(listed[0].get("pid") or 0)
    return Content(
        intervals=[request_intervals(report, named=source.name) for report in listed],
        ranks=1,
        host=None if host is None else str(host),
        pid=pid if 0 < pid < 2**63 else None,
    )


def request_intervals(report: Mapping[str, Any], *, named: str = "") -> Intervals:
    """The requests of one report; `named` is the file's name, if it comes from one."""
    start, end = numbers(report["start_t_micro"]) * MICRO, numbers(report["end_t_micro"]) * MICRO
    size = numbers(report["req_size"])
    if not len(start) == len(end) == len(size):
        raise ValueError(f"{len(size)} sizes do not fit {len(start)} starts and {len(end)} ends")
    # Reports in JSON do not say the direction; the name that GekkoFS gives the file does.
    hint = named.partition("_")[0]
    guess = hint if hint in DIRECTIONS.values() else "other"
    return Intervals(start, end, size, DIRECTIONS.get(report.get("io_type", ""), guess))


DERIVED = "deriv__"
JSON_HEAD = re.compile(rb'\s*\{\s*"(?:infos|metrics|argv)"\s*:')
MSGPACK_HEAD = re.compile(rb"[\x81-\x8f][\xa0-\xbf](?:infos|metrics|argv)")


class MetricProxyReader(SignalReader):
    """Reads exports of the Metric Proxy: one series per metric."""

    name = "metric-proxy"
    title = "Metric Proxy exports (.json, .msgpack)"
    tells = frozenset({"heatmap"})
    holds = "metrics"

    def recognises(self, source: Path) -> bool:
        """Whether the content is a map with metrics. Never raises."""
        start = head(source)
        named = JSON_HEAD.match(start) or MSGPACK_HEAD.match(start)
        return bool(named) and b"metrics" in start

    def content(self, source: Path, completeness: Completeness) -> Content:
        """Return every metric as a rate over time."""
        return Content(series=[*metric_series(_metrics(source, completeness), completeness)])


def _metrics(source: Path, completeness: Completeness) -> Mapping[str, Any]:
    if head(source).lstrip()[:1] == b"{":
        document = json_document(source)
    else:
        document = next(msgpack_objects(source, completeness), None)
    return metrics_in(document)


def metrics_in(document: object) -> Mapping[str, Any]:
    """The map of metrics in an export or a request."""
    while isinstance(document, dict) and "metrics" in document:
        document = document["metrics"]
    if not isinstance(document, dict):
        raise ValueError("it does not contain a map of metrics")
    return document


def metric_series(metrics: Mapping[str, Any], completeness: Completeness) -> Iterator[TimeSeries]:
    """Each metric as a rate over time."""
    for name, points in metrics.items():
        if f"{DERIVED}{name}" in metrics:
            continue  # the proxy gives this one's rate itself
        if len(points) < 3:
            completeness.warn(f"the metric {name} has fewer than three points and is left out")
            continue
        table = np.asarray(points, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError(f"the metric {name} is not a list of [time, value]")
        time, values = table[:, 0], _rate(name, table[:, 0], table[:, 1])
        direction = next((d for d in ("read", "write") if name.rstrip("}").endswith(d)), None)
        yield TimeSeries(name, steps(time, values), direction)


def _rate(name: str, time: FloatArray, values: FloatArray) -> FloatArray:
    """A counter, which never falls, becomes its rate; anything else is one already."""
    grows = values[-1] > values[0] and bool((np.diff(values) >= 0).all())
    if name.startswith(DERIVED) or not grows:
        return values
    spans = np.maximum(np.diff(time), 1e-9)
    return np.append(np.diff(values) / spans, 0.0)


MEBI = 2.0**20
# What a column is, and what makes it seconds, bytes, or bytes per second.
STARTS = {"start_t_micro": MICRO, "t_rank_s": 1.0}
ENDS = {"end_t_micro": MICRO, "t_rank_e": 1.0}
SIZES = {"req_size": 1.0}
RATES = {"avg_thruput_mib": MEBI, "avg_throughput_mib": MEBI, "b_rank_avr": 1.0, "b_rank_sum": 1.0}
NAMES = (*STARTS, *ENDS, *SIZES, *RATES)
# Blank lines are not part of the indentation: each of them would be searched many times.
NAME = r"^(?:[^\S\n]|[\"'])*(\w+)[\"']?\s*[:=]\s*\["
LIST = re.compile(rf"{NAME}([^\]]*)\]", re.MULTILINE)
SEPARATORS = re.compile(r"[,;\s]+")
DIRECTION = re.compile(
    r"^[^\S\n]*(?:io_type|operation)\s*[:=]\s*[\"']?(r|w|read|write)\b", re.MULTILINE
)


class FtioTextReader(SignalReader):
    """Reads texts with FTIO's names."""

    name = "ftio-text"
    title = "plain text with FTIO's names (.txt): lists or columns"
    tells = frozenset({"calls"})
    holds = "columns"

    def recognises(self, source: Path) -> bool:
        """Whether the text has a start, an end, and a size or rate by name. Never raises."""
        start = head(source)
        if start.lstrip()[:1] in (b"{", b"[") or b"\0" in start:
            return False
        text = start.decode("utf-8", "replace")
        names = {*re.findall(NAME, text, re.MULTILINE), *_header(text)}
        return bool(names & set(STARTS) and names & set(ENDS) and names & {*SIZES, *RATES})

    def content(self, source: Path, completeness: Completeness) -> Content:
        """Return the requests."""
        if ends_torn(source):
            completeness.warn(f"{source.name}: {TORN_END}")
        text = source.read_text(encoding="utf-8", errors="replace")
        return Content([_intervals(_lists(text) or _table(text), text)])


def _header(text: str) -> list[str]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return SEPARATORS.split(first.strip().lstrip("# "))


def _lists(text: str) -> dict[str, FloatArray]:
    lists = {name: numbers for name, numbers in LIST.findall(text) if name in NAMES}
    return {name: _floats(SEPARATORS.split(numbers.strip())) for name, numbers in lists.items()}


def _table(text: str) -> dict[str, FloatArray]:
    names = _header(text)
    lines = [line for line in text.splitlines() if line.strip()][1:]
    rows = [SEPARATORS.split(line.strip()) for line in lines if not line.lstrip().startswith("#")]
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"not every line has {len(names)} columns")
    return {
        name: _floats([row[place] for row in rows])
        for place, name in enumerate(names)
        if name in NAMES
    }


def _floats(words: list[str]) -> FloatArray:
    return np.array([float(word) for word in words if word], dtype=np.float64)


def _intervals(columns: Mapping[str, FloatArray], text: str) -> Intervals:
    start, end = _first_column(columns, STARTS), _first_column(columns, ENDS)
    if set(columns) & set(SIZES):
        moved = _first_column(columns, SIZES)
    else:
        moved = interval_bytes(_first_column(columns, RATES), start, end)
    if not len(start) == len(end) == len(moved):
        raise ValueError(f"{len(start)} starts, {len(end)} ends and {len(moved)} sizes")
    said = DIRECTION.search(text)
    operation = "other" if said is None else {"r": "read", "w": "write"}[said.group(1)[0]]
    return Intervals(start, end, moved, operation)


def _first_column(columns: Mapping[str, FloatArray], known: Mapping[str, float]) -> FloatArray:
    name = next((name for name in known if name in columns), None)
    if name is None:
        raise ValueError(f"none of {', '.join(known)} is there")
    return columns[name] * known[name]


SIGNAL_FIELDS = ("start", "end", "bytes", "bandwidth")
TEXT_BYTES = 2**30


DescribedField = tuple[re.Pattern[str], float]  # where a column of numbers stands, and its scale


def read_described_text(source: Path, description: Path) -> Trace:
    """Read a text whose numbers a TOML description finds.

    Raises:
        UsageError: the description is wrong.
        BrokenTraceError: the text does not hold what the description says.
    """
    fields, operation = _description(description)
    if source.stat().st_size > TEXT_BYTES:
        raise BrokenTraceError(
            "the text is larger than 1 GiB.\nHint: split it into several files.", source=source
        )
    text = source.read_text(encoding="utf-8", errors="replace")
    columns = {name: _numbers(text, name, field, source) for name, field in fields.items()}
    start, end = columns["start"], columns["end"]
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise BrokenTraceError(
            f"the columns are not equally long ({lengths}).\n"
            f"Hint: check the patterns in {description.name}.",
            source=source,
        )
    moved = (
        columns["bytes"] if "bytes" in columns else interval_bytes(columns["bandwidth"], start, end)
    )
    content = Content([Intervals(start, end, moved, operation)])
    return build_trace(source, content, Completeness(), name="text")


def _description(path: Path) -> tuple[dict[str, DescribedField], str]:
    try:
        described = read_toml(path)
    except ValueError as error:
        raise UsageError(
            f"{path}: not valid TOML ({error}).\n"
            "Hint: write tables such as [start], with pattern and scale."
        ) from error
    operation = described.pop("operation", "other")
    unknown = set(described) - set(SIGNAL_FIELDS)
    if unknown or operation not in ("read", "write", "other"):
        raise UsageError(
            f"{path}: unknown entries {sorted(unknown) or operation!r}.\n"
            f"Hint: there are operation (read, write) and the tables {', '.join(SIGNAL_FIELDS)}."
        )
    if not {"start", "end"} <= set(described) or not {"bytes", "bandwidth"} & set(described):
        raise UsageError(
            f"{path}: the tables start, end and one of bytes and bandwidth are needed."
        )
    return {name: _field(path, name, table) for name, table in described.items()}, operation


def _field(path: Path, name: str, table: Any) -> DescribedField:  # noqa: ANN401 - any TOML value
    match table:
        case {"pattern": str(pattern), **rest} if set(rest) <= {"scale"}:
            scale = rest.get("scale", 1.0)
        case _:
            scale, pattern = None, ""
    if not isinstance(scale, int | float):
        raise UsageError(f"{path}: [{name}] needs a pattern (text) and may have a scale (number).")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{path}: [{name}] pattern: {error}.") from error
    if compiled.groups < 1:
        raise UsageError(f"{path}: [{name}] pattern has no group for the numbers.")
    return compiled, float(scale)


def _numbers(text: str, name: str, field: DescribedField, source: Path) -> FloatArray:
    pattern, scale = field
    groups = [match.group(1) or "" for match in pattern.finditer(text)]
    words = [word for group in groups for word in SEPARATORS.split(group.strip())]
    try:
        values = _floats(words)
    except ValueError as error:
        raise BrokenTraceError(
            f"the pattern of [{name}] matches something that is not a number ({error}).\n"
            "Hint: its first group should match only numbers.",
            source=source,
        ) from error
    if not len(values):
        raise BrokenTraceError(
            f"the pattern of [{name}] matches nothing.\nHint: check the pattern.", source=source
        )
    return values * scale
