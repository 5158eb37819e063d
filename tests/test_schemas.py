"""Every JSON document is what its shipped schema says, and holds nothing that it does not say."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ioprism import Period
from ioprism.cli import main
from ioprism.live.publish import Answer
from ioprism.periodicity.looks import FrequencyRange
from ioprism.periodicity.results import ExpectedPhase
from ioprism.periodicity.tracker import PeriodChange, Prediction
from ioprism.recording.choice import FIND
from tests.cli.test_write_time import LOCAL
from tests.cli.test_write_time import table as runs_table
from tests.conftest import TEST_DATA
from tests.test_consistency import SAMPLES

Document = dict[str, Any]
CANNOT_ANSWER = 1
CHECKPOINTS = TEST_DATA / "recorder/gotcha-ckpt"
LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
NAMES = sorted(path.name for path in (files("ioprism") / "schemas").iterdir())


def schema(name: str) -> Document:
    text = (files("ioprism") / "schemas" / f"{name}.json").read_text("utf-8")
    loaded: Document = json.loads(text)
    return loaded


def closed(part: Any) -> Any:
    """The same schema, without room for keys that it does not name."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    inner = {key: closed(value) for key, value in part.items()}
    return {"additionalProperties": False, **inner} if "properties" in part else inner


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(closed(schema(name)))


def answer(*arguments: object) -> Document | None:
    """What a command prints; None where a trace has too little for an answer."""
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert done.exit_code in (0, CANNOT_ANSWER), done.output
    return json.loads(done.stdout) if done.exit_code == 0 else None


def check(name: str, document: Document | None) -> None:
    assert document is not None
    problem = best_match(validator(name).iter_errors(document))
    assert problem is None, f"{name}: {problem.json_path} {problem.message[:300]}"


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_valid_and_demand_something(name: str) -> None:
    loaded = schema(name.removesuffix(".json"))

    Draft202012Validator.check_schema(loaded)
    assert not Draft202012Validator(loaded).is_valid({})


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_is_answered_as_the_schemas_say(path: Path) -> None:
    for command in ("report", "diagnose", "characterise", "insights", "phases", "period"):
        found = answer(command, path)
        if found is not None or command in ("report", "characterise", "insights"):
            check(command, found)
    check("bottlenecks", answer("bottlenecks", path, "--top", 3))


def test_options_that_add_to_a_document_are_in_its_schema() -> None:
    ceiling = TEST_DATA / "ceilings/ior.json"

    check("characterise", answer("characterise", CHECKPOINTS, "--ceiling", ceiling))
    check("period", answer("period", CHECKPOINTS, "--by", "rank", "--components", 2, "--fit"))
    check("bottlenecks", answer("bottlenecks", CHECKPOINTS, "--compatible", "wisio"))
    check("insights", answer("insights", LOG, TEST_DATA / "darshan/c_rank0_all_io.darshan"))
    check("period", answer("period", LOG, TEST_DATA / "darshan/c_rank0_all_io.darshan"))
    brief = ("--seeds", 2, "--horizon", 100, "--phases", "given")
    check("schedule", answer("schedule", *brief))


def test_answers_about_two_runs_and_about_one_finding_follow_their_schemas() -> None:
    found = answer("bottlenecks", CHECKPOINTS)
    judged = answer("insights", CHECKPOINTS)
    assert found is not None
    assert judged is not None

    check("compare", answer("compare", CHECKPOINTS, TEST_DATA / "recorder/master-ckpt"))
    check("compare", answer("compare", LOG, LOG, "--", LOG, CHECKPOINTS))
    check("inspect", answer("inspect", CHECKPOINTS, found["bottlenecks"][0]["id"]))
    check("inspect", answer("inspect", CHECKPOINTS, judged["findings"][0]["code"]))


def test_what_the_program_knows_follows_its_schemas() -> None:
    check("formats", answer("formats"))
    check("rules", answer("rules"))
    check("record-check", answer("record", "--check"))
    check("write-time-system-list", answer("write-time", "system", "list"))
    check("write-time-system-show", answer("write-time", "system", "show", "titan"))


def test_servers_follow_their_schemas(tmp_path: Path) -> None:
    store, data = tmp_path / "store", TEST_DATA / "servers"
    jobs = data / "B_unsynchronised.jobs.csv"
    counters = data / "B_unsynchronised.counters.csv"
    asked = ("--store", store, "--jobs", jobs, "--min-runtime", 0)

    check("servers-ingest", answer("servers", "ingest", counters, "--store", store))
    check("servers-jobs", answer("servers", "jobs", *asked))
    check("servers-report", answer("servers", "report", *asked))


def test_a_centre_follows_its_schemas(tmp_path: Path) -> None:
    store = ("--store", tmp_path / "site")

    check("site-add", answer("site", "add", TEST_DATA / "darshan", *store))
    for subject in (
        "jobs",
        "applications",
        "users",
        "targets",
        "hosts",
        "causes",
        "files",
        "periods",
    ):
        check(f"site-{subject}", answer("site", subject, *store))
    check("site-report", answer("site", "report", *store, "-o", tmp_path / "page.html"))


