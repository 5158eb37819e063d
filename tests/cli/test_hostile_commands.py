"""Names made to do harm, also of files and folders, through the commands over several inputs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism.cli import main
from ioprism.mcp import Answers, Folders
from tests.cli.test_hostile_names import HOSTILE, SCRIPT, cells, is_formula, run
from tests.cli.test_hostile_names import trace as trace
from tests.conftest import TEST_DATA
from tests.storage.writers import write_runs

FOLDER = "\x1b[31m=cmd()'\"$(touch owned)`id`;\n\u202e[*?] {x} %s"
SITE_TABLES = ("jobs", "applications", "users", "targets", "hosts", "causes")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder whose own name does harm."""
    made = tmp_path / FOLDER
    made.mkdir()
    return made


def is_harmless(page: Path) -> bool:
    text = page.read_text(encoding="utf-8")
    harmful = SCRIPT in text or "<img src=x" in text or "\x1b" in text or "\u202e" in text
    return not harmful and text.count("<script") == text.count("</script>")


def test_a_diagnosis(trace: Path, place: Path) -> None:
    copied = shutil.copy(trace, place / "t.parquet")
    run("diagnose", copied)

    assert isinstance(json.loads(run("diagnose", copied, "--json")), dict)


def test_a_comparison(trace: Path, place: Path) -> None:
    copied = shutil.copy(trace, place / "t.parquet")
    run("compare", trace, copied)
    run("compare", trace, copied, "-o", place / "page.html")

    assert isinstance(json.loads(run("compare", trace, copied, "--json")), dict)
    assert is_harmless(place / "page.html")


def test_what_is_behind_a_finding_and_a_bottleneck(trace: Path) -> None:
    findings = json.loads(run("insights", trace, "--json"))["findings"]
    bottlenecks = json.loads(run("bottlenecks", trace, "--views", "file,process", "--json"))
    first = bottlenecks["bottlenecks"][0]["id"]

    for asked in ([findings[0]["code"]], [first, "--views", "file,process"]):
        run("inspect", trace, *asked)
        assert isinstance(json.loads(run("inspect", trace, *asked, "--json")), dict)


def test_a_site(trace: Path, place: Path) -> None:
    copied = shutil.copy(trace, place / "t.parquet")
    (place / "bad\x1b]0;owned\x07.darshan").write_bytes(b"no log")
    store = place / "store"
    run("site", "add", copied, *place.glob("bad*"), "--store", store)
    for table in SITE_TABLES:
        run("site", table, "--store", store)
        assert isinstance(json.loads(run("site", table, "--store", store, "--json")), dict)
    run("site", "report", "--store", store, "-o", place / "page.html", "--reports", place)

    assert is_harmless(place / "page.html")


def servers_of(place: Path) -> tuple[Path, Path]:
    """A store whose servers have hostile names, and a list of jobs that have, too."""
    names = [name.replace(",", ";") for name in HOSTILE if "\x00" not in name]
    counters = pl.DataFrame(
        [
            {"server": name, "t": 120 * n, "br": 10**6 * n, "bw": 10**7 * n, "rdc": n, "wc": n,
             "oc": 1, "cc": 1}
            for name in names
            for n in range(90)
        ]
    )  # fmt: skip
    jobs = pl.DataFrame(
        [
            {"job_id": name, "user": name, "account": name, "name": name, "start": 0, "end": 9600,
             "servers": servers}
            for name, servers in zip(names, [*names[1:], names[0]], strict=True)
        ]
    )  # fmt: skip
    counters.write_csv(place / "raw.csv")
    jobs.write_csv(place / "jobs.csv")
    run("servers", "ingest", place / "raw.csv", "--store", place / "store", "-q")
    return place / "store", place / "jobs.csv"


