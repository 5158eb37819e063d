"""CM1, the data of WisIO's paper: rates of both stages, gain of more views, groups; ours and its.

Records and bottlenecks of this trace are too few to time, so each stage runs on copies of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import polars as pl

from benchmarks.peers import SHARED, row
from ioprism import LocalEngine, bottlenecks, read
from ioprism.bottleneck_search.counted_once import io_rows, main_view
from ioprism.bottleneck_search.find import bottlenecks_of
from ioprism.bottleneck_search.result import Settings, rate_records
from ioprism.bottleneck_search.rule_language.explain import apply_rules, explain_bottlenecks
from ioprism.bottleneck_search.rule_language.load import rules
from ioprism.model.trace import Trace
from ioprism.views.records import summed_records

TRACE = "wisio/recorder-parquet"
COPIED_TO = 1_000_000  # rows
WORDED = 20_000  # bottlenecks: sentences are made one by one
# The paper's abstract and evaluation.
PAPER_RATES = {"classified": 340_000, "reasoned": 35_000, "reasoned and worded": 35_000}
PAPER_GAIN = "1.06 to 7,033 over its workloads, 805 on average"
PAPER_GROUPS = (75, 176)  # on this trace, views of one perspective: groups, reasons
WIDTHS = (50, 16, 16, 10)


def main() -> None:
    if not (SHARED / TRACE).is_dir():
        print("the shared data folder is not beside this checkout")
        return
    trace = read(SHARED / TRACE)
    row("CM1, 27,463 calls", "ours", "paper", "ratio", widths=WIDTHS)
    for stage, rate in rates(trace).items():
        paper = PAPER_RATES[stage]
        cells = (f"{rate:,.0f}", f"{paper:,}", f"{rate / paper:.1f}")
        row(f"bottlenecks {stage} per CPU second", *cells, widths=WIDTHS)
    groups = [g for g in bottlenecks(trace, compatible="wisio").groups if len(g.view) == 1]
    reasons = sum(len(group.rules) for group in groups)
    for name, ours, paper in zip(("groups", "reasons"), (len(groups), reasons), PAPER_GROUPS,
                                 strict=True):  # fmt: skip
        cells = (f"{ours}", f"{paper}", f"{ours / paper:.2f}")
        row(f"{name} of alike ones, one perspective", *cells, widths=WIDTHS)
    counts = bottlenecks_by_views(trace)
    for number, count in counts.items():
        gain = count / counts[1]
        row(f"bottlenecks with {number} view(s), on average", f"{count:.0f}", "",
            f"{gain:.2f} ×", widths=WIDTHS)  # fmt: skip
    print(f"gain of three views over one in the paper: {PAPER_GAIN}")


def rates(trace: Trace) -> dict[str, float]:
    """Per CPU second: records rated, bottlenecks tested by all rules, and with their sentences.

    The sums that records are made of are not timed here: `benchmarks.bottlenecks_scale` does.
    """
    settings = Settings(floor=0.0)
    main = main_view(trace, settings, LocalEngine())
    rows = io_rows(main, trace, settings).rows
    records = _copies(summed_records(rows.cells, by=("process",)))
    found = bottlenecks_of(main, trace, settings)
    table = _copies(found.table)
    some = replace(found, table=table.head(WORDED))
    known = rules()
    classify = _best_seconds(lambda: rate_records(records, settings, io_time=1.0))
    reason = _best_seconds(lambda: apply_rules(table, known))
    word = _best_seconds(lambda: explain_bottlenecks(some, known))
    counts = (records.height / classify, table.height / reason, WORDED / word)
    return dict(zip(PAPER_RATES, counts, strict=True))


def bottlenecks_by_views(trace: Trace) -> dict[int, float]:
    """Bottlenecks with one, two and three of the paper's views, averaged over the choices."""
    averages = {}
    for number in (1, 2, 3):
        chosen = list(combinations(("process", "file", "time"), number))
        counts = [
            bottlenecks(trace, method="slope", views=views, floor=0.0).found for views in chosen
        ]
        averages[number] = sum(counts) / len(counts)
    return averages


def _copies(table: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([table] * -(-COPIED_TO // table.height)).rechunk()


def _best_seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
