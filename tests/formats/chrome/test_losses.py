"""What is damaged in a Chrome trace is counted, and what was missing before it stays said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ioprism import convert, read
from ioprism.formats.chrome import Damage, objects
from tests.conftest import TEST_DATA

SAMPLE = TEST_DATA / "dftracer/v2.2.0-ns.pfw"


def test_events_without_times_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    convert(read(SAMPLE), path)
    document = json.loads(path.read_text())
    calls = [event for event in document["traceEvents"] if event["ph"] == "X"]
    for call in calls[:3]:
        call["ts"] = "soon"
    path.write_text(json.dumps(document))
    trace = read(path)

    assert trace.events().height == len(calls) - 3
    assert trace.completeness.warnings == ("t.json: 3 damaged events left out",)


def test_what_was_missing_when_it_was_written_is_said_again(tmp_path: Path) -> None:
    trace = read(SAMPLE)
    trace.completeness.warn("half of it was lost")
    convert(trace, tmp_path / "t.json")

    assert "half of it was lost" in read(tmp_path / "t.json").completeness.warnings


def _events(path: Path) -> list[str]:
    return [content["args"]["file"] for content, _ in objects(path, Damage())]


@pytest.mark.parametrize("before", range(65500, 65515))
def test_no_character_is_cut_where_a_chunk_ends(tmp_path: Path, before: int) -> None:
    name = "a" * before + "é"
    path = tmp_path / "t.json"
    events = [{"ph": "X", "args": {"file": file}} for file in (name, "b")]
    path.write_text(json.dumps(events, ensure_ascii=False), encoding="utf-8")

    assert _events(path) == [name, "b"]


def test_bytes_that_are_no_text_are_damage_not_a_hang(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'[{"args":{"file":"a"}},{"x":"' + b"\xff" * 3_000_000)

    assert _events(path) == ["a"]


@pytest.mark.parametrize("ranks", ["Infinity", "NaN", "-3", "1" + "0" * 400])
def test_a_number_of_ranks_that_cannot_be_is_counted_instead(tmp_path: Path, ranks: str) -> None:
    path = tmp_path / "t.json"
    convert(read(SAMPLE), path)
    whole = read(path).processes["rank"].n_unique()
    path.write_text(re.sub(r'"ranks": \d+', f'"ranks": {ranks}', path.read_text()))

    assert read(path).job.ranks == whole
