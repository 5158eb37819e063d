"""People who cannot see the pictures, or use no mouse, get the same answers."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from ioprism import LocalEngine, read, servers
from ioprism.cli import main
from ioprism.explore import exploring
from ioprism.servers.watch_output import LoadServer
from ioprism.write_time import TrainingSettings, load_system
from ioprism.write_time.evaluation import evaluate_samples
from ioprism.write_time.page import page as evaluation_page
from ioprism.write_time.training import train_model
from tests.conftest import SHARED_DATA
from tests.live.running import FREE, burst, running, sender
from tests.servers.test_watch import MIB, Machine, answer
from tests.write_time.machines import SCALES, titan_samples

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "darshan"
MAX_SHIFT = 0.05  # half of what the Web Vitals call good
SHIFT = (
    "window.shift = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
    " window.shift += one.value; }).observe({ type: 'layout-shift', buffered: true });"
)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, a development dependency of the pages' sources."""
    script = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        reason = "there is no axe-core; `npm ci` in frontend/ brings it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return script.read_text(encoding="utf-8")


def troubles(
    browser: Browser, axe: str, path: Path | str, scheme: str, *, once: str = "html[data-ready]"
) -> list[str]:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}
        if scheme == "phone"
        else {"width": 1440, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        bypass_csp=True,
    )
    page = context.new_page()
    page.add_init_script(SHIFT)
    page.goto(path if isinstance(path, str) else path.as_uri())
    page.wait_for_selector(once, state="attached")
    shift = page.evaluate("() => window.shift")
    page.evaluate(
        "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    page.evaluate(axe)
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    context.close()
    moved = [f"the layout shifts by {shift:.3f}"] if shift >= MAX_SHIFT else []
    return moved + [
        f"{one['impact']}: {one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]


def written(path: Path, *words: str | Path) -> Path:
    done = CliRunner().invoke(main, [*map(str, words), "-o", str(path)])
    assert done.exit_code == 0, done.output
    return path


STRAGGLER, COLLECTIVE = DATA / "g_straggler_rank2.darshan", DATA / "e_mpiio_collective.darshan"


@pytest.mark.parametrize("scheme", ["light", "dark", "phone"])
def test_the_report_has_no_barrier(browser: Browser, axe: str, tmp_path: Path, scheme: str) -> None:
    path = written(tmp_path / "report.html", "report", STRAGGLER)

    assert troubles(browser, axe, path, scheme) == []


@pytest.mark.corpus
def test_findings_of_one_kind_have_names_of_their_own(
    browser: Browser, axe: str, tmp_path: Path
) -> None:
    (log,) = (SHARED_DATA / "darshan" / "public" / "dxt-explorer-sample").glob("*.darshan")
    path = written(tmp_path / "report.html", "report", log)

    assert troubles(browser, axe, path, "light") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_comparison_has_no_barrier(
    browser: Browser, axe: str, tmp_path: Path, scheme: str
) -> None:
    path = written(tmp_path / "compare.html", "compare", STRAGGLER, COLLECTIVE)

    assert troubles(browser, axe, path, scheme) == []


def test_the_page_of_a_centre_has_no_barrier(browser: Browser, axe: str, tmp_path: Path) -> None:
    store = str(tmp_path / "site.store")
    done = CliRunner().invoke(main, ["site", "add", "--store", store, str(STRAGGLER)])
    assert done.exit_code == 0, done.output
    path = written(tmp_path / "site.html", "site", "report", "--store", store)

    assert troubles(browser, axe, path, "dark") == []


def test_the_page_of_a_machine_has_no_barrier(browser: Browser, axe: str, tmp_path: Path) -> None:
    steps = [("s1", 120 * n, 0, n << 22, 0, n << 2, 0, 0) for n in range(60)]
    names = ["server", "t", "br", "bw", "rdc", "wc", "oc", "cc"]
    pl.DataFrame(steps, orient="row", schema=names).write_csv(tmp_path / "counters.csv")
    job = {"job_id": ["1"], "user": ["u"], "start": [60], "end": [5000], "servers": ["s1"]}
    pl.DataFrame(job).write_csv(tmp_path / "jobs.csv")
    store = tmp_path / "store"
    servers.ingest(tmp_path / "counters.csv", tmp_path / "jobs.csv", store=store)
    path = tmp_path / "machine.html"
    servers.write_page(servers.report(store), path)

    assert troubles(browser, axe, path, "light") == []


WRITES = ("--model", "titan", "--nodes", "64", "--cores", "8", "--burst", "1GB")
PAGES = {
    "period": ("light", "period", DATA / "a_ckpt_fpp_period5s.darshan"),
    "write-time": ("dark", "write-time", "tune", *WRITES),
    "schedule": ("phone", "schedule", "--seeds", "1", "--horizon", "300", "-q"),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_other_pages_have_no_barrier(
    browser: Browser, axe: str, tmp_path: Path, name: str
) -> None:
    scheme, *words = PAGES[name]
    path = written(tmp_path / "page.html", *words)

    assert troubles(browser, axe, path, str(scheme)) == []


def test_the_page_of_the_load_now_has_no_barrier(
    browser: Browser, axe: str, tmp_path: Path
) -> None:
    machine, server = Machine(tmp_path), LoadServer("127.0.0.1", 0)
    try:
        for size in (1, 2):
            jobs = {"4711": 10 * size * MIB, "4712": size * MIB}
            server.latest = machine.round(answer(machine.now, jobs))

        assert troubles(browser, axe, server.url, "phone", once="#tab-panel tbody td") == []
        assert troubles(browser, axe, server.url, "dark", once="#tab-panel tbody td") == []
    finally:
        server.close()


def test_the_page_of_running_jobs_has_no_barrier(browser: Browser, axe: str) -> None:
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for start in range(0, 80, 10):
            send(burst(float(start), job="climate"))
        service.until(lambda one: one["period"] is not None)
        page = service.place("page")

        assert troubles(browser, axe, page, "phone", once=".countdown") == []
        assert troubles(browser, axe, f"{page}/machine", "dark", once="#story .card") == []


def test_the_page_of_a_model_has_no_barrier(browser: Browser, axe: str, tmp_path: Path) -> None:
    samples, system = titan_samples((*SCALES, 256), each=8), load_system("titan")
    model = train_model(samples, system=system, settings=TrainingSettings(kind="stages"))
    path = tmp_path / "model.html"
    scores = evaluate_samples(samples, model=model, system=system)
    path.write_text(evaluation_page(scores), encoding="utf-8")

    assert troubles(browser, axe, path, "light") == []
    assert troubles(browser, axe, path, "phone") == []


def test_exploring_has_no_barrier(browser: Browser, axe: str) -> None:
    with exploring(read(COLLECTIVE), engine=LocalEngine()) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            found = troubles(browser, axe, server.address, "phone", once="html[data-told]")
        finally:
            server.shutdown()

    assert found == []
