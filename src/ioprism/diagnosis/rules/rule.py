"""What a rule is: a question to the evidence, and what its answers look like."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ioprism.diagnosis.evidence import Evidence, sum_by
from ioprism.model.trace import OPERATIONS
from ioprism.model.usage import DIRECTIONS, Counts, Moves, Seconds, Usage
from ioprism.model.verdict import Severity, Subject

WORST = 10  # files or ranks that a finding names; it may concern many more

JOB = Subject("job")


METADATA = ("open", "close", "seek", "stat", "metadata")


@dataclass(frozen=True, slots=True)
class CallKind:
    """The calls that a rule is about, of the files and ranks that it finds."""

    operations: tuple[str, ...] = OPERATIONS
    small: bool = False  # only those below the limit `small_bytes`
    misaligned: bool = False  # only those that do not begin at a multiple of `alignment`
    backward: bool = False  # only those that begin before the end of the one before
    repeated: bool = False  # only those that begin where an earlier one began
    collective: bool | None = None  # only those that are, or are not, where the trace shows it
    slowest: bool = False  # only those of the ranks that take longest
    whole_job: bool = False  # the finding is about the job as such: no call stands out


WHOLE_JOB = CallKind(whole_job=True)
SLOWEST_RANKS = CallKind(slowest=True)


@dataclass(frozen=True, slots=True)
class Hit:
    """The rule fires."""

    evidence: Mapping[str, float]  # the numbers, in base units
    seconds: float | None  # at stake, for the rank most concerned
    details: Sequence[Mapping[str, object]] = ()
    subject: Subject = JOB
    interface: str | None = None  # if not the rule's
    # All rows of the file table that are concerned, worst first; empty: it is not about files.
    # Advice looks at where the worst lie; inspecting the finding, at all of them.
    files: Sequence[int] = ()
    ranks: Sequence[int] = ()  # all that are concerned; empty: it is not about single ranks
    words: Mapping[str, str] = field(default_factory=dict)  # for the title
    # `seconds` are those of all calls of the rule's kind: per-call traces have them exactly,
    # counters share them out by numbers of calls.
    of_calls: bool = False
    part: float = 1.0  # of the time of the calls concerned that is at stake


@dataclass(frozen=True, slots=True)
class Unknown:
    """The trace cannot tell; what it would need."""

    needs: str


Answer = Hit | Unknown | None
Check = Callable[[Evidence], Answer]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be told of a job. Codes are stable and never reused."""

    code: str
    level: Severity
    interface: str
    check: Check
    advice: str  # the file of its texts in advice/
    thresholds: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    direction: str | None = None
    calls: CallKind | None = None  # that it is about; None: all of its direction

    @property
    def call_kind(self) -> CallKind:
        """The calls that the rule is about."""
        return self.calls or (CallKind((self.direction,)) if self.direction else CallKind())


PAST = {"read": "read", "write": "written"}


def both_ways(
    code: str,
    level: Severity,
    interface: str,
    judge: Callable[..., Answer],
    advice: str,
    thresholds: tuple[str, ...] = (),
    drishti: tuple[str, ...] = (),
    **calls: Any,  # noqa: ANN401 - the flags of `CallKind`
) -> Iterator[Rule]:
    """Yield a rule for reads and the same rule for writes, of calls of one kind.

    `drishti` has the names that Drishti uses for both.
    """
    for place, direction in enumerate(DIRECTIONS):
        yield Rule(
            code.format(direction, past=PAST[direction]),
            level,
            interface,
            partial(judge, direction=direction),
            advice,
            thresholds,
            tuple(f"drishti:{alias}" for alias in drishti[place : place + 1]),
            direction,
            CallKind((direction,), **calls),
        )


def share(part: float, whole: float) -> float:
    """A share from 0 to 1; 0 of nothing."""
    return part / whole if whole else 0.0


def by_file(
    usage: Usage, values: Iterable[float] | None, *, only: Container[int] | None = None
) -> dict[int, float]:
    """Add up a column per file; nothing where the trace lacks it, or the file has none."""
    sums = {} if values is None else sum_by(usage.file, values)
    return {f: value for f, value in sums.items() if value and (only is None or f in only)}


