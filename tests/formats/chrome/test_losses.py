"""What is damaged in a Chrome trace is counted, and what was missing before it stays said."""

from __future__ import annotations

import json
from pathlib import Path

from ioprism import convert, read
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
