"""Static figures: of the right kind, with labels and units, the same every time, and safe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result
from matplotlib.patches import StepPatch

import ioprism
from benchmarks.simulated_servers import SimulationSettings, simulate, write_simulation
from ioprism import servers, write_time
from ioprism.cli import main
from ioprism.periodicity.results import Periodicity
from ioprism.reports.figures import CATALOGUE
from ioprism.reports.report import Report
from ioprism.servers.steps import MachineReport
from ioprism.write_time.evaluation import Evaluation
from tests.cli.test_write_time import table as write_runs
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOG = DATA / "a_ckpt_fpp_period5s.darshan"  # 12 checkpoints, one every 5 s
LAYERED = DATA / "e_mpiio_collective.darshan"
STRAGGLER = DATA / "g_straggler_rank2.darshan"
COUNTERS = TEST_DATA / "figures" / "hot_target_counters.darshan"
MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-1."}
HOSTILE = (
    "$x^2$ \\frac{1}{0}",
    "$unclosed",
    "line\nbreak\x00nul\x1b[31m",
    "\u202eright-to-left\u202c",
    "<script>alert(1)</script>&amp;",
    "long" * 200,
)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def drawn(*arguments: object, target: Path) -> Path:
    done = run(*arguments, "-o", target, "--force")
    assert done.exit_code == 0, done.output
    assert f"wrote {target}" in done.stderr or "-q" in arguments
    return target


def svg_texts(content: bytes) -> list[str]:
    """All texts of an SVG; reading it as XML also shows that it is well formed."""
    tree = ET.fromstring(content)
    return ["".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")]


def texts(path: Path) -> list[str]:
    return svg_texts(path.read_bytes())


def labels(*arguments: object, folder: Path) -> list[str]:
    return texts(drawn(*arguments, target=folder / "figure.svg"))


@pytest.fixture(scope="module")
def report() -> Report:
    """The command draws every figure of this one result."""
    return ioprism.report(ioprism.read(LOG))


@pytest.fixture(scope="module")
def periodicity() -> Periodicity:
    return ioprism.period(ioprism.read(LOG))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a simulated machine."""
    place = tmp_path_factory.mktemp("machine")
    write_simulation(simulate(SimulationSettings(servers=6)), place / "raw")
    raw = (place / "raw/counters", place / "raw/jobs.sacct")
    assert run("servers", "ingest", *raw, "--store", place / "store").exit_code == 0
    return place / "store"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """The options that name a store of runs and a model of it."""
    folder = tmp_path_factory.mktemp("runs")
    store, model = folder / "s.db", folder / "m.json"
    made = run("write-time", "import", write_runs(folder / "r.csv"), "--system", "titan",
               "--store", store)  # fmt: skip
    assert made.exit_code == 0, made.output
    assert run("write-time", "train", "--store", store, "-o", model).exit_code == 0
    return "--store", store, "--model", model


@pytest.fixture(scope="module")
def fleet_report(machine: Path) -> MachineReport:
    return servers.report(machine)


@pytest.fixture(scope="module")
def evaluation(trained: tuple[Any, ...]) -> Evaluation:
    return write_time.evaluate(trained[1], write_time.load_model(trained[3]))


def test_every_command_draws_what_python_draws(
    report: Report,
    fleet_report: MachineReport,
    machine: Path,
    evaluation: Evaluation,
    trained: tuple[object, ...],
    tmp_path: Path,
) -> None:
    """The commands hand the same result to the same function, whatever the name of the figure."""
    stored = ("servers", "report", "--store", machine)
    scored = ("write-time", "evaluate", *trained)
    pairs = [
        (report.figure("timeline"), ("report", LOG, "--figure", "timeline")),
        (servers.figure(fleet_report, "load"), (*stored, "--figure", "load")),
        (write_time.figure(evaluation, "errors"), (*scored, "--figure", "errors")),
    ]

    for figure, words in pairs:
        target = drawn(*words, target=tmp_path / "x.svg")
        assert figure.to_bytes(".svg") == target.read_bytes(), words


