"""A rule of a site: jobs keep their data on the scratch file system, not in home directories."""

from __future__ import annotations

from pathlib import Path

from ioprism import Severity
from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.rule import Answer, Hit, Rule, by_file, file_details, share

HOME = "/home/"
MOST = 0.1  # of the bytes: less is configuration files and the like


def data_in_home(evidence: Evidence) -> Answer:
    """Much of the data lies in home directories."""
    sizes: dict[int, float] = {}
    moved, seconds = 0, 0.0
    for layer in evidence.base_layers:
        usage = evidence.usages[layer]
        at_home = {file for file in usage.file if _path(evidence, file).startswith(HOME)}
        sizes |= by_file(usage, usage.bytes, only=at_home)
        moved += sum(usage.bytes)
        times = zip(usage.seconds, usage.file, strict=True)
        seconds += evidence.held_up(usage, [time if file in at_home else 0 for time, file in times])
    part = share(sum(sizes.values()), moved)
    if part <= MOST:
        return None
    details, rows = file_details(evidence, sizes, dict.fromkeys(sizes, moved))
    return Hit({"bytes": sum(sizes.values()), "share": part}, seconds, details, files=rows)


def _path(evidence: Evidence, file: int) -> str:
    return evidence.files.path(file) or ""  # a log may leave out a name


RULES = (
    Rule(
        code="example-data-in-home",  # a prefix of your own: codes are never reused
        level=Severity.HIGH,
        interface="posix",
        check=data_in_home,
        advice=str(Path(__file__).parent / "data-in-home"),  # .toml: its words
    ),
)
