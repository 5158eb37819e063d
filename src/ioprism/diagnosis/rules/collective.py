"""Are collective calls used where they help, and are libraries configured for them?"""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from operator import add

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.limits import MAJORITY, NEARLY_ALL
from ioprism.diagnosis.rank_balance import writers
from ioprism.diagnosis.rules.requests import small_accesses
from ioprism.diagnosis.rules.rule import (
    Answer,
    CallKind,
    Hit,
    Rule,
    Unknown,
    both_ways,
    by_file,
    file_details,
    file_hit,
    share,
    times_in,
    where,
)
from ioprism.model.usage import DIRECTIONS, EVERYONE, Moves, Usage
from ioprism.model.verdict import Severity

KINDS = "whether MPI-IO calls are collective: MPI-IO counters, or a trace with function names"
CALLERS = "which ranks call POSIX in collective files, and their hosts: extended tracing"
BELOW = "the POSIX calls below MPI-IO: the trace lacks most of them"
EACH_RANK = "how long each rank is in MPI-IO calls"
UNMIXED = "files whose reads or writes are all collective: other calls hide the aggregators"


def _mpiio(evidence: Evidence, direction: str) -> tuple[Usage, Moves] | None:
    """The MPI-IO calls of one direction, if several ranks make them."""
    usage = evidence.usages.get("mpiio")
    if usage is None or evidence.ranks < 2 or not any(usage.moves[direction].operations):
        return None
    return usage, usage.moves[direction]


def independent_calls(evidence: Evidence, *, direction: str) -> Answer:
    """Ranks read or write shared files one by one, in small requests."""
    known = _mpiio(evidence, direction)
    if known is None:
        return None
    usage, moves = known
    if moves.collective is None or moves.independent is None:
        return Unknown(KINDS)
    shared = {file for file, ranks in usage.users(moves.operations).items() if ranks > 1}
    alone = by_file(usage, moves.independent, only=shared)
    together = by_file(usage, moves.collective, only=shared)
    part = share(sum(alone.values()), sum(alone.values()) + sum(together.values()))
    if part <= 1 - evidence.thresholds.collective_operations:
        return None
    calls = by_file(usage, moves.operations, only=shared)
    moved = by_file(usage, moves.bytes, only=shared)
    mean_size = share(sum(moved.values()), sum(calls.values()))
    if mean_size >= evidence.thresholds.small_bytes:
        return None  # large requests gain nothing from being joined
    numbers = {"independent": sum(alone.values()), "collective": sum(together.values())}
    numbers |= {"share": part, "mean_size": mean_size}
    return file_hit(evidence, usage, numbers, times_in(usage, moves.seconds, alone), alone, calls)


def collective_calls(evidence: Evidence, *, direction: str) -> Answer:
    """Most reads or writes through MPI-IO are collective, split ones included."""
    moved = _mpiio(evidence, direction)
    if moved is None:
        return None
    _, moves = moved
    if moves.collective is None:
        return Unknown(KINDS)
    part = share(sum(moves.collective), sum(moves.operations))
    if part < evidence.thresholds.collective_operations or not any(moves.collective):
        return None
    return Hit({"collective": sum(moves.collective), "share": min(1.0, part)}, None)


def blocking_calls(evidence: Evidence, *, direction: str) -> Answer:
    """Data moves through MPI-IO, and never while the program goes on computing."""
    usage = evidence.usages.get("mpiio")
    if usage is None or not any(usage.moves[direction].operations):
        return None
    moves = usage.moves[direction]
    if moves.nonblocking is None:
        return Unknown(KINDS)
    if any(moves.nonblocking):
        return None
    waited = evidence.held_up(usage, moves.seconds)
    # No more can be hidden than there is other work to hide it behind.
    spare = max(0.0, (evidence.runtime or 2 * waited) - evidence.held_up(usage, usage.seconds))
    numbers = {"calls": sum(moves.operations), "seconds": waited}
    return Hit(numbers, min(waited, spare))


def collective_overhead(evidence: Evidence) -> Answer:
    """Collective calls take long in every rank, and hardly any of it is spent in storage calls.

    What the quickest rank takes is neither waiting for a late one nor for a slow one.
    """
    upper, lower = evidence.usages.get("mpiio"), evidence.usages.get("posix")
    files = _mostly_collective(evidence)
    if upper is None or lower is None or evidence.ranks < 2 or not files:
        return None
    asked, done = by_file(upper, upper.bytes), by_file(lower, lower.bytes)
    files = {file for file in files if done.get(file, 0) >= NEARLY_ALL * asked.get(file, 0)}
    if not files:
        return Unknown(BELOW)
    quickest = _quickest(evidence, upper, files)
    storage = evidence.held_up(lower, times_in(lower, lower.seconds, files))
    if quickest is None:
        return Unknown(EACH_RANK)
    if storage >= evidence.thresholds.collective_storage * quickest:
        return None
    calls = by_file(upper, upper.operations, only=files)
    details, rows = file_details(evidence, calls, calls)
    numbers = {"seconds": quickest, "storage": storage, "calls": sum(calls.values())}
    return Hit(numbers, quickest - storage, details, files=rows)