@pytest.mark.parametrize("ending", MAGIC)
def test_the_ending_says_which_kind_of_file_is_written(tmp_path: Path, ending: str) -> None:
    target = drawn("report", LOG, "--figure", "timeline", target=tmp_path / f"x{ending}")

    content = target.read_bytes()
    assert content.startswith(MAGIC[ending])
    assert b"/Type3" not in content  # fonts that publishers reject


def test_the_same_figure_has_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    program = (
        f"import ioprism; report = ioprism.report({str(LAYERED)!r})\n"
        f"for end in {list(MAGIC)}: report.figure('phases').save('x' + end)"
    )
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path / seed,
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True,
        )  # fmt: skip

    for ending in MAGIC:
        first, second = ((tmp_path / seed / f"x{ending}").read_bytes() for seed in ("1", "2"))
        assert first == second, ending


EXPECTED = {
    "timeline": ["POSIX", "rank", "time since job start (s)", "write"],
    "bandwidth": ["write (MiB/s)", "time since job start (s)"],
    "phases": ["POSIX", "I/O time per rank (ms)", "median rank", "slowest rank", "write"],
    "heatmap": ["writes", "rank", "bandwidth per rank", "time since job start (s)"],
    "sizes": ["request size", "requests", "4 MiB–10 MiB", "write"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_figures_of_a_report_have_labels_and_units(report: Report, name: str) -> None:
    assert set(EXPECTED[name]) <= set(svg_texts(report.figure(name).to_bytes(".svg")))


def test_ticks_are_round_numbers(tmp_path: Path) -> None:
    shown = labels("report", STRAGGLER, "--figure", "bandwidth", folder=tmp_path)

    numbers = [text for text in shown if text.replace(",", "").replace(".", "").isdigit()]
    assert {"0", "5", "10", "15"} <= set(numbers)
    assert all(len(text.replace(",", "")) <= 4 for text in numbers)


def test_each_interface_has_its_panel_the_programs_on_top(tmp_path: Path) -> None:
    shown = labels("report", LAYERED, "--figure", "timeline", folder=tmp_path)

    assert shown.index("MPI-IO") < shown.index("POSIX")


def test_the_ledger_shows_the_seconds_of_the_diagnosis(tmp_path: Path) -> None:
    shown = labels("report", STRAGGLER, "--figure", "ledger", folder=tmp_path)
    verdict = ioprism.diagnose(ioprism.read(STRAGGLER))

    for line in verdict.ledger:
        assert any(f"{line.seconds:.3g}"[:3] in text for text in shown), line
    assert verdict.causes[0].title.split(" (")[0] in " ".join(shown)
    assert any("of the 16.0 s run" in text for text in shown)


def test_no_byte_is_lost_between_the_log_and_the_figures(report: Report) -> None:
    written = report.document.characteristics.by_operation["write"].bytes

    axes = report.figure("bandwidth").figure.axes[0]
    curve = next(one for one in axes.get_children() if isinstance(one, StepPatch))
    rates, edges, _ = curve.get_data()
    assert float((rates * np.diff(edges)).sum()) * 2**20 == pytest.approx(written, rel=1e-3)

    axes = report.figure("heatmap").figure.axes[0]
    image = axes.images[0].get_array()
    assert image is not None
    left, right = axes.get_xlim()
    moved = float(np.ma.filled(image, 0.0).sum()) * (right - left) / image.shape[1]
    assert moved == pytest.approx(written, rel=1e-3)


def test_the_phases_drawn_are_those_of_the_command(report: Report) -> None:
    bars = report.figure("phases").figure.axes[0].patches

    phases = ioprism.phases(ioprism.read(LOG)).layers["posix"].phases
    assert len(bars) == 2 * len(phases)  # slowest and median rank
    assert max(bar.get_height() for bar in bars) == pytest.approx(  # type: ignore[attr-defined]
        1e3 * max(phase.slowest.time for phase in phases)
    )


@pytest.mark.parametrize("name", ["timeline", "bandwidth", "phases", "heatmap"])
def test_counters_alone_say_what_is_missing(tmp_path: Path, name: str) -> None:
    done = run("report", COUNTERS, "--figure", name, "-o", tmp_path / "x.svg")

    assert done.exit_code == 1
    assert f"figure '{name}' is not available: needs a per-call trace (DXT" in done.stderr
    assert "Hint: record the job with DXT enabled" in done.stderr
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sizes", {"requests", "request size"}),
        ("targets", {"storage target", "data (GiB)", "rate (MiB/s)", "I/O time (min)", "write"}),
        ("ledger", {"transfer at the rate the trace itself reaches"}),
    ],
)
def test_counters_alone_have_sizes_targets_and_the_ledger(
    tmp_path: Path, name: str, expected: set[str]
) -> None:
    assert expected <= set(labels("report", COUNTERS, "--figure", name, folder=tmp_path))


