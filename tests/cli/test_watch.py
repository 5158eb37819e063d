"""Wrong usage of `watch` and `replay` is one message with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ioprism.cli import main
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["watch"], 2, "Hint: use --zmq ipc://FILE"),
        (["watch", "--zmq", "somewhere"], 2, "neither a port nor a ZeroMQ endpoint"),
        (["watch", "--zmq", "udp://127.0.0.1:1"], 2, "neither a port nor a ZeroMQ endpoint"),
        (["watch", "--unprotected", "--zmq", "tcp://203.0.113.1:1"], 2, "cannot listen on"),
        (
            ["watch", "--unprotected", "--zmq", "tcp://127.0.0.1:*", "--max-message", "big"],
            2,
            "not a size",
        ),
        (["watch", "--unprotected", "--zmq", "tcp://127.0.0.1:*", "--http", "99999"], 2, "--http"),
        (["watch", "--follow", str(LOG.parent)], 1, "cannot be followed"),
        (["replay", str(LOG)], 2, "--zmq"),
        (["replay", "nowhere.darshan", "--zmq", "1"], 1, "no such file"),
        (["replay", str(LOG), "--zmq", "foo"], 2, "neither a port nor a ZeroMQ endpoint"),
        (["mcp", "nofolder"], 2, "Hint: give the folders whose traces may be read."),
    ],
)
def test_wrong_usage_is_one_message(args: list[str], code: int, message: str) -> None:
    result = CliRunner().invoke(main, args)

    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_state_that_is_none_is_refused_and_kept(tmp_path: Path) -> None:
    log = tmp_path / LOG.name
    log.write_bytes(LOG.read_bytes())

    result = CliRunner().invoke(
        main, ["watch", "--unprotected", "--zmq", "tcp://127.0.0.1:*", "--state", str(log)]
    )

    assert result.exit_code == 1
    assert "not a state of" in result.stderr
    assert log.read_bytes() == LOG.read_bytes()


def test_a_replay_that_nobody_hears_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioprism.live.replay.PATIENCE", 0.2)
    result = CliRunner().invoke(main, ["replay", str(LOG), "--zmq", "tcp://127.0.0.1:9"])

    assert result.exit_code == 1
    assert "no service receives messages" in result.stderr and "Hint: start" in result.stderr


def test_what_other_machines_can_reach_is_said() -> None:
    args = ["watch", "--unprotected", "--zmq", "tcp://*:*", "--exit-when-idle", "0.1"]
    result = CliRunner().invoke(main, args)

    assert result.exit_code == 0
    assert "warning: other machines can reach tcp://0.0.0.0" in result.stderr
