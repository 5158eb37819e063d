"""A transport is one class and one entry point; the service treats all of them alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ioprism import UsageError
from ioprism.cli import main
from ioprism.live import sources
from ioprism.live.intake import Intake, Message
from ioprism.live.sources import StreamSource, open_source
from ioprism.live.state import Journal

PERIOD, PHASES = 10.0, 12


class Radio:
    """A made-up transport that has everything to say at once."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._left = [
            json.dumps({"bandwidth": {"b_rank_avr": [100.0], "t_rank_s": [start],
                                      "t_rank_e": [start + 1.0]}}).encode()
            for start in (PERIOD * n for n in range(PHASES))
        ]  # fmt: skip

    def read(self, intake: Intake, journal: Journal | None) -> bool:  # noqa: ARG002
        messages = [Message("radio", raw, "") for raw in self._left]
        self._left = []
        intake.receive(messages, arrived=0.0)
        return False

    def waits_on(self) -> None: ...

    def note_empty(self) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


def test_a_plug_in_opens_the_addresses_of_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "declared", lambda group: [_Declared()])  # noqa: ARG005

    opened: StreamSource = open_source("radio://channel", {})

    assert isinstance(opened, Radio) and opened.address == "radio://channel"


class _Declared:
    name = "radio"

    def load(self) -> type[Radio]:
        return Radio


def test_watch_predicts_from_any_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "declared", lambda group: [_Declared()])  # noqa: ARG005
    command = ["watch", "--source", "radio://channel", "--json-lines", "--exit-when-idle", "0.5"]
    result = CliRunner().invoke(main, command)
    periods = [json.loads(line)["period"] for line in result.stdout.splitlines()]

    assert result.exit_code == 0
    assert periods[-1]["seconds"] == pytest.approx(PERIOD, rel=0.05)


def test_a_file_is_a_source_like_any_other(tmp_path: Path) -> None:
    grown = tmp_path / "run.jsonl"
    grown.write_bytes(b"".join(raw + b"\n" for raw in Radio("x")._left))
    command = ["watch", "--source", f"file://{grown}", "--json-lines", "--exit-when-idle", "0.5"]
    result = CliRunner().invoke(main, command)

    assert result.exit_code == 0
    assert json.loads(result.stdout.splitlines()[-1])["period"]["seconds"] == pytest.approx(
        PERIOD, rel=0.05
    )


def test_an_address_of_no_transport_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no transport opens smoke://hill.*\nHint: .*file://"):
        open_source("smoke://hill", {"file": Radio})


def test_a_source_on_tcp_needs_keys_like_zmq() -> None:
    refused = CliRunner().invoke(main, ["watch", "--source", "tcp://127.0.0.1:5555"])

    assert refused.exit_code == 2 and "--keys" in refused.output
