"""Cases of workflows: several applications one after the other, tasks that do not wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.simulated_storage.draw import Draw
from benchmarks.simulated_storage.hardware import FileSystem, MiB
from benchmarks.simulated_storage.patterns import Builder, session, transfer
from benchmarks.simulated_storage.program import Call, Program, Script
from benchmarks.simulated_storage.scenario import Scenario

KiB = 1 << 10


@dataclass(slots=True)
class Workflow:
    """Applications that run one after the other, each with its own processes."""

    builder: Builder
    applications: dict[int, str] = field(default_factory=dict)

    def stage(
        self, name: str, ranks: Sequence[int], scripts: Mapping[int, Script], compute: float
    ) -> None:
        """Let an application run to its end before the next one starts."""
        self.applications.update(dict.fromkeys(ranks, name))
        self.builder.step(scripts, compute)

    def program(self) -> Program:
        """Return the whole workflow."""
        return self.builder.program(applications=self.applications)


def _groups(d: Draw, count: int) -> list[list[int]]:
    """Share the ranks among applications."""
    each = d.ranks // count
    return [list(range(place * each, (place + 1) * each)) for place in range(count)]


def _stage_scripts(
    builder: Builder,
    ranks: Sequence[int],
    path: str,
    *,
    total: int,
    size: int,
    direction: str = "write",
) -> dict[int, list[Call]]:
    files = {rank: builder.file(path.format(rank=rank)) for rank in ranks}
    return {
        rank: session(file, transfer(file, direction, 0, total, size))  # type: ignore[arg-type]
        for rank, file in files.items()
    }


def _quiet(d: Draw) -> Draw:
    """Targets that no process notices, so that only processes and nodes differ."""
    system: FileSystem = replace(d.system, slow={}, unsteady=0.0)
    return replace(
        d, machine=replace(d.machine, file_systems=(system, *d.machine.file_systems[1:]))
    )


def healthy(d: Draw) -> Scenario:
    """Make, sort and reduce, all even."""
    flow = _three_stages(_quiet(d), folder="wf")
    return Scenario(flow.program(), d.machine)


def _three_stages(d: Draw, *, folder: str) -> Workflow:
    flow = Workflow(Builder(d.ranks))
    base = f"{d.system.mount}/{folder}"
    for number, (name, ranks) in enumerate(
        zip(("make", "sort", "reduce"), _groups(d, 3), strict=True)
    ):
        scripts = _stage_scripts(
            flow.builder, ranks, base + f"/{name}/" + "{rank:03d}.dat", total=MiB * 16, size=MiB
        )
        flow.stage(name, ranks, scripts, d.compute * (1 + number % 2))
    return flow


def _add_sound_stage(
    flow: Workflow, d: Draw, name: str, ranks: Sequence[int], place: str, *, total: int
) -> None:
    """Let an application write files of its own in large requests."""
    path = f"{d.system.mount}/wf/{place}/{{rank}}"
    flow.stage(
        name, ranks, _stage_scripts(flow.builder, ranks, path, total=total, size=MiB), d.compute
    )


def slow_rank(d: Draw) -> Scenario:
    """One process of one application is slow in its calls."""
    program = _three_stages(_quiet(d), folder="wf").program()
    rank = d.whole(0, d.ranks // 3 * 3 - 1)
    slow = replace(d.machine, slow_ranks={rank: d.real(80.0, 200.0)})
    return Scenario(program, slow, ("slow-rank",), {"ranks": [rank]}, (program, d.machine))


def independent_slow_rank(d: Draw) -> Scenario:
    """Tasks that wait for nobody; one is slow in its calls."""
    builder = Builder(d.ranks)
    files = builder.file_per_rank(
        d.system.mount + "/tasks/{rank:03d}.out", lambda r: (r % d.targets,)
    )
    for _ in range(d.steps):
        scripts = {
            r: session(f, transfer(f, "write", 0, 12 * MiB, MiB)) for r, f in enumerate(files)
        }
        builder.step(scripts, d.pauses())
    names = dict.fromkeys(range(d.ranks), "task")
    program = builder.program(independent=True, applications=names)
    rank = d.whole(0, d.ranks - 1)
    slow = replace(d.machine, slow_ranks={rank: d.real(60.0, 150.0)})
    return Scenario(program, slow, ("slow-rank",), {"ranks": [rank]}, (program, d.machine))


def metadata(d: Draw) -> Scenario:
    """One application of the workflow keeps its data in thousands of tiny files."""
    folder = f"{d.system.mount}/wf/{d.choose('index', 'store', 'kv')}"
    count = d.whole(60, 200)

    def make(*, many: bool) -> Program:
        flow = Workflow(Builder(d.ranks))
        first, second, third = _groups(d, 3)
        _add_sound_stage(flow, d, "prepare", first, "in", total=8 * MiB)
        scripts = {}
        for rank in second:
            names = (
                [f"{folder}/{rank}/{i:05d}" for i in range(count)]
                if many
                else [f"{folder}/{rank}/all"]
            )
            files = [flow.builder.file(name) for name in names]
            total = 2 * KiB if many else 2 * KiB * count
            scripts[rank] = [
                c
                for f in files
                for c in (Call("stat", f), *session(f, [Call("write", f, 0, total)]))
            ]
        flow.stage("ingest", second, scripts, d.compute / 2)
        _add_sound_stage(flow, d, "train", third, "out", total=8 * MiB)
        return flow.program()

    return Scenario(
        make(many=True), d.machine, ("metadata",), {"directory": folder, "application": "ingest"},
        (make(many=False), d.machine),
    )  # fmt: skip


def small_requests(d: Draw) -> Scenario:
    """One application writes its table in tiny requests; the others do well."""
    path, size = f"{d.system.mount}/wf/table.bin", d.choose(512, 2048, 4096)
    count = d.whole(1500, 5000)

    def make(*, small: bool) -> Program:
        flow = Workflow(Builder(d.ranks))
        first, second, third = _groups(d, 3)
        _add_sound_stage(flow, d, "simulate", first, "sim", total=16 * MiB)
        table = flow.builder.file(path)
        calls = transfer(table, "write", 0, size * count, size if small else 4 * MiB)
        flow.stage("convert", second, {second[0]: session(table, calls)}, d.compute / 2)
        _add_sound_stage(flow, d, "plot", third, "fig", total=4 * MiB)
        return flow.program()

    return Scenario(
        make(small=True), d.machine, ("small-requests",),
        {"file": path, "application": "convert", "bytes_per_request": size},
        (make(small=False), d.machine),
    )  # fmt: skip


def late_task(d: Draw) -> Scenario:
    """One process computes longer than the others; nothing to gain in I/O."""
    builder = Builder(d.ranks)
    files = builder.file_per_rank(
        d.system.mount + "/tasks/{rank:03d}.out", lambda r: (r % d.targets,)
    )
    late = d.whole(0, d.ranks - 1)
    for _ in range(d.steps):
        pauses = [d.compute * (6.0 if r == late else 2.0) for r in range(d.ranks)]
        builder.step(
            {r: session(f, transfer(f, "write", 0, 2 * MiB, MiB)) for r, f in enumerate(files)},
            pauses,
        )
    names = dict.fromkeys(range(d.ranks), "task")
    return Scenario(builder.program(independent=True, applications=names), d.machine)
