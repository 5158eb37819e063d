"""Cases whose cause lies in the storage path or in where the data lie."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.simulated_storage.draw import Draw
from benchmarks.simulated_storage.hardware import FileSystem, Machine, MiB, Window
from benchmarks.simulated_storage.patterns import Builder, Direction, session, stripes, transfer
from benchmarks.simulated_storage.program import Program
from benchmarks.simulated_storage.scenario import Scenario


def with_system(machine: Machine, **changes: object) -> Machine:
    """The machine with its first file system changed."""
    first = replace(machine.file_systems[0], **changes)  # type: ignore[arg-type]
    return replace(machine, file_systems=(first, *machine.file_systems[1:]))


def checkpoints(d: Draw, *, direction: Direction, per_rank: int, size: int) -> Program:
    """A file per process, opened in each step; every target holds as many files as others."""
    builder = Builder(d.ranks)
    count = d.choose(1, 1, 2)
    folder = f"{d.system.mount}/{d.choose('run', 'proj/out', 'user/job_7')}"
    files = builder.file_per_rank(
        folder + "/" + d.choose("out.{rank:04d}", "state_{rank:05d}.bin", "part-{rank}.dat"),
        lambda rank: stripes(rank * count, count, d.targets),
        d.choose(MiB, 4 * MiB),
    )
    overwrites = d.choose(True, False) and direction == "write"  # reading again is a cause
    for step in range(d.steps):
        scripts = {
            rank: session(
                file,
                transfer(file, direction, 0 if overwrites else step * per_rank, per_rank, size),
            )
            for rank, file in enumerate(files)
        }
        builder.step(scripts, d.pauses())
    return builder.program()


def shared_parts(d: Draw, *, direction: Direction, targets: tuple[int, ...], name: str) -> Program:
    """One shared file in which every rank has one aligned part per step."""
    builder = Builder(d.ranks)
    stripe = d.choose(MiB, 2 * MiB, 4 * MiB)
    file = builder.file(f"{d.system.mount}/{d.choose('run', 'a/b')}/{name}", targets, stripe)
    # No request touches all targets: else no log tells them apart.
    size = stripe * d.choose(*(count for count in (1, 2, 4) if count == 1 or count < len(targets)))
    part = size * d.choose(4, 6, 8)
    for step in range(d.steps):
        base = step * part * d.ranks
        scripts = {
            rank: session(file, transfer(file, direction, base + rank * part, part, size))
            for rank in range(d.ranks)
        }
        builder.step(scripts, d.pauses())
    return builder.program()


def _plain(d: Draw) -> Program:
    size = d.choose(1, 2, 4) * MiB
    direction: Direction = d.choose("write", "write", "read")
    return checkpoints(d, direction=direction, per_rank=size * d.whole(8, 20), size=size)


def healthy(d: Draw) -> Scenario:
    """A file per process, large requests, everything even."""
    return Scenario(_plain(d), d.machine)


def healthy_shared(d: Draw) -> Scenario:
    """A shared file over all targets, aligned parts, large requests."""
    program = shared_parts(
        d,
        direction=d.choose("write", "read"),
        targets=stripes(0, d.targets, d.targets),
        name="all.h5",
    )
    return Scenario(program, d.machine)


def slow_target(d: Draw) -> Scenario:
    """One target is slow; files per process."""
    target, program = d.whole(0, d.targets - 1), _plain(d)
    machine = with_system(d.machine, slow={target: d.real(2.0, 9.0)})
    return Scenario(program, machine, ("slow-target",), {"target": target}, (program, d.machine))


def slow_targets(d: Draw) -> Scenario:
    """Two targets are slow, as behind one failing controller."""
    first, program = d.whole(0, d.targets - 2), _plain(d)
    factor = d.real(2.5, 8.0)
    pair = [first, first + 1]
    machine = with_system(d.machine, slow=dict.fromkeys(pair, factor))
    return Scenario(program, machine, ("slow-target",), {"targets": pair}, (program, d.machine))


def slow_target_shared(d: Draw) -> Scenario:
    """One target of a shared file's stripes is slow."""
    everywhere = stripes(d.whole(0, 3), d.targets, d.targets)
    program = shared_parts(
        d, direction=d.choose("write", "write", "read"), targets=everywhere, name="field.dat"
    )
    target = d.choose(*everywhere)
    machine = with_system(d.machine, slow={target: d.real(2.5, 9.0)})
    return Scenario(program, machine, ("slow-target",), {"target": target}, (program, d.machine))


def slow_node(d: Draw) -> Scenario:
    """One node's link is slow."""
    host, program = d.whole(0, d.hosts - 1), _plain(d)
    machine = replace(d.machine, slow_hosts={host: d.real(8.0, 40.0)})
    return Scenario(
        program, machine, ("slow-node",), {"host": f"node{host + 1:04d}"}, (program, d.machine)
    )


