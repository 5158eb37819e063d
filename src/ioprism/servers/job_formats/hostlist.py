"""Expand the short form of host names that schedulers write: `node[01-03,7],login1`."""

from __future__ import annotations

import re
from functools import lru_cache

MOST_HOSTS = 200_000
LONGEST_NAME = 253  # characters, as the domain name system allows
CACHED_LISTS = 64  # each may name 200,000 hosts; the same list comes up many times in a row
NOBODY = frozenset({"", "none assigned", "(null)", "none", "null", "unknown"})
RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
PIECE = re.compile(r"([^\[\],]*)(?:\[([^\[\]]*)\])?")


class HostlistError(ValueError):
    """The text is no list of hosts, or names more than any machine has."""


@lru_cache(maxsize=CACHED_LISTS)
def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts in the order written, each once; none for `None assigned` and the like.

    Raises:
        HostlistError: brackets do not match, a range runs backwards, or it has no end.
    """
    if text.strip().lower() in NOBODY:
        return ()
    hosts: dict[str, None] = {}
    for word in _words(text.strip()):
        hosts.update(dict.fromkeys(_expand_word(word)))
        _limit(len(hosts))
    return tuple(hosts)


def _words(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    words, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise HostlistError(f"the brackets of {text[:80]!r} do not match")
        if character == "," and depth == 0:
            words.append(text[start:place])
            start = place + 1
    if depth:
        raise HostlistError(f"the brackets of {text[:80]!r} do not match")
    return [word for word in [*words, text[start:]] if word]


def _expand_word(word: str) -> list[str]:
    """Expand every bracket of one word; the last changes fastest."""
    names = [""]
    for piece in PIECE.finditer(word):
        prefix, ranges = piece.groups()
        if len(names[0]) + len(prefix) > LONGEST_NAME:
            raise HostlistError(f"a host of {word[:80]!r} has an implausibly long name")
        endings = [prefix] if ranges is None else [prefix + n for n in _numbers(ranges)]
        _limit(len(names) * len(endings))
        names = [name + ending for name in names for ending in endings]
    return names


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for one in ranges.split(","):
        match = RANGE.fullmatch(one.strip())
        if match is None:
            raise HostlistError(f"{one[:80]!r} is not a range of numbers")
        first, last = match[1], match[2] or match[1]
        _limit(int(last) - int(first) + 1)
        if int(last) < int(first):
            raise HostlistError(f"the range {one!r} runs backwards")
        width = len(first) if first.startswith("0") or len(first) == len(last) else 0
        numbers += [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
        _limit(len(numbers))
    return numbers


def _limit(count: int) -> None:
    if count > MOST_HOSTS:
        raise HostlistError(f"it names {count} hosts; more than {MOST_HOSTS} are implausible")
