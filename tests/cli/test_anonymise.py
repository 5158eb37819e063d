"""With --anonymise, no name of the trace is in any output, and the answer is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism import Trace, anonymise, characterise, diagnose, insights, phases, read, sample_log
from ioprism.cli import main
from ioprism.model.pseudonyms import Pseudonyms
from tests.conftest import TEST_DATA

LOGS = sorted((TEST_DATA / "darshan").glob("*.darshan"))
OTHERS = [TEST_DATA / "dftracer/v2.2.0-ns.pfw", TEST_DATA / "strace/randread_np2.strace"]
SYSTEM = ("/dev/shm", "/proc", "/sys", "/dev", "/usr", "/etc", "/lib", "/bin", "/sbin")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32, 64)))
    return path


def names_in(trace: Trace) -> set[str]:
    """Names of files, folders, hosts, programs, mounts, users and the log, as recorded."""
    paths = [path for path in trace.files["path"] if path.startswith("/")]
    folders = {part for path in paths for part in path.split("/")[1:-1]}
    command = (trace.job.executable or "").replace("=", " ").split()
    job = (trace.job.job_id, trace.job.user, *trace.job.metadata.values())
    names = {
        *paths,
        *(path.rpartition("/")[2] for path in paths),
        *folders,
        *(word for words in command for word in (words, words.rpartition("/")[2])),
        *(mount.path for mount in trace.job.mounts if mount.path not in SYSTEM),
        *trace.processes["host"].drop_nulls(),
        *(path.name for path in trace.paths),
        *(str(fact) for fact in job if fact is not None),
    }
    kept = re.compile(r"python[\d.]*|site-packages|lib64|[\d.]*|.{1,3}", re.DOTALL)
    return {name for name in names if not kept.fullmatch(name)}


def assert_hidden(text: str, trace: Trace, ordinary: str) -> None:
    """No name is in the text, but for those that are ordinary words of such a text."""
    leaked = {name for name in names_in(trace) if name in text and name not in ordinary}
    assert not leaked


def run(*arguments: object) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


COMMANDS = ("diagnose", "insights", "characterise", "phases", "bottlenecks", "report", "period")


@cache
def run_on_sample(command: str) -> str:
    """The answer for another job, whose words are no names of this one."""
    return run(command, sample_log(), "--json")


@pytest.mark.parametrize(
    ("command", "log"),
    # A report has the answers of the other commands in it, so it is asked for one more log.
    [*((command, log) for command in COMMANDS for log in (LOGS[0], OTHERS[0])),
     ("report", LOGS[-2])],
    ids=lambda value: getattr(value, "name", value),
)  # fmt: skip
def test_no_name_is_in_the_json_of_a_command(command: str, log: Path, key: Path) -> None:
    ordinary = run_on_sample(command)
    plain = run(command, log, "--json")
    hidden = run(command, log, "--json", "--anonymise", key)

    assert_hidden(hidden, read(log), ordinary)
    assert not list(differences(json.loads(plain), json.loads(hidden)))


def test_no_name_is_in_comparisons_schedules_and_records(key: Path) -> None:
    one, other = LOGS[0], LOGS[-2]
    asked = [
        ("compare", one, "--", other),
        ("schedule", one, LOGS[1], "--seeds", 1, "--horizon", 60),
    ]
    for command, *arguments in asked:
        hidden = run(command, "--anonymise", key, "--json", *arguments)
        assert_hidden(hidden, read(one), run_on_sample("characterise"))
    code = json.loads(run("insights", one, "--json"))["findings"][0]["code"]
    assert_hidden(run("inspect", one, code, "--json", "--anonymise", key), read(one), "")


def differences(one: Any, other: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ in anything but texts."""
    if isinstance(one, dict) and isinstance(other, dict):
        assert at.endswith(".metadata") or len(one) == len(other), at
        for (name, value), same in zip(one.items(), other.values(), strict=True):
            yield from differences(value, same, f"{at}.{name}")
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield at, one, other
        for number, (value, same) in enumerate(zip(one, other, strict=False)):
            yield from differences(value, same, f"{at}[{number}]")
    elif isinstance(one, float):
        if one != pytest.approx(other, rel=1e-12):  # sums in another order
            yield at, one, other
    elif not isinstance(one, str) and one != other:
        yield at, one, other