def worst(values: Mapping[int, float], count: int = WORST) -> list[int]:
    """Return the keys with the highest values, highest first."""
    if len(values) <= count:
        return sorted(values, key=lambda key: (-values[key], key))
    from heapq import nsmallest

    return nsmallest(count, values, key=lambda key: (-values[key], key))


def worst_first(values: Mapping[int, float]) -> list[int]:
    """Return all keys, the worst ones ahead; the others, which may be a million, as they come."""
    return list(dict.fromkeys([*worst(values), *values]))


def file_details(
    evidence: Evidence,
    counts: Mapping[int, float],
    of: Mapping[int, float],
    *,
    counted: str = "count",
) -> tuple[list[dict[str, object]], list[int]]:
    """Return the worst files with their count and its share of their total, and all rows.

    `counted` is what the count is called: `bytes` if it is of bytes.
    """
    details: list[dict[str, object]] = [
        {
            "file": evidence.files.path(file),
            counted: counts[file],
            "share": share(counts[file], of.get(file, 0)),
        }
        for file in worst(counts)
    ]
    return details, worst_first(counts)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What a rule counts in each entry of one layer, and what that is a part of."""

    usage: Usage
    count: Sequence[float]
    of: Sequence[float]
    at_stake: Callable[[], tuple[Seconds, float]]  # seconds of each entry, and `part` of `Hit`


def share_above(
    evidence: Evidence,
    counted: Iterable[Counted | Unknown],
    limit: float,
    names: tuple[str, str, str],
) -> Answer:
    """Return a hit where what is counted is more than a share; of the last such layer.

    `names` are those of the whole, of what is counted and of its share in the evidence.
    """
    answer: Answer = None
    for one in counted:
        if isinstance(one, Unknown):
            answer = answer or one
            continue
        count, whole = sum(one.count), sum(one.of)
        if (part := share(count, whole)) > limit:
            numbers = dict(zip(names, (whole, count, part), strict=True))
            sums = by_file(one.usage, one.count), by_file(one.usage, one.of)
            seconds, at_stake = one.at_stake()
            answer = file_hit(evidence, one.usage, numbers, seconds, *sums, part=at_stake)
    return answer


def file_hit(
    evidence: Evidence,
    usage: Usage,
    numbers: Mapping[str, float],
    times: Seconds,
    counts: Mapping[int, float],
    of: Mapping[int, float],
    *,
    of_calls: bool = True,
    part: float = 1.0,
    counted: str = "count",
) -> Hit:
    """Return a hit about files of one layer: what is counted in each, of which total."""
    details, files = file_details(evidence, counts, of, counted=counted)
    seconds = evidence.held_up(usage, times)
    hit = Hit(numbers, seconds, details, interface=usage.layer, of_calls=of_calls, part=part)
    return replace(hit, files=files)


def times_in(usage: Usage, seconds: Seconds, files: Container[int]) -> Seconds:
    """Return the seconds of entries of some files; 0 of the others."""
    return [t if file in files else 0.0 for t, file in zip(seconds, usage.file, strict=True)]


def where(counts: Sequence[float], seconds: Seconds) -> Seconds:
    """Return the seconds of entries that have any such calls; 0 of the others."""
    return [t if n else 0.0 for t, n in zip(seconds, counts, strict=True)]


def small_portions(moves: Moves, small: Counts, fixed: float) -> Seconds:
    """Split each entry's time between small requests and long ones.

    Every request costs about as much as `fixed` bytes, the limit below which it is called
    small, and long ones cost their bytes as well.
    """
    portions = []
    columns = zip(moves.seconds, small, moves.operations, moves.bytes, strict=True)
    for seconds, few, requests, moved in columns:
        transfer = moved if requests > few else 0
        portions.append(seconds * share(few * fixed, requests * fixed + transfer))
    return portions


def portions(seconds: Seconds, counts: Counts, of: Counts) -> Seconds:
    """Split each entry's time by the share of its calls that are counted.

    The time of single calls is not known from counters; calls that are small or out of order
    rarely take longer than their share, so this errs towards too much by little.
    """
    return [
        time * min(1.0, count / whole) if whole else 0.0
        for time, count, whole in zip(seconds, counts, of, strict=True)
    ]
