"""Sentences about a whole machine, shared by terminal, JSON and page."""

from __future__ import annotations

from collections.abc import Mapping

from ioprism.servers.fleet import DOMINANT, SMALL_REQUEST, Contact, DirectionTotals, Fleet, Trend
from ioprism.servers.interference import SIGNIFICANCE, Application, Disturbance
from ioprism.units import format_bytes, format_count, format_counted

REASONS = {
    "small_requests": f"requests smaller than {format_bytes(SMALL_REQUEST)} on average",
    "one_server_at_a_time": "uses only one of its servers at a time",
    "disturbs_others": "slows others down on the same servers",
}
KNOWN_AS = {
    "exclusive": "alone on their servers",
    "measured": "counted by the servers themselves",
    "split": "on shared servers: bytes are split {split}, intensities are the servers'",
    "marked": "on shared servers: those bytes are not attributed",
    "unknown": "without a server that has counters",
}


def dominance(fleet: Fleet) -> str:
    """Say whether the machine mostly reads or writes."""
    share = fleet.write_share
    if share is None:
        return "Nothing was read or written."
    if 1 - DOMINANT < share < DOMINANT:
        return f"Reads and writes are balanced: {share:.0%} of the bytes are written."
    direction, part = ("Write", share) if share >= DOMINANT else ("Read", 1 - share)
    verb = "written" if direction == "Write" else "read"
    return f"{direction}-dominated: {part:.0%} of the bytes are {verb}."


def whose(totals: DirectionTotals) -> str:
    """Say how much of the bytes belongs to whom; the three numbers add up."""
    return (
        f"{format_bytes(totals.attributed)} attributed, {format_bytes(totals.shared)} shared, "
        f"{format_bytes(totals.unattributed)} unattributed"
    )


def small_requests(totals: DirectionTotals) -> str:
    """Say how many requests are small."""
    if totals.small_share is None:
        return "operations are not counted"
    limit = format_bytes(SMALL_REQUEST)
    return f"{totals.small_share:.0%} of operations (mean below {limit} in a step)"


def attribution(counts: Mapping[str, int], split: str) -> list[str]:
    """Say how the jobs' bytes are known.

    Args:
        counts: jobs by attribution.
        split: how shared bytes were split.
    """
    return [
        f"{format_counted(count, 'job')} {KNOWN_AS[name].format(split=split)}"
        for name, count in counts.items()
        if count
    ]


def change(monthly: Trend) -> str:
    """Say how the last month compares with the one before."""
    if monthly.compared is None:
        return "Fewer than two months with a week of counters: no trend."
    month = next(month for month in monthly.months if month.month == monthly.compared[1])
    words = [
        f"{direction} {value:+.0%}"
        for direction, value in month.change.items()
        if value is not None
    ]
    return (
        f"Bytes per day, {monthly.compared[1]} against {monthly.compared[0]}: {', '.join(words)}."
    )


def who(application: Application) -> str:
    """Name an application."""
    return f"{application.name or 'unnamed'} ({application.user or 'unknown'})"


def disturbance(pair: Disturbance) -> str:
    """Say how fast one application is beside another."""
    what = "takes" if pair.measure == "run_time" else "moves data"
    how = (
        f"{pair.slowdown:.2f} times as long"
        if what == "takes"
        else f"{pair.slowdown:.2f} times slower"
    )
    sure = (
        f"p = {pair.adjusted:.2g}" if pair.certain else f"may be chance (p = {pair.adjusted:.2g})"
    )
    return f"{who(pair.application)} {what} {how} beside {who(pair.neighbour)}; {sure}"


def interference(pairs: tuple[Disturbance, ...]) -> str:
    """Say what was looked at, and with which test."""
    if not pairs:
        return "No two applications met on the same servers often enough to compare."
    certain = sum(pair.certain for pair in pairs)
    many = f"{format_counted(len(pairs), 'pair')} of applications"
    test = f"rank-sum test, Holm's correction, level {SIGNIFICANCE:g}"
    return f"{many} compared, {format_count(certain)} slower than chance explains ({test})."


def contact(person: Contact) -> str:
    """Say why to talk to a user."""
    return REASONS[person.reason]
