"""A slow storage target shows without a layout, where files of each phase meet it by chance."""

from __future__ import annotations

from typing import Any

import pytest

import ioprism
from tests.call_tables import calls, trace_of

RANKS, MIB = 8, 2**20
SLOW = ((1, 4), (0, 6), (3,), (2, 5), (7, 1), (4,))  # ranks whose new file is on the slow target


def checkpoints(slow: tuple[tuple[int, ...], ...], *, sync: bool = True) -> ioprism.Diagnosis:
    """Each rank writes a new file in each step; the slow target serves one file at a time."""
    rows: list[dict[str, Any]] = []
    start = 1.0
    for step, hit in enumerate(slow):
        ends = []
        for rank in range(RANKS):
            file, queue = step * RANKS + rank, 1 + hit.index(rank) if rank in hit else 0
            seconds = 0.05 + 0.004 * ((rank * 5 + step * 3) % 7) + 0.4 * queue
            write, rest = (0.01, seconds - 0.01) if sync else (seconds, 0.0)
            base = {"process": rank, "file": file}
            rows += [
                base | {"start": start + i * write / 3, "seconds": write / 3, "operation": "write",
                        "bytes": MIB, "offset": i * MIB}
                for i in range(3)
            ]  # fmt: skip
            if sync:
                rows.append(
                    base | {"start": start + write, "seconds": rest, "operation": "sync",
                            "function": "fsync"}
                )  # fmt: skip
            ends.append(start + seconds)
        start = max(ends) + 0.5
    return ioprism.diagnose(trace_of(calls(rows), processes=RANKS))


def test_files_on_a_slow_target_are_named_though_ranks_change() -> None:
    verdict = checkpoints(SLOW)

    cause = verdict.causes[0]
    expected = 0.4 * sum(len(hit) for hit in SLOW)
    assert cause.code == "slow-target"
    assert "{" not in cause.title + "".join(advice.text for advice in cause.advice)
    assert cause.saving.seconds == pytest.approx(expected, rel=0.15)
    assert cause.saving.low <= expected <= cause.saving.high
    assert all(one.code != "slow-target" for one in verdict.not_checked)


def test_one_incident_is_not_a_slow_target() -> None:
    verdict = checkpoints(((), (), (2, 5), (), (), ()))

    assert all(cause.code != "slow-target" for cause in verdict.causes)


def test_ranks_that_queue_for_one_server_are_not_on_a_slow_target() -> None:
    everyone = tuple(tuple((rank + step) % RANKS for rank in range(RANKS)) for step in range(6))

    verdict = checkpoints(everyone)

    assert all(cause.code != "slow-target" for cause in verdict.causes)


def test_writes_that_a_cache_may_have_taken_prove_nothing() -> None:
    verdict = checkpoints(SLOW, sync=False)

    assert all(cause.code != "slow-target" for cause in verdict.causes)


def test_ranks_are_compared_though_some_make_a_call_or_two_more() -> None:
    rows: list[dict[str, Any]] = []
    for step in range(5):
        for rank in range(RANKS):
            slow, start = rank in (3, 7), 1.0 + 2.0 * step
            requests = 33 if slow else 31  # on both sides of a power of two
            size = 33 * 31 * 2**10
            rows += [
                {"process": rank, "file": rank, "start": start + 1e-4 * number, "seconds": 1e-5,
                 "operation": "write", "bytes": size // requests, "offset": number * size}
                for number in range(requests)
            ]  # fmt: skip
            rows.append(
                {"process": rank, "file": rank, "start": start + 0.01, "operation": "sync",
                 "seconds": 0.05 + 0.002 * ((rank + step) % 5) + 0.5 * slow, "function": "fsync"}
            )  # fmt: skip

    cause = ioprism.diagnose(trace_of(calls(rows), processes=RANKS)).causes[0]

    assert (cause.code, cause.culprit["ranks"]) == ("slow-rank", [3, 7])
    assert cause.saving.seconds == pytest.approx(5 * 0.5, rel=0.2)
