"""Bandwidths that monitors write: GekkoFS clients, and the Metric Proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ioprism.formats.signals.build import (
    Content,
    Intervals,
    broken,
    build_trace,
    head,
    json_document,
    msgpack_objects,
    numbers,
    steps,
)
from ioprism.model.signal import FloatArray, TimeSeries
from ioprism.model.trace import Completeness, Trace

MICRO = 1e-6
# The order of the objects in a msgpack report.
FIELDS = (
    "flush_t", "hostname", "pid", "io_type", "start_t_micro", "end_t_micro", "req_size",
    "total_iops", "total_bytes",
)  # fmt: skip
DIRECTIONS = {"w": "write", "r": "read"}


class GekkoReader:
    """Reads the reports of GekkoFS clients, one file a client."""

    name = "gekkofs"
    title = "GekkoFS client reports (.json, .msgpack)"
    tells = frozenset({"calls", "ranks", "hosts"})

    def recognises(self, source: Path) -> bool:
        """Whether the content has GekkoFS's fields. Never raises."""
        start = head(source)
        if start.lstrip()[:1] == b"{":
            return b'"start_t_micro"' in start or b'"avg_thruput_mib"' in start
        return _starts_like_a_report(start)

    def read(self, source: Path) -> Trace:
        """Read the requests of one client."""
        completeness = Completeness()
        try:
            content = _join_reports(_reports(source, completeness), source)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise broken(source, f"its fields cannot be read ({error})") from error
        return build_trace(source, content, completeness, name=self.name)


def _starts_like_a_report(start: bytes) -> bool:
    import msgpack

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
    while fields := [bare(value) for value in islice(objects, len(FIELDS))]:
        if len(fields) < len(FIELDS):
            completeness.warn(f"{source.name}: the last report is cut off and left out")
            return
        yield dict(zip(FIELDS, fields, strict=True))


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


class MetricProxyReader:
    """Reads exports of the Metric Proxy: one series per metric."""

    name = "metric-proxy"
    title = "Metric Proxy exports (.json, .msgpack)"
    tells = frozenset({"heatmap"})

    def recognises(self, source: Path) -> bool:
        """Whether the content is a map with metrics. Never raises."""
        start = head(source)
        named = JSON_HEAD.match(start) or MSGPACK_HEAD.match(start)
        return bool(named) and b"metrics" in start

    def read(self, source: Path) -> Trace:
        """Read every metric as a rate over time."""
        completeness = Completeness()
        try:
            content = Content(
                series=list(metric_series(_metrics(source, completeness), completeness))
            )
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
            raise broken(source, f"its metrics cannot be read ({error})") from error
        return build_trace(source, content, completeness, name=self.name)


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
        yield TimeSeries(name, steps(time, values), _direction(name))


def _rate(name: str, time: FloatArray, values: FloatArray) -> FloatArray:
    """A counter, which never falls, becomes its rate; anything else is one already."""
    grows = values[-1] > values[0] and bool((np.diff(values) >= 0).all())
    if name.startswith(DERIVED) or not grows:
        return values
    spans = np.maximum(np.diff(time), 1e-9)
    return np.append(np.diff(values) / spans, 0.0)


def _direction(name: str) -> str | None:
    return next((d for d in ("read", "write") if name.rstrip("}").endswith(d)), None)
