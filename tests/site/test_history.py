"""Jobs judged by what other jobs of their site reached, and by their own earlier runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism import Verdict, diagnose, insights, read, site
from ioprism.cli import main
from ioprism.site.store import SITE_TABLES, SiteStore, make_site, open_site
from tests.conftest import TEST_DATA

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOG = TEST_DATA / "darshan" / "g_straggler_rank2.darshan"
DAY = 86400.0


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory) -> SiteStore:
    place = tmp_path_factory.mktemp("one") / "store"
    site.add(LOG, store=place, processes=1)
    return open_site(place)


def with_runs(
    place: Path, one_job: SiteStore, count: int, *, requests: float = 1.0, **factors: float
) -> Path:
    """A store of earlier runs of the job, a day apart, whose numbers differ by factors."""
    store = make_site(place)
    tables = {name: one_job.table(name) for name in SITE_TABLES}
    with store.adding():
        for number in range(1, count + 1):
            wobble = 1 + 0.01 * (number % 3)
            name = f"run{number}"
            jobs = tables["jobs"].with_columns(
                *(pl.col(column) * factor * wobble for column, factor in factors.items()),
                job=pl.lit(name),
                start=pl.col("start") - number * DAY,
            )
            rates = tables["rates"].with_columns(
                (pl.col("requests") * requests).cast(pl.Int64), job=pl.lit(name)
            )
            store.add({**{n: t.clear() for n, t in tables.items()}, "jobs": jobs, "rates": rates})
    return place


def answer(*words: object) -> Any:
    done = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_run_that_takes_longer_than_its_earlier_ones_is_called_slower(
    tmp_path: Path, one_job: SiteStore
) -> None:
    store = with_runs(tmp_path / "store", one_job, 20, io_stall=0.25)

    history = answer("diagnose", LOG, "--site", store)["history"]

    assert history["runs"] == 20
    assert history["lines"][0].startswith("Slower than 20 of its 20 earlier runs since ")
    (stall,) = [one for one in history["metrics"] if one["name"] == "I/O stall time"]
    assert stall["unusual"] and stall["above"] == 20 and len(stall["earlier"]) == 20


def test_a_run_like_its_earlier_ones_has_nothing_unusual(
    tmp_path: Path, one_job: SiteStore
) -> None:
    history = diagnose(read(LOG), site=with_runs(tmp_path / "store", one_job, 20)).history

    assert history is not None
    assert (history.runs, history.lines) == (20, ())
    assert not any(metric.unusual for metric in history.metrics)


def test_few_earlier_runs_and_the_run_itself_say_nothing(
    tmp_path: Path, one_job: SiteStore
) -> None:
    few = diagnose(read(LOG), site=with_runs(tmp_path / "few", one_job, 5, io_stall=0.1)).history
    itself = diagnose(read(LOG), site=one_job.folder).history

    assert few is not None and itself is not None
    assert (few.runs, few.lines) == (5, ())
    assert (itself.runs, itself.reached) == (0, ())


def test_request_sizes_that_no_earlier_run_had_are_new(tmp_path: Path, one_job: SiteStore) -> None:
    store = with_runs(tmp_path / "store", one_job, 12, requests=0.01)

    lines = insights(read(LOG), site=store).verdict.history.lines  # type: ignore[union-attr]

    assert any("are new" in line for line in lines)


@pytest.mark.parametrize("command", ["diagnose", "insights", "report", "compare"])
def test_every_command_shows_the_history(tmp_path: Path, one_job: SiteStore, command: str) -> None:
    store = with_runs(tmp_path / "store", one_job, 20, io_stall=0.25)
    words = [command, LOG, *([LOG] if command == "compare" else []), "--site", store]

    text = CliRunner().invoke(main, [*map(str, words)]).output
    document = answer(*words)

    history = document["diagnosis"]["history"] if command == "report" else document["history"]
    assert "Slower than 20 of its 20" in history["lines"][0]
    assert "Slower than 20 of its 20" in " ".join(text.split())


def test_the_page_shows_sentences_and_a_chart_for_each_number(
    tmp_path: Path, one_job: SiteStore, screen: Page
) -> None:
    store = with_runs(tmp_path / "store", one_job, 20, io_stall=0.25)
    page = tmp_path / "job.html"
    done = CliRunner().invoke(main, ["report", str(LOG), "--site", str(store), "-o", str(page)])
    assert done.exit_code == 0, done.output

    screen.goto(page.as_uri())
    screen.wait_for_selector("html[data-ready]")

    assert "Slower than 20 of its 20" in screen.inner_text(".history")
    assert screen.locator(".history svg").count() == screen.locator(".history tr").count() >= 5
    assert screen.locator(".history svg").first.locator("circle").count() == 21


def test_the_store_of_the_environment_or_the_configuration_is_the_default(
    tmp_path: Path, one_job: SiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_runs(tmp_path / "store", one_job, 20)
    monkeypatch.setenv("IOPRISM_SITE", str(store))
    by_variable = answer("diagnose", LOG)
    monkeypatch.delenv("IOPRISM_SITE")
    without = answer("diagnose", LOG)
    monkeypatch.setenv("IOPRISM_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text(f'[diagnose]\nsite = "{store}"\n')
    by_file = answer("diagnose", LOG)

    assert "history" not in without
    assert by_variable["history"] == by_file["history"]


def test_a_setting_that_names_no_store_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOPRISM_SITE", str(tmp_path))

    done = CliRunner().invoke(main, ["diagnose", str(LOG)])

    assert done.exit_code == 1
    assert "not a site store" in done.output and "Hint:" in done.output


@pytest.fixture(scope="module")
def io500(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Iterator[dict[str, Any]]:
    """Verdicts by log, with and without the history of the others."""
    place, logs = tmp_path_factory.mktemp("io500") / "store", shared_data / "io500" / "logs"
    site.add(logs, store=place)
    traces = {log.stem: read(log) for log in sorted(logs.glob("ior-*.darshan"))}
    yield {name: (diagnose(trace), diagnose(trace, site=place)) for name, trace in traces.items()}


@pytest.mark.corpus
def test_no_saving_is_promised_beyond_what_the_twins_allow(
    io500: dict[str, tuple[Verdict, Verdict]], shared_data: Path
) -> None:
    truth = json.loads((shared_data / "io500" / "truth.json").read_text())
    for name, (alone, known) in io500.items():
        assert known.share <= truth[name]["worth"], name
        assert known.share <= max(alone.share, 0.2), name
        assert sum(line.seconds for line in known.ledger) == pytest.approx(known.io_stall.seconds)


@pytest.mark.corpus
def test_small_requests_to_a_shared_file_cost_what_the_twins_show(
    io500: dict[str, tuple[Verdict, Verdict]],
) -> None:
    name = "ior-easy_api_POSIX_blockSize_1GB_transferSize_{}_filePerProc_{}_uniqueDir_True__0"
    small, *large = (io500[name.format(size, False)][1] for size in ("4K", "1MB", "4MB"))
    shorter = sorted(small.runtime - verdict.runtime for verdict in large)
    (cause,) = small.causes

    assert (small.first, cause.facts["direction"]) == ("small-requests", "read")
    assert cause.saving.low <= shorter[1] and shorter[0] <= cause.saving.high
    # File per process hides the same requests in a cache: nothing is to be gained.
    for size in ("2K", "4K", "1MB", "4MB"):
        assert io500[name.format(size, True)][1].status == "none"


@pytest.mark.corpus
def test_few_targets_are_ruled_out_where_more_of_them_are_no_faster(
    io500: dict[str, tuple[Verdict, Verdict]],
) -> None:
    few = {
        name: [
            max((p.upper for p in v.possible if p.code == "few-targets"), default=0.0) for v in pair
        ]
        for name, pair in io500.items()
    }

    assert sum(alone > 0 for alone, _ in few.values()) >= 5
    assert all(known <= alone for alone, known in few.values())
    large = next(name for name in few if "4MB_filePerProc_False" in name)
    history = io500[large][1].history
    assert few[large][0] > 20 and few[large][1] == 0.0
    assert history is not None
    assert [(d.code, d.decision) for d in history.decisions] == [("few-targets", "ruled-out")]
    assert history.decisions[0].text.startswith("Ruled out as a cause: few storage targets. ")
