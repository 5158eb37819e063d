"""Cut strace's lines into process, time, call, arguments and result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MOST_UNFINISHED = 1_000_000  # calls that wait for their second half
_HEAD = re.compile(
    r"(?:\[pid +(\d{1,18})\] |(\d{1,18}) +)?"
    r"(?:(\d{1,12}\.\d{1,9})|(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)) +"
)
_START = re.compile(
    r"(?:\[pid +\d+\] |\d{1,18} +)?(?:\d{9,12}\.\d{1,9}|\d\d:\d\d:\d\d(?:\.\d{1,9})?) +"
    r"(?:[a-z_][a-z0-9_]*\(|<\.\.\. [a-z]|\+\+\+ |--- )"
)
_CALL = re.compile(r"([a-z_][a-z0-9_]*)\(")
_RESUMED = re.compile(r"<\.\.\. ([a-z_][a-z0-9_]*) resumed>")
_RESULT = re.compile(r"\s*= (\?|-?\d{1,19}|0x[0-9a-f]{1,16})(?:<((?:[^<>]|<[^<>]*>)*)>)?")
_DURATION = re.compile(r"<(\d{1,12}(?:\.\d{1,9})?)>$")
_ENDED = re.compile(r"\+\+\+ (?:exited with \d|killed by SIG|superseded by execve)")
_UNFINISHED = "<unfinished ...>"
NO_PID = 0


class SystemCall(NamedTuple):
    """One call, both halves together."""

    pid: int
    start: float  # seconds, on strace's own clock
    duration: float | None
    name: str
    arguments: str
    result: int | None
    target: str | None  # the path behind the file descriptor it returned


def looks_like_strace(head: str) -> bool:
    """Whether a text begins as strace writes it."""
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    matching = sum(_START.match(line) is not None for line in lines)
    return matching > 0 and matching * 2 > len(lines)


def has_date(head: str) -> bool:
    """Whether the times count from 1970, rather than from midnight."""
    heads = (_HEAD.match(line) for line in head.splitlines())
    return any(match is not None and match[3] is not None for match in heads)


class Calls:
    """Calls out of lines; counts what is no call, and halves without the other half."""

    def __init__(self) -> None:
        self.damaged = 0
        self.running: set[int] = set()  # that made calls and have not ended
        self._waiting: dict[tuple[int, str], tuple[float, str]] = {}

    @property
    def unfinished(self) -> int:
        """How many calls never returned."""
        return len(self._waiting)

    def read(self, lines: Iterable[str]) -> Iterator[SystemCall]:
        """Yield calls in the order in which they returned."""
        for line in lines:
            head = _HEAD.match(line)
            if head is None:
                self.damaged += bool(line.strip())
                continue
            pid = int(head[1] or head[2] or NO_PID)
            text = line[head.end() :].rstrip()
            if text.startswith(("+++", "---")):
                if _ENDED.match(text):
                    self.running.discard(pid)
                continue
            self.running.add(pid)
            call = self._call(pid, _seconds(head), text)
            if call is not None:
                yield call

    def _call(self, pid: int, start: float, text: str) -> SystemCall | None:
        resumed = _RESUMED.match(text)
        if resumed:
            known = self._waiting.pop((pid, resumed[1]), None)
            if known is None:
                self.damaged += 1
                return None
            return self._finished(pid, known[0], resumed[1], known[1] + text[resumed.end() :])
        opened = _CALL.match(text)
        if opened is None:
            self.damaged += 1
            return None
        rest = text[opened.end() :]
        if rest.endswith(_UNFINISHED):
            if len(self._waiting) < MOST_UNFINISHED:
                self._waiting[pid, opened[1]] = (start, rest[: -len(_UNFINISHED)].rstrip())
            return None
        return self._finished(pid, start, opened[1], rest)

    def _finished(self, pid: int, start: float, name: str, rest: str) -> SystemCall | None:
        """Take arguments and result apart: the result stands behind the last bracket."""
        cut = rest.rfind(") ")
        while cut >= 0:  # 0: a call without arguments, such as vfork()
            result = _RESULT.match(rest, cut + 2)
            if result:
                break
            cut = rest.rfind(") ", 0, cut)
        else:
            self.damaged += 1
            return None
        duration = _DURATION.search(rest)
        value = None if result[1] == "?" else _number(result[1])
        seconds = float(duration[1]) if duration else None
        return SystemCall(pid, start, seconds, name, rest[:cut], value, result[2])


def _number(text: str) -> int:
    return int(text, 16 if text.startswith("0x") else 10)  # a damaged line may begin with zeros


def _seconds(head: re.Match[str]) -> float:
    if head[3] is not None:
        return float(head[3])
    return 3600.0 * int(head[4]) + 60.0 * int(head[5]) + float(head[6])
