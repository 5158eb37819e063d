"""Whatever goes wrong: one message, an exit code, and no traceback unless --debug asks for it."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click
import polars as pl
import pytest
from click.testing import CliRunner

from ioprism import BrokenTraceError, LocalEngine, read
from ioprism.cli import COMMANDS, CommandGroup, main
from ioprism.command.output import explain_error
from ioprism.explore import exploring
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"


def shell(command: str, **environment: str) -> tuple[int, str]:
    """Run a command line through a shell; return its exit code and standard error."""
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m ioprism {command}"],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stderr.decode("utf-8", "replace")


def panic() -> None:
    raise pl.exceptions.PanicException("index out of bounds")


def exhausted() -> None:
    raise MemoryError


def nested() -> None:
    nested()


def unencodable() -> None:
    "…".encode("latin-1")


def confused() -> None:
    raise pl.exceptions.ComputeError("No space left on device (os error 28)\nand more")


def threadless() -> None:
    raise RuntimeError("can't start new thread")


def forbidden() -> None:
    raise PermissionError(errno.EACCES, "Permission denied", "out.html")


def surprised() -> None:
    raise TypeError("sequence item 0: expected \x1b[31mstr")


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (panic, "a library gave up on the data (index out of bounds)"),
        (exhausted, "not enough memory"),
        (threadless, "no further thread can be started"),
        (nested, "nested too deeply"),
        (unencodable, "encoding (latin-1) cannot show"),
        (confused, "No space left on device.\nHint: free some space"),
        (forbidden, "out.html: Permission denied\nHint: check the permissions"),
        (
            surprised,
            "this should not have happened: TypeError: sequence item 0: expected \\x1b[31m",
        ),
    ],
)
def test_any_exception_is_one_message(
    problem: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = CommandGroup(params=[click.Option(["--debug"], is_flag=True)])
    commands.add_command(click.Command("fails", callback=problem))  # type: ignore[arg-type]
    monkeypatch.setattr(commands, "get_command", lambda _, name: commands.commands.get(name))
    told = CliRunner().invoke(commands, ["fails"])
    with pytest.raises(BaseException) as traced:
        commands.main(["fails", "--debug"], standalone_mode=False)

    assert told.exit_code == 1 and message in told.stderr
    assert told.stderr.count("Error") == 1 + message.count("Error")
    assert not isinstance(traced.value, SystemExit | click.ClickException)


def test_debug_is_understood_before_and_behind_a_command() -> None:
    for arguments in (["--debug", "report", "nowhere"], ["report", "nowhere", "--debug"]):
        result = CliRunner().invoke(main, arguments)
        assert "no such file" in str(result.exception)


@pytest.mark.parametrize("number", ["nan", "inf", "1e999"])
@pytest.mark.parametrize(
    "option",
    ["phases --gap", "period --tolerance", "bottlenecks --threshold", "bottlenecks --time-bucket"],
)
def test_a_number_that_is_none_is_refused(option: str, number: str) -> None:
    command, name = option.split()
    result = CliRunner().invoke(main, [command, str(LOG), f"{name}={number}"])

    assert result.exit_code == 2 and "is not a finite number" in result.stderr


def test_an_empty_argument_is_not_the_folder_one_is_in() -> None:
    result = CliRunner().invoke(main, ["characterise", ""])

    assert result.exit_code == 2 and "an argument is empty" in result.stderr


def test_a_closed_output_is_one_message() -> None:
    code, said = shell("formats >&-")

    assert code == 1
    assert said.startswith("Error: standard output is closed.") and "Traceback" not in said


def test_a_full_output_is_one_message() -> None:
    code, said = shell(f"characterise {LOG} --json > /dev/full")

    assert code == 1 and "No space left on device" in said
    assert "Traceback" not in said and said.count("Error") == 1


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_narrow_encoding_shows_escapes(encoding: str) -> None:
    code, said = shell(f"characterise {LOG}", PYTHONIOENCODING=encoding)

    assert (code, said) == (0, "")


def test_native_code_that_ends_the_process_leaves_its_message_and_its_signal() -> None:
    program = (
        "import os, sys; sys.argv = ['ioprism', 'formats'];"
        "from ioprism.cli import tools;"
        "tools.formats.callback = lambda *a, **k: (os.write(2, b'no memory'), os.abort());"
        "from ioprism.__main__ import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.returncode == -signal.SIGABRT
    assert ended.stderr == "no memory"


@pytest.mark.parametrize("words", ["formats", f"characterise {LOG}", f"diagnose {LOG} --json"])
def test_a_reader_that_leaves_early_is_not_an_error(words: str) -> None:
    code, said = shell(f"{words} | head -1; exit ${{PIPESTATUS[0]}}")

    assert (code, said.count("Error")) == (0, 0)


def test_our_signs_have_plain_forms_where_the_terminal_is_not_utf_8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ioprism", "diagnose", str(LOG)],
        capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip

    assert b" - " in done.stdout.splitlines()[0]
    assert b"\\x" not in done.stdout and b"\\u" not in done.stdout


@pytest.mark.parametrize(
    ("when", "coloured"), [("always", True), ("never", False), ("auto", False)]
)
def test_colour_is_as_asked(when: str, coloured: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ioprism", "diagnose", str(LOG), "--color", when],
        capture_output=True, check=True, text=True,
    )  # fmt: skip

    assert ("\x1b[" in done.stdout) is coloured


def test_defaults_come_from_the_configuration_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("IOPRISM_CONFIG", str(file))
    file.write_text("[diagnose]\nfail-on = 0.0\n")
    failed = CliRunner().invoke(main, ["diagnose", str(LOG)])
    chosen = CliRunner().invoke(main, ["diagnose", str(LOG), "--fail-on", "1.0"])
    file.write_text("[diagnose\n")
    broken = CliRunner().invoke(main, ["diagnose", str(LOG)])
    file.write_text("top = 3\n")
    loose = CliRunner().invoke(main, ["diagnose", str(LOG)])

    assert (failed.exit_code, chosen.exit_code) == (3, 0)
    assert broken.exit_code == loose.exit_code == 2
    assert "config.toml" in broken.stderr and "Hint" in loose.stderr


def test_a_damaged_store_of_runs_is_one_message(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    sqlite3.connect(store).close()
    store.write_bytes(b"SQLite format 3\0" + os.urandom(5000))
    result = CliRunner().invoke(
        main, ["write-time", "train", "--store", str(store), "-o", "no.json"]
    )

    assert result.exit_code == 1 and result.stderr.count("Error") == 1


@pytest.mark.corpus
def test_a_signal_without_ranks_becomes_a_chrome_trace(tmp_path: Path, shared_data: Path) -> None:
    target = tmp_path / "out.json"
    result = CliRunner().invoke(main, ["convert", str(shared_data / "tmio/8.jsonl"), str(target)])

    assert result.exit_code == 0, result.output
    assert read(target).events().height == read(shared_data / "tmio/8.jsonl").events().height


@pytest.mark.parametrize(
    "said",
    [
        b"GET /%s/tile?start=0&end=1&columns=9&ranks=\xc2\xb2 HTTP/1.1\r\nHost: %s\r\n\r\n",
        b"GET //[ HTTP/1.1\r\nHost: %s\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"\x16\x03\x01\x00\xff\r\n\r\n",
        b"",
    ],
)
def test_a_malformed_request_prints_nothing(said: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    from threading import Thread

    with exploring(read(LOG), engine=LocalEngine(), prepare=False) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        place = urlsplit(server.address)
        host = f"127.0.0.1:{place.port}".encode()
        filled = said.replace(b"/%s/", place.path.encode()).replace(b"%s", host)
        with socket.create_connection(("127.0.0.1", place.port or 0), timeout=10) as connection:
            connection.sendall(filled)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
        server.shutdown()

    assert "Traceback" not in capfd.readouterr().err


def test_messages_of_errors_are_said_as_they_are() -> None:
    error = BrokenTraceError("it is damaged.", source=Path("a"))

    assert explain_error(error).message == "a: it is damaged."


def test_every_command_is_loaded_through_the_handler() -> None:
    assert isinstance(main, CommandGroup) and sorted(COMMANDS) == main.list_commands(
        click.Context(main)
    )