@pytest.mark.parametrize(("width", "points"), [(None, 252), (7, 504)])
def test_a_figure_is_one_column_wide_or_as_asked(
    tmp_path: Path, width: float | None, points: int
) -> None:
    wide = [] if width is None else ["--width", width]
    target = drawn("report", LOG, "--figure", "sizes", *wide, target=tmp_path / "x.svg")

    assert ET.fromstring(target.read_text()).get("width") == f"{points}pt"


def test_a_figure_that_does_not_exist_lists_those_that_do(report: Report, tmp_path: Path) -> None:
    done = run("report", LOG, "--figure", "pie", "-o", tmp_path / "x.svg")

    assert done.exit_code == 2
    for name in CATALOGUE["report"]:
        assert repr(name) in done.stderr
    with pytest.raises(ioprism.UsageError, match="choose one of timeline, bandwidth"):
        report.figure("pie")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--figure", "sizes"], "Hint: add -o figure.svg"),
        (["--figure", "sizes", "-o", "x.html"], "figures are written as .svg or .png or .pdf"),
        (["-o", "x.svg"], "Hint: add --figure timeline|"),
        (["--figure", "sizes", "-o", "x.svg", "--width", 100], "--width"),
    ],
)
def test_a_figure_that_cannot_be_written_is_one_clear_error(words: list[str], said: str) -> None:
    done = run("report", LOG, *words)

    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_figure_is_not_replaced_unasked(tmp_path: Path) -> None:
    target = tmp_path / "x.svg"
    target.write_text("mine")

    refused = run("report", LOG, "--figure", "sizes", "-o", target)

    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert target.read_text() == "mine"
    assert "4 MiB–10 MiB" in texts(drawn("report", LOG, "--figure", "sizes", target=target))


def test_without_matplotlib_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ioprism.reports.figures.find_spec", lambda _: None)

    done = run("report", LOG, "--figure", "sizes", "-o", tmp_path / "x.svg")

    assert done.exit_code == 1
    assert done.stdout == ""
    assert "a figure needs the package 'matplotlib', which is not installed." in done.stderr
    assert "Hint: pip install 'ioprism[figures]'" in done.stderr


def test_settings_of_the_user_change_nothing_and_stay(report: Report) -> None:
    plain = report.figure("sizes").to_bytes(".svg")
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        assert report.figure("sizes").to_bytes(".svg") == plain
        assert mpl.rcParams["font.size"] == 30
    assert report.figure("sizes")._repr_png_().startswith(MAGIC[".png"])


PERIOD = {
    "signal": ["write bandwidth (GiB/s)", "period 5.00 s", "next phase"],
    "spectrum": ["frequency (Hz)", "share of the variance (%)", "period 5.00 s", "candidate"],
    "components": ["write bandwidth (GiB/s)", "n = 2", "n = 3", "n = 5", "n = 10", "fit, n = 10"],
    "scalogram": ["period (s)", "power (% of the highest)", "period 5.00 s"],
    "autocorrelation": ["lag (s)", "correlation", "multiples of 5.00 s"],
    "correlation": ["correlation", "valid range", "wave of 4.98 s"],
}


