"""What is taken in together counts as if it had come one by one."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ioprism.live.intake import Intake, Jobs, Message
from ioprism.live.metrics import Counts, Latency
from ioprism.periodicity.tracker import TrackerSettings
from tests.formats.signals.test_flat_map import backwards
from tests.live.running import burst


def intake(*, largest: int = 10_000) -> tuple[Intake, Jobs]:
    counts = Counts()
    jobs = Jobs(settings=TrackerSettings(), counts=counts, most=10, expire=60.0, still_sends=60.0)
    return Intake(jobs, counts, direction="both", largest=largest), jobs


def mixed() -> list[Message]:
    """Good messages of two jobs, and between them those of the same length that are none."""
    good = [burst(10.0 * number, job="ab"[number % 3 == 2]) for number in range(12)]
    damaged = bytearray(burst(500.0, job="a"))
    damaged[-9] = 0xC1
    again = [good[3], bytes(damaged), b"x" * 20_000, b"\xc1" * len(good[0])]
    return [Message("job", raw) for raw in [*good[:6], *again, *good[6:]]]


def test_a_batch_counts_as_its_messages_one_by_one() -> None:
    (together, jobs), (single, others) = intake(), intake()
    counted = together.receive(mixed(), arrived=1.0)
    one_by_one = [one for each in mixed() for one in single.receive([each], arrived=1.0)]
    together.finalize()
    single.finalize()

    assert counted == one_by_one
    assert len(counted) == 12
    assert together.counts == single.counts
    assert (together.counts.malformed, together.counts.duplicates) == (2, 1)
    assert together.counts.oversized == 1
    for job, other in zip(jobs, others, strict=True):
        assert (job.name, job.messages, job.ranks) == (other.name, other.messages, other.ranks)
        assert job.tracker.ring.total == pytest.approx(other.tracker.ring.total)
        assert np.allclose(job.tracker.signal().values, other.tracker.signal().values)


def test_messages_wait_from_their_arrival() -> None:
    taking, jobs = intake()
    taking.receive([Message("job", burst(0.0)), Message("job", burst(10.0))], arrived=3.0)
    taking.receive([Message("job", burst(20.0))], arrived=4.0)
    (job,) = jobs

    assert job.waiting == {3.0: 2, 4.0: 1}


def test_a_job_is_heard_of_when_its_message_is_taken_however_long_that_waited() -> None:
    taking, jobs = intake()
    now = time.monotonic()
    taking.receive([Message("late", burst(0.0))], arrived=now - 1000.0)
    taking.receive([Message("early", burst(10.0))], arrived=now - 2000.0)
    heard = [job.heard for job in jobs]

    assert now <= heard[0] <= heard[1]
    assert jobs.expire(time.monotonic()) == []
    assert jobs.expire(heard[0] + 61.0) == ["late", "early"]


def test_equal_messages_of_two_jobs_both_count() -> None:
    taking, jobs = intake()
    raw = burst(0.0)
    counted = taking.receive([Message("a", raw), Message("b", raw), Message("a", raw)], arrived=0.0)

    assert counted == [Message("a", raw), Message("b", raw)]
    assert [job.name for job in jobs] == ["a", "b"]
    assert taking.counts.duplicates == 1


def test_where_a_name_ends_and_its_message_begins_is_part_of_what_they_are() -> None:
    taking, _ = intake()
    raw = burst(0.0)
    taking.receive(
        [Message("a", raw + b"b"), Message("ab", raw), Message("b", raw + b"a")], arrived=0.0
    )

    assert taking.counts.duplicates == 0


def test_a_run_of_messages_made_to_do_harm_is_only_malformed() -> None:
    taking, jobs = intake()
    harmful = [Message("job", backwards(last)) for last in range(1, 6)]
    counted = taking.receive([*harmful, Message("job", burst(0.0))], arrived=0.0)

    assert counted == [Message("job", burst(0.0))]
    assert taking.counts.malformed == 5
    assert len(jobs) == 1


def test_latencies_fall_into_their_buckets() -> None:
    latency = Latency()
    latency.record(0.004, messages=3)
    latency.record(2.0)

    assert (latency.count, latency.buckets[2], latency.buckets[-1]) == (4, 3, 1)
    assert latency.total == pytest.approx(2.012)
    assert latency.longest == 2.0
