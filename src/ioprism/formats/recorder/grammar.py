"""Unfold the grammars in which Recorder keeps the order of calls.

A rule is a list of symbols with repetitions; a symbol is a call signature or another rule.
A small damaged grammar can stand for more calls than any memory holds, so that lengths are
computed first and bounded by the number of timestamps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

START = -1
Numbers = npt.NDArray[np.int32]


class DamagedGrammarError(ValueError):
    """The grammar refers to rules that do not exist, to itself, or to too many calls."""


def read_rules(data: bytes) -> dict[int, Numbers]:
    """Return symbol and repetition pairs by rule."""
    numbers = np.frombuffer(data, "<i4", len(data) // 4)
    if not len(numbers):
        raise DamagedGrammarError("it is empty")
    rules: dict[int, Numbers] = {}
    at = 1
    for _ in range(int(numbers[0])):
        if at + 2 > len(numbers):
            raise DamagedGrammarError("a rule is cut off")
        rule, symbols = int(numbers[at]), int(numbers[at + 1])
        at += 2
        if symbols < 0 or at + 2 * symbols > len(numbers):
            raise DamagedGrammarError("a rule is cut off")
        rules[rule] = numbers[at : at + 2 * symbols].reshape(-1, 2)
        at += 2 * symbols
    return rules


def unfold(rules: dict[int, Numbers], *, limit: int) -> Numbers:
    """Return the signatures' numbers in the order of the calls; at most `limit` of them.

    Raises:
        DamagedGrammarError: the grammar makes no sense, or stands for more calls.
    """
    order = _order(rules)
    lengths: dict[int, int] = {}
    for rule in order:
        body = rules[rule]
        counts = body[:, 1].astype(object).clip(min=0)
        sizes = [1 if s >= 0 else lengths[s] for s in body[:, 0].tolist()]
        lengths[rule] = sum(int(c) * size for c, size in zip(counts, sizes, strict=True))
        if lengths[rule] > limit:
            raise DamagedGrammarError(f"it expands to more than the {limit} calls that have times")
    if sum(lengths.values()) > 16 * limit + 2**20:
        raise DamagedGrammarError("its rules repeat each other too often")
    unfolded: dict[int, Numbers] = {}
    for rule in order:
        unfolded[rule] = _body(rules[rule], unfolded)
    return unfolded[START]


def _body(body: Numbers, unfolded: dict[int, Numbers]) -> Numbers:
    symbols, counts = body[:, 0], body[:, 1].clip(min=0)
    parts = []
    done = 0
    for place in np.flatnonzero(symbols < 0).tolist():
        parts.append(np.repeat(symbols[done:place], counts[done:place]))
        parts.append(np.tile(unfolded[int(symbols[place])], int(counts[place])))
        done = place + 1
    parts.append(np.repeat(symbols[done:], counts[done:]))
    return np.concatenate(parts)


def _order(rules: dict[int, Numbers]) -> list[int]:
    """The rules that the start rule needs, each after those it is made of."""
    finished: dict[int, None] = {}
    open_rules: dict[int, None] = {}
    waiting = [START]
    while waiting:
        rule = waiting[-1]
        if rule in finished:
            waiting.pop()
            continue
        if rule in open_rules:
            finished[rule] = None
            del open_rules[rule]
            waiting.pop()
            continue
        if rule not in rules:
            raise DamagedGrammarError(f"rule {rule} is missing")
        open_rules[rule] = None
        symbols = rules[rule][:, 0]
        needed = [s for s in np.unique(symbols[symbols < 0]).tolist() if s not in finished]
        if any(s in open_rules for s in needed):
            raise DamagedGrammarError("a rule contains itself")
        waiting += needed
    return list(finished)
