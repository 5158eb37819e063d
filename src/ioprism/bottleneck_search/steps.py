"""From traces to explained bottlenecks: the order of the steps, and the stored one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ioprism.bottleneck_search.counted_once import main_view
from ioprism.bottleneck_search.find import (
    Inspection,
    bottlenecks_of,
    inspect_bottleneck,
    rows_behind,
)
from ioprism.bottleneck_search.result import (
    FLOOR_OF_METHOD,
    METRICS,
    VIEWS_OF_METHOD,
    Bottlenecks,
    Settings,
)
from ioprism.bottleneck_search.rule_language.explain import explain_bottlenecks
from ioprism.bottleneck_search.rule_language.expression import compile_quantity
from ioprism.bottleneck_search.rule_language.load import DIMENSIONS, BottleneckRule, rules
from ioprism.engine.base import Engine
from ioprism.formats.reading import Reading
from ioprism.formats.registry import Grouping, read_trace
from ioprism.model.trace import Trace
from ioprism.views.main_view import KeptMainView, StageStore, stage_key


def make_settings(
    *,
    metric: str = "operations",
    method: Literal["excess", "slope"] = "excess",
    views: tuple[str, ...] = (),
    **chosen: Any,  # noqa: ANN401 - as `Settings` has them
) -> Settings:
    """Return settings; a metric that is not a known name is read as an expression.

    Raises:
        ExpressionError: the metric is not an expression over the fields of a record.
        UsageError: a setting makes no sense.
    """
    chosen = {"method": method, "views": views or VIEWS_OF_METHOD[method], **chosen}
    if chosen.get("floor") is None:
        chosen["floor"] = FLOOR_OF_METHOD[method]
    if metric in METRICS:
        return Settings(metric=metric, **chosen)
    sums = {name: d for name, d in DIMENSIONS.items() if not name.endswith("share")}
    work = compile_quantity(metric, fields=sums)
    varies = work.fields and not work.is_zero  # otherwise it is not a metric
    return Settings(metric=metric, work=work.compute if varies else None, **chosen)


def analyse(
    trace: Trace,
    engine: Engine,
    *,
    rule_files: tuple[Path, ...] = (),
    top: int | None = None,
    page: int = 1,
    compatible: str | None = None,
    **chosen: Any,  # noqa: ANN401 - as `Settings` has them
) -> Bottlenecks:
    """Find and explain the bottlenecks of a trace that is open already."""
    known = rules(*rule_files)
    return prepare_views(trace, engine, compatible=compatible, **chosen).bottlenecks(
        known, top=top, page=page
    )


def prepare_views(
    trace: Trace,
    engine: Engine,
    *,
    compatible: str | None = None,
    **chosen: Any,  # noqa: ANN401 - as `Settings` has them
) -> PreparedView:
    """Compute the main view of a trace that is open already."""
    if compatible is not None:
        chosen = {"method": "slope", **chosen}
    settings = make_settings(**chosen)
    if compatible is not None:
        settings = settings.like_wisio(trace_format=trace.format)
    return PreparedView(trace, main_view(trace, settings, engine), settings)


@dataclass(frozen=True, slots=True)
class Source:
    """Traces by their paths, and where their main view is kept, if anywhere."""

    paths: tuple[Path, ...]
    format_name: str | None = None
    stages: Path | None = None
    grouping: Grouping = "one"
    reading: Reading | None = None

    def read(self) -> Trace:
        """Open the traces as one job."""
        return read_trace(
            *self.paths,
            format_name=self.format_name,
            grouping=self.grouping,
            reading=self.reading,
        )

    def stage(self, settings: Settings, engine: Engine, *, like_wisio: bool) -> PreparedView:
        """Return the main view, from the store if it has it."""
        store = None if self.stages is None else StageStore(self.stages)
        # WisIO's settings depend on the format, so the trace has to be opened for them.
        trace = self.read() if like_wisio else None
        if trace is not None:
            settings = settings.like_wisio(trace_format=trace.format)
        if store is None:
            opened = trace or self.read()
            return PreparedView(opened, main_view(opened, settings, engine), settings)
        layout = "compatible" if settings.compatible else ""
        key = stage_key(self.paths, settings.main_view, format_name=self.format_name, layout=layout)
        stored = store.load(key, paths=self.paths)
        if stored is None:
            opened = trace or self.read()
            stored = KeptMainView(opened, main_view(opened, settings, engine))
            store.save(key, stored)
        return PreparedView(stored.trace, stored.main, settings)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedView:
    """A trace and its main view."""

    trace: Trace
    main: pl.DataFrame
    settings: Settings

    def bottlenecks(
        self,
        known: Sequence[BottleneckRule],
        *,
        top: int | None = None,
        page: int = 1,
        fold: bool = False,
    ) -> Bottlenecks:
        """Find and explain bottlenecks; with `fold`, one of those that are alike."""
        result = bottlenecks_of(self.main, self.trace, self.settings)
        return explain_bottlenecks(
            result, known, top=top, page=page, fold=fold, settings=self.settings.to_dict()
        )

    def inspect(
        self, identifier: str, known: Sequence[BottleneckRule], engine: Engine, source: Source
    ) -> Inspection:
        """Take one bottleneck apart; a stored stage's trace is opened for its calls.

        Raises:
            UsageError: there is no bottleneck of this name.
        """
        bottlenecks = bottlenecks_of(self.main, self.trace, self.settings)
        rows = rows_behind(bottlenecks, identifier)
        alone = replace(bottlenecks, table=bottlenecks.table.filter(pl.col("id") == identifier))
        (bottleneck,) = explain_bottlenecks(alone, known).bottlenecks
        trace = self.trace
        if not trace.partitions:
            trace = source.read()
        return inspect_bottleneck(bottleneck, rows, trace, engine, self.settings)