def slow_rank(d: Draw) -> Scenario:
    """One process is slow in its own calls; each file is striped over all targets."""
    builder = Builder(d.ranks)
    files = builder.file_per_rank(
        d.system.mount + "/run/r.{rank:04d}", lambda rank: stripes(rank, d.targets, d.targets)
    )
    size, pieces = d.choose(1, 2) * MiB, d.whole(8, 20)
    for _ in range(d.steps):
        scripts = {
            rank: session(file, transfer(file, "write", 0, size * pieces, size))
            for rank, file in enumerate(files)
        }
        builder.step(scripts, d.pauses())
    rank, program = d.whole(0, d.ranks - 1), builder.program()
    machine = replace(d.machine, slow_ranks={rank: d.real(40.0, 150.0)})
    return Scenario(program, machine, ("slow-rank",), {"ranks": [rank]}, (program, d.machine))


def hot_target(d: Draw) -> Scenario:
    """An unlucky layout puts many ranks' files on one target."""
    target, share = d.whole(0, d.targets - 1), d.whole(2, 4)
    size, pieces = d.choose(1, 2, 4) * MiB, d.whole(6, 16)

    def program(*, hot: bool) -> Program:
        builder = Builder(d.ranks)
        files = builder.file_per_rank(
            d.system.mount + "/run/out.{rank:04d}",
            lambda rank: (target if hot and rank % share == 0 else rank % d.targets,),
        )
        for step in range(d.steps):
            scripts = {
                rank: session(
                    file, transfer(file, "write", step * size * pieces, size * pieces, size)
                )
                for rank, file in enumerate(files)
            }
            builder.step(scripts, d.compute)
        return builder.program()

    return Scenario(
        program(hot=True), d.machine, ("hot-target",), {"target": target},
        (program(hot=False), d.machine),
    )  # fmt: skip


def few_targets(d: Draw) -> Scenario:
    """A file that all ranks share lies on one target."""
    target = d.whole(0, d.targets - 1)
    name = d.choose("big.h5", "mesh.nc", "dump.bin")
    program = shared_parts(d, direction=d.choose("write", "read"), targets=(target,), name=name)
    wide = replace(
        program,
        files=[
            replace(file, targets=stripes(target, d.targets, d.targets)) for file in program.files
        ],
    )
    # Other files show that the system has more targets.
    culprit = {"file": program.files[0].path, "target": target}
    return Scenario(
        _beside(d, program), d.machine, ("few-targets",), culprit, (_beside(d, wide), d.machine)
    )


def _beside(d: Draw, program: Program) -> Program:
    """The program with a small, well spread file per process read at its start."""
    builder = Builder(d.ranks, list(program.files))
    files = builder.file_per_rank(
        d.system.mount + "/in/part.{rank:04d}", lambda rank: (rank % d.targets,)
    )
    builder.step(
        {r: session(f, transfer(f, "read", 0, MiB, MiB)) for r, f in enumerate(files)}, 0.2
    )
    return replace(program, files=builder.files, steps=[*builder.steps, *program.steps])


def interference(d: Draw) -> Scenario:
    """Other jobs keep all targets busy for a third of the run."""
    longer = replace(d, steps=d.whole(9, 16), compute=d.real(3.0, 7.0))
    program = _plain(longer)
    length = longer.steps * longer.compute * 1.2
    start = round(length * d.rng.uniform(0.2, 0.45), 1)
    end = round(start + length * d.rng.uniform(0.2, 0.35), 1)
    machine = with_system(d.machine, windows=(Window(start, end, d.real(2.5, 7.0)),))
    return Scenario(
        program, machine, ("interference",), {"from": start, "to": end}, (program, d.machine)
    )


def second_file_system(d: Draw) -> Scenario:
    """Two Lustre file systems with targets of the same numbers; one target of one is slow."""
    other = FileSystem("/archive", targets=d.targets, rate=d.system.rate / 2, noise=d.system.noise)
    machine = replace(d.machine, file_systems=(*d.machine.file_systems, other))
    builder = Builder(d.ranks)
    size, pieces = d.choose(1, 2) * MiB, d.whole(6, 12)
    out = builder.file_per_rank(d.system.mount + "/run/out.{rank:04d}", lambda r: (r % d.targets,))
    kept = builder.file_per_rank("/archive/run/keep.{rank:04d}", lambda r: (r % d.targets,))
    for step in range(d.steps):
        scripts = {
            rank: [
                *session(out[rank], transfer(out[rank], "write", 0, size * pieces, size)),
                *session(kept[rank], transfer(kept[rank], "write", step * size, size, size)),
            ]
            for rank in range(d.ranks)
        }
        builder.step(scripts, d.pauses())
    target, program = d.whole(0, d.targets - 1), builder.program()
    return Scenario(
        program, with_system(machine, slow={target: d.real(2.5, 8.0)}), ("slow-target",),
        {"target": target}, (program, machine),
    )  # fmt: skip
