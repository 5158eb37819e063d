"""How data libraries are used: HDF5 and PnetCDF."""

from __future__ import annotations

from functools import partial

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.rule import (
    Answer,
    CallKind,
    Hit,
    Rule,
    Unknown,
    both,
    by_file,
    file_details,
    share,
    small_portions,
)
from ioprism.model.usage import DIRECTIONS, Usage
from ioprism.model.verdict import Severity


def small_accesses(evidence: Evidence, *, layer: str, direction: str) -> Answer:
    """More than a share of the accesses to data sets is small."""
    usage = evidence.usages.get(layer)
    if usage is None or not any(usage.moves[direction].operations):
        return None
    moves = usage.moves[direction]
    if moves.small is None:
        return Unknown("sizes of accesses to data sets")
    part = share(sum(moves.small), sum(moves.operations))
    if part <= evidence.thresholds.small_requests:
        return None
    details, rows = file_details(
        evidence, by_file(usage, moves.small), by_file(usage, moves.operations)
    )
    return Hit(
        {"accesses": sum(moves.operations), "small": sum(moves.small), "share": part},
        evidence.held_up(
            usage, small_portions(moves, moves.small, evidence.thresholds.small_bytes)
        ),
        details,
        files=rows,
        of_calls=True,
    )


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
    details, rows = file_details(evidence, by_file(usage, alone), by_file(usage, usage.operations))
    times = [t if n else 0.0 for t, n in zip(usage.seconds, alone, strict=True)]
    numbers = {"independent": sum(alone), "collective": sum(together), "share": part}
    return Hit(numbers, evidence.held_up(usage, times), details, files=rows)


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
    scattered = [
        i + p for i, p in zip(usage.extras["irregular"], usage.extras["points"], strict=True)
    ]
    part = share(sum(scattered), sum(scattered) + regular)
    if part <= evidence.thresholds.scattered_selections:
        return None
    details, rows = file_details(
        evidence, by_file(usage, scattered), by_file(usage, usage.operations)
    )
    times = [t if n else 0.0 for t, n in zip(usage.seconds, scattered, strict=True)]
    numbers = {"scattered": sum(scattered), "regular": regular, "share": part}
    return Hit(numbers, evidence.held_up(usage, times), details, files=rows)


def _small(direction: str, layer: str) -> Rule:
    return Rule(
        f"{layer}-small-{direction}s",
        Severity.WARN,
        layer,
        partial(small_accesses, layer=layer, direction=direction),
        f"{layer}-small-accesses",
        ("small_requests", "small_bytes"),
        (),
        direction,
        CallKind((direction,), small=True),
    )


def _independent(layer: str) -> Rule:
    return Rule(
        f"{layer}-independent-access",
        Severity.WARN,
        layer,
        partial(independent_access, layer=layer),
        f"{layer}-independent-access",
        ("collective_operations",),
        calls=CallKind(DIRECTIONS, collective=False),
    )


RULES = (
    *both(partial(_small, layer="hdf5")),
    *both(partial(_small, layer="pnetcdf")),
    _independent("hdf5"),
    _independent("pnetcdf"),
    Rule("hdf5-scattered-selections", Severity.WARN, "hdf5", scattered_selections,
         "hdf5-scattered-selections", ("scattered_selections",)),
)  # fmt: skip
