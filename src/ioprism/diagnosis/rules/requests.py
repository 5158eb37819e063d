"""How requests look to storage: small, random, misaligned, redundant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import le

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.rule import (
    Answer,
    CallKind,
    Hit,
    Rule,
    Unknown,
    by_file,
    file_details,
    portions,
    share,
    small_portions,
)
from ioprism.model.usage import DIRECTIONS, EVERYONE, Counts, Moves, Seconds, Usage
from ioprism.model.verdict import Severity

OFFSETS = "offsets of calls, or POSIX counters"
USUAL_LOCK = 2**20  # bytes that a lock covers where the layout is not known
SIZES = "sizes of calls, or counters with size histograms"


def _usages(evidence: Evidence) -> list[Usage]:
    return [evidence.usages[layer] for layer in evidence.request_layers]


def _moves(evidence: Evidence, direction: str) -> Iterator[tuple[Usage, Moves]]:
    """The requests of one direction that the program is to blame for.

    Reads of files that MPI-IO only writes are its own: it fills the holes of strided writes
    (data sieving), and the program never asked for them.
    """
    sieved = evidence.sieved_files if direction == "read" else frozenset()
    for usage in _usages(evidence):
        chosen = _without(usage, sieved) if usage.layer == "posix" else usage
        if any(chosen.moves[direction].operations):
            yield chosen, chosen.moves[direction]


def _without(usage: Usage, files: frozenset[int]) -> Usage:
    return usage.without_reads_of(files) if files else usage


def small_requests(evidence: Evidence, *, direction: str, shared: bool) -> Answer:
    """More than a share of the requests is shorter than the limit, in all or in shared files."""
    if shared and evidence.ranks < 2:
        return None
    answer: Answer = None
    for usage, moves in _moves(evidence, direction):
        if moves.small is None:
            return Unknown(SIZES)
        only = usage.shared_files if shared else None
        small, calls = (_within(usage, counts, only) for counts in (moves.small, moves.operations))
        part = share(sum(small), sum(calls))
        if part <= evidence.thresholds.small_requests:
            continue
        details, rows = file_details(evidence, by_file(usage, small), by_file(usage, calls))
        answer = Hit(
            {"requests": sum(calls), "small": sum(small), "share": part},
            evidence.held_up(usage, small_portions(moves, small, evidence.thresholds.small_bytes)),
            details,
            interface=usage.layer,
            files=rows,
            of_calls=True,
        )
    return answer


def _within(usage: Usage, values: Counts, only: frozenset[int] | None) -> Counts:
    if only is None:
        return values
    return [n if file in only else 0 for n, file in zip(values, usage.file, strict=True)]


def random_requests(evidence: Evidence, *, direction: str) -> Answer:
    """More than a share of the requests goes back in the file."""
    answer: Answer = None
    for usage, moves in _moves(evidence, direction):
        backward = _backward(moves)
        if backward is None:
            answer = answer or Unknown(OFFSETS)
            continue
        part = share(sum(backward), sum(moves.operations))
        if part <= evidence.thresholds.random_operations:
            continue
        details, rows = file_details(
            evidence, by_file(usage, backward), by_file(usage, moves.operations)
        )
        spent = portions(moves.seconds, backward, moves.operations)
        jumps = _of_jumps(spent, moves, evidence.thresholds.small_bytes)
        answer = Hit(
            {"requests": sum(moves.operations), "backward": sum(backward), "share": part},
            evidence.held_up(usage, jumps),
            details,
            interface=usage.layer,
            files=rows,
            of_calls=True,
            part=share(sum(jumps), sum(spent)),
        )
    return answer


def _of_jumps(seconds: Seconds, moves: Moves, fixed: float) -> Seconds:
    """The part of each entry's time that jumping costs: as much as `fixed` bytes a request."""
    sizes = map(share, moves.bytes, moves.operations)
    return [time * fixed / (fixed + size) for time, size in zip(seconds, sizes, strict=True)]


def _backward(moves: Moves) -> list[int] | None:
    if moves.forward is None or moves.first is None:
        return None
    columns = zip(moves.operations, moves.forward, moves.first, strict=True)
    return [max(0, operations - forward - first) for operations, forward, first in columns]


