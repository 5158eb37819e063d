"""Find the reader that understands a file of counters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

import polars as pl

from ioprism.model.counters import ReadingOptions, Tally
from ioprism.plugins import declared, load

# Loaded only when tried: a reader may need a library of its own.
BUILT_IN = {
    "mmpmon": "ioprism.formats.counters.mmpmon:MmpmonReader",
    "mmpmon-text": "ioprism.formats.counters.mmpmon_human:MmpmonHumanReader",
    "lustre": "ioprism.formats.counters.lustre:LustreReader",
    "prometheus": "ioprism.formats.counters.prometheus:PrometheusReader",
    "lmt": "ioprism.formats.counters.lmt:LmtReader",
    "tokio": "ioprism.formats.counters.tokio:TokioReader",
    "counter-table": "ioprism.formats.counters.table:CounterTableReader",
}
GROUP = "ioprism.counter_readers"


class CounterReader(Protocol):
    """Turns one format into samples of counters."""

    name: str
    title: str

    def recognises(self, source: Path) -> bool:
        """Whether the content, not the file name, is this format. Never raises."""
        ...

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables with the columns of COUNTERS; count what is left out."""
        ...


def counter_readers() -> Iterator[CounterReader]:
    """Every reader of counters, those of plug-ins last."""
    for path in BUILT_IN.values():
        reader: CounterReader = resolve_name(path)()
        yield reader
    for plugin in declared(GROUP):
        yield load(plugin)()


def find_counter_reader(source: Path) -> CounterReader | None:
    """Return the reader that recognises the content, if any does."""
    return next((reader for reader in counter_readers() if reader.recognises(source)), None)
