"""Cases with nothing to gain, and with two causes at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.simulated_storage.draw import Draw
from benchmarks.simulated_storage.hardware import MiB
from benchmarks.simulated_storage.kinds.requests import own_files
from benchmarks.simulated_storage.kinds.storage_path import with_system
from benchmarks.simulated_storage.patterns import Builder, session, stripes, synced_each, transfer
from benchmarks.simulated_storage.program import Call, Program, Step
from benchmarks.simulated_storage.scenario import Scenario


def late_rank(d: Draw) -> Scenario:
    """One rank computes longer; all wait for it, but not for I/O."""
    program = own_files(
        d,
        "run/o.{rank:04d}",
        lambda f, k: session(f, transfer(f, "write", k * 4 * MiB, 4 * MiB, MiB)),
    )
    late = d.whole(0, d.ranks - 1)
    pauses = np.full(d.ranks, d.compute * 4)
    pauses[late] *= d.rng.uniform(2.0, 4.0)
    steps = [Step(step.scripts, pauses.tolist()) for step in program.steps]
    return Scenario(Program(d.ranks, program.files, steps), d.machine)


def ugly_but_cheap(d: Draw) -> Scenario:
    """Small, random and many calls that cost next to nothing beside the computing."""
    builder = Builder(d.ranks)
    log = builder.file(f"{d.system.mount}/run/log.txt")
    table = builder.file(f"{d.system.mount}/in/table.bin", stripes(0, 2, d.targets))
    order = d.rng.permutation(12).tolist()
    look_up = [Call("read", table, place * 4096, 4096) for place in order]
    builder.step(dict.fromkeys(range(d.ranks), session(table, look_up)), 1.0)
    for _ in range(d.steps):
        lines = session(log, [Call("write", log, i * 120, 120) for i in range(20)])
        builder.step({0: lines}, d.real(25.0, 60.0))
    return Scenario(builder.program(), d.machine)


def two_causes(d: Draw) -> Scenario:
    """A slow target under the checkpoints, and a storm of tiny files before each of them."""
    folder, count = f"{d.system.mount}/run/tmp", d.whole(10, 40)
    size, pieces = d.choose(1, 2) * MiB, d.whole(8, 16)
    target = d.whole(0, d.targets - 1)

    def make(many: bool) -> Program:
        builder = Builder(d.ranks)
        out = builder.file_per_rank(
            d.system.mount + "/run/out.{rank:04d}", lambda r: (r % d.targets,)
        )
        for step in range(d.steps):
            storm: dict[int, list[Call]] = {}
            for rank in range(d.ranks):
                names = range(count) if many else range(1)
                tiny = [builder.file(f"{folder}/{rank:03d}_{step}_{i:04d}") for i in names]
                total = 2048 if many else 2048 * count
                storm[rank] = [c for f in tiny for c in session(f, [Call("write", f, 0, total)])]
            builder.step(storm, d.compute)
            writes = {
                r: session(f, transfer(f, "write", step * size * pieces, size * pieces, size))
                for r, f in enumerate(out)
            }
            builder.step(writes, 0.0)
        return builder.program()

    slow = with_system(d.machine, slow={target: d.real(3.0, 8.0)})
    return Scenario(
        make(True), slow, ("slow-target", "metadata"), {"target": target, "directory": folder},
        (make(False), d.machine),
        {"slow-target": (make(True), d.machine), "metadata": (make(False), slow)},
    )  # fmt: skip


def slow_node_and_syncs(d: Draw) -> Scenario:
    """One node's link is slow, and a journal is forced to storage after every record."""
    host, size, records = d.whole(0, d.hosts - 1), 2 * MiB, d.whole(15, 40)

    def make(each: bool) -> Program:
        builder = Builder(d.ranks)
        base = d.system.mount + "/run/"
        out = builder.file_per_rank(base + "out.{rank:04d}", lambda r: (r % d.targets,))
        journal = builder.file_per_rank(base + "journal.{rank:04d}", lambda r: (r % d.targets,))
        for step in range(d.steps):
            notes = {}
            for rank, file in enumerate(journal):
                lines = transfer(file, "write", step * records * 4096, records * 4096, 4096)
                own = synced_each(lines) if each else [*lines, Call("sync", file)]
                notes[rank] = session(file, own)
            builder.step(notes, d.compute)
            builder.step(
                {
                    r: session(f, transfer(f, "write", 0, 12 * size, size))
                    for r, f in enumerate(out)
                },
                d.compute,
            )
        return builder.program()

    slow = replace(d.machine, slow_hosts={host: d.real(10.0, 40.0)})
    culprit = {"host": f"node{host + 1:04d}", "operation": "sync"}
    return Scenario(
        make(True), slow, ("slow-node", "frequent-sync"), culprit, (make(False), d.machine),
        {"slow-node": (make(True), d.machine), "frequent-sync": (make(False), slow)},
    )  # fmt: skip


def many_kinds_of_io(d: Draw) -> Scenario:
    """Reads of input, checkpoints and a log of rank 0, as most programs do; one target is slow."""
    builder = Builder(d.ranks)
    base = d.system.mount
    everywhere = stripes(0, d.targets, d.targets)
    mesh = builder.file(f"{base}/in/mesh.h5", everywhere)
    part = 2 * MiB
    reads = {r: session(mesh, transfer(mesh, "read", r * part, part, MiB)) for r in range(d.ranks)}
    builder.step(reads, 0.3)
    out = builder.file_per_rank(base + "/run/check.{rank:05d}", lambda r: (r % d.targets,))
    log = builder.file("/home/user/run.log")
    size, pieces = d.choose(1, 2, 4) * MiB, d.whole(6, 14)
    for step in range(d.steps):
        builder.step({0: [Call("write", log, (step * 8 + i) * 100, 100) for i in range(8)]}, 0.1)
        writes = {
            r: session(f, transfer(f, "write", step * size * pieces, size * pieces, size))
            for r, f in enumerate(out)
        }
        builder.step(writes, d.pauses())
    target, program = d.whole(0, d.targets - 1), builder.program()
    slow = with_system(d.machine, slow={target: d.real(2.5, 8.0)})
    return Scenario(program, slow, ("slow-target",), {"target": target}, (program, d.machine))
