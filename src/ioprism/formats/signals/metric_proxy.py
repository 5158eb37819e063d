"""Metrics over time, as the Metric Proxy exports them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ioprism.formats.signals.build import Content, build_trace, steps
from ioprism.formats.signals.documents import broken, head, json_document, msgpack_objects
from ioprism.model.signal import FloatArray, TimeSeries
from ioprism.model.trace import Completeness, Trace

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
        raise ValueError("there is no map of metrics")
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
