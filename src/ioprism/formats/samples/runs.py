"""Read measured writes from a file, whichever of the known formats it has."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from ioprism.errors import BrokenTraceError, TraceError
from ioprism.formats.samples.ior import read_ior_json, read_ior_text
from ioprism.formats.samples.table import read_table
from ioprism.model.samples import Run

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
    content = source.read_bytes()
    text = _text(content, source)
    found = _reader(text)
    if found is None:
        raise TraceError(
            "this is neither a table of runs nor IOR's results.\n"
            "Hint: a table starts with the line pattern,nodes,cores_per_node,burst_bytes,"
            "stripe_bytes,stripe_count,node_list,seconds.",
            source=source,
        )
    name, read = found
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