@pytest.mark.parametrize("name", CATALOGUE["period"])
def test_figures_of_a_period_have_labels_and_units(
    periodicity: Periodicity, tmp_path: Path, name: str
) -> None:
    if name == "components":  # the only one that shows the fit
        shown = labels("period", LOG, "--fit", "--figure", name, folder=tmp_path)
    else:
        shown = svg_texts(ioprism.figure(periodicity, name).to_bytes(".svg"))

    assert set(PERIOD[name]) <= set(shown)


def test_a_period_is_drawn_in_python_as_by_the_command(
    periodicity: Periodicity, tmp_path: Path
) -> None:
    target = drawn("period", LOG, "--figure", "signal", target=tmp_path / "x.svg")

    figure = ioprism.figure(periodicity, "signal")

    assert figure.to_bytes(".svg") == target.read_bytes()


def test_a_figure_is_of_one_job() -> None:
    done = run("period", LOG, STRAGGLER, "--figure", "signal", "-o", "x.svg", "--each")

    assert done.exit_code == 2
    assert "for one job" in done.stderr


SERVERS = {
    "load": ["read (MiB/s)", "write (MiB/s)"],
    "servers": ["reads", "writes", "bandwidth per server"],
    "bandwidth-cdf": ["maximum bandwidth of a job", "share of jobs", "80%"],
    "volume-cdf": ["data of a job", "share of jobs"],
    "intensity-cdf": ["I/O intensity (0 to 1)", "> 128 KiB per step"],
    "burstiness-cdf": ["burstiness (0 to 1)", "> 1 MiB per step"],
    "parallel-intensity-cdf": ["parallel I/O intensity (0 to 1)"],
    "jobs": ["maximum bandwidth", "jobs", "100%"],
}


@pytest.mark.parametrize("name", CATALOGUE["servers report"])
def test_figures_of_a_machine_have_labels_and_units(fleet_report: MachineReport, name: str) -> None:
    shown = svg_texts(servers.figure(fleet_report, name).to_bytes(".svg"))

    assert set(SERVERS[name]) <= set(shown)


def test_logarithmic_axes_of_bytes_have_powers_of_two(fleet_report: MachineReport) -> None:
    axes = servers.figure(fleet_report, "volume-cdf").figure.axes[0]

    powers = np.log2(axes.get_xticks())
    assert len(powers) >= 3
    assert np.array_equal(powers, np.round(powers))


def test_80_percent_of_the_jobs_are_where_the_table_says(fleet_report: MachineReport) -> None:
    axes = servers.figure(fleet_report, "bandwidth-cdf").figure.axes[0]

    assert axes.get_xscale() == "log"
    for line, direction in zip(axes.get_lines(), ("read", "write"), strict=False):
        values, shares = (np.asarray(one) for one in line.get_data())
        limit = fleet_report.fleet.totals[direction].eighty["max_bandwidth"]
        assert limit is not None
        at_or_below = shares[values <= max(limit, values[0]) * (1 + 1e-9)]
        assert at_or_below.max() >= 0.8


def test_names_of_servers_are_drawn_as_they_are(tmp_path: Path) -> None:
    rows = [
        {"server": name, "t": 120 * step, "br": 2**20 * step * (1 + place), "bw": 0,
         "rdc": step, "wc": 0, "oc": 0, "cc": 0}
        for place, name in enumerate(HOSTILE)
        for step in range(60)
    ]  # fmt: skip
    pl.DataFrame(rows).write_csv(tmp_path / "counters.csv")
    (tmp_path / "jobs.csv").write_text(
        f'job_id,start,end,servers\n1,0,7000,"{HOSTILE[0]}"\n', encoding="utf-8"
    )
    store = tmp_path / "store"
    for raw in ("counters.csv", "jobs.csv"):
        taken = run("servers", "ingest", tmp_path / raw, "--store", store)
        assert taken.exit_code == 0, taken.output

    target = drawn("servers", "report", "--store", store, "--figure", "servers",
                   target=tmp_path / "x.svg")  # fmt: skip

    assert_harmless(target)
    shown = texts(target)
    assert "$unclosed" in shown
    assert any("$x^2$" in text for text in shown)
    assert any("…" in text for text in shown)
    assert all(len(text) < 120 for text in shown)
    for ending in (".png", ".pdf"):
        drawn("servers", "report", "--store", store, "--figure", "servers",
              target=tmp_path / f"x{ending}")  # fmt: skip


