"""`ioprism report`, `compare` and `explore` at the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ioprism
from ioprism.cli import main
from ioprism.storage.recordings import RecordedRun, Recording, write_recording
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOG = DATA / "a_ckpt_fpp_period5s.darshan"
OTHER = DATA / "c_rank0_all_io.darshan"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_story_comes_here_and_the_page_where_it_is_asked(tmp_path: Path) -> None:
    page = tmp_path / "report.html"

    done = run("report", LOG, "-o", page)

    assert done.exit_code == 0, done.output
    assert "I/O stalls the job for" in done.stdout
    assert "Where the time goes" in done.stdout
    assert f"wrote {page}" in done.stderr
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json_is_one_document_and_nothing_else() -> None:
    found = json.loads(run("report", LOG, "--json").stdout)

    assert found["schema"] == 2
    assert found["source"]["format"] == "darshan"
    assert {"verdict", "findings", "phases", "bottlenecks", "period", "totals"} <= set(found)


def test_a_page_is_not_replaced_unasked(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("mine")

    refused = run("report", LOG, "-o", page)
    forced = run("report", LOG, "-o", page, "--force", "-q")

    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert forced.exit_code == 0
    assert page.read_text(encoding="utf-8") != "mine"


def test_fail_on_gives_the_exit_code_for_ones_own_ci() -> None:
    assert run("report", LOG, "--fail-on", "ok", "-q").exit_code == 3
    assert run("report", OTHER, "--fail-on", "high", "-q").exit_code in (0, 3)


@pytest.mark.parametrize("command", ["report", "explore"])
def test_what_is_no_trace_is_one_clear_error(tmp_path: Path, command: str) -> None:
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("nothing of the kind")

    done = run(command, nonsense)

    assert done.exit_code == 1
    assert "the format is unknown" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "known"),
    [
        (["report", LOG, "-o"], "reports are written as .html or .htm"),
        (["compare", LOG, OTHER, "-o"], "pages are written as .html or .htm"),
        (["period", LOG, "-o"], "pages are written as .html or .htm"),
        (["servers", "report", "--store", "s", "-o"], "pages are written as .html or .htm"),
        (["site", "report", "--store", "s", "-o"], "pages are written as .html or .htm"),
        (["bottlenecks", LOG, "--export"], "tables are written as .csv or .parquet"),
        (["servers", "jobs", "--store", "s", "--export"], "tables are written as .csv or .parquet"),
    ],
)
def test_no_file_promises_a_format_that_is_not_written(
    tmp_path: Path, command: list[object], known: str
) -> None:
    target = tmp_path / "out.doc"

    done = run(*command, target)

    assert done.exit_code == 2
    assert f"out.doc: {known}.\nHint: give the file one of these endings." in done.stderr
    assert not target.exists()


def test_the_library_refuses_an_unknown_form_of_a_report_too(tmp_path: Path) -> None:
    report = ioprism.analyse(ioprism.read(LOG))

    with pytest.raises(ioprism.EndingError, match=r"reports are written as \.html or \.htm"):
        report.write(tmp_path / "out.pdf")


def test_wrong_usage_is_two() -> None:
    assert run("report").exit_code == 2
    assert run("compare", LOG).exit_code == 2
    assert run("explore", LOG, "--port", "99999").exit_code == 2


@pytest.mark.parametrize("log", ["hostile-xss.darshan", "rich-markup-path.darshan"])
def test_names_cannot_steer_the_terminal(log: str) -> None:
    done = run("report", DATA / log)

    assert done.exit_code == 0
    assert "\x1b" not in done.stdout


def test_compare_tells_what_changed(tmp_path: Path) -> None:
    page = tmp_path / "change.html"

    done = run("compare", LOG, OTHER, "-o", page)
    found = json.loads(run("compare", LOG, OTHER, "--json").stdout)

    assert done.exit_code == 0, done.output
    assert "before" in done.stdout
    assert page.stat().st_size > 50_000
    assert {"name", "before", "after", "ratio"} <= set(found["metrics"][0])
    assert set(found["findings"]) == {"gone", "new", "kept"}


@pytest.mark.parametrize("command", ["report", "explore", "compare"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example: ioprism {command}" in run(command, "--help").stdout


def test_compare_takes_a_folder_of_several_jobs_as_one_if_told(tmp_path: Path) -> None:
    folder = tmp_path / "steps"
    folder.mkdir()
    for log in (LOG, OTHER):
        shutil.copy(log, folder)

    refused = run("compare", folder, OTHER)
    done = run("compare", folder, OTHER, "--one-job", "--json")

    assert refused.exit_code == 2
    assert "--one-job" in refused.output
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["before"]["paths"]) == 2


def test_compare_names_the_storage_target_where_a_layout_is_given(tmp_path: Path) -> None:
    straggling = DATA / "g_straggler_rank2.darshan"
    folder = "/tmp/anchors/readers/run/io/g_straggler_rank2"
    layout = tmp_path / "layout.csv"
    rows = [f"{folder}/str.{rank:03},{target},1048576" for rank, target in enumerate((1, 2, 7, 4))]
    layout.write_text("\n".join(["path,targets,stripe_size", *rows]))

    without = json.loads(run("compare", straggling, LOG, "--json").stdout)
    found = json.loads(run("compare", straggling, LOG, "--json", "--layout", layout).stdout)

    assert "slow-target" not in [finding["code"] for finding in without["findings"]["gone"]]
    (slow,) = [f for f in found["findings"]["gone"] if f["code"] == "slow-target"]
    assert slow["subject"]["name"] == "7"


def recorded(folder: Path, *seconds: float) -> Path:
    """A recording whose runs took so long, all with the same trace."""
    runs = []
    for number, time in enumerate(seconds, 1):
        traces = folder / f"run-{number}"
        traces.mkdir(parents=True)
        (traces / LOG.name).write_bytes(LOG.read_bytes())
        runs.append(RecordedRun(traces.name, time, exit_code=0, signal=None, started=0.0))
    write_recording(Recording(folder, ("simulate",), "Darshan 3.5.0", tuple(runs)))
    return folder


def test_recordings_stand_for_all_their_runs(tmp_path: Path) -> None:
    base = recorded(tmp_path / "base", 10.0, 10.1, 9.9)
    slow = recorded(tmp_path / "slow", 12.0, 12.2, 11.9)
    done = run("compare", base, "--", slow, "--json", "--fail-on", "5%")
    said = json.loads(done.stdout)

    assert done.exit_code == 3
    assert said["verdict"] == "slower"
    assert said["runs"] == {"before": 3, "after": 3}
    assert said["run_time"]["before"] == pytest.approx(10.0)
    assert said["delivered"] == pytest.approx(-2.0333, rel=1e-3)
    interval = said["run_time"]["interval"]
    assert interval["low"] < -2.0333 < interval["high"] < 0
    assert run("compare", slow, "--", base, "--fail-on", "5%").exit_code == 0
    assert run("compare", base, "--", base, "--fail-on", "0%").exit_code == 0


def test_runs_may_be_given_one_by_one_with_options_anywhere() -> None:
    done = run("compare", "--json", LOG, LOG, "--", OTHER, "-q", LOG)

    assert json.loads(done.stdout)["runs"] == {"before": 2, "after": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([LOG, LOG, LOG], "it is not clear which are which"),
        ([LOG], "nothing to compare it with"),
        (["--", LOG], "at least one run on each side"),
        ([LOG, LOG, LOG, "--", LOG, LOG, "--fail-on", "5%"], "there are 3 before and 2 after"),
        ([LOG, "--", LOG, "--fail-on", "-5%"], "is not a share"),
    ],
)
def test_sides_that_cannot_be_compared_are_refused(words: list[object], message: str) -> None:
    done = run("compare", *words)

    assert done.exit_code == 2
    assert message in done.output


def test_other_programs_are_not_compared_without_a_word() -> None:
    assert "Not comparable: " in run("compare", LOG, OTHER).output


def test_a_comparison_begins_with_both_jobs() -> None:
    first, second = run("compare", LOG, OTHER).stdout.splitlines()[:2]

    assert first.startswith(f"before: {LOG.name} · ")
    assert second.startswith(f"after:  {OTHER.name} · ")