def test_servers_and_their_jobs(place: Path) -> None:
    store, jobs = servers_of(place)
    asked = ("--store", store, "--jobs", jobs, "--min-runtime", "0")
    run("servers", "jobs", *asked, "--export", place / "jobs-out.csv")
    run("servers", "report", *asked, "-o", place / "page.html")

    assert isinstance(json.loads(run("servers", "jobs", *asked, "--json")), dict)
    assert isinstance(json.loads(run("servers", "report", *asked, "--json")), dict)
    assert is_harmless(place / "page.html")
    assert not list(filter(is_formula, cells(place / "jobs-out.csv")))


def test_answers_to_assistants(trace: Path) -> None:
    answers = Answers(Folders.of([trace.parent]))
    texts = [
        ask([trace.name])
        for ask in (answers.characterise, answers.diagnose, answers.insights, answers.bottlenecks)
    ]

    for text in texts:
        assert isinstance(json.loads(text), dict)
        assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_write_times(place: Path) -> None:
    machine = place / "machine.toml"
    title = json.dumps(f"{SCRIPT}\x1b[31m\u202e=cmd()")
    machine.write_text(
        f'name = "m"\ntitle = {title}\nfilesystem = "plain"\nnodes = 20000\ncores_per_node = 16\n'
    )
    write_runs(place / "runs.csv", (1, 2, 4, 8, 16, 32, 64, 128, 256))
    store = place / "runs.db"
    run("write-time", "import", place / "runs.csv", "--system", machine, "--store", store)
    run("write-time", "train", "--store", store, "-o", place / "model.json", "--model", "lasso")
    model = ("--model", place / "model.json")
    run("write-time", "evaluate", "--store", store, *model, "-o", place / "page.html")
    run("write-time", "system", "show", machine)
    run("write-time", "system", "show", machine, "--features")

    assert is_harmless(place / "page.html")


@pytest.mark.parametrize("scheduler", ["slurm", "lsf", "pbs", "flux"])
def test_a_job_script_runs_only_what_it_is_for(place: Path, scheduler: str) -> None:
    script = place / "job.sh"
    run("write-time", "sample", "script", "--store", place / "r.db", "--directory", place,
        "--scheduler", scheduler, "--nodes", "1", "-o", script)  # fmt: skip
    tools = place.parent / "tools"
    tools.mkdir()
    for name in ("ioprism", "sbatch", "bsub", "qsub", "flux"):
        (tools / name).write_text(
            f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\nsys.exit(3)\n"
        )
        (tools / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", str(script)], env={"PATH": f"{tools}:/usr/bin:/bin"}, cwd=place.parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert str(place / "r.db") in json.loads(done.stdout.splitlines()[0])
    assert not list(place.parent.rglob("owned"))
    assert shlex.quote(str(place / "r.db")) in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["a\ntouch owned", "a b", "$(touch owned)", "a;b", ""])
@pytest.mark.parametrize("option", ["--account", "--queue"])
def test_a_job_script_takes_no_account_that_is_no_word(
    tmp_path: Path, option: str, word: str
) -> None:
    result = CliRunner().invoke(
        main, ["write-time", "sample", "script", "--store", "r.db", "--directory", str(tmp_path),
               "--scheduler", "slurm", "--nodes", "1", option, word, "-o", str(tmp_path / "s")],
    )  # fmt: skip

    assert result.exit_code == 2 and "Hint:" in result.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "name",
    ["darshan/a_ckpt_fpp_period5s.darshan", "dftracer/v2.2.0-md1-plain.pfw", "recorder/master-ckpt",
     "dftracer/v2.0.3-md1.pfw.gz", "strace/randread_np2.strace"],
)  # fmt: skip
def test_a_trace_is_read_from_a_folder_of_any_name(place: Path, name: str) -> None:
    source, target = TEST_DATA / name, place / f"{FOLDER}{Path(name).suffix}"
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    run("characterise", target, "--json")

    assert "Job" in run("characterise", target)


