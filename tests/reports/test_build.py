"""One call runs every analysis, and the report tells the same story in every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ioprism
from ioprism import (
    FILES,
    PROCESSES,
    Job,
    Report,
    ReportSettings,
    Severity,
    Thresholds,
    Trace,
    analyse,
)
from ioprism.reports.to_notebook import story
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


@pytest.fixture(scope="module")
def report() -> Report:
    return ioprism.analyse(ioprism.read(DATA / "g_straggler_rank2.darshan"))


def test_findings_come_worst_first(report: Report) -> None:
    minor = [f.severity not in (Severity.HIGH, Severity.WARN) for f in report.findings]
    causes = [cause.code for cause in report.document.verdict.causes]
    told = [f.cause for f, less in zip(report.findings, minor, strict=True) if not less]
    places = [causes.index(code) if code else len(causes) for code in told]

    assert minor == sorted(minor)
    assert places == sorted(places)
    assert any(finding.code in ("stragglers", "rank-time-imbalance") for finding in report.findings)


def test_the_json_holds_what_every_command_says(report: Report) -> None:
    found = json.loads(report.to_json())

    assert found["verdict"]["line"].startswith("I/O stalls the job for 11.")
    for key in ("job", "totals", "by_layer", "findings", "phases", "bottlenecks", "period"):
        assert key in found
    assert found["timeline"]["whole"] is True


def test_a_page_is_written_and_replaced(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.html"

    text = report.to_html(path)
    assert path.read_text(encoding="utf-8") == text == report.to_html(str(path))


def test_outside_a_notebook_show_prints_the_story(
    report: Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    report.show()

    said = capsys.readouterr().out
    assert "I/O stalls the job for" in said
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) <= 80


def test_a_notebook_shows_the_story_and_the_page_in_a_frame(report: Report) -> None:
    shown = report._repr_html_()

    assert "<h3>I/O stalls the job" in shown
    assert 'sandbox="allow-scripts' in shown


def test_tables_show_themselves(report: Report) -> None:
    files = report.tables["Files"]

    assert files.to_frame().height == len(files.rows)
    assert "<th>I/O time</th>" in files._repr_html_()


def test_phases_are_listed_in_order_of_time_by_the_names_of_their_track(report: Report) -> None:
    rows = report.tables["Phases"].to_frame()

    assert rows["from"].is_sorted() and rows.height > 3
    assert rows["phase"].to_list()[:2] == ["write 1", "write 2"]


def test_figures_are_those_the_trace_has_detail_for(report: Report) -> None:
    assert {"timeline", "bandwidth", "phases", "sizes"} <= set(report.figures)
    assert "targets" not in report.figures
    assert 'title="Bandwidth" srcdoc=' in report.figures["bandwidth"]._repr_html_()


@pytest.mark.parametrize("log", ["hostile-xss.darshan", "rich-markup-path.darshan"])
def test_hostile_names_are_escaped_in_a_notebook(log: str) -> None:
    made = analyse(ioprism.read(DATA / log))
    shown = story(made.document) + "".join(t._repr_html_() for t in made.tables.values())

    assert "<script" not in shown
    assert "<img" not in shown


def test_a_trace_with_nothing_in_it_has_a_report(tmp_path: Path) -> None:
    empty = Trace("made", (Path("empty"),), Job(), load_files=FILES.empty,
                  load_processes=PROCESSES.empty)  # fmt: skip

    made = analyse(empty)
    assert not made.figures

    verdict = json.loads(made.to_json())["verdict"]
    assert verdict["line"] == "No I/O was recorded, so the job cannot be judged."
    assert verdict["status"] == "cannot-judge"
    assert "No I/O" in made.to_html(tmp_path / "x.html")


def test_thresholds_are_ones_own() -> None:
    trace = ioprism.read(DATA / "g_straggler_rank2.darshan")
    strict = ReportSettings(thresholds=Thresholds(small_bytes=1.0))

    codes = {finding.code for finding in analyse(trace, settings=strict).findings}

    assert "small-writes" not in codes
