"""Read LSF's accounting: the JOB_FINISH records of `lsb.acct`.

Fields are separated by blanks and text is in double quotes, with a double quote inside written
twice. Up to the lists of hosts the order of fields has been the same since LSF 6.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.model.counters import EARLIEST, LATEST, SECOND, ReadingOptions, Tally
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, text_lines
from ioprism.servers.job_formats.job_rows import JobRows

SNIFFED = re.compile(rb'^"JOB_FINISH" "[\d.]+" \d+ ', re.MULTILINE)
FIELD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
REPEATED = re.compile(r"(\d+)\*(.+)")
# Places of fields, counted from the record's type.
END, JOB, START, USER, QUEUE, ASKED = 2, 3, 10, 11, 12, 22
USAGE_VALUES = 19  # resource usage between the command and the mail user
DONE = 64


class LsfReader:
    """Reads `lsb.acct`; other records are passed over."""

    name = "lsf"
    title = "LSF accounting records (lsb.acct)"

    def recognises(self, source: Path) -> bool:
        """Whether a line begins as a record of a finished job does. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ran; times in these records need no zone."""
        del options
        rows = JobRows(Budget(source))
        for line in text_lines(source, tally):
            if not line.startswith('"JOB_FINISH"'):
                continue
            try:
                _add(_fields(line), rows, tally)
            except (ValueError, IndexError):
                tally.leave_out(DAMAGED)
        return rows.table()


def _fields(line: str) -> list[str]:
    return [text.replace('""', '"') if word == "" else word for text, word in FIELD.findall(line)]


def _add(fields: list[str], rows: JobRows, tally: Tally) -> None:
    asked = int(fields[ASKED])
    place = ASKED + 1 + _count(asked, fields)
    used = _count(int(fields[place]), fields)
    hosts = list(dict.fromkeys(_host(text) for text in fields[place + 1 : place + 1 + used]))
    after = fields[place + 1 + used :]  # status, host factor, job name, command, usage, mail user
    index = after[2 + 2 + USAGE_VALUES + 6] if len(after) > 2 + 2 + USAGE_VALUES + 6 else "0"
    rows.add(
        tally,
        job=fields[JOB] if index in ("0", "") else f"{fields[JOB]}[{index}]",
        start_us=_moment(fields[START]),
        end_us=_moment(fields[END]),
        servers=hosts,
        nodes=len(hosts) or None,
        user=fields[USER] or None,
        account=after[2 + 2 + USAGE_VALUES + 1] or None if len(after) > 24 else None,
        partition=fields[QUEUE] or None,
        name=after[2] or None,
        state="COMPLETED" if int(after[0]) & DONE else "FAILED",
    )


def _count(number: int, fields: list[str]) -> int:
    """Return how many hosts follow.

    Raises:
        ValueError: more than the record has.
    """
    if not 0 <= number <= len(fields):
        raise ValueError(f"{number} hosts in {len(fields)} fields")
    return number


def _host(text: str) -> str:
    """`4*hostA` is the short form of four slots on one host."""
    repeated = REPEATED.fullmatch(text)
    return repeated[2] if repeated else text


def _moment(text: str) -> int | None:
    time_us = int(text) * SECOND if len(text) < 13 else 0
    return time_us if time_us and EARLIEST <= time_us <= LATEST else None
