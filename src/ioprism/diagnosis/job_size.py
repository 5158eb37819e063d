"""How many processes a job has, where only one of them is in its trace.

Tracers write nothing for processes that make no I/O call: a job whose first process does the I/O
of all looks like a program of one process. Its command line often tells: launchers and scripts
hand every process its own number and how many there are. By convention it is process 0 that does
the I/O of all; another one that is alone in its trace was rather picked out of many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

MOST = 10_000_000  # processes: a larger number counts something else
_NUMBER = r"[-_]?(?:id|index|number)?"
OWN = re.compile(rf"--?(?:local[-_]|global[-_]|mpi[-_])?(?:rank|proc|process|task|worker){_NUMBER}")
ALL = re.compile(
    r"--?(?:(?:world|comm|mpi|job)[-_]?size|(?:num|n|total)?[-_]?"
    r"(?:ranks|procs|processes|nprocs|ntasks|tasks|workers)|nproc)"
)


def processes_said(command: str | None, paths: Iterable[str]) -> int | None:
    """Return the number of processes that the first one's command line tells; None if it does not.

    Args:
        command: program and arguments, separated by blanks.
        paths: files that the process writes. Two neighbouring numbers are its own number, 0, and
            that of all only if a file that it writes carries the former in its name.
    """
    words = (command or "").replace("=", " ").split()
    own, number = _option(words, OWN), _option(words, ALL)
    if own == 0 and number is not None and number <= MOST:
        return number
    if not any(int(digits) == 0 for path in paths for digits in re.findall(r"\d+", _name(path))):
        return None
    pairs = [(int(a), int(b)) for a, b in pairwise(words) if a.isdecimal() and b.isdecimal()]
    return next((second for first, second in pairs if first == 0 < second <= MOST), None)


def _option(words: list[str], wanted: re.Pattern[str]) -> int | None:
    """The number behind the first option of a name."""
    for word, value in pairwise(words):
        if wanted.fullmatch(word.lower()) and value.isdecimal():
            return int(value)
    return None


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