def sequential_requests(evidence: Evidence, *, direction: str) -> Answer:
    """Nearly all requests go forward in the file."""
    operations = forward = consecutive = 0
    for _, moves in _moves(evidence, direction):
        backward = _backward(moves)
        if backward is None:
            return Unknown(OFFSETS)
        operations += sum(moves.operations)
        forward += sum(moves.operations) - sum(backward)
        consecutive += sum(moves.consecutive or ())
    part = share(forward, operations)
    if part <= evidence.thresholds.sequential_operations:
        return None
    return Hit(
        {
            "requests": operations,
            "share": part,
            "consecutive_share": share(consecutive, operations),
        },
        None,
    )


def misaligned_requests(evidence: Evidence, *, what: str) -> Answer:
    """More than a share of the requests is off the alignment of the file or of memory."""
    missing = {"file": OFFSETS, "memory": "POSIX counters: calls do not show memory addresses"}
    answer: Answer = None
    for whole in _usages(evidence):
        usage = _without(whole, evidence.sieved_files) if whole.layer == "posix" else whole
        off = usage.misaligned if what == "file" else usage.misaligned_memory
        if off is None:
            answer = answer or Unknown(missing[what])
            continue
        part = share(sum(off), sum(usage.operations))
        if part <= evidence.thresholds.misaligned_requests:
            continue
        details, rows = file_details(
            evidence, by_file(usage, off), by_file(usage, usage.operations)
        )
        block = _block(evidence, usage, rows)
        data = [sum(both) for both in zip(*(m.seconds for m in usage.moves.values()), strict=True)]
        spent = evidence.held_up(usage, portions(data, off, usage.operations))
        # Memory off its alignment costs a copy at most, which no trace tells.
        locked = _locked_seconds(evidence, usage, off) if what == "file" else 0.0
        answer = Hit(
            {
                "requests": sum(usage.operations),
                "misaligned": sum(off),
                "share": min(1.0, part),
                "alignment": block,
            },
            locked if what == "file" else None,
            details,
            interface=usage.layer,
            files=rows,
            of_calls=what == "file",
            part=share(locked, spent),
        )
    return answer


def _locked_seconds(evidence: Evidence, usage: Usage, off: Counts) -> float:
    """Seconds in which writes may wait for the lock of a block that another rank writes too.

    Only the first and the last block of a write are shared with others, and only in files that
    several ranks write; reads do not wait for each other.
    """
    layouts = evidence.files.striping
    writes = usage.moves["write"]
    shared = {file for file, ranks in usage.users(writes.operations).items() if ranks > 1}
    times = []
    for place, seconds in enumerate(portions(writes.seconds, off, usage.operations)):
        size = share(writes.bytes[place], writes.operations[place])
        layout = layouts.get(usage.file[place])
        block = layout.size if layout is not None and layout.size > 0 else USUAL_LOCK
        borders = min(1.0, 2 * block / size) if size else 0.0
        times.append(seconds * borders if usage.file[place] in shared else 0.0)
    return evidence.held_up(usage, times)


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
        extent: dict[int, int] = {}
        for file, size in zip(usage.file, moves.extent, strict=True):
            extent[file] = max(extent.get(file, 0), size)
        moved = by_file(usage, moves.bytes)
        # A file opened again may be rewritten, and rewritten data is read for the first time.
        times = (
            _times_opened(evidence, usage) if direction == "write" else _versions(evidence, usage)
        )
        extent = {file: size * times.get(file, 1) for file, size in extent.items()}
        # MPI-IO reads across holes on its own account: the program does not repeat these reads.
        holes = evidence.amplified_files if direction == "read" and usage.layer == "posix" else ()
        again = {
            f: b - extent[f]
            for f, b in moved.items()
            if b > extent[f] and f >= 0 and f not in holes
        }
        part = share(sum(again.values()), sum(moved.values()))
        if part <= evidence.thresholds.redundant_bytes:
            continue
        spent = [t if f in again else 0.0 for t, f in zip(moves.seconds, usage.file, strict=True)]
        details, rows = file_details(evidence, again, moved)
        answer = Hit(
            {"bytes": sum(moved.values()), "redundant": sum(again.values()), "share": part},
            evidence.held_up(usage, spent) * part,
            details,
            interface=usage.layer,
            files=rows,
            of_calls=True,
            part=part if direction == "write" else 1.0,
        )
    return answer