def _mostly_collective(evidence: Evidence) -> set[int]:
    """Files whose MPI-IO calls are nearly all collective."""
    usage = evidence.usages.get("mpiio")
    if usage is None:
        return set()
    calls, together = by_file(usage, usage.operations), dict[int, float]()
    for moves in usage.moves.values():
        for file, count in by_file(usage, moves.collective).items():
            together[file] = together.get(file, 0) + count
    least = evidence.thresholds.collective_operations
    return {file for file, count in together.items() if share(count, calls[file]) > least}


def _quickest(evidence: Evidence, usage: Usage, files: set[int]) -> float | None:
    """Seconds in reads and writes of the rank with fewest; None where that is not known."""
    own = dict.fromkeys(range(evidence.ranks), 0.0)
    shared = 0.0
    for place, (file, rank) in enumerate(zip(usage.file, usage.rank, strict=True)):
        if file not in files:
            continue
        data = sum(moves.seconds[place] for moves in usage.moves.values())
        if rank in own:
            own[rank] += data
        elif usage.spread is not None:
            part = share(data, usage.seconds[place])
            shared += usage.spread.fastest_seconds[place] * part
        else:
            return None
    return min(own.values()) + shared


def single_aggregator(evidence: Evidence) -> Answer:
    """All data of a file that many ranks opened through MPI-IO pass through one rank."""
    usage, mpiio = evidence.usages.get("posix"), evidence.usages.get("mpiio")
    if usage is None or mpiio is None or evidence.ranks < 2:
        return None
    limits, whole = evidence.thresholds, by_file(usage, usage.bytes)
    largest = _largest_parts(evidence, usage, mpiio.shared_files | _collective_files(evidence))
    parts = {
        file: part
        for file, part in largest.items()
        if whole.get(file, 0) >= limits.imbalance_bytes
        and part[0] >= limits.aggregator_share * whole[file]
    }
    if not parts:
        return None
    sizes = {file: size for file, (size, _) in parts.items()}
    details, rows = file_details(evidence, sizes, whole, counted="bytes")
    numbers = {"files": len(parts), "bytes": sum(sizes.values())}
    return Hit(numbers, sum(seconds for _, seconds in parts.values()), details, files=rows)


def _collective_files(evidence: Evidence) -> set[int]:
    usage = evidence.usages.get("mpiio")
    if usage is None:
        return set()
    return {file for moves in usage.moves.values() for file in by_file(usage, moves.collective)}


def _largest_parts(
    evidence: Evidence, usage: Usage, files: Container[int]
) -> dict[int, tuple[float, float]]:
    """Bytes and seconds that the busiest rank has of each file."""
    parts: dict[int, tuple[float, float]] = {}
    spread = usage.spread
    for place, (file, size) in enumerate(zip(usage.file, usage.bytes, strict=True)):
        if file not in files:
            continue
        if usage.rank[place] != EVERYONE:
            parts[file] = max(parts.get(file, (0, 0.0)), (size, usage.seconds[place]))
        elif spread is not None and size:
            # Who is slowest may be one that waits: how much ranks deviate tells how many write.
            deviation = spread.deviation_bytes[place]
            count = max(1.0, writers(size, deviation, evidence.ranks))
            alone = max(spread.slowest_bytes[place], size / count if deviation else 0)
            parts[file] = min(alone, size), spread.slowest_seconds[place]
    return parts


def aggregators(evidence: Evidence, *, wanted: str) -> Answer:
    """Compare the ranks that touch storage for collective files with the nodes of the job."""
    if evidence.ranks < 2 or not _collective_files(evidence):
        return None
    nodes = len(set(evidence.hosts.values()))
    if not evidence.callers or not nodes or len(evidence.hosts) < evidence.ranks:
        return Unknown(CALLERS)
    moved = {
        way: size for way, size in _purely_collective(evidence).items() if way in evidence.callers
    }
    if not moved:
        return Unknown(UNMIXED)
    way = max(moved, key=lambda key: moved[key])
    (largest, direction), ranks = way, evidence.callers[way]
    if len(ranks) > MAJORITY * evidence.ranks:
        return None  # ranks call storage themselves: no aggregation
    on = {evidence.hosts[rank] for rank in ranks if rank in evidence.hosts}
    if wanted != ("across" if len(on) < nodes else "one" if len(ranks) == nodes else "several"):
        return None
    striping = evidence.files.striping.get(largest)
    if wanted == "across" and striping and len(ranks) >= len(striping.targets) > 1:
        return None  # one for each target: more of them would not reach more storage
    mpiio = evidence.usages["mpiio"]
    times = times_in(mpiio, mpiio.moves[direction].seconds, {largest})
    return Hit(
        {"aggregators": len(ranks), "nodes_with_aggregators": len(on), "nodes": nodes},
        evidence.held_up(mpiio, times),
        [{"file": evidence.files.path(largest), "count": len(ranks), "share": len(on) / nodes}],
        files=[largest],
    )


