"""Run time, promises, numbers before and after, and what became of the findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ioprism import (
    CallGroup,
    Cause,
    Characteristics,
    Contrast,
    Finding,
    Job,
    Saving,
    Severity,
    Subject,
)
from ioprism.characteristics.totals import Amount
from ioprism.comparison.changes import ComparedRun, Comparison, Metric, compare
from ioprism.reports.to_terminal.compare import change, details, metric_row, verdict

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


def beside(before: ComparedRun, after: ComparedRun) -> Comparison:
    return compare([before], [after])


def cause(code: str, seconds: float) -> Cause:
    saving = Saving(seconds, 0.8 * seconds, 1.2 * seconds, 0.0)
    return Cause(code, {}, saving, 1.0, Contrast(code, CallGroup(1)), title=code)


def runs(*seconds: float, causes: tuple[Cause, ...] = ()) -> list[ComparedRun]:
    return [ComparedRun(SLOW, runtime=time, stall=time / 2, causes=causes) for time in seconds]


def test_metrics_say_whether_the_change_helped() -> None:
    found = {m.name: m for m in beside(ComparedRun(SLOW), ComparedRun(FAST)).metrics}

    assert found["io_time"].ratio == pytest.approx(0.25)
    assert found["io_time"].better is True
    assert found["write_request_size"].better is True
    assert found["write_rate"].better is True
    assert found["runtime"].better is None
    assert found["ranks"].better is None
    assert found["read_rate"].ratio is None


def test_findings_are_gone_new_or_kept() -> None:
    found = beside(
        ComparedRun(SLOW, (finding("a", 9.0), finding("b"))),
        ComparedRun(FAST, (finding("a", 2.0), finding("c"))),
    )

    assert [f.code for f in found.gone] == ["b"]
    assert [f.code for f in found.new] == ["c"]
    assert [(k.after.code, k.seconds_saved) for k in found.kept] == [("a", 7.0)]


def test_bottlenecks_of_single_records_are_not_compared() -> None:
    found = beside(ComparedRun(SLOW, (finding("bottleneck-file"),)), ComparedRun(FAST))

    assert found.gone == ()


def test_a_run_beside_itself_has_not_changed() -> None:
    found = beside(*[ComparedRun(SLOW, (finding("a"),), runtime=100.0)] * 2)

    assert all(metric.better is None for metric in found.metrics)
    assert verdict(found).startswith("Run time unchanged: 1 min 40 s before, 1 min 40 s after")


def test_a_run_that_takes_many_times_as_long_has_a_factor_not_a_percentage() -> None:
    found = beside(ComparedRun(SLOW, runtime=1.13), ComparedRun(SLOW, runtime=60.0))

    assert verdict(found).startswith("Run time 53 times as long: 1.13 s before, 1 min 00 s after")


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


def test_a_successful_fix_opens_with_the_run_time_and_the_stall_time() -> None:
    found = compare(runs(10.0, 10.1, 9.9), runs(8.0, 8.1, 7.9))

    assert verdict(found).startswith("Faster by 20%: 10.0 s before, 8.00 s after (saved 1.")
    assert details(found)[0].startswith("I/O stall time: 5.00 s before, 4.00 s after")
    assert found.to_dict()["verdict"] == "faster"


def test_a_difference_that_noise_explains_is_not_called_a_change() -> None:
    found = compare(runs(10.0, 11.0, 9.0), runs(10.4, 9.2, 9.6))

    assert verdict(found).startswith("No change of the run time beyond noise")
    assert found.verdict == "within noise"
    assert all(metric.better is None for metric in found.metrics if metric.name == "runtime")


def test_the_promise_is_that_of_the_causes_that_were_removed() -> None:
    before = runs(10.0, 10.0, causes=(cause("slow-target", 4.0), cause("small-requests", 1.5)))
    after = runs(8.6, 8.6, causes=(cause("slow-target", 4.0), cause("small-requests", 0.1)))
    found = compare(before, after)

    assert found.promise is not None
    assert found.promise.codes == ("small-requests",)
    assert found.promised == pytest.approx(1.5)
    assert found.delivered == pytest.approx(1.4)
    assert [change.removed for change in found.causes] == [False, True]


def test_a_main_cause_that_stays_is_named() -> None:
    causes = (cause("slow-target", 4.0),)
    found = compare(runs(10.0, causes=causes), runs(9.0, causes=causes))

    assert "The main cause before (slow-target" in " ".join(details(found))


def test_sides_that_did_other_work_are_called_not_comparable() -> None:
    amounts = {**SLOW.by_operation, "write": Amount(10, 2000, 40.0)}
    other = replace(SLOW, job=Job(ranks=8, executable="/opt/e3sm.exe -x"), by_operation=amounts)
    known = replace(SLOW, job=Job(ranks=4, executable="/opt/ior -w"))
    found = beside(ComparedRun(known, format="darshan"), ComparedRun(other, format="strace"))

    assert found.warnings == (
        "the program differs: ior before, e3sm.exe after",
        "the number of ranks differs: 4 before, 8 after",
        "the trace format differs: darshan before, strace after",
        "bytes written differ: 1000 B before, 1.95 KiB after",
    )
    assert beside(ComparedRun(known), ComparedRun(known)).warnings == ()


def test_every_metric_has_its_unit() -> None:
    rows = {
        row[0]: row for row in map(metric_row, beside(ComparedRun(SLOW), ComparedRun(FAST)).metrics)
    }

    assert rows["time in I/O calls, all ranks"][1:3] == ("40.0 s", "10.0 s")
    assert rows["write bytes"][1] == "1000 B"
    assert rows["write rate"][2] == "100 B/s"
    assert rows["read request size"][1] == "–"


def test_parts_of_the_time_add_up_where_a_library_waits_above_the_system_calls() -> None:
    slow = replace(SLOW, io_time=100.0)
    found = {m.name: m.before or 0.0 for m in beside(ComparedRun(slow), ComparedRun(FAST)).metrics}

    parts = ("library_time", "read_time", "write_time", "metadata_time")
    assert sum(found[name] for name in parts) == pytest.approx(found["io_time"])
    assert found["library_time"] == pytest.approx(60.0)
