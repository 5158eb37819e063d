"""Cases whose cause lies in what the program asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ioprism.synthetic.machine.hardware import MiB
from ioprism.synthetic.machine.kinds_storage import with_system
from ioprism.synthetic.machine.patterns import (
    Builder,
    reopened_each,
    session,
    stripes,
    synced_each,
    transfer,
)
from ioprism.synthetic.machine.program import Call, Program, Step
from ioprism.synthetic.machine.scenario import Draw, Scenario

KiB = 1 << 10
Maker = Callable[[bool], Program]


def _pair(
    d: Draw, make: Maker, causes: tuple[str, ...], culprit: dict[str, object]
) -> Scenario:
    return Scenario(make(True), d.machine, causes, culprit, (make(False), d.machine))


def _own_files(d: Draw, name: str, script: Callable[[int, int], list[Call]]) -> Program:
    """A file per process on all targets in turn; `script` gets a file and a step."""
    builder = Builder(d.ranks)
    files = builder.file_per_rank(f"{d.system.mount}/{name}", lambda r: (r % d.targets,))
    for step in range(d.steps):
        builder.step({r: script(f, step) for r, f in enumerate(files)}, d.compute)
    return builder.program()


def data_skew(d: Draw) -> Scenario:
    """Some ranks move several times as much as others."""
    heavy = sorted(d.rng.choice(d.ranks, d.whole(1, 2), replace=False).tolist())
    factor, size, pieces = d.whole(4, 12), d.choose(1, 2) * MiB, d.whole(4, 10)
    total = size * pieces * (d.ranks + (factor - 1) * len(heavy))

    def make(uneven: bool) -> Program:
        builder = Builder(d.ranks)
        everywhere = stripes(0, d.targets, d.targets)
        files = builder.file_per_rank(d.system.mount + "/run/part.{rank:04d}", lambda _: everywhere)
        even = -(-total // d.ranks // 4096) * 4096
        for _ in range(d.steps):
            scripts = {}
            for rank, file in enumerate(files):
                own = size * pieces * (factor if rank in heavy else 1) if uneven else even
                scripts[rank] = session(file, transfer(file, "write", 0, own, size))
            builder.step(scripts, d.compute)
        return builder.program()

    return _pair(d, make, ("data-imbalance",), {"ranks": heavy})


def rank_zero(d: Draw) -> Scenario:
    """Rank 0 writes what all have computed, while they wait."""
    size, total = 4 * MiB, 4 * MiB * d.ranks * d.whole(3, 8)
    per_host = d.machine.ranks_per_host

    def make(serial: bool) -> Program:
        builder = Builder(d.ranks)
        path = f"{d.system.mount}/run/{d.system.targets}-result.nc"
        file = builder.file(path, stripes(0, d.targets, d.targets))
        writers = [0] if serial else list(range(0, d.ranks, per_host))
        share = total // len(writers) // size * size
        for step in range(d.steps):
            base = step * total
            scripts = {
                rank: session(file, transfer(file, "write", base + place * share, share, size))
                for place, rank in enumerate(writers)
            }
            builder.step(scripts, d.compute)
        return builder.program()

    return _pair(d, make, ("serial-io",), {"rank": 0})


def small_requests(d: Draw) -> Scenario:
    """The same bytes in many small requests instead of a few large ones."""
    size = d.choose(4 * KiB, 16 * KiB, 47 * KiB)
    total = size * d.whole(60, 160)
    direction = d.choose("write", "read")

    def make(small: bool) -> Program:
        width = size if small else 4 * MiB
        return _own_files(
            d,
            "run/small.{rank:04d}",
            lambda f, k: session(f, transfer(f, direction, k * total, total, width)),
        )

    return _pair(d, make, ("small-requests",), {"bytes_per_request": size})


def interleaved_shared(d: Draw) -> Scenario:
    """Small writes of all ranks lie between each other in one shared file."""
    size, count = d.choose(16, 32, 47, 64) * KiB, d.whole(30, 60)
    part = -(-size * count // MiB) * MiB

    def make(interleaved: bool) -> Program:
        builder = Builder(d.ranks)
        file = builder.file(
            f"{d.system.mount}/run/shared.dat", stripes(0, d.targets, d.targets), MiB
        )
        for step in range(d.steps):
            scripts = {}
            for rank in range(d.ranks):
                if interleaved:
                    first = step * count * d.ranks
                    calls = [
                        Call("write", file, (first + i * d.ranks + rank) * size, size)
                        for i in range(count)
                    ]
                else:
                    base = (step * d.ranks + rank) * part
                    calls = transfer(file, "write", base, size * count, MiB)
                scripts[rank] = session(file, calls)
            builder.step(scripts, d.compute)
        return builder.program()

    culprit: dict[str, object] = {"file": f"{d.system.mount}/run/shared.dat"}
    return _pair(d, make, ("shared-file-contention", "small-requests"), culprit)


def misaligned_shared(d: Draw) -> Scenario:
    """Requests as large as a lock block, each across the border of two."""
    stripe, count = d.choose(1, 2) * MiB, d.whole(8, 20)
    shift = d.choose(512, 4096, stripe // 3 // 512 * 512)

    def make(misaligned: bool) -> Program:
        builder = Builder(d.ranks)
        path = f"{d.system.mount}/run/shared.dat"
        file = builder.file(path, stripes(0, d.targets, d.targets), stripe)
        for step in range(d.steps):
            first = step * count * d.ranks
            scripts = {
                rank: session(
                    file,
                    [
                        Call(
                            "write",
                            file,
                            (first + i * d.ranks + rank) * stripe + (shift if misaligned else 0),
                            stripe,
                        )
                        for i in range(count)
                    ],
                )
                for rank in range(d.ranks)
            }
            builder.step(scripts, d.compute)
        return builder.program()

    culprit: dict[str, object] = {"file": f"{d.system.mount}/run/shared.dat"}
    return _pair(d, make, ("misalignment", "shared-file-contention"), culprit)


def random_reads(d: Draw) -> Scenario:
    """Reads in random order instead of in order."""
    size, count = d.choose(16, 64, 128) * KiB, d.whole(80, 200)
    orders = [d.rng.permutation(count).tolist() for _ in range(d.ranks)]

    def make(scattered: bool) -> Program:
        builder = Builder(d.ranks)
        files = builder.file_per_rank(
            d.system.mount + "/data/part.{rank:04d}.bin", lambda r: (r % d.targets,)
        )
        for _ in range(max(1, d.steps // 2)):
            scripts = {}
            for rank, file in enumerate(files):
                places = orders[rank] if scattered else range(count)
                scripts[rank] = session(file, [Call("read", file, p * size, size) for p in places])
            builder.step(scripts, d.compute)
        return builder.program()

    return _pair(d, make, ("random-access", "small-requests"), {"access": "random"})


def redundant_reads(d: Draw) -> Scenario:
    """Every rank reads a whole file that one could read and send to the others."""
    size, count = d.choose(1, 4) * MiB, d.whole(12, 40)
    few = stripes(d.whole(0, 2), min(4, d.targets), d.targets)

    def make(redundant: bool) -> Program:
        builder = Builder(d.ranks)
        mesh = builder.file(f"{d.system.mount}/in/mesh.nc", few)
        out = builder.file_per_rank(d.system.mount + "/run/o.{rank:04d}", lambda r: (r % d.targets,))
        readers = range(d.ranks) if redundant else [0]
        scripts = {r: session(mesh, transfer(mesh, "read", 0, size * count, size)) for r in readers}
        builder.step(scripts, d.compute)
        if not redundant:  # the broadcast, over the nodes' links
            builder.step({}, size * count / d.machine.link_rate)
        for step in range(d.steps):
            writes = {
                r: session(f, transfer(f, "write", step * 4 * MiB, 4 * MiB, 4 * MiB))
                for r, f in enumerate(out)
            }
            builder.step(writes, d.compute)
        return builder.program()

    return _pair(d, make, ("redundant-reads",), {"file": f"{d.system.mount}/in/mesh.nc"})


def metadata_storm(d: Draw) -> Scenario:
    """Many tiny files where one per rank would hold the data."""
    folder = f"{d.system.mount}/run/{d.choose('cache', 'tmp', 'frames')}"
    count, size, stats = d.whole(40, 150), d.choose(1, 2, 4) * KiB, d.choose(True, False)

    def make(many: bool) -> Program:
        builder = Builder(d.ranks)
        scripts: dict[int, list[Call]] = {}
        for rank in range(d.ranks):
            calls: list[Call] = []
            names = [f"obj_{i:05d}" for i in range(count)] if many else ["all"]
            for name in names:
                file = builder.file(f"{folder}/{rank:03d}/{name}")
                lookup = [Call("stat", file)] if stats and many else []
                total = size if many else size * count
                calls += [*lookup, *session(file, transfer(file, "write", 0, total, MiB))]
            scripts[rank] = calls
        builder.step(scripts, d.compute)
        for _ in range(2):
            builder.step({}, d.compute / 2)
        return builder.program()

    return _pair(d, make, ("metadata",), {"directory": folder})


def reopen_each(d: Draw) -> Scenario:
    """The file is opened and closed around every write."""
    size, count = d.choose(64, 128, 256) * KiB, d.whole(30, 90)

    def script(file: int, step: int, *, again: bool) -> list[Call]:
        calls = transfer(file, "write", step * size * count, size * count, size)
        return reopened_each(calls) if again else session(file, calls)

    def make(again: bool) -> Program:
        return _own_files(d, "run/log.{rank:04d}", lambda f, k: script(f, k, again=again))

    return _pair(d, make, ("metadata",), {"operation": "open"})


def sync_each(d: Draw) -> Scenario:
    """Every write is forced to storage."""
    size, count = d.choose(64, 256, 1024) * KiB, d.whole(15, 50)

    def script(file: int, step: int, *, each: bool) -> list[Call]:
        calls = transfer(file, "write", step * size * count, size * count, size)
        return session(file, synced_each(calls)) if each else session(file, calls, sync=True)

    def make(each: bool) -> Program:
        return _own_files(d, "run/journal.{rank:04d}", lambda f, k: script(f, k, each=each))

    return _pair(d, make, ("frequent-sync",), {"operation": "sync"})


def library_start(d: Draw) -> Scenario:
    """Every rank looks up and reads the same modules from home before it starts."""
    folder, count = d.choose("/home/user/env/lib", "/home/user/conda/lib/python3.12"), d.whole(40, 120)

    def make(all_ranks: bool) -> Program:
        builder = Builder(d.ranks)
        files = [builder.file(f"{folder}/module_{i:03d}.{'so' if i % 3 else 'py'}") for i in range(count)]
        out = builder.file_per_rank(d.system.mount + "/run/o.{rank:04d}", lambda r: (r % d.targets,))
        script = [c for f in files for c in (Call("stat", f), *session(f, [Call("read", f, 0, 24 * KiB)]))]
        readers = range(d.ranks) if all_ranks else range(0, d.ranks, d.machine.ranks_per_host)
        builder.step(dict.fromkeys(readers, script), 0.05)
        for step in range(d.steps):
            writes = {
                r: session(f, transfer(f, "write", step * 4 * MiB, 4 * MiB, 4 * MiB))
                for r, f in enumerate(out)
            }
            builder.step(writes, d.compute / 2)
        return builder.program()

    return _pair(d, make, ("library-start",), {"directory": folder})


def late_rank(d: Draw) -> Scenario:
    """One rank computes longer; all wait for it, but not for I/O."""
    program = _own_files(
        d, "run/o.{rank:04d}", lambda f, k: session(f, transfer(f, "write", k * 4 * MiB, 4 * MiB, MiB))
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
        out = builder.file_per_rank(d.system.mount + "/run/out.{rank:04d}", lambda r: (r % d.targets,))
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
