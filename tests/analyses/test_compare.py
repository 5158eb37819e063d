"""Numbers before and after, and what became of the findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ioprism import Characteristics, Finding, Job, Severity, Subject
from ioprism.analyses.characterise import Amount
from ioprism.analyses.compare import Metric, compare
from ioprism.reports.comparing import change, metric_row, verdict

NOTHING = Amount(0, 0, 0.0)
SLOW = Characteristics(
    Job(ranks=4, runtime=100.0), 4, 1, 3, 40.0, Amount(10, 1000, 40.0),
    {"read": NOTHING, "write": Amount(10, 1000, 40.0), "metadata": NOTHING}, {}, {},
)  # fmt: skip
FAST = replace(
    SLOW, io_time=10.0, by_operation={**SLOW.by_operation, "write": Amount(1, 1000, 10.0)}
)


def finding(code: str, seconds: float | None = 1.0) -> Finding:
    return Finding(code, Severity.HIGH, Subject("job"), seconds_at_stake=seconds, title=code)


def test_metrics_say_whether_the_change_helped() -> None:
    found = {m.name: m for m in compare((SLOW, ()), (FAST, ())).metrics}

    assert found["io_time"].ratio == pytest.approx(0.25)
    assert found["io_time"].better is True
    assert found["write_request_size"].better is True
    assert found["write_rate"].better is True
    assert found["runtime"].better is None
    assert found["ranks"].better is None
    assert found["read_rate"].ratio is None


def test_findings_are_gone_new_or_kept() -> None:
    found = compare(
        (SLOW, [finding("a", 9.0), finding("b")]), (FAST, [finding("a", 2.0), finding("c")])
    )

    assert [f.code for f in found.gone] == ["b"]
    assert [f.code for f in found.new] == ["c"]
    assert [(k.after.code, k.seconds_saved) for k in found.kept] == [("a", 7.0)]


def test_bottlenecks_of_single_records_are_not_compared() -> None:
    found = compare((SLOW, [finding("bottleneck-file")]), (FAST, []))

    assert found.gone == ()


def test_a_run_beside_itself_has_not_changed() -> None:
    found = compare((SLOW, [finding("a")]), (SLOW, [finding("a")]))

    assert all(metric.better is None for metric in found.metrics)
    assert verdict(found).startswith("About the same time in I/O")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (2.0, 5.0, "2.5 times as much"),
        (10.0, 6.0, "−40%"),
        (8.0, 2.0, "1/4"),
        (1.0, 4e6, "over 1,000 times as much"),
        (1.0, 1.001, "same"),
        (0.0, 1.0, ""),
    ],
)
def test_changes_are_told_as_one_says_them(before: float, after: float, said: str) -> None:
    assert change(Metric("files", before, after)) == said


def test_every_metric_has_its_unit() -> None:
    rows = {row[0]: row for row in map(metric_row, compare((SLOW, ()), (FAST, ())).metrics)}

    assert rows["time in I/O calls, all ranks"][1:3] == ("40.0 s", "10.0 s")
    assert rows["write bytes"][1] == "1000 B"
    assert rows["write rate"][2] == "100 B/s"
    assert rows["read request size"][1] == "–"


def test_parts_of_the_time_add_up_where_a_library_waits_above_the_system_calls() -> None:
    slow = replace(SLOW, io_time=100.0)
    found = {m.name: m.before or 0.0 for m in compare((slow, ()), (FAST, ())).metrics}

    parts = ("library_time", "read_time", "write_time", "metadata_time")
    assert sum(found[name] for name in parts) == pytest.approx(found["io_time"])
    assert found["library_time"] == pytest.approx(60.0)