def test_a_message_about_a_hostile_name_steers_nothing(place: Path) -> None:
    results = [
        CliRunner().invoke(main, arguments)
        for arguments in (
            ["report", str(place / "none")],
            ["convert", str(TEST_DATA / "strace/randread_np2.strace"), str(place)],
            ["servers", "jobs", "--store", str(place)],
            ["site", "jobs", "--store", str(place)],
            ["write-time", "train", "--store", str(place), "-o", str(place)],
            ["phases", str(place), "--gap", FOLDER],
            ["period", str(place), "--method", FOLDER],
            [FOLDER],
        )
    ]

    for result in results:
        assert result.exit_code in (1, 2) and "Error" in result.stderr, result.output
        assert not [c for c in result.output if not c.isprintable() and c != "\n"], result.output


LOG = str(TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan")
NOT_TEXT = os.fsdecode(b"\xff\xfe")


def test_names_that_are_not_utf8_are_read_or_one_message(tmp_path: Path) -> None:
    log, table = tmp_path / f"{NOT_TEXT}.darshan", tmp_path / f"{NOT_TEXT}.csv"
    shutil.copy(LOG, log)
    table.write_text("start,end,operation\n0,1,read\n")
    run("characterise", log)
    run("report", log, "-o", tmp_path / f"{NOT_TEXT}.html", "-q")
    run("site", "add", log, "--store", tmp_path / "site", "-q")
    refused = [["characterise", table]]
    refused += [["convert", log, tmp_path / f"{NOT_TEXT}{end}"] for end in (".store", ".csv")]
    refused += [["site", "add", log, "--store", tmp_path / f"{NOT_TEXT}.site"]]
    counters = TEST_DATA / "servers/A_aligned.counters.csv"
    refused += [["servers", "ingest", counters, "--store", tmp_path / f"{NOT_TEXT}.servers"]]
    for words in refused:
        result = CliRunner().invoke(main, [*map(str, words)])
        assert result.exit_code == 1
        assert "UTF-8" in result.stderr and "Hint" in result.stderr


FILES_OF_USERS = [
    ["bottlenecks", LOG, "--rules"],
    ["insights", LOG, "--thresholds"],
    ["diagnose", LOG, "--clock-offsets"],
    ["diagnose", LOG, "--anonymise"],
    ["diagnose", LOG, "--layout"],
    ["diagnose", LOG, "--ceiling"],
    ["diagnose", LOG, "--model"],
    ["period", LOG, "--mapping"],
    ["schedule"],
    ["write-time", "system", "show"],
    ["write-time", "import", "--system", "titan", "--store", "runs.db"],
]


def ask(*words: str, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code of a command in a process of its own, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "ioprism", *words],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        env={**os.environ, **(variables or {})},
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", FILES_OF_USERS, ids=" ".join)
def test_a_file_that_never_ends_is_refused_whatever_it_is_for(
    tmp_path: Path, words: list[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = CliRunner().invoke(main, [*words, str(tmp_path / "pipe")])
    assert result.exit_code in (1, 2), result.output
    assert "should not have happened" not in result.stderr

    result = CliRunner().invoke(main, [*words, "/dev/zero"])
    assert result.exit_code in (1, 2), result.output


SLOW_FILES = {
    "digits.toml": "[r]\nseverity = " + "9" * 5000 + "\n",
    "keys.toml": ".".join("a" * 50_000) + " = 1\n",
    "more.toml": "".join(".".join("a" * 2000) + f".b{n} = 1\n" for n in range(60)),
    "deep.toml": "a = " + ("[" * 2000 + "\n") * 20,
    "deep.yaml": "a: " + ("[" * 4000 + "\n") * 60,
    "sixty.yaml": "a: " + ":".join("1" * 100_000),
    "large.yaml": "a: b\n" * 100_000,
}


@pytest.mark.parametrize("name", SLOW_FILES)
def test_rules_and_settings_that_keep_a_parser_busy_are_one_message(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text(SLOW_FILES[name])
    code, said = ask("bottlenecks", LOG, "--rules", str(path))
    assert (code, "should not have happened" in said) == (1, False), said
    assert name in said

    if name.endswith("toml"):
        code, said = ask("formats", variables={"IOPRISM_CONFIG": str(path)})
        assert (code, "should not have happened" in said) == (2, False), said