def _versions(evidence: Evidence, usage: Usage) -> dict[int, int]:
    """How often the job rewrote each file and reopened it to read it; by file."""
    opened = _times_opened(evidence, usage)
    writes = usage.moves["write"]
    reach: dict[int, int] = {}
    for file, size in zip(usage.file, writes.extent or writes.bytes, strict=True):
        reach[file] = max(reach.get(file, 0), size)
    written = by_file(usage, writes.bytes)
    return {
        file: max(1, min(round(size / max(1, reach[file])), opened.get(file, 1) // 2))
        for file, size in written.items()
    }


def _times_opened(evidence: Evidence, usage: Usage) -> dict[int, int]:
    """How often each of its ranks opened a file, at least once; by file."""
    opens = by_file(usage, usage.opens)
    ranks: dict[int, int] = {}
    for file, rank in zip(usage.file, usage.rank, strict=True):
        ranks[file] = ranks.get(file, 0) + (evidence.ranks if rank == EVERYONE else 1)
    return {file: max(1, round(count / ranks[file])) for file, count in opens.items()}


def data_sieving(evidence: Evidence) -> Answer:
    """MPI-IO reads what it is to write, to fill the holes between the pieces of a write."""
    usage = evidence.usages.get("posix")
    if usage is None or not evidence.sieved_files:
        return None
    read = usage.moves["read"]
    inside = [file in evidence.sieved_files for file in usage.file]
    sizes = by_file(usage, read.bytes, only=set(evidence.sieved_files))
    written = by_file(usage, usage.moves["write"].bytes, only=set(evidence.sieved_files))
    part = share(sum(sizes.values()), sum(written.values()))
    if part <= evidence.thresholds.sieved_bytes:
        return None
    times = [t if chosen else 0.0 for t, chosen in zip(read.seconds, inside, strict=True)]
    details, rows = file_details(evidence, sizes, written)
    return Hit(
        {"bytes": sum(sizes.values()), "written": sum(written.values()), "share": min(1.0, part)},
        evidence.held_up(usage, times),
        details,
        files=rows,
        of_calls=True,
    )


def _each_way(
    code: str,
    severity: Severity,
    judge: Callable[..., Answer],
    advice: str,
    thresholds: tuple[str, ...],
    drishti: tuple[str, str],
    **calls: bool,
) -> Iterator[Rule]:
    """Yield a rule for reads and its twin for writes."""
    for direction, alias in zip(DIRECTIONS, drishti, strict=True):
        yield Rule(
            code.format(direction),
            severity,
            "posix",
            partial(judge, direction=direction),
            advice,
            thresholds,
            (f"drishti:{alias}",),
            direction,
            CallKind((direction,), **calls),
        )


_SMALL = ("small_requests", "small_bytes")

RULES = (
    *_each_way(
        "small-{}s",
        Severity.HIGH,
        partial(small_requests, shared=False),
        "small-requests",
        _SMALL,
        ("P05", "P06"),
        small=True,
    ),
    *_each_way(
        "small-{}s-shared",
        Severity.HIGH,
        partial(small_requests, shared=True),
        "small-requests-shared",
        _SMALL,
        ("P15", "P16"),
        small=True,
    ),
    *_each_way(
        "random-{}s",
        Severity.HIGH,
        random_requests,
        "random-requests",
        ("random_operations",),
        ("P11", "P13"),
        backward=True,
    ),
    *_each_way(
        "sequential-{}s",
        Severity.OK,
        sequential_requests,
        "sequential-requests",
        ("sequential_operations",),
        ("P12", "P14"),
    ),
    Rule(
        "redundant-reads",
        Severity.WARN,
        "posix",
        partial(redundant_traffic, direction="read"),
        "redundant-traffic",
        ("redundant_bytes",),
        ("drishti:P09",),
        "read",
        CallKind(("read",), repeated=True),
    ),
    # Of bytes that are written twice, the first writes were in vain: no single call shows it.
    Rule(
        "redundant-writes",
        Severity.WARN,
        "posix",
        partial(redundant_traffic, direction="write"),
        "redundant-traffic",
        ("redundant_bytes",),
        ("drishti:P10",),
        "write",
    ),
    Rule(
        "data-sieving",
        Severity.HIGH,
        "posix",
        data_sieving,
        "data-sieving",
        ("sieved_bytes",),
        (),
        "read",
    ),
    Rule(
        "misaligned-file",
        Severity.HIGH,
        "posix",
        partial(misaligned_requests, what="file"),
        "misaligned-file",
        ("misaligned_requests",),
        ("drishti:P08",),
        calls=CallKind(DIRECTIONS, misaligned=True),
    ),
    Rule(
        "misaligned-memory",
        Severity.INFO,  # it costs a copy in memory, or nothing at all
        "posix",
        partial(misaligned_requests, what="memory"),
        "misaligned-memory",
        ("misaligned_requests",),
        ("drishti:P07",),
        calls=CallKind(DIRECTIONS),
    ),
)
