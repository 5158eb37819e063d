"""Which calls a finding is about, as conditions that a picture can test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from ioprism.diagnosis.rules.registry import all_rules
from ioprism.diagnosis.rules.rule import WHOLE_JOB, CallKind
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import LAYERS, Trace, deepest
from ioprism.model.verdict import Cause, Finding
from ioprism.views.timeline import Timeline

Show = dict[str, Any]

SMALL = 2**20
MOST_FILES = 2000  # that a cause lights


def _kind(finding: Finding) -> CallKind:
    kinds = {rule.code: rule.call_kind for rule in all_rules()}
    return kinds.get(finding.code, WHOLE_JOB if finding.code == "periodic-io" else CallKind())


def concern(finding: Finding, shown: Timeline, files: Mapping[str, int]) -> Show | None:
    """Return the conditions for a finding's calls, or None if the picture has none of them."""
    if _kind(finding).whole_job or not shown.marks.height:
        return None
    show: Show = {**_kinds(finding), **_ranks(finding), **_places(finding, files)}
    present = set(shown.marks["layer"].unique().cast(pl.String))
    if finding.interface in present and len(present) > 1:
        show["layers"] = [finding.interface]
    if not set(show) - {"layers"} and len(present) < 2:
        return None
    return show if show and bool(shown.marks.select(_test(show).any()).item()) else None


def cause_concern(cause: Cause, shown: Timeline, trace: Trace) -> Show | None:
    """Return the conditions for the calls that a cause slows down, or None if none is drawn."""
    culprit = cause.culprit
    show: Show = {}
    targets = [culprit["target"]] if "target" in culprit else culprit.get("targets")
    if targets and not isinstance(targets[0], str):
        show["targets"] = [int(target) for target in targets]
    if "host" in culprit:
        show["ranks"] = trace.processes.filter(host=culprit["host"])["rank"].unique().to_list()
    ranks = culprit.get("ranks") or ([culprit["rank"]] if "rank" in culprit else None)
    if ranks:
        show["ranks"] = [int(rank) for rank in ranks]
    under = culprit.get("file") or culprit.get("directory")
    if under and "targets" not in show:
        inside = (pl.col("path") == under) | pl.col("path").str.starts_with(f"{under}/")
        show["files"] = trace.files.filter(inside)["file"].to_list()[:MOST_FILES]
    if "bytes_per_request" in culprit and cause.facts.get("direction") in OPERATIONS:
        # Requests below a block that reach storage; calls of libraries above are not the cause.
        show |= {"operations": [cause.facts["direction"]], "below": SMALL}
        show["layers"] = list(deepest(shown.marks["layer"].unique().cast(pl.String)))
    if "from" in culprit and "to" in culprit:
        show["times"] = [[float(culprit["from"]), float(culprit["to"])]]
    seen = {key: value for key, value in show.items() if key != "targets"}
    drawn = shown.marks.height > 0 and bool(show)
    return show if drawn and bool(shown.marks.select(_test(seen).any()).item()) else None


def _kinds(finding: Finding) -> Show:
    kind = _kind(finding)
    show: Show = {}
    if kind.operations != OPERATIONS:
        show["operations"] = list(kind.operations)
    if kind.small:
        show["below"] = finding.threshold.get("small_bytes", SMALL)
    if kind.misaligned:
        show["misaligned"] = int(finding.evidence.get("alignment", 0)) or 4096
    return show


def _ranks(finding: Finding) -> Show:
    """The ranks it names, or the slowest rank of each phase it names."""
    rows = [row for row in finding.details if isinstance(row.get("rank"), int)]
    if rows and all("start" in row and "end" in row for row in rows):
        return {"slowest": [[row["start"], row["end"], row["rank"]] for row in rows]}
    named = finding.subject.name or ""
    if finding.subject.kind in ("rank", "ranks") and named:
        ranks = [
            int(part) for part in named.replace("rank", "").split(",") if part.strip().isdigit()
        ]
        if ranks:
            return {"ranks": ranks}
    return {"ranks": sorted({row["rank"] for row in rows})} if rows else {}


def _places(finding: Finding, files: Mapping[str, int]) -> Show:
    if finding.code.startswith("bottleneck-"):
        return _record(finding, files)
    named = [str(row["file"]) for row in finding.details if row.get("file")]
    rows = [files[name] for name in named if name in files]
    # Small requests and the like are everywhere, not in the worst files alone.
    return {"files": rows} if rows and len(rows) < 10 and "below" not in _kinds(finding) else {}


def _record(finding: Finding, files: Mapping[str, int]) -> Show:
    record = finding.details[0]
    show: Show = {}
    name, folder = str(record.get("file", "")), record.get("directory")
    if name in files:
        show["files"] = [files[name]]
    elif folder:
        show["files"] = [row for path, row in files.items() if path.rpartition("/")[0] == folder]
    rank = re.match(r"rank (\d+)", str(record.get("process", "")))
    if rank:
        show["ranks"] = [int(rank[1])]
    time = record.get("time")
    if isinstance(time, int | float):
        show["times"] = [[time, time + 1]]
    return show


def _any_of(column: str, names: list[str], known: tuple[str, ...]) -> pl.Expr:
    """Whether a column holds one of these; numbers are compared far quicker than names."""
    numbers = [known.index(name) for name in names]
    return pl.col(column).to_physical().is_in(numbers)


def _test(show: Show) -> pl.Expr:
    """Whether a mark is concerned: the same conditions that the page tests."""
    tests = [pl.lit(True)]
    if "layers" in show:
        tests.append(_any_of("layer", show["layers"], LAYERS))
    if "operations" in show:
        tests.append(_any_of("operation", show["operations"], OPERATIONS))
    if "ranks" in show:
        tests.append(pl.col("rank").is_in(show["ranks"]))
    if "files" in show:
        tests.append(pl.col("file").is_in(show["files"]))
    if "below" in show:
        size = pl.col("bytes") / pl.max_horizontal("calls", pl.lit(1))
        tests.append((pl.col("bytes") > 0) & (size < show["below"]))
    if "misaligned" in show:
        tests.append(pl.col("offset") % show["misaligned"] != 0)
    return pl.all_horizontal(tests)
