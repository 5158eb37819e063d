"""Read measured writes from a file, whichever of the known formats it has."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from ioprism.errors import BrokenTraceError, TraceError, UsageError
from ioprism.formats.budget import Budget
from ioprism.formats.files import check_readable
from ioprism.model.samples import Run, WritePattern, parse_node_list
from ioprism.text import printable
from ioprism.write_time.sample_formats.ior import read_ior_json, read_ior_text

GZIP = b"\x1f\x8b"
LARGEST_TEXT = 256 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a file says, and what of it was left out."""

    format: str
    runs: tuple[Run, ...]
    warnings: tuple[str, ...]
    content: bytes


def read_runs(source: Path, *, skip_bad: bool = False) -> RunFile:
    """Read a CSV table of runs, or IOR's results as JSON or text; the content decides.

    Raises:
        BrokenTraceError: rows are bad, and not to be skipped.
        TraceError: there is no such file, its format is not known, or it holds no usable run.
    """
    if not source.exists():
        raise TraceError(
            "no such file.\nHint: give a table of runs, or IOR's results.", source=source
        )
    if source.is_dir():
        raise TraceError("this is a folder.\nHint: name one file of runs.", source=source)
    check_readable(source)
    content = source.read_bytes()
    text = _text(content, source)
    recognised = _reader(text)
    if recognised is None:
        raise TraceError(
            "this is neither a table of runs nor IOR's results.\n"
            "Hint: a table starts with the line pattern,nodes,cores_per_node,burst_bytes,"
            "stripe_bytes,stripe_count,node_list,seconds.",
            source=source,
        )
    name, read = recognised
    runs, warnings = read(text, source, skip_bad)
    if not runs:
        raise TraceError(
            "it contains no runs.\nHint: IOR must have written one file per process (-F -w).",
            source=source,
        )
    return RunFile(name, tuple(runs), tuple(warnings), content)


def _text(content: bytes, source: Path) -> str:
    try:
        plain = _inflated(content, source) if content.startswith(GZIP) else content
        return plain.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BrokenTraceError(
            f"the file is damaged or not text ({error}).\nHint: create it again.", source=source
        ) from error


def _inflated(content: bytes, source: Path) -> bytes:
    with gzip.open(BytesIO(content)) as file:
        plain = file.read(LARGEST_TEXT + 1)
    if len(plain) > LARGEST_TEXT:
        raise BrokenTraceError(
            f"its {len(content):,} compressed bytes unpack to more than {LARGEST_TEXT:,}.\n"
            "Hint: give the runs in several files.",
            source=source,
        )
    return plain


Read = Callable[[str, Path, bool], tuple[list[Run], list[str]]]


def _reader(text: str) -> tuple[str, Read] | None:
    start = text.lstrip()
    if start.startswith("{"):
        return "ior-json", read_ior_json
    first = start.partition("\n")[0]
    if "seconds" in first and "burst_bytes" in first:
        return "csv", read_table
    if "IOR" in start[:2000] and "xfer" in start:
        return "ior-text", read_ior_text
    return None


BYTES_OF_RUN = 600  # that a run and its pattern take
BYTES_OF_NODE = 40  # that a number takes in a list
NEEDED = ("nodes", "cores_per_node", "burst_bytes", "seconds")
SHOWN = 3  # bad rows named in a message


def read_table(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read every row; refuse the table if one is bad, unless bad rows are to be skipped."""
    rows = csv.DictReader(text.splitlines(), restval=None)
    missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise BrokenTraceError(
            f"the columns {', '.join(missing)} are missing.\n"
            "Hint: the first line must name nodes, cores_per_node, burst_bytes and seconds.",
            source=source,
        )
    runs: list[Run] = []
    bad: list[str] = []
    lists: dict[str, tuple[int, ...]] = {}
    budget = Budget(source)
    while True:
        try:
            budget.take(BYTES_OF_RUN, "the runs")
            runs.append(_run(next(rows), lists, budget))
        except StopIteration:
            break
        except (csv.Error, ValueError, UsageError) as error:
            reason = str(error).partition("\n")[0]
            bad.append(f"line {rows.line_num}: {printable(reason)}")
    if bad and not skip_bad:
        raise BrokenTraceError(
            f"{len(bad)} of {len(runs) + len(bad)} rows are bad; nothing was imported "
            f"({'; '.join(bad[:SHOWN])}{'; …' if len(bad) > SHOWN else ''}).\n"
            "Hint: correct them, or use --skip-bad to import the others.",
            source=source,
        )
    return runs, [f"skipped {entry}" for entry in bad]


def _run(row: Mapping[str, str | None], lists: dict[str, tuple[int, ...]], budget: Budget) -> Run:
    text = row.get("node_list") or ""
    if text and text not in lists:
        lists[text] = parse_node_list(text)
        budget.take(BYTES_OF_NODE * len(lists[text]), "the lists of nodes")
    pattern = WritePattern(
        nodes=_count(row, "nodes"),
        cores_per_node=_count(row, "cores_per_node"),
        burst_bytes=_count(row, "burst_bytes"),
        stripe_bytes=_count(row, "stripe_bytes") if row.get("stripe_bytes") else None,
        stripe_count=_count(row, "stripe_count") if row.get("stripe_count") else None,
        node_list=lists[text] if text else None,
        label=row.get("pattern") or "",
    )
    if pattern.node_list is not None and len(pattern.node_list) != pattern.nodes:
        raise ValueError(f"{len(pattern.node_list)} nodes listed, but nodes is {pattern.nodes}")
    return Run(pattern, _seconds(row.get("seconds")))


def _count(row: Mapping[str, str | None], name: str) -> int:
    text = (row.get(name) or "").strip()
    if not text:
        raise ValueError(f"{name} is missing")
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}, not a whole number") from None
    if not 1 <= value <= 10**18:
        raise ValueError(f"{name} is {value}, not a positive number in range")
    return value


def _seconds(text: str | None) -> float:
    if not (text or "").strip():
        raise ValueError("seconds is missing")
    try:
        value = float(text or "")
    except ValueError:
        raise ValueError(f"seconds is {(text or '')[:40]!r}, not a number") from None
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"seconds is {value:g}, not positive")
    return value