@pytest.mark.parametrize("name", CATALOGUE["report"])
def test_names_of_files_harm_no_figure_of_a_report(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "t.parquet"
    hostile_calls().write_parquet(trace)

    done = run("report", trace, "--figure", name, "-o", tmp_path / "x.svg")

    assert done.exit_code == (1 if name == "targets" else 0), done.output
    assert "Traceback" not in done.output
    if name != "targets":
        assert_harmless(tmp_path / "x.svg")
    if name == "ledger":
        assert any("$x^2$" in text for text in texts(tmp_path / "x.svg"))


def hostile_calls() -> pl.DataFrame:
    """Calls whose files have hostile names; metadata in one of their folders delays the job."""
    names = [f"/{name}/f{number}" for number in range(400) for name in HOSTILE[:1]]
    names += [f"/{name}" for name in HOSTILE]
    return pl.DataFrame(
        {
            "start": [0.01 * n for n in range(len(names))],
            "end": [0.01 * n + 0.009 for n in range(len(names))],
            "operation": ["open" if n < 400 else "write" for n in range(len(names))],
            "file": names,
            "rank": [n % 4 for n in range(len(names))],
            "bytes": [0 if n < 400 else 4096 for n in range(len(names))],
        }
    )


def assert_harmless(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    assert "<script" not in content
    assert not any(forbidden in content for forbidden in ("\x00", "\x1b", "\u202e"))


WRITE_TIME = {
    "predicted": ["measured write time (s)", "predicted write time (s)", "small", "medium"],
    "errors": ["relative error (%)", "small: 25 samples", "lasso", "lasso-base", "stages"],
    "error-cdf": ["|predicted - measured| / measured (%)", "share of samples", "lasso", "10"],
    "ratio-cdf": ["predicted / measured write time", "share of samples", "lasso", "1", "1.5"],
    "variability-cdf": ["slowest / fastest run of the same write", "share of patterns"],
}


@pytest.mark.parametrize("name", CATALOGUE["write-time evaluate"])
def test_figures_of_write_time_have_labels_and_units(evaluation: Evaluation, name: str) -> None:
    shown = svg_texts(write_time.figure(evaluation, name).to_bytes(".svg"))

    assert set(WRITE_TIME[name]) <= set(shown)


def test_chosen_kinds_of_model_are_drawn_and_others_refused(
    trained: tuple[object, ...], tmp_path: Path
) -> None:
    words = ("write-time", "evaluate", *trained, "--figure", "ratio-cdf", "--kinds")

    shown = labels(*words, "stages,lasso", folder=tmp_path)
    refused = run(*words, "forest", "-o", tmp_path / "y.svg")

    assert {"stages", "lasso"} <= set(shown)
    assert "lasso-base" not in shown
    assert refused.exit_code == 2
    assert "has no kind 'forest'.\nHint: it has " in refused.stderr


def test_the_ratios_drawn_are_those_that_were_scored(
    evaluation: Evaluation, trained: tuple[Any, ...]
) -> None:
    small = evaluation.sets[0]

    axes = write_time.figure(evaluation, "ratio-cdf").figure.axes[0]
    values, shares = (np.asarray(one) for one in axes.get_lines()[1].get_data())  # after 1.0

    assert share_between(values, shares, 0.7, 1.3) == pytest.approx(small.within(0.3))
    plain = json.loads(run("write-time", "evaluate", *trained, "--json").stdout)
    assert plain["sets"][0]["within_30"] == small.within(0.3)


def share_between(values: Iterable[float], shares: Iterable[float], low: float, high: float) -> Any:
    pairs = list(zip(values, shares, strict=True))
    below = max((share for value, share in pairs if value < low), default=0.0)
    return max(share for value, share in pairs if value <= high) - below
