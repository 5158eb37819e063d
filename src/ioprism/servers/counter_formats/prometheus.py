"""Read the text that Prometheus exporters of Lustre serve."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.model.counters import TARGET, ReadingOptions, Tally
from ioprism.servers.counter_formats.counter_rows import Rows
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, text_lines

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?\s*")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(r"\\(.)")
SNIFFED = re.compile(rb"^(?:# (?:TYPE|HELP) )?lustre_\w+[ {]", re.MULTILINE)
# Metric -> counter, for the target as a whole (lustre_) and for one job (lustre_job_).
METRICS = {
    "read_bytes_total": "br",
    "write_bytes_total": "bw",
    "read_samples_total": "rdc",
    "write_samples_total": "wc",
}
OPERATIONS = {"open": "oc", "close": "cc"}
EXACT = 2**53

Key = tuple[str, str | None, int]


class PrometheusReader:
    """Reads one scrape, or several with time stamps."""

    name = "prometheus"
    title = "Lustre counters: text of the Prometheus exporters"

    def recognises(self, source: Path) -> bool:
        """Whether a line is a Lustre metric. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield one table: a scrape gives a target's counters in any order.

        Raises:
            BrokenTraceError: the scrape has no time stamps and none was given.
        """
        entries: dict[Key, dict[str, int]] = {}
        for line in text_lines(source, tally):
            if not line.startswith("#"):
                _take(line, entries, options, tally, source)
        rows = Rows()
        for (server, job, time_us), values in entries.items():
            rows.add(
                tally, server=server, part="", job=job, source=TARGET, time_us=time_us, **values
            )
        yield from rows.rest(tally)


def _take(
    line: str,
    entries: dict[Key, dict[str, int]],
    options: ReadingOptions,
    tally: Tally,
    source: Path,
) -> None:
    sample = SAMPLE.fullmatch(line)
    if sample is None:
        tally.leave_out(DAMAGED)
        return
    labels = {name: ESCAPE.sub(_unescaped, text) for name, text in LABEL.findall(sample[2] or "")}
    counter = _counter(sample[1], labels)
    value = _number(sample[3])
    if counter is None:
        return
    if value is None or "target" not in labels:
        tally.leave_out(DAMAGED)
        return
    if value > EXACT:
        tally.note("Prometheus counters above 2^53 are inexact")
    time_us = int(sample[4]) * 1000 if sample[4] else options.time_us
    if time_us is None:
        raise BrokenTraceError(
            "a scrape does not say when it was taken.\n"
            "Hint: give it with --time SECONDS (since 1970).",
            source=source,
        )
    values = entries.setdefault((labels["target"], labels.get("jobid"), time_us), {})
    values[counter] = values.get(counter, 0) + value


def _counter(metric: str, labels: dict[str, str]) -> str | None:
    if "jobid" in labels:
        short = metric.removeprefix("lustre_job_")
    else:
        short = metric.removeprefix("lustre_")
    if short in ("stats_total", "stats"):
        return OPERATIONS.get(labels.get("operation", ""))
    return METRICS.get(short)


def _number(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return round(value) if math.isfinite(value) and 0 <= value < 2**63 else None


def _unescaped(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]
