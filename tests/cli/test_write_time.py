"""The commands from sampling to advice, on this machine and on made runs."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ioprism.cli import main
from ioprism.model.samples import format_node_list
from tests.write_time.machines import SCALES, titan_samples

HEADER = "pattern,nodes,cores_per_node,burst_bytes,stripe_bytes,stripe_count,node_list,seconds"
# A laptop's disk is noisy: what counts here is that the loop works, not how precise it is.
LOCAL = """
name = "here"
filesystem = "plain"
nodes = 1
cores_per_node = 2
[sampling]
relative_error = 5.0
minimum_runs = 3
maximum_runs = 3
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["write-time", *map(str, arguments)])


def answer(*arguments: object) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def table(path: Path, scales: tuple[int, ...] = (*SCALES, 256, 512)) -> Path:
    rows = [HEADER]
    for number, sample in enumerate(titan_samples(scales, each=25)):
        p = sample.pattern
        nodes = format_node_list(p.node_list or ())
        start = f"{number},{p.nodes},{p.cores_per_node},{p.burst_bytes},,{p.stripe_count}"
        rows += [f'{start},"{nodes}",{seconds}' for seconds in sample.times]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store s.db and a model m.json of it."""
    folder = tmp_path_factory.mktemp("trained")
    store, model = folder / "s.db", folder / "m.json"
    imported = answer("import", table(folder / "r.csv"), "--system", "titan", "--store", store)
    assert imported["imported"] == {"runs": 750, "samples_in_store": 250}
    assert run("train", "--store", store, "--max-nodes", 128, "-o", model).exit_code == 0
    return folder


def test_train_tells_features_and_scores(trained: Path) -> None:
    store, target = trained / "s.db", trained / "again.json"

    found = answer("train", "--store", store, "-o", target)

    assert found["model"]["training_scales"]
    assert {"name", "coefficient"} <= set(found["model"]["features"][0])
    kinds = {found["model"]["kind"], *(fit["kind"] for fit in found["beside"])}
    assert {"stages", "relative-lasso", "lasso", "lasso-base", "linear-best", "linear"} <= kinds
    assert found["choice"][found["model"]["kind"]] <= 1.05 * min(found["choice"].values())
    assert json.loads(target.read_text()) == json.loads((trained / "m.json").read_text())


def test_a_model_is_not_overwritten_unasked(trained: Path) -> None:
    before = (trained / "m.json").read_bytes()

    done = run("train", "--store", trained / "s.db", "-o", trained / "m.json")

    assert done.exit_code == 1
    assert "already exists" in done.output
    assert (trained / "m.json").read_bytes() == before


def test_evaluate_scores_the_sets_and_writes_a_page(trained: Path) -> None:
    page = trained / "errors.html"

    found = answer(
        "evaluate", "--store", trained / "s.db", "--model", trained / "m.json", "-o", page
    )
    shown = run("evaluate", "--store", trained / "s.db", "--model", trained / "m.json")

    sets = {entry["name"]: entry for entry in found["sets"]}
    assert {"small", "medium", "unconverged"} <= set(sets)
    assert sets["small"]["samples"] == 25
    assert sets["small"]["within_20"] > 0.9
    assert sets["medium"]["beside"]["lasso"]["within_20"] <= 1
    assert page.read_text().startswith("<!doctype html>")
    assert "Errors of the set small" in shown.output
    assert found["variability"]["distribution"][-1]["share"] == 1.0
    assert "Slowest over fastest run" in shown.output


def test_estimate_tells_seconds_interval_and_stages(trained: Path) -> None:
    asked = ("--nodes", 64, "--cores", 8, "--burst", "1GB", "--stripe-count", 8)

    found = answer("estimate", "--model", trained / "m.json", *asked, "--node-list", "0-63")
    shown = run("estimate", "--model", trained / "m.json", *asked)

    assert found["interval"]["low"] < found["seconds"] < found["interval"]["high"]
    assert found["interval"]["level"] == 0.9
    assert found["dominant_stages"][0]["feature"]
    assert found["warnings"] == []
    assert sum(part["seconds"] for part in found["dominant_stages"]) == pytest.approx(
        found["seconds"]
    )
    assert "Where the time goes" in shown.stdout
    assert "no node list" in shown.stderr


def test_tune_ranks_and_advises(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # no row is broken
    asked = ("--nodes", 64, "--cores", 16, "--burst", "500MB", "--stripe-count", 4)
    vary = ("--vary-nodes", "8-64", "--vary-stripes", "1-64", "--mtbf", 86400, "--io-share", 0.05)

    found = answer("tune", "--model", trained / "m.json", *asked, *vary, "--top", 30)
    shown = run("tune", "--model", trained / "m.json", *asked, *vary)

    seconds = [choice["seconds"] for choice in found["choices"]]
    assert len(seconds) == 30
    assert seconds == sorted(seconds)
    assert found["checkpoint"]["young_interval"] > found["checkpoint"]["daly_interval"]
    assert "How often to write" in shown.output
    assert "s_r    nodes behind the busiest I/O router" in shown.output
    rows = shown.output.partition("fastest first\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert len({tuple(row.split()) for row in rows}) == len(rows) == 10
    fewer = next(choice for choice in found["choices"] if choice["data_moves"])
    assert {hint["middleware"] for hint in fewer["hints"]} >= {"MPI-IO", "ADIOS2"}


def test_the_paper_s_models_answer_by_the_name_of_their_system() -> None:
    found = answer(
        "estimate", "--model", "titan", "--nodes", 64, "--cores", 16, "--burst", "1GB",
        "--node-list", "0-63", "--stripe-count", 4,
    )  # fmt: skip

    assert found["leading"] == ["I/O router"]
    assert "model of the paper" in found["warnings"][0]


@pytest.mark.corpus
def test_a_trace_is_compared_with_the_model(trained: Path, shared_data: Path) -> None:
    trace = shared_data / "darshan/made/a_ckpt_fpp_period5s.darshan"

    found = answer("estimate", "--model", trained / "m.json", "--trace", trace)
    shown = run("estimate", "--model", trained / "m.json", "--trace", trace)

    assert len(found["phases"]) == 12
    assert found["phases"][0]["pattern"]["burst_bytes"] == 32 * 2**20
    assert found["phases"][0]["measured"] > 0
    assert "measured" in shown.output


def test_systems_are_listed_shown_and_drafted(tmp_path: Path) -> None:
    assert [s["name"] for s in answer("system", "list")["systems"]] == ["cetus", "titan"]
    assert "18688 nodes" in run("system", "list").output
    assert 'name = "titan"' in run("system", "show", "titan").output
    features = answer("system", "show", "cetus", "--variant", "strict41")["features"]
    assert len(features) == 41
    assert "43 features" in run("system", "show", "cetus", "--features").output
    drafted = tmp_path / "m.toml"
    assert run("system", "init", "--directory", tmp_path, "-o", drafted).exit_code == 0
    assert run("system", "show", drafted).output == drafted.read_text()
    assert 'filesystem = "' in run("system", "init", "--directory", tmp_path).output


def test_a_plan_tells_its_cost_before_anything_runs(tmp_path: Path) -> None:
    store = tmp_path / "s.db"

    dry = answer("sample", "plan", "--system", "titan", "--store", store, "--dry-run")
    assert not store.exists()
    made = answer("sample", "plan", "--system", "titan", "--store", store, "--scales", "1,2")
    again = answer("sample", "plan", "--store", store, "--scales", "1,2")

    assert dry["plan"]["patterns"] > made["plan"]["patterns"] == made["plan"]["added"]
    assert again["plan"]["added"] == 0
    assert dry["plan"]["seconds"]["most"] == 3 * dry["plan"]["seconds"]["fewest"]
    assert "What sampling will take" in run("sample", "plan", "--store", store).output


def test_a_plan_warns_of_writes_that_are_too_short_to_count(tmp_path: Path) -> None:
    asked = ("sample", "plan", "--system", "cetus", "--scales", "4", "--rate", "2GB")

    found = answer(*asked, "--store", tmp_path / "a.db")
    without = answer(*asked, "--store", tmp_path / "b.db", "--skip-short")

    short = found["plan"]["too_short"]
    assert 0 < short["patterns"] < found["plan"]["patterns"]
    assert short["seconds"] == 5.0
    assert "less than 5 s" in found["source"]["warnings"][0]
    assert without["plan"]["patterns"] == found["plan"]["patterns"] - short["patterns"]
    assert without["source"]["warnings"] == []


def test_a_job_script_is_written_once(tmp_path: Path) -> None:
    asked = (
        "sample", "script", "--store", tmp_path / "s.db", "--directory", tmp_path,
        "--scheduler", "slurm", "--nodes", 8, "-o", tmp_path / "job.sh",
    )  # fmt: skip

    assert run(*asked).exit_code == 0
    assert "--fail-on waiting" in (tmp_path / "job.sh").read_text()
    assert "already exists" in run(*asked).output


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ioprism", "write-time", *map(str, arguments)]


def finished_runs(store: Path) -> int:
    connection = sqlite3.connect(store)
    try:
        query = "SELECT COUNT(*) FROM run WHERE state = 'done'"
        return int(connection.execute(query).fetchone()[0])
    finally:
        connection.close()


def test_sampling_on_this_machine_survives_a_kill(tmp_path: Path) -> None:
    system, store, model = tmp_path / "here.toml", tmp_path / "s.db", tmp_path / "m.json"
    cores = min(2, len(os.sched_getaffinity(0)))
    system.write_text(LOCAL.replace("cores_per_node = 2", f"cores_per_node = {cores}"))
    data = tmp_path / "data"
    data.mkdir()
    (data / "precious").write_text("keep me")
    limits = ("--scales", 1, "--max-burst", "8MB", "--rounds", 2)
    plan = answer("sample", "plan", "--system", system, "--store", store, *limits)
    sampling = command("sample", "run", "--store", store, "--directory", data, "--json")

    first = subprocess.Popen(sampling, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while finished_runs(store) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = finished_runs(store)
    second = subprocess.run(sampling, capture_output=True, text=True, timeout=120, check=True)

    patterns = plan["plan"]["patterns"]
    done = json.loads(second.stdout)["sampling"]
    assert 2 <= kept < 3 * patterns
    assert done["runs"] == 3 * patterns - kept
    assert done["discarded"] in (0, 1)  # none if the kill came between two runs
    assert done["converged"] == patterns
    assert [path.name for path in data.iterdir()] == ["precious"]

    refused = run("train", "--store", store, "-o", model)
    assert refused.exit_code == 1
    assert "one scale does not show" in refused.output
    assert run("train", "--store", store, "-o", model, "--one-scale").exit_code == 0
    sets = answer("evaluate", "--store", store, "--model", model)["sets"]
    assert {s["name"]: s["samples"] for s in sets}["training scales"] == patterns
    found = answer("estimate", "--model", model, "--nodes", 1, "--cores", 1, "--burst", "4MB")
    assert 0 < found["interval"]["low"] <= found["seconds"] <= found["interval"]["high"]
    assert found["seconds"] < 60


def test_what_cannot_run_here_is_told_and_the_rest_is_sampled(tmp_path: Path) -> None:
    system, store = tmp_path / "here.toml", tmp_path / "s.db"
    text = LOCAL.replace("nodes = 1\n", "nodes = 4\n").replace("per_node = 2", "per_node = 1")
    system.write_text(text)
    limits = ("--scales", "1,4", "--max-burst", "2MB")
    run("sample", "plan", "--system", system, "--store", store, *limits)

    done = run(
        "sample", "run", "--store", store, "--directory", tmp_path,
        "--launcher", "builtin", "--max-runs", 1,
    )  # fmt: skip

    assert done.exit_code == 0
    assert "1 pattern cannot run here: the built-in writer runs on this node only" in done.stderr


def one_line_error(done: Result, code: int = 1) -> str:
    assert done.exit_code == code, done.output
    assert isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    assert "Hint:" in done.output
    return done.output


def test_bad_input_is_refused_and_nothing_is_lost(trained: Path, tmp_path: Path) -> None:
    store, model, bad = trained / "s.db", trained / "m.json", tmp_path / "bad.csv"
    before = run("evaluate", "--store", store, "--model", model, "--json").stdout
    bad.write_text(HEADER + "\n1,2,4,1000000,,,,-1\n2,2,4,1000000,,,,\n")
    assert "2 of 2 rows are bad" in one_line_error(run("import", bad, "--store", store))
    bad.write_text(HEADER + "\n1,1,4,1000000,,,99999,5\n")
    assert "node 99999 is unknown" in one_line_error(run("import", bad, "--store", store))
    again = run("import", trained / "r.csv", "--store", store)
    assert "it already contains the same runs" in one_line_error(again)
    other = tmp_path / "c.db"
    bad.write_text(HEADER + "\n1,1,4,1000000,,,9,5\n")
    assert run("import", bad, "--system", "cetus", "--store", other).exit_code == 0
    assert "'cetus' and the model is of 'titan'" in one_line_error(
        run("evaluate", "--store", other, "--model", model)
    )
    assert "holds runs of the system 'titan'" in one_line_error(
        run("import", bad, "--system", "cetus", "--store", store)
    )
    assert "only 0 converged" in one_line_error(
        run("train", "--store", other, "-o", tmp_path / "m")
    )

    assert run("evaluate", "--store", store, "--model", model, "--json").stdout == before


def test_wrong_usage_is_told_apart_from_bad_input(trained: Path, tmp_path: Path) -> None:
    model, nothing = trained / "m.json", tmp_path / "none"
    wrong: list[tuple[object, ...]] = [
        ("import", trained / "r.csv", "--store", nothing),
        ("import", trained / "r.csv", "--store", nothing, "--system", "frontier"),
        ("estimate", "--model", model, "--nodes", 4),
        ("estimate", "--model", model, "--nodes", 4, "--cores", 1, "--burst", "much"),
        ("estimate", "--model", model, "--trace", "x", "--cores", 1),
        ("tune", "--model", model, "--nodes", 4, "--cores", 1, "--burst", "1GB",
         "--vary-cores", "9-3"),
        ("sample", "plan", "--store", nothing, "--system", "titan", "--scales", "few"),
    ]  # fmt: skip
    bad: list[tuple[object, ...]] = [
        ("estimate", "--model", nothing, "--nodes", 4, "--cores", 1, "--burst", "1GB"),
        ("estimate", "--model", trained / "r.csv", "--nodes", 4, "--cores", 1, "--burst", "1GB"),
        ("train", "--store", nothing, "-o", tmp_path / "m.json"),
        ("evaluate", "--store", trained / "r.csv", "--model", model),
        ("sample", "run", "--store", trained / "s.db", "--directory", tmp_path),
        ("estimate", "--model", model, "--nodes", 4, "--cores", 99, "--burst", "1GB"),
    ]
    for code, calls in ((2, wrong), (1, bad)):
        for arguments in calls:
            one_line_error(run(*arguments), code=code)
    assert not nothing.exists()
    assert not (tmp_path / "m.json").exists()
