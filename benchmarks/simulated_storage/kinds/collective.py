"""Cases whose cause lies in the MPI-IO library between the program and the file system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.simulated_storage.draw import Draw
from benchmarks.simulated_storage.hardware import MiB
from benchmarks.simulated_storage.patterns import Builder, CollectiveWrite, stripes
from benchmarks.simulated_storage.program import Call, Program
from benchmarks.simulated_storage.scenario import Scenario

KiB = 1 << 10


def _collective(
    d: Draw,
    write: CollectiveWrite,
    *,
    aggregators: Sequence[int] | None,
    buffer: int,
    sieving: bool = False,
) -> Program:
    """Collective writes through these aggregators; without any, each rank's own pieces."""
    builder = Builder(write.ranks)
    path = f"{d.system.mount}/run/state.nc"
    file = builder.file(path, stripes(0, d.targets, d.targets))
    builder.step({rank: [Call("open", file)] for rank in range(write.ranks)}, 0.0)
    hosts = len({d.machine.host_of(rank) for rank in aggregators or range(write.ranks)})
    for step in range(d.steps):
        scripts = (
            write.aggregated(step, aggregators, buffer, sieving=sieving)
            if aggregators is not None
            else {rank: write.own_pieces(step, rank) for rank in range(write.ranks)}
        )
        exchanged = write.step_bytes if aggregators is not None else 0
        builder.step(
            scripts, d.compute, asked=write.asked(step), collective=True,
            exchanged=exchanged, receivers=hosts,
        )  # fmt: skip
    return builder.program(metadata={"lib_ver": "3.5.0", "h": "romio_no_indep_rw=true"})


def _shape(d: Draw, piece: int, pieces: int) -> CollectiveWrite:
    return CollectiveWrite(0, d.ranks, d.hosts, piece, pieces)


def healthy_collective(d: Draw) -> Scenario:
    """One aggregator per node writes large contiguous buffers."""
    write = _shape(d, d.choose(96, 256, 768) * KiB, d.whole(8, 40))
    program = _collective(d, write, aggregators=write.one_per_host(), buffer=4 * MiB)
    return Scenario(program, d.machine)


def late_collective(d: Draw) -> Scenario:
    """One rank computes longer; all others wait for it inside their collective calls."""
    scenario = healthy_collective(d)
    pauses = np.full(d.ranks, d.compute)
    pauses[d.whole(0, d.ranks - 1)] *= d.rng.uniform(2.0, 4.0)
    first, *rest = scenario.program.steps
    steps = [first, *(replace(step, compute=pauses.tolist()) for step in rest)]
    return replace(scenario, program=replace(scenario.program, steps=steps))


def single_aggregator(d: Draw) -> Scenario:
    """All collective data funnel through one rank."""
    write = _shape(d, d.choose(96, 192, 384) * KiB, d.whole(16, 60))
    one, many = [0], write.one_per_host()
    return Scenario(
        _collective(d, write, aggregators=one, buffer=4 * MiB), d.machine,
        ("few-aggregators", "serial-io"), {"rank": 0, "file": f"{d.system.mount}/run/state.nc"},
        (_collective(d, write, aggregators=many, buffer=4 * MiB), d.machine),
    )  # fmt: skip


def unaggregated(d: Draw) -> Scenario:
    """Collective calls reach the file system in the program's small pieces."""
    write = _shape(d, d.choose(16, 48, 96) * KiB, d.whole(20, 60))
    many = write.one_per_host()
    return Scenario(
        _collective(d, write, aggregators=None, buffer=4 * MiB), d.machine,
        ("collective-not-aggregated", "shared-file-contention"),
        {"file": f"{d.system.mount}/run/state.nc"},
        (_collective(d, write, aggregators=many, buffer=4 * MiB), d.machine),
    )  # fmt: skip


def read_modify_write(d: Draw) -> Scenario:
    """Data sieving reads and rewrites every buffer that the program only writes."""
    write = _shape(d, d.choose(16, 48, 96) * KiB, d.whole(20, 60))
    many = write.one_per_host()
    sieved = _collective(d, write, aggregators=many, buffer=512 * KiB, sieving=True)
    return Scenario(
        sieved, d.machine, ("read-modify-write",), {"file": f"{d.system.mount}/run/state.nc"},
        (_collective(d, write, aggregators=many, buffer=4 * MiB), d.machine),
    )  # fmt: skip