def test_the_check_of_the_chain_follows_its_schemas(tmp_path: Path) -> None:
    small = ("--bytes", "1MiB", "--phases", 1, "--pause", 0)
    record = tmp_path / "record.json"

    check(
        "servers-validate",
        answer("servers", "validate", "--run", tmp_path / "check", "--record", record, *small),
    )


def test_a_model_s_life_follows_its_schemas(tmp_path: Path) -> None:
    store, model = tmp_path / "runs.db", tmp_path / "model.json"
    table = runs_table(tmp_path / "runs.csv", (1, 2, 4, 8, 200))
    asked = ("--store", store, "--model", model)

    check(
        "write-time-import",
        answer("write-time", "import", table, "--system", "titan", "--store", store),
    )
    check(
        "write-time-train",
        answer("write-time", "train", "--store", store, "--model", "stages", "-o", model),
    )
    check("write-time-evaluate", answer("write-time", "evaluate", *asked))
    check(
        "write-time-estimate-trace",
        answer("write-time", "estimate", "--model", model, "--trace", LOG),
    )


def test_sampling_here_follows_its_schema(tmp_path: Path) -> None:
    system, store = tmp_path / "here.toml", tmp_path / "runs.db"
    system.write_text(LOCAL.replace("cores_per_node = 2", "cores_per_node = 1"), "utf-8")
    plan = ("--system", system, "--store", store, "--scales", 1, "--max-burst", "2MB")
    run = ("--store", store, "--directory", tmp_path, "--max-runs", 1)

    check("write-time-sample-plan", answer("write-time", "sample", "plan", *plan))
    check("write-time-sample-run", answer("write-time", "sample", "run", *run))


def test_the_address_of_a_page_follows_its_schema() -> None:
    command = [sys.executable, "-m", "ioprism", "explore", str(LOG), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        said = b"".join(iter(run.stdout.readline, b"}\n")) + b"}"
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=30) == 0
    check("explore", json.loads(said))


def test_a_recording_follows_its_schema(tmp_path: Path) -> None:
    if not (FIND["dftracer"]() or FIND["strace"]()):
        pytest.skip("no tracer is installed")
    command = [sys.executable, "-m", "ioprism", "record", "--json", "-q", "-o"]
    copies = ["--against", str(LOG), "--", "dd", "if=/dev/zero", f"of={tmp_path / 'a'}", "count=9"]
    for name, words in {"io": copies, "none": ["--", "true"]}.items():
        done = subprocess.run(
            [*command, str(tmp_path / name), *words], capture_output=True, check=True
        )
        check("record", json.loads(done.stdout))


def test_every_schema_is_compared_with_what_its_command_prints() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    loops = {f"site-{subject}" for subject in ("jobs", "applications", "users", "targets", "hosts",
                                               "causes", "files", "periods")}  # fmt: skip
    loops |= {"report", "diagnose", "characterise", "insights", "phases", "period"}

    compared = set(re.findall(r'check\(\s*"([\w-]+)"', text)) | loops
    assert compared == {name.removesuffix(".json") for name in NAMES}


def test_write_time_answers_follow_their_schemas(tmp_path: Path) -> None:
    pattern = ("--nodes", 64, "--cores", 8, "--burst", "512MB")
    plan = ("--system", "titan", "--store", tmp_path / "plan.db", "--max-burst", "64MB")

    check("write-time-estimate", answer("write-time", "estimate", "--model", "titan", *pattern))
    check("write-time-tune", answer("write-time", "tune", "--model", "titan", *pattern))
    check("write-time-sample-plan", answer("write-time", "sample", "plan", *plan))


def predictions() -> Iterator[Prediction]:
    quiet = Prediction(10.0, (0.0, 10.0), period=None, next_phase=None, probabilities=())
    period = Period(2.0, 0.5, 0.9, 0.001, ((0.0, 10.0),), 1e6, 0.1, 0.01, "phases", 5)
    yield quiet
    yield replace(
        quiet,
        period=period,
        next_phase=ExpectedPhase(start=12.0, end=12.5, bytes=1e6, confidence=0.9),
        probabilities=(FrequencyRange(low=0.4, high=0.6, probability=1.0),),
        change=PeriodChange(time=5.0, before=None, after=2.0),
    )


def test_lines_of_watch_follow_their_schema() -> None:
    for prediction in predictions():
        check("watch", json.loads(Answer("job", prediction, 3, None).json))


def test_rounds_of_servers_watch_follow_their_schema(tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text("server,t,br,bw,rdc,wc,oc,cc\nion0,1700000000,1,2,3,4,5,6\n")
    words = ("--file", record, "--rounds", "2", "--interval", "0", "--json-lines")
    done = CliRunner().invoke(main, ["servers", "watch", *map(str, words)])

    for line in done.stdout.splitlines():
        check("servers-watch", json.loads(line))
    assert done.exit_code == 0
