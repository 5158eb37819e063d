"""Plain text in FTIO's own form: named lists of numbers, or columns under such names.

Lists are those of FTIO's example files, one a line::

    avg_thruput_mib: [0.0, 1000.0]
    start_t_micro: [500, 10500]
    end_t_micro: [5000, 15000]

Columns have the same names, or those of TMIO, in their first line::

    t_rank_s t_rank_e b_rank_avr
    0.5      5.0      1.0e9
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ioprism.formats.signals.build import Content, Intervals, build_trace, interval_bytes
from ioprism.formats.signals.documents import broken, head
from ioprism.formats.text import TORN_END, ends_torn
from ioprism.model.signal import FloatArray
from ioprism.model.trace import Completeness, Trace

MICRO, MEBI = 1e-6, 2.0**20
# What a column is, and what makes it seconds, bytes, or bytes per second.
STARTS = {"start_t_micro": MICRO, "t_rank_s": 1.0}
ENDS = {"end_t_micro": MICRO, "t_rank_e": 1.0}
SIZES = {"req_size": 1.0}
RATES = {"avg_thruput_mib": MEBI, "avg_throughput_mib": MEBI, "b_rank_avr": 1.0, "b_rank_sum": 1.0}
NAMES = (*STARTS, *ENDS, *SIZES, *RATES)
# Blank lines are not part of the indentation: each of them would be looked through again and again.
NAME = r"^(?:[^\S\n]|[\"'])*(\w+)[\"']?\s*[:=]\s*\["
LIST = re.compile(rf"{NAME}([^\]]*)\]", re.MULTILINE)
SEPARATORS = re.compile(r"[,;\s]+")
DIRECTION = re.compile(
    r"^[^\S\n]*(?:io_type|operation)\s*[:=]\s*[\"']?(r|w|read|write)\b", re.MULTILINE
)


class FtioTextReader:
    """Reads texts with FTIO's names."""

    name = "ftio-text"
    title = "plain text with FTIO's names (.txt): lists or columns"
    tells = frozenset({"calls"})

    def recognises(self, source: Path) -> bool:
        """Whether the text has a start, an end, and a size or rate by name. Never raises."""
        start = head(source)
        if start.lstrip()[:1] in (b"{", b"[") or b"\0" in start:
            return False
        return _is_complete(_names_in(start.decode("utf-8", "replace")))

    def read(self, source: Path) -> Trace:
        """Read the requests."""
        text = source.read_text(encoding="utf-8", errors="replace")
        try:
            columns = _lists(text) or _table(text)
            content = Content([_intervals(columns, text)])
        except (ValueError, KeyError, OverflowError) as error:
            raise broken(source, f"its columns cannot be read ({error})") from error
        completeness = Completeness()
        if ends_torn(source):
            completeness.warn(f"{source.name}: {TORN_END}")
        return build_trace(source, content, completeness, name=self.name)


def _is_complete(names: set[str]) -> bool:
    return bool(names & set(STARTS) and names & set(ENDS) and names & {*SIZES, *RATES})


def _names_in(text: str) -> set[str]:
    """The known names at the beginnings of lines, and those of a first line of columns."""
    lists = set(re.findall(NAME, text, re.MULTILINE))
    return (lists | set(_header(text))) & set(NAMES)


def _header(text: str) -> list[str]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return SEPARATORS.split(first.strip().lstrip("# "))


def _lists(text: str) -> dict[str, FloatArray]:
    lists = {name: numbers for name, numbers in LIST.findall(text) if name in NAMES}
    return {name: _floats(SEPARATORS.split(numbers.strip())) for name, numbers in lists.items()}


def _table(text: str) -> dict[str, FloatArray]:
    names = _header(text)
    lines = [line for line in text.splitlines() if line.strip()][1:]
    rows = [SEPARATORS.split(line.strip()) for line in lines if not line.lstrip().startswith("#")]
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"not every line has {len(names)} columns")
    return {
        name: _floats([row[place] for row in rows])
        for place, name in enumerate(names)
        if name in NAMES
    }


def _floats(words: list[str]) -> FloatArray:
    return np.array([float(word) for word in words if word], dtype=np.float64)


def _intervals(columns: Mapping[str, FloatArray], text: str) -> Intervals:
    start, end = _chosen(columns, STARTS), _chosen(columns, ENDS)
    if set(columns) & set(SIZES):
        moved = _chosen(columns, SIZES)
    else:
        moved = interval_bytes(_chosen(columns, RATES), start, end)
    if not len(start) == len(end) == len(moved):
        raise ValueError(f"{len(start)} starts, {len(end)} ends and {len(moved)} sizes")
    said = DIRECTION.search(text)
    operation = "other" if said is None else {"r": "read", "w": "write"}[said.group(1)[0]]
    return Intervals(start, end, moved, operation)


def _chosen(columns: Mapping[str, FloatArray], known: Mapping[str, float]) -> FloatArray:
    name = next((name for name in known if name in columns), None)
    if name is None:
        raise ValueError(f"none of {', '.join(known)} is there")
    return columns[name] * known[name]