def _purely_collective(evidence: Evidence) -> dict[tuple[int, str], float]:
    """Bytes of each file and direction in which every call is collective.

    Independent calls reach POSIX from the rank that makes them, whoever aggregates.
    """
    usage = evidence.usages["mpiio"]
    sizes_by_way: dict[tuple[int, str], float] = {}
    for direction, moves in usage.moves.items():
        sizes, calls = by_file(usage, moves.bytes), by_file(usage, moves.operations)
        for file, together in by_file(usage, moves.collective).items():
            if together == calls[file]:
                sizes_by_way[file, direction] = sizes.get(file, 0)
    return sizes_by_way


COLLECTIVE_RULES = (
    *both_ways("independent-{}s", Severity.HIGH, "mpiio", independent_calls, "independent-calls",
               ("collective_operations", "small_bytes"), ("M02", "M03"), collective=False),
    *both_ways("collective-{}s", Severity.OK, "mpiio", collective_calls, "collective-calls",
               ("collective_operations",), ("M04", "M05"), collective=True),
    *both_ways("blocking-{}s", Severity.INFO, "mpiio", blocking_calls, "blocking-calls", (),
               ("M06", "M07")),
    Rule("collective-overhead", Severity.HIGH, "mpiio", collective_overhead,
         "collective-overhead", ("collective_storage",),
         calls=CallKind(DIRECTIONS, collective=True)),
    Rule("single-aggregator", Severity.HIGH, "mpiio", single_aggregator, "single-aggregator",
         ("aggregator_share", "imbalance_bytes")),
    Rule("aggregators-across-nodes", Severity.HIGH, "mpiio",
         partial(aggregators, wanted="across"), "aggregators-across-nodes", (),
         ("drishti:M09",)),
    Rule("several-aggregators-per-node", Severity.WARN, "mpiio",
         partial(aggregators, wanted="several"), "several-aggregators-per-node", (),
         ("drishti:M08",)),
    Rule("one-aggregator-per-node", Severity.OK, "mpiio", partial(aggregators, wanted="one"),
         "one-aggregator-per-node", (), ("drishti:M10",)),
)  # fmt: skip


def independent_access(evidence: Evidence, *, layer: str) -> Answer:
    """Several ranks use a library's data sets, and not collectively."""
    usage = evidence.usages.get(layer)
    if usage is None or evidence.ranks < 2 or not any(usage.operations):
        return None
    if "mpiio" not in evidence.usages:
        return None  # every rank has files of its own
    alone, together = _kinds(usage)
    part = share(sum(alone), sum(alone) + sum(together))
    if part <= 1 - evidence.thresholds.collective_operations:
        return None
    numbers = {"independent": sum(alone), "collective": sum(together), "share": part}
    sums = by_file(usage, alone), by_file(usage, usage.operations)
    times = where(alone, usage.seconds)
    return file_hit(evidence, usage, numbers, times, *sums, of_calls=False)


def _kinds(usage: Usage) -> tuple[list[int], list[int]]:
    """Independent and collective accesses of each entry."""
    if "collective" in usage.extras:  # HDF5 says it for a data set as a whole
        pairs = list(zip(usage.operations, usage.extras["collective"], strict=True))
        return [0 if c else n for n, c in pairs], [n if c else 0 for n, c in pairs]
    unknown, ways = [0] * len(usage), usage.moves.values()
    alone = zip(*(moves.independent or unknown for moves in ways), strict=True)
    together = zip(*(moves.collective or unknown for moves in ways), strict=True)
    return [sum(counts) for counts in alone], [sum(counts) for counts in together]


def scattered_selections(evidence: Evidence) -> Answer:
    """Data are picked from data sets in irregular pieces or point by point."""
    usage = evidence.usages.get("hdf5")
    if usage is None or "regular" not in usage.extras:
        return None
    regular = sum(usage.extras["regular"])
    scattered = list(map(add, usage.extras["irregular"], usage.extras["points"]))
    part = share(sum(scattered), sum(scattered) + regular)
    if part <= evidence.thresholds.scattered_selections:
        return None
    numbers = {"scattered": sum(scattered), "regular": regular, "share": part}
    sums = by_file(usage, scattered), by_file(usage, usage.operations)
    times = where(scattered, usage.seconds)
    return file_hit(evidence, usage, numbers, times, *sums, of_calls=False)


LIBRARIES = ("hdf5", "pnetcdf")
LIBRARY_RULES = (
    *(rule
      for layer in LIBRARIES
      for rule in both_ways(
          f"{layer}-small-{{}}s", Severity.WARN, layer, partial(small_accesses, layer=layer),
          f"{layer}-small-accesses", ("small_requests", "small_bytes"), small=True)),
    *(Rule(f"{layer}-independent-access", Severity.WARN, layer,
           partial(independent_access, layer=layer), f"{layer}-independent-access",
           ("collective_operations",), calls=CallKind(DIRECTIONS, collective=False))
      for layer in LIBRARIES),
    Rule("hdf5-scattered-selections", Severity.WARN, "hdf5", scattered_selections,
         "hdf5-scattered-selections", ("scattered_selections",)),
)  # fmt: skip

RULES = (*COLLECTIVE_RULES, *LIBRARY_RULES)
