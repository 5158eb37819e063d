"""How requests look to storage: small, random, misaligned, redundant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import le

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.rules.rule import (
    Answer,
    CallKind,
    Counted,
    Hit,
    Rule,
    Unknown,
    both_ways,
    by_file,
    file_hit,
    portions,
    share,
    share_above,
    small_portions,
    times_in,
)
from ioprism.model.usage import DIRECTIONS, EVERYONE, Counts, Moves, Seconds, Usage
from ioprism.model.verdict import Severity

OFFSETS = "offsets of calls, or POSIX counters"
SIZES = "sizes of calls, or counters with size histograms"
DATA_SETS = "sizes of accesses to data sets"
ADDRESSES = "POSIX counters: calls do not show memory addresses"


def _usages(evidence: Evidence, sieved: frozenset[int]) -> Iterator[Usage]:
    """The requests that the program is to blame for, layer by layer.

    Reads of files that MPI-IO only writes are its own: it fills the holes of strided writes
    (data sieving), and the program never asked for them.
    """
    for layer in evidence.request_layers:
        usage = evidence.usages[layer]
        yield usage.without_reads_of(sieved) if sieved and layer == "posix" else usage


def _moves(evidence: Evidence, direction: str) -> Iterator[tuple[Usage, Moves]]:
    """The same, of one direction."""
    sieved = evidence.sieved_files if direction == "read" else frozenset()
    for usage in _usages(evidence, sieved):
        if any(usage.moves[direction].operations):
            yield usage, usage.moves[direction]


def small_requests(evidence: Evidence, *, direction: str, shared: bool) -> Answer:
    """More than a share of the requests is shorter than the limit, in all or in shared files."""
    if shared and evidence.ranks < 2:
        return None
    counted = (
        _small(evidence, usage, moves, SIZES, shared=shared)
        for usage, moves in _moves(evidence, direction)
    )
    limit = evidence.thresholds.small_requests
    return share_above(evidence, counted, limit, ("requests", "small", "share"))


def small_accesses(evidence: Evidence, *, layer: str, direction: str) -> Answer:
    """More than a share of the accesses to data sets is small."""
    usage = evidence.usages.get(layer)
    if usage is None or not any(usage.moves[direction].operations):
        return None
    counted = _small(evidence, usage, usage.moves[direction], DATA_SETS, shared=False)
    limit = evidence.thresholds.small_requests
    return share_above(evidence, [counted], limit, ("accesses", "small", "share"))


def _small(
    evidence: Evidence, usage: Usage, moves: Moves, needs: str, *, shared: bool
) -> Counted | Unknown:
    if moves.small is None:
        return Unknown(needs)
    small, calls = moves.small, moves.operations
    if shared:
        inside = [file in usage.shared_files for file in usage.file]
        small, calls = ([n * i for n, i in zip(x, inside, strict=True)] for x in (small, calls))
    fixed = evidence.thresholds.small_bytes
    return Counted(usage, small, calls, lambda: (small_portions(moves, small, fixed), 1.0))


def random_requests(evidence: Evidence, *, direction: str) -> Answer:
    """More than a share of the requests goes back in the file."""
    counted = (_random(evidence, *moved) for moved in _moves(evidence, direction))
    limit = evidence.thresholds.random_operations
    return share_above(evidence, counted, limit, ("requests", "backward", "share"))


def _random(evidence: Evidence, usage: Usage, moves: Moves) -> Counted | Unknown:
    backward = _backward(moves)
    if backward is None:
        return Unknown(OFFSETS)

    def at_stake() -> tuple[Seconds, float]:
        spent = portions(moves.seconds, backward, moves.operations)
        # Jumping costs as much as moving this many bytes, for each request.
        fixed, sizes = evidence.thresholds.small_bytes, map(share, moves.bytes, moves.operations)
        jumps = [time * fixed / (fixed + size) for time, size in zip(spent, sizes, strict=True)]
        return jumps, share(sum(jumps), sum(spent))

    return Counted(usage, backward, moves.operations, at_stake)


def _backward(moves: Moves) -> Counts | None:
    if moves.forward is None or moves.first is None:
        return None
    columns = zip(moves.operations, moves.forward, moves.first, strict=True)
    return [max(0, operations - forward - first) for operations, forward, first in columns]


def sequential_requests(evidence: Evidence, *, direction: str) -> Answer:
    """Nearly all requests go forward in the file."""
    operations = backward = consecutive = 0
    for _, moves in _moves(evidence, direction):
        going_back = _backward(moves)
        if going_back is None:
            return Unknown(OFFSETS)
        operations += sum(moves.operations)
        backward += sum(going_back)
        consecutive += sum(moves.consecutive or ())
    part = share(operations - backward, operations)
    if part <= evidence.thresholds.sequential_operations:
        return None
    joined = share(consecutive, operations)
    return Hit({"requests": operations, "share": part, "consecutive_share": joined}, None)


def misaligned_requests(evidence: Evidence, *, what: str) -> Answer:
    """More than a share of the requests is off the alignment of the file or of memory."""
    counted = (
        _misaligned(evidence, usage, what) for usage in _usages(evidence, evidence.sieved_files)
    )
    limit = evidence.thresholds.misaligned_requests
    answer = share_above(evidence, counted, limit, ("requests", "misaligned", "share"))
    if not isinstance(answer, Hit):
        return answer
    usage = evidence.usages[answer.interface or ""]
    numbers = {**answer.evidence, "alignment": _block(evidence, usage, answer.files)}
    numbers["share"] = min(1.0, numbers["share"])
    answer = replace(answer, evidence=numbers)
    # Memory off its alignment costs a copy at most, which no trace tells.
    return answer if what == "file" else replace(answer, seconds=None, of_calls=False)


def _misaligned(evidence: Evidence, usage: Usage, what: str) -> Counted | Unknown:
    off = usage.misaligned if what == "file" else usage.misaligned_memory
    if off is None:
        return Unknown(OFFSETS if what == "file" else ADDRESSES)
    calls = usage.operations
    if what == "memory":
        return Counted(usage, off, calls, lambda: ([0.0] * len(usage), 1.0))

    def at_stake() -> tuple[Seconds, float]:
        data = [sum(both) for both in zip(*(m.seconds for m in usage.moves.values()), strict=True)]
        locked = _locked_seconds(evidence, usage, off)
        held, spent = (evidence.held_up(usage, x) for x in (locked, portions(data, off, calls)))
        return locked, share(held, spent)

    return Counted(usage, off, calls, at_stake)


def _locked_seconds(evidence: Evidence, usage: Usage, off: Counts) -> Seconds:
    """Seconds in which writes may wait for the lock of a block that another rank writes too.

    Only the first and the last block of a write are shared with others, and only in files that
    several ranks write; reads do not wait for each other.
    """
    layouts, usual = evidence.files.striping, Limits().block
    writes = usage.moves["write"]
    shared = {file for file, ranks in usage.users(writes.operations).items() if ranks > 1}
    times = [0.0] * len(usage)
    for place, seconds in enumerate(portions(writes.seconds, off, usage.operations)):
        if usage.file[place] in shared and writes.bytes[place]:
            size = share(writes.bytes[place], writes.operations[place])
            layout = layouts.get(usage.file[place])
            block = layout.size if layout is not None and layout.size > 0 else usual
            times[place] = seconds * min(1.0, 2 * block / size)
    return times


def _block(evidence: Evidence, usage: Usage, files: Sequence[int]) -> float:
    """The stripe size of the worst file, or what its offsets are measured against otherwise."""
    layout = evidence.files.striping.get(files[0]) if files else None
    if layout is not None and layout.size > 0:
        return layout.size
    counted = dict(zip(usage.file, usage.alignment or (), strict=False))
    told = counted.get(files[0], 0) if files else 0
    return told if told > 0 else evidence.thresholds.alignment


def redundant_traffic(evidence: Evidence, *, direction: str) -> Answer:
    """More bytes are moved than the file has where they were moved, file by file."""
    answer: Answer = None
    for usage, moves in _moves(evidence, direction):
        if moves.extent is None:
            answer = answer or Unknown(OFFSETS)
            continue
        if not usage.shared_files and all(map(le, moves.bytes, moves.extent)):
            continue
        moved, extent = by_file(usage, moves.bytes), _reach(usage, moves.extent)
        # A file opened again may be rewritten, and rewritten data is read for the first time.
        versions = _times_opened if direction == "write" else _versions
        times = versions(evidence, usage)
        # MPI-IO reads across holes on its own account: the program does not repeat these reads.
        holes = evidence.amplified_files if direction == "read" and usage.layer == "posix" else ()
        beyond = {f: b - extent[f] * times.get(f, 1) for f, b in moved.items()}
        again = {f: b for f, b in beyond.items() if b > 0 and f >= 0 and f not in holes}
        redundant, whole = sum(again.values()), sum(moved.values())
        if (part := share(redundant, whole)) <= evidence.thresholds.redundant_bytes:
            continue
        numbers = {"bytes": whole, "redundant": redundant, "share": part}
        seconds = times_in(usage, moves.seconds, again)
        hit = file_hit(evidence, usage, numbers, seconds, again, moved)
        at_stake = part if direction == "write" else 1.0
        answer = replace(hit, seconds=(hit.seconds or 0.0) * part, part=at_stake)
    return answer


def _reach(usage: Usage, extent: Counts) -> dict[int, int]:
    """The last byte that any rank touched; by file."""
    highest: dict[int, int] = {}
    for file, size in zip(usage.file, extent, strict=True):
        highest[file] = max(highest.get(file, 0), size)
    return highest


def _versions(evidence: Evidence, usage: Usage) -> dict[int, int]:
    """How often the job rewrote each file and reopened it to read it; by file."""
    opened = _times_opened(evidence, usage)
    writes = usage.moves["write"]
    reach = _reach(usage, writes.extent or writes.bytes)
    return {
        file: max(1, min(round(size / max(1, reach[file])), opened.get(file, 1) // 2))
        for file, size in by_file(usage, writes.bytes).items()
    }


def _times_opened(evidence: Evidence, usage: Usage) -> dict[int, int]:
    """How often each of its ranks opened a file, at least once; by file."""
    ranks = by_file(usage, (evidence.ranks if rank == EVERYONE else 1 for rank in usage.rank))
    opens = by_file(usage, usage.opens)
    return {file: max(1, round(count / ranks[file])) for file, count in opens.items()}


def data_sieving(evidence: Evidence) -> Answer:
    """MPI-IO reads what it is to write, to fill the holes between the pieces of a write."""
    usage = evidence.usages.get("posix")
    if usage is None or not evidence.sieved_files:
        return None
    read, write = (usage.moves[direction] for direction in DIRECTIONS)
    sizes, written = (
        by_file(usage, moves.bytes, only=evidence.sieved_files) for moves in (read, write)
    )
    moved, asked = sum(sizes.values()), sum(written.values())
    part = share(moved, asked)
    if part <= evidence.thresholds.sieved_bytes:
        return None
    numbers = {"bytes": moved, "written": asked, "share": min(1.0, part)}
    times = times_in(usage, read.seconds, evidence.sieved_files)
    return file_hit(evidence, usage, numbers, times, sizes, written)


_SMALL = ("small_requests", "small_bytes")

RULES = (
    *both_ways("small-{}s", Severity.HIGH, "posix", partial(small_requests, shared=False),
               "small-requests", _SMALL, ("P05", "P06"), small=True),
    *both_ways("small-{}s-shared", Severity.HIGH, "posix", partial(small_requests, shared=True),
               "small-requests-shared", _SMALL, ("P15", "P16"), small=True),
    *both_ways("random-{}s", Severity.HIGH, "posix", random_requests, "random-requests",
               ("random_operations",), ("P11", "P13"), backward=True),
    *both_ways("sequential-{}s", Severity.OK, "posix", sequential_requests, "sequential-requests",
               ("sequential_operations",), ("P12", "P14")),
    Rule("redundant-reads", Severity.WARN, "posix", partial(redundant_traffic, direction="read"),
         "redundant-traffic", ("redundant_bytes",), ("drishti:P09",), "read",
         CallKind(("read",), repeated=True)),
    # Of bytes that are written twice, the first writes were in vain: no single call shows it.
    Rule("redundant-writes", Severity.WARN, "posix", partial(redundant_traffic, direction="write"),
         "redundant-traffic", ("redundant_bytes",), ("drishti:P10",), "write"),
    Rule("data-sieving", Severity.HIGH, "posix", data_sieving, thresholds=("sieved_bytes",),
         direction="read"),
    Rule("misaligned-file", Severity.HIGH, "posix", partial(misaligned_requests, what="file"),
         thresholds=("misaligned_requests",), aliases=("drishti:P08",),
         calls=CallKind(DIRECTIONS, misaligned=True)),
    # It costs a copy in memory, or nothing at all.
    Rule("misaligned-memory", Severity.INFO, "posix", partial(misaligned_requests, what="memory"),
         thresholds=("misaligned_requests",), aliases=("drishti:P07",), calls=CallKind(DIRECTIONS)),
)  # fmt: skip
