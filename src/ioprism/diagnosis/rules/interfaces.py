"""Through which interfaces how much is moved, and in which direction."""

from __future__ import annotations

from collections import Counter
from functools import partial

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.limits import NEGLIGIBLE
from ioprism.diagnosis.rules.rule import (
    WHOLE_JOB,
    Answer,
    CallKind,
    Hit,
    Rule,
    both_ways,
    by_file,
    file_details,
    file_hit,
    share,
    times_in,
)
from ioprism.model.usage import DIRECTIONS, EVERYONE
from ioprism.model.verdict import Severity

PARALLEL = ("mpiio", "pnetcdf", "dfs", "daos")  # HDF5 is when it uses MPI-IO
OTHER = {"read": "write", "write": "read"}


def stdio_share(evidence: Evidence) -> Answer:
    """Much of the data passes through STDIO, console streams aside."""
    usage = evidence.usages.get("stdio")
    if usage is None:
        return None
    own = sum(usage.bytes)
    part = share(own, sum(evidence.moved.values()))
    if part <= evidence.thresholds.stdio_bytes:
        return None
    sizes = by_file(usage, usage.bytes)
    numbers, of = {"bytes": own, "share": part}, dict.fromkeys(sizes, own)
    return file_hit(evidence, usage, numbers, usage.seconds, sizes, of)


def no_parallel_interface(evidence: Evidence) -> Answer:
    """Several ranks write the same files in small requests, without a parallel interface.

    A file of its own for every rank needs none, and large requests gain nothing from one.
    """
    if evidence.ranks < 2 or not any(evidence.moved.values()):
        return None
    parallel = [evidence.usages[layer] for layer in PARALLEL if layer in evidence.usages]
    if any(any(usage.opens) or any(usage.operations) for usage in parallel):
        return None
    answer: Answer = None
    for usage in (evidence.usages[layer] for layer in evidence.request_layers):
        writes = usage.moves["write"]
        shared = {file for file, ranks in usage.users(writes.operations).items() if ranks > 1}
        sizes = by_file(usage, writes.bytes, only=shared)
        calls = by_file(usage, writes.operations, only=shared)
        moved, requests = sum(sizes.values()), sum(calls.values())
        if not requests or moved / requests >= evidence.thresholds.small_bytes:
            continue
        numbers = {"ranks": evidence.ranks, "bytes": moved, "mean_size": moved / requests}
        times, of = times_in(usage, writes.seconds, shared), dict.fromkeys(sizes, moved)
        answer = file_hit(evidence, usage, numbers, times, sizes, of)
    return answer


def more_of(evidence: Evidence, *, direction: str, unit: str) -> Answer:
    """One direction outweighs the other, in calls or in bytes."""
    amounts = dict.fromkeys(DIRECTIONS, 0)
    # STDIO buffers: its calls count as requests only where they are the only ones.
    requests = evidence.request_layers or evidence.base_layers
    for layer in requests if unit == "calls" else evidence.base_layers:
        for name, moves in evidence.usages[layer].moves.items():
            amounts[name] += sum(moves.operations if unit == "calls" else moves.bytes)
    own, other = amounts[direction], amounts[OTHER[direction]]
    part = share(own - other, own + other)
    if part <= evidence.thresholds.operation_imbalance:
        return None
    return Hit({direction: own, OTHER[direction]: other, "share": share(own, own + other)}, None)


def single_process(evidence: Evidence) -> Answer:
    """There is one process: what concerns several ranks does not apply."""
    alone = evidence.ranks == 1 and evidence.usages and not _others_move_data(evidence)
    return Hit({"ranks": 1}, None) if alone else None


def _moved_by_rank(evidence: Evidence) -> Counter[int]:
    moved: Counter[int] = Counter()
    for usage in (evidence.usages[layer] for layer in evidence.base_layers):
        for rank, size in zip(usage.rank, usage.bytes, strict=True):
            moved[rank] += size
    return moved


def _others_move_data(evidence: Evidence) -> bool:
    """Whether programs beside the one whose ranks are compared do: it is one step of several."""
    moved = _moved_by_rank(evidence)
    others = sum(size for rank, size in moved.items() if rank not in (evidence.peers or {rank}))
    return others > NEGLIGIBLE * moved.total()


