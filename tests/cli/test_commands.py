"""Commands answer with text or one JSON document, and fail with one message and a code."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ioprism.cli import COMMANDS, main
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOG = DATA / "a_ckpt_fpp_period5s.darshan"


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    result = run(command, "--help")

    assert result.exit_code == 0
    assert "Example: ioprism" in result.output


def test_characterise_prints_the_promised_keys() -> None:
    result = run("characterise", LOG, "--json")
    said = json.loads(result.stdout)

    assert result.exit_code == 0
    assert said["schema"] == 2
    assert said["source"] == {"paths": [str(LOG)], "format": "darshan", "warnings": []}
    assert said["job"].keys() >= {
        "ranks",
        "processes",
        "hosts",
        "runtime",
        "executable",
        "start_time",
    }
    assert said["totals"].keys() >= {
        "io_time",
        "operations",
        "bytes_read",
        "bytes_written",
        "files",
    }
    assert said["by_operation"].keys() == {"read", "write", "metadata"}
    assert said["by_layer"]["posix"]["write"]["bytes"] == 1_610_612_736
    assert [b["count"] for b in said["request_sizes"]["write"]] == [0, 0, 0, 0, 0, 0, 192, 0, 0, 0]


def test_characterise_tells_a_person_the_same() -> None:
    result = run("characterise", LOG)

    assert result.exit_code == 0
    assert "4 on 1 host" in result.output
    assert "1.50 GiB" in result.output
    assert "up to 10.0 MiB" in result.output


def test_what_is_missing_is_said_on_standard_error() -> None:
    result = run("characterise", DATA / "l_killed_job_merged.darshan")

    assert result.exit_code == 0
    assert "warning: l_killed_job_merged.darshan: the job did not end normally" in result.stderr


@pytest.mark.parametrize("log", ["hostile-xss", "rich-markup-path"])
@pytest.mark.parametrize("as_json", [True, False])
def test_hostile_names_reach_neither_terminal_nor_json_unescaped(log: str, as_json: bool) -> None:
    result = run("characterise", DATA / f"{log}.darshan", *(["--json"] if as_json else []))

    assert result.exit_code == 0
    assert "\x1b" not in result.output
    allowed = set("\n█µ…·")
    assert all((c.isprintable() and c.isascii()) or c in allowed for c in result.output)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["characterise", "nowhere.darshan"], 1, "nowhere.darshan: no such file or folder"),
        (["characterise"], 2, "Missing argument 'TRACE...'"),
        (["characterise", str(LOG), "--format", "x"], 2, "there is no format 'x'"),
        (["characterise", __file__], 1, "the format is unknown"),
        (["convert", str(LOG)], 2, "Missing argument 'OUT'"),
        (["inspect", str(LOG)], 2, "Missing argument 'ID'"),
        (["explore", str(LOG), "--port", "99999"], 2, "99999 is not in the range"),
        (["explode"], 2, "No such command 'explode'"),
        (["characterisse", str(LOG)], 2, "Hint: did you mean characterise?"),
        (["characterise", "\x1b[31m"], 1, "\\x1b[31m: no such file or folder"),
        (["characterise", LOG, "--ceiling", DATA], 1, "this is a folder, but a file is needed"),
        (["characterise", LOG, "--clock-offsets", DATA], 2, "Hint: give a text file with lines"),
        (["diagnose", LOG, "--layout", DATA], 1, "this is a folder, but a file is needed"),
        (["diagnose", LOG, "--model", DATA], 1, "Hint: give the name of a file instead."),
        (["period", LOG, "--mapping", "nowhere"], 1, "Hint: check the spelling."),
        (["report", LOG, "-o", LOG / "x.html"], 1, "Not a directory\nHint: check the spelling."),
        (["report", LOG, "-o", f"{'x' * 300}.html"], 1, "Hint: choose a shorter name."),
        (["servers", "jobs", "--store", DATA, "--timezone", "Moon"], 2, "called 'Moon'"),
        (["watch", "--keygen", LOG], 1, "Hint: choose another name."),
        (["watch", "--zmq", "tcp://127.0.0.1:99999"], 2, "neither a port nor a ZeroMQ endpoint"),
        (["watch", "--zmq", "ipc:///nowhere/x"], 2, "Hint: choose a short path in a folder"),
        (["replay", LOG, "--zmq", f"ipc://{'x' * 200}"], 2, "cannot connect to ipc://xxx"),
        (["write-time", "tune", "--model", "titan", "--nodes", "4", "--cores", "4", "--burst", "0"],
         2, "0 is not positive"),
    ],
)  # fmt: skip
def test_failures_are_one_message_and_a_code(args: list[object], code: int, message: str) -> None:
    result = run(*args)

    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["diagnose", "insights", "period"])
def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")

    result = run(command, tmp_path / "pipe")

    assert result.exit_code == 1
    assert "Hint: write it to a file" in result.stderr


def test_deviations_beyond_any_number_join_all_phases() -> None:
    result = run("phases", LOG, "--deviations", "1e308", "--json")

    assert result.exit_code == 0
    assert len(json.loads(result.stdout)["layers"]["posix"]["phases"]) == 1


def test_an_unreadable_folder_is_one_message(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("x")
    result = run("convert", LOG, target / "below")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")


def test_convert_keeps_a_trace_and_leaves_an_existing_one_alone(tmp_path: Path) -> None:
    assert run("convert", LOG, tmp_path / "kept").exit_code == 0
    again = run("convert", LOG, tmp_path / "kept")
    kept = json.loads(run("characterise", tmp_path / "kept", "--json").stdout)

    assert again.exit_code == 1
    assert "already exists" in again.stderr
    assert kept["totals"] == json.loads(run("characterise", LOG, "--json").stdout)["totals"]


def test_convert_writes_csv_with_paths(tmp_path: Path) -> None:
    assert run("convert", LOG, tmp_path / "events.csv").exit_code == 0
    lines = (tmp_path / "events.csv").read_text().splitlines()

    assert len(lines) == 193
    assert lines[0].startswith("start,end,rank,process,file,layer,operation")
    assert "ckpt_000" in lines[1]


def test_formats_lists_what_each_format_tells() -> None:
    said = json.loads(run("formats", "--json").stdout)
    darshan = next(entry for entry in said["formats"] if entry["name"] == "darshan")

    assert darshan["available"]
    assert "calls" in darshan["tells"]
    assert "darshan: Darshan 3.x logs" in run("formats").output


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.darshan", b"", "the file is empty"),
        ("log.darshan.gz", gzip.compress(LOG.read_bytes()), "gunzip log.darshan.gz"),
        ("calls.csv", b"time,amount\n1,2\n", "lacks the columns start, end or duration"),
        ("notes.txt", b"hello\n", "if it is one of strace, ftio-text, recorder-text"),
        ("noise.bin", bytes(range(256)), "if it is one of darshan, recorder, otf2"),
    ],
)
def test_a_file_that_is_not_recognised_is_explained(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    result = CliRunner().invoke(main, ["diagnose", str(tmp_path / name)])

    assert result.exit_code == 1
    assert said in result.stderr and result.stderr.count("\n") == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([str(LOG), "diagnose"], f"ioprism diagnose {LOG}"),
        (["inspect", "small-writes", str(LOG)], f"ioprism inspect {LOG} small-writes"),
        (["diagnose", str(LOG.parent)], "ioprism insights"),
    ],
)
def test_words_in_the_wrong_order_are_pointed_out(words: list[str], hint: str) -> None:
    result = CliRunner().invoke(main, words)

    assert result.exit_code == 2 and hint in result.stderr


@pytest.mark.parametrize("name", ["characterize", "help", "completion"])
def test_other_spellings_and_helpers_work(name: str) -> None:
    words = {"characterize": [str(LOG)], "help": ["diagnose"], "completion": ["bash"]}[name]
    result = CliRunner().invoke(main, [name, *words])

    assert result.exit_code == 0 and result.stdout
