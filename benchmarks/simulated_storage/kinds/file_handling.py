"""Cases whose cause lies in opening, looking up and syncing files."""

from __future__ import annotations

from benchmarks.simulated_storage.draw import Draw
from benchmarks.simulated_storage.hardware import MiB
from benchmarks.simulated_storage.kinds.requests import KiB, own_files, pair
from benchmarks.simulated_storage.patterns import (
    Builder,
    reopened_each,
    session,
    synced_each,
    transfer,
)
from benchmarks.simulated_storage.program import Call, Program
from benchmarks.simulated_storage.scenario import Scenario


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

    return pair(d, make, ("metadata",), {"directory": folder})


def reopen_each(d: Draw) -> Scenario:
    """The file is opened and closed around every write."""
    size, count = d.choose(64, 128, 256) * KiB, d.whole(30, 90)

    def script(file: int, step: int, *, again: bool) -> list[Call]:
        calls = transfer(file, "write", step * size * count, size * count, size)
        return reopened_each(calls) if again else session(file, calls)

    def make(again: bool) -> Program:
        return own_files(d, "run/log.{rank:04d}", lambda f, k: script(f, k, again=again))

    return pair(d, make, ("metadata",), {"operation": "open"})


def sync_each(d: Draw) -> Scenario:
    """Every write is forced to storage."""
    size, count = d.choose(64, 256, 1024) * KiB, d.whole(15, 50)

    def script(file: int, step: int, *, each: bool) -> list[Call]:
        calls = transfer(file, "write", step * size * count, size * count, size)
        return session(file, synced_each(calls)) if each else session(file, calls, sync=True)

    def make(each: bool) -> Program:
        return own_files(d, "run/journal.{rank:04d}", lambda f, k: script(f, k, each=each))

    return pair(d, make, ("frequent-sync",), {"operation": "sync"})


def library_start(d: Draw) -> Scenario:
    """Every rank looks up and reads the same modules from home before it starts."""
    folder, count = (
        d.choose("/home/user/env/lib", "/home/user/conda/lib/python3.12"),
        d.whole(40, 120),
    )

    def make(all_ranks: bool) -> Program:
        builder = Builder(d.ranks)
        files = [
            builder.file(f"{folder}/module_{i:03d}.{'so' if i % 3 else 'py'}") for i in range(count)
        ]
        out = builder.file_per_rank(
            d.system.mount + "/run/o.{rank:04d}", lambda r: (r % d.targets,)
        )
        script = [
            c for f in files for c in (Call("stat", f), *session(f, [Call("read", f, 0, 24 * KiB)]))
        ]
        readers = range(d.ranks) if all_ranks else range(0, d.ranks, d.machine.ranks_per_host)
        builder.step(dict.fromkeys(readers, script), 0.05)
        for step in range(d.steps):
            writes = {
                r: session(f, transfer(f, "write", step * 4 * MiB, 4 * MiB, 4 * MiB))
                for r, f in enumerate(out)
            }
            builder.step(writes, d.compute / 2)
        return builder.program()

    return pair(d, make, ("library-start",), {"directory": folder})
