"""Cases whose cause lies in what the program asks for."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.simulated_storage.draw import Draw
from benchmarks.simulated_storage.hardware import MiB
from benchmarks.simulated_storage.patterns import (
    Builder,
    Direction,
    session,
    stripes,
    transfer,
)
from benchmarks.simulated_storage.program import Call, Program
from benchmarks.simulated_storage.scenario import Scenario

KiB = 1 << 10
Maker = Callable[[bool], Program]


def pair(d: Draw, make: Maker, causes: tuple[str, ...], culprit: dict[str, object]) -> Scenario:
    """A scenario from a program that is made with and without the cause."""
    return Scenario(make(True), d.machine, causes, culprit, (make(False), d.machine))


def own_files(d: Draw, name: str, script: Callable[[int, int], list[Call]]) -> Program:
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

    return pair(d, make, ("data-imbalance",), {"ranks": heavy})


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

    return pair(d, make, ("serial-io",), {"rank": 0})


def small_requests(d: Draw) -> Scenario:
    """The same bytes in many small requests instead of a few large ones."""
    size = d.choose(4 * KiB, 16 * KiB, 47 * KiB)
    total = size * d.whole(60, 160)
    direction: Direction = d.choose("write", "read")

    def make(small: bool) -> Program:
        width = size if small else 4 * MiB
        return own_files(
            d,
            "run/small.{rank:04d}",
            lambda f, k: session(f, transfer(f, direction, k * total, total, width)),
        )

    return pair(d, make, ("small-requests",), {"bytes_per_request": size})


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
    return pair(d, make, ("shared-file-contention", "small-requests"), culprit)


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
    return pair(d, make, ("misalignment", "shared-file-contention"), culprit)


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

    return pair(d, make, ("random-access", "small-requests"), {"access": "random"})


def redundant_reads(d: Draw) -> Scenario:
    """Every rank reads a whole file that one could read and send to the others."""
    size, count = d.choose(1, 4) * MiB, d.whole(12, 40)
    few = stripes(d.whole(0, 2), min(4, d.targets), d.targets)

    def make(redundant: bool) -> Program:
        builder = Builder(d.ranks)
        mesh = builder.file(f"{d.system.mount}/in/mesh.nc", few)
        out = builder.file_per_rank(
            d.system.mount + "/run/o.{rank:04d}", lambda r: (r % d.targets,)
        )
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

    return pair(d, make, ("redundant-reads",), {"file": f"{d.system.mount}/in/mesh.nc"})