@pytest.mark.parametrize("log", [*LOGS, *OTHERS], ids=lambda path: path.name)
def test_the_answer_is_the_same(log: Path, key: Path) -> None:
    trace, hidden = read(log), anonymise(read(log), key)
    for ask in (diagnose, insights, characterise):
        before, after = ask(trace).to_dict(), ask(hidden).to_dict()
        assert not list(differences(before, after))
    verdict, same = diagnose(trace), diagnose(hidden)
    assert [cause.code for cause in verdict.causes] == [cause.code for cause in same.causes]
    if trace.partitions:
        assert phases(trace).to_dict() == phases(hidden).to_dict()


def test_a_page_holds_no_name(tmp_path: Path, key: Path) -> None:
    log = LOGS[0]
    pages = {}
    for name, arguments in {"plain": (sample_log(),), "hidden": (log, "--anonymise", key)}.items():
        run("report", *arguments, "-o", tmp_path / f"{name}.html")
        pages[name] = (tmp_path / f"{name}.html").read_text()

    assert_hidden(pages["hidden"], read(log), pages["plain"])


@pytest.mark.parametrize("ending", ["store", "csv", "parquet", "json"])
def test_a_converted_log_holds_no_name_and_gives_the_same_verdict(
    tmp_path: Path, key: Path, ending: str
) -> None:
    log = LOGS[0]
    target = tmp_path / "out" / f"run.{ending}"
    target.parent.mkdir()
    run("convert", log, target, "--anonymise", key)
    files = [path for path in target.parent.rglob("*") if path.is_file()]
    content = b"".join(path.read_bytes() for path in files).decode("latin-1")
    for path in files:
        if path.suffix == ".parquet":  # compressed: look into it
            content += str(pl.read_parquet(path).to_dict(as_series=False))

    assert_hidden(content, read(log), "")
    if ending == "store":
        kept = diagnose(read(target)).to_dict()
        assert not list(differences(diagnose(read(log)).to_dict(), kept))
        assert read(target).files["id"].is_null().all()


def test_counters_and_hosts_of_all_jobs_are_hidden(tmp_path: Path, key: Path) -> None:
    for log in LOGS[:9]:  # so many that processes are started
        (tmp_path / log.name).write_bytes(log.read_bytes())
    (tmp_path / "broken.darshan").write_bytes(LOGS[0].read_bytes()[:500])
    hidden = run("insights", tmp_path, "--json", "--anonymise", key)
    ordinary = run_on_sample("insights")

    for log in LOGS[:9]:
        assert_hidden(hidden, read(log), ordinary)
    assert "broken.darshan" not in hidden


def test_the_same_key_gives_the_same_names_and_another_key_others() -> None:
    path = "/scratch/project_465/mueller/run 2024/ckpt_00012345.h5"
    one, same, other = (Pseudonyms(key * 16) for key in (b"a", b"a", b"b"))

    assert one.path(path) == same.path(path) != other.path(path)
    assert re.fullmatch(r"/\w{10}/\w{10}465/\w{10}/\w{10}\d{4}/\w{10}\d{8}\.h5", one.path(path))
    assert one.path("/dev/shm/x").startswith("/dev/shm/")
    assert one.command("python3 train.py --rank 0 --nprocs 8").endswith("--rank 0 --nprocs 8")


def test_a_number_longer_than_any_name_is_hidden_like_a_word() -> None:
    hidden = Pseudonyms(bytes(range(32, 64))).path("/" + "7" * 5000)

    assert hidden != Pseudonyms(bytes(range(33, 65))).path("/" + "7" * 5000)
    assert "777" not in hidden


def test_numbers_are_exchanged_one_to_one() -> None:
    names = Pseudonyms(b"k" * 16)
    exchanged = {names.digits(f"{number:04}") for number in range(1, 10_000)}

    assert len(exchanged) == 9999
    assert "0000" not in exchanged


@pytest.mark.parametrize("content", [None, b"short"])
def test_a_bad_key_is_one_clear_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    done = CliRunner().invoke(
        main, ["diagnose", str(LOGS[0]), "--anonymise", str(tmp_path / "key")]
    )

    assert done.exit_code == 2
    assert "Hint: head -c 32 /dev/urandom" in done.output