def _ranks_that_move_data(evidence: Evidence) -> int:
    """How many do, of all programs; launchers and small tools move next to nothing."""
    moved = _moved_by_rank(evidence)
    least = NEGLIGIBLE * max(moved.values(), default=0)
    return sum(size > least for rank, size in moved.items() if rank != EVERYONE)


def small_total(evidence: Evidence) -> Answer:
    """So little is moved that latency, not bandwidth, decides."""
    moved = sum(evidence.moved.values())
    steps = _ranks_that_move_data(evidence) if evidence.peers else 0  # of a workflow
    per_rank = moved / max(evidence.ranks, steps)
    if not moved or per_rank >= evidence.thresholds.small_total:
        return None
    usages = [evidence.usages[layer] for layer in evidence.base_layers]
    seconds = sum(evidence.held_up(usage, usage.seconds) for usage in usages)
    return Hit({"bytes": moved, "bytes_per_rank": per_rank}, seconds)


def read_after_write(evidence: Evidence) -> Answer:
    """Most of what is read, the job wrote itself before."""
    if not evidence.moved["read"]:
        return None
    own: dict[int, float] = {}
    seconds = 0.0
    for layer in evidence.base_layers:
        usage = evidence.usages[layer]
        read, write = (usage.moves[direction] for direction in DIRECTIONS)
        begun = _first_begin(usage.file, write.begin)
        after = [
            b if f in begun and begun[f] < t else 0
            for f, b, t in zip(
                usage.file, read.bytes, read.begin or [0.0] * len(usage), strict=True
            )
        ]
        for file, size in by_file(usage, after).items():
            own[file] = own.get(file, 0) + size
        times = [t if a else 0.0 for t, a in zip(read.seconds, after, strict=True)]
        seconds += evidence.held_up(usage, times)
    part = share(sum(own.values()), evidence.moved["read"])
    if part <= evidence.thresholds.read_after_write:
        return None
    whole = dict.fromkeys(own, evidence.moved["read"])
    details, rows = file_details(evidence, own, whole)
    return Hit({"bytes": sum(own.values()), "share": part}, seconds, details, files=rows)


def _first_begin(files: list[int], begins: list[float] | None) -> dict[int, float]:
    first: dict[int, float] = {}
    for file, begin in zip(files, begins or [0.0] * len(files), strict=True):
        if begin > 0:
            first[file] = min(begin, first.get(file, begin))
    return first


def incomplete_data(evidence: Evidence) -> Answer:
    """The trace says that it does not hold everything."""
    # Modules that are not read (of MPI calls, for example) do not concern I/O.
    said = evidence.completeness.warnings
    messages = [text for text in said if not text.endswith("module is not read")]
    if not messages:
        return None
    return Hit({"warnings": len(messages)}, None, [{"message": text} for text in messages])


RULES = (
    Rule("stdio-data", Severity.HIGH, "stdio", stdio_share, thresholds=("stdio_bytes",),
         aliases=("drishti:S01",)),
    Rule("no-parallel-interface", Severity.WARN, "posix", no_parallel_interface,
         thresholds=("small_bytes",), aliases=("drishti:M01",), direction="write"),
    *both_ways("more-{}s", Severity.INFO, "posix", partial(more_of, unit="calls"), "more-calls",
               ("operation_imbalance",), ("P02", "P01")),
    *both_ways("more-bytes-{past}", Severity.INFO, "posix", partial(more_of, unit="bytes"),
               "more-bytes", ("operation_imbalance",), ("P04", "P03")),
    Rule("single-process", Severity.INFO, "posix", single_process, calls=WHOLE_JOB),
    Rule("small-total-data", Severity.WARN, "posix", small_total, thresholds=("small_total",),
         calls=WHOLE_JOB),
    Rule("read-after-write", Severity.INFO, "posix", read_after_write,
         thresholds=("read_after_write",), calls=CallKind(("read",))),
    Rule("incomplete-data", Severity.WARN, "trace", incomplete_data, calls=WHOLE_JOB),
)  # fmt: skip
