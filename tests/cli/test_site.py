"""`ioprism site` adds logs, answers with tables or JSON, and writes one page that works offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import ioprism.site
from ioprism.cli import main
from ioprism.cli.site import site
from tests.conftest import TEST_DATA

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOGS = TEST_DATA / "darshan"
SUBJECTS = ("jobs", "applications", "users", "targets", "hosts", "causes", "files", "periods")


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["site", *map(str, args)])


def answer(*args: object) -> Any:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli") / "store"
    logs = sorted(LOGS.glob("*.darshan"))[:7]
    made = run("add", *logs, "--store", place, "-q")
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("7 logs added")
    return place


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_subject_has_a_table_and_a_document(store: Path, subject: str) -> None:
    text = run(subject, "--store", store)
    document = answer(subject, "--store", store, "--top", 0)

    assert text.exit_code == 0, text.output
    assert isinstance(document[subject], list)
    assert isinstance(document["events"], list)


def test_sums_hold_over_subjects(store: Path) -> None:
    jobs = answer("jobs", "--store", store, "--top", 0)["jobs"]
    applications = answer("applications", "--store", store, "--top", 0)["applications"]

    assert sum(row["jobs"] for row in applications) == len(jobs) == 7
    for key in ("node_hours", "io_stall_node_hours"):
        assert sum(row[key] for row in jobs) == pytest.approx(sum(row[key] for row in applications))
    for row in applications:
        own = [job["savings"] for job in jobs if job["application"] == row["application"]]
        for code, hours in row["savings"].items():
            assert hours == pytest.approx(sum(savings.get(code, 0.0) for savings in own))


def test_filters_choose_jobs(store: Path) -> None:
    jobs = answer("jobs", "--store", store, "--top", 0)["jobs"]
    name = jobs[0]["application"]

    chosen = answer("jobs", "--store", store, "--application", name)["jobs"]
    later = answer("jobs", "--store", store, "--since", "2100-01-01")["jobs"]

    assert chosen
    assert {row["application"] for row in chosen} == {name}
    assert later == []


def test_files_are_listed_by_kind_or_one_by_one_on_one_file_system(store: Path) -> None:
    kinds = answer("files", "--store", store, "--top", 0)["files"]
    mount = kinds[0]["file_system"]

    single = answer("files", "--store", store, "--by", "file", "--mount", mount)["files"]
    jobs = answer("jobs", "--store", store, "--mount", mount, "--top", 0)["jobs"]

    assert single and {row["file_system"] for row in single} == {mount}
    assert all(row["file"].startswith(mount.rstrip("/") + "/") for row in single)
    assert 0 < len(jobs) <= 7
    assert answer("jobs", "--store", store, "--mount", "/nowhere")["jobs"] == []


def test_commands_and_functions_have_the_same_names_and_answers(store: Path) -> None:
    for subject in SUBJECTS:
        said = answer(subject, "--store", store, "--top", 3)
        made = getattr(ioprism.site, subject)(store, top=3)
        assert json.loads(json.dumps(made.to_dict()))[subject] == said[subject]
    commands = set(site.commands) - {"add", "report"}
    assert commands == set(SUBJECTS) <= set(ioprism.site.__all__)
    assert ioprism.site.report(store, since="2100-01-01").totals["jobs"] == 0


def test_a_wrong_date_and_a_folder_without_a_store_are_one_message(
    store: Path, tmp_path: Path
) -> None:
    date = run("jobs", "--store", store, "--since", "soon")
    folder = run("jobs", "--store", tmp_path)

    for result in (date, folder):
        assert result.exit_code != 0
        assert "Hint:" in result.output
        assert "Traceback" not in result.output


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(b"nothing")

    result = run("add", bad, "--store", tmp_path / "store", "-q")

    assert result.exit_code == 0
    assert f"skipped {bad}" in result.stderr
    assert "0 logs added, 0 known already, 1 skipped" in result.stdout


def test_nothing_to_add_is_a_usage_error(tmp_path: Path) -> None:
    result = run("add", "--store", tmp_path / "store")

    assert result.exit_code == 2
    assert "LOG" in result.output


def test_the_page_shows_savings_events_and_tables(
    store: Path, tmp_path: Path, screen: Page
) -> None:
    page = tmp_path / "site.html"
    made = run("report", "--store", store, "-o", page)
    assert made.exit_code == 0, made.output

    screen.goto(page.as_uri())
    screen.wait_for_selector("html[data-ready]", state="attached")

    assert "node-hours" in screen.inner_text("#verdict")
    assert screen.locator("[id^=tab-table-]").count() >= 3
    assert screen.locator("#treemap button").count() >= 1
    screen.set_viewport_size({"width": 390, "height": 844})
    screen.wait_for_timeout(400)  # until the charts have followed
    assert screen.evaluate("document.documentElement.scrollWidth") == 390


def test_advice_links_to_reports_of_single_jobs(store: Path, tmp_path: Path) -> None:
    made = run("report", "--store", store, "-o", tmp_path / "site.html",
               "--reports", tmp_path / "jobs", "--json")  # fmt: skip
    advice = json.loads(made.stdout)["advice"]
    written = sorted(path.name for path in (tmp_path / "jobs").iterdir())

    assert advice
    assert written == [f"job-{number:02d}.html" for number in range(1, len(advice) + 1)]
    assert "jobs/job-01.html" in (tmp_path / "site.html").read_text()


def test_an_existing_page_is_kept_unless_forced(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "site.html"
    page.write_text("mine")

    kept = run("report", "--store", store, "-o", page)
    replaced = run("report", "--store", store, "-o", page, "--force")

    assert kept.exit_code != 0
    assert replaced.exit_code == 0
    assert "The I/O of a centre" in page.read_text()


def test_the_counters_of_the_servers_say_what_others_moved(store: Path, tmp_path: Path) -> None:
    job = answer("jobs", "--store", store, "--top", 1)["jobs"][0]
    begin, end = job["start"] - 600, job["start"] + job["runtime"] + 600
    rows = ["t,server,br,bw,rdc,wc,oc,cc"]
    rows += [f"{time:.0f},oss1,0,{1e9 * (time - begin):.0f},0,0,0,0" for time in
             (begin + 10 * step for step in range(int((end - begin) / 10) + 1))]  # fmt: skip
    counters, servers = tmp_path / "counters.csv", tmp_path / "servers.store"
    counters.write_text("\n".join(rows) + "\n", encoding="utf-8")
    ingested = CliRunner().invoke(
        main, ["servers", "ingest", str(counters), "--store", str(servers)]
    )
    assert ingested.exit_code == 0, ingested.output

    known = {
        row["job"]: row["others_rate"]
        for row in answer("jobs", "--store", store, "--top", 0, "--servers", servers)["jobs"]
    }

    own = (job["bytes_read"] + job["bytes_written"]) / job["runtime"]
    assert known[job["job"]] == pytest.approx(1e9 - own, rel=1e-3)
    assert None in known.values()
