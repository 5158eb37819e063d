"""On public logs, every difference to Drishti's codes is a reviewed one."""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import ioprism

REVIEWED = Path(__file__).parent / "drishti_differences.toml"


def differences(data: Path) -> dict[tuple[str, str], set[str]]:
    """By alias and who says it: the logs in which the other one does not."""
    reference = json.loads((data.parent / "reference/drishti/codes.json").read_text())
    logs = {path.name.split(".darshan")[0]: path for path in (data / "darshan").rglob("*.darshan*")}
    found = defaultdict(set)
    for name, entry in reference.items():
        judged = ioprism.insights(ioprism.read(logs[name]))
        ours = {alias for finding in judged.findings for alias in finding.aliases}
        theirs = {f"drishti:{code}" for code in entry["drishti_codes"]}
        for alias in ours - theirs:
            found[alias, "ioprism"].add(name)
        for alias in theirs - ours:
            found[alias, "drishti"].add(name)
    return dict(found)


@pytest.mark.corpus
def test_every_difference_is_listed_with_its_reason(shared_data: Path) -> None:
    listed = tomllib.loads(REVIEWED.read_text())["difference"]
    reviewed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in listed:
        reviewed[entry["alias"], entry["said_by"]] |= set(entry["logs"])

    assert all(len(entry["reason"]) > 20 for entry in listed)
    assert differences(shared_data) == reviewed


def test_every_difference_has_the_numbers_that_decide() -> None:
    listed = tomllib.loads(REVIEWED.read_text())["difference"]
    logs = [(entry["alias"], entry["said_by"], log) for entry in listed for log in entry["logs"]]

    assert all(re.search(r"\d", number) for entry in listed for number in entry["logs"].values())
    assert len(set(logs)) == len(logs)
