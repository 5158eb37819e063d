"""Run a program on a machine: its trace and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import log2

import numpy as np
import polars as pl

from benchmarks.simulated_storage.hardware import Machine
from benchmarks.simulated_storage.play import Player, Recorded
from benchmarks.simulated_storage.program import Call, Program, Step
from benchmarks.synthetic import bursts as synthetic
from ioprism.model.schema import EVENTS, FILES, PROCESSES, Layer, Operation, file_table
from ioprism.model.trace import Job, MemoryPartition, Mount, Trace

START_TIME = 1_760_000_000.0
LEAVING = 2e-5  # seconds for which ranks leave a barrier one after the other
FUNCTIONS = {**synthetic.FUNCTIONS, ("posix", "open"): "open64"}


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a program did on a machine."""

    program: Program
    machine: Machine
    recorded: Recorded
    runtime: float  # seconds

    @property
    def calls(self) -> int:
        """How many calls were made, in all layers."""
        return len(self.recorded.start)

    @property
    def in_io(self) -> float:
        """Seconds in which at least one rank is in a call."""
        order = np.argsort(self.recorded.start)
        start = np.asarray(self.recorded.start)[order]
        until = np.maximum.accumulate(np.asarray(self.recorded.end)[order])
        before = np.concatenate(([-np.inf], until[:-1]))
        return float(np.maximum(0.0, until - np.maximum(start, before)).sum())

    def trace(self, *, start_time: float = START_TIME, job_id: str = "4711") -> Trace:
        """Return the run as a trace with all its calls."""
        return Trace(
            format="synthetic",
            paths=(),
            job=self.job(start_time=start_time, job_id=job_id),
            partitions=(MemoryPartition(events(self.recorded)),),
            load_files=partial(_files, self.program, self.machine),
            load_processes=partial(_processes, self.program, self.machine),
        )

    def job(self, *, start_time: float = START_TIME, job_id: str = "4711") -> Job:
        """Return the facts about the job."""
        mounts = [Mount(system.mount, system.kind) for system in self.machine.file_systems]
        return Job(
            ranks=self.program.ranks,
            start_time=start_time,
            end_time=start_time + self.runtime,
            runtime=self.runtime,
            executable=self.program.executable,
            user=1000,
            job_id=job_id,
            mounts=(Mount("/", "rootfs"), *mounts),
            metadata=self.program.metadata,
        )


def run(program: Program, machine: Machine, *, seed: int) -> Run:
    """Simulate; the same program, machine and seed give the same run."""
    player = Player(program, machine, seed)
    if program.independent:
        finish = player.play(_joined(program), dict.fromkeys(range(program.ranks), 0.0))
        return Run(program, machine, player.recorded, max(finish.values()))
    now = 0.0
    rng = np.random.default_rng([seed, 4])
    for step in program.steps:
        delay = rng.permutation(program.ranks) * LEAVING
        pause = np.broadcast_to(np.asarray(step.compute, float), program.ranks)
        starts = dict(enumerate((now + pause + delay).tolist()))
        now = _play_step(player, step, starts)
    return Run(program, machine, player.recorded, now)


def simulate(program: Program, machine: Machine, *, seed: int) -> tuple[Trace, float]:
    """Return the trace of a program on a machine, and its run time in seconds."""
    done = run(program, machine, seed=seed)
    return done.trace(), done.runtime


def _joined(program: Program) -> dict[int, list[Call]]:
    """Each rank's steps one after the other, with its pauses between them."""
    scripts: dict[int, list[Call]] = {rank: [] for rank in range(program.ranks)}
    for step in program.steps:
        pause = np.broadcast_to(np.asarray(step.compute, float), program.ranks).tolist()
        for rank, script in scripts.items():
            script.append(Call("compute", seconds=pause[rank]))
            script.extend(step.scripts.get(rank, ()))
    return scripts


def _play_step(player: Player, step: Step, starts: Mapping[int, float]) -> float:
    """Return when the last rank is done."""
    begin = starts
    if step.collective:
        met = max(starts.values()) + _exchange(player.machine, step, len(starts))
        begin = dict.fromkeys(starts, met)
    finish = player.play(step.scripts, begin)
    last = max(finish.values())
    for rank, asked in step.asked.items():
        end = last if step.collective else finish[rank]
        call = Call(asked.operation, asked.file, asked.offset, asked.bytes)
        player.recorded.add(
            starts[rank], end, rank, call, layer="mpiio", collective=step.collective
        )
    return last


def _exchange(machine: Machine, step: Step, ranks: int) -> float:
    """Seconds in which data go from rank to rank: the receiving nodes' links limit it."""
    if not step.exchanged:
        return machine.latency * log2(max(2, ranks))
    return step.exchanged / (step.receivers * machine.link_rate) + machine.latency * log2(ranks)


def events(recorded: Recorded) -> pl.DataFrame:
    """Return one row per call, by start (see `schema.EVENTS`)."""
    names = [f"{layer},{name}" for (layer, name) in FUNCTIONS]
    table = pl.DataFrame(
        {
            "start": recorded.start,
            "end": recorded.end,
            "rank": recorded.rank,
            "process": recorded.rank,
            "file": recorded.file,
            "layer": pl.Series(recorded.layer, dtype=Layer),
            "operation": pl.Series(recorded.operation, dtype=Operation),
            "collective": pl.Series(recorded.collective, dtype=pl.Boolean),
            "offset": pl.Series(recorded.offset, dtype=pl.Int64),
            "bytes": pl.Series(recorded.bytes, dtype=pl.Int64),
        }
    ).with_columns(
        function=pl.format("{},{}", "layer", "operation").replace_strict(
            names, list(FUNCTIONS.values()), return_dtype=pl.String
        )
    )
    return EVENTS.conform(table).sort("start", maintain_order=True)


def _files(program: Program, machine: Machine) -> pl.DataFrame:
    mounts = [Mount(system.mount, system.kind) for system in machine.file_systems]
    table = file_table([file.path for file in program.files], mounts)
    targets = [
        targets_of(machine, file.path, file.targets, n) for n, file in enumerate(program.files)
    ]
    known = pl.Series(targets, dtype=pl.List(pl.Int64))
    striped = table.with_columns(
        stripe_size=pl.when(known.is_not_null()).then(
            pl.Series([file.stripe_size for file in program.files], dtype=pl.Int64)
        ),
        stripe_count=known.list.len().cast(pl.Int64),
        targets=known,
    )
    return FILES.conform(striped)


def targets_of(
    machine: Machine, path: str, targets: tuple[int, ...], number: int
) -> list[int] | None:
    """The targets that a log names for a file, where it names any."""
    system = machine.file_systems[machine.file_system_of(path)]
    if not system.has_layout:
        return None
    return list(targets or (number % system.targets,))


def _processes(program: Program, machine: Machine) -> pl.DataFrame:
    ranks = range(program.ranks)
    name = program.executable.split(" ")[0].rsplit("/", 1)[-1]
    table = pl.DataFrame(
        {
            "process": ranks,
            "rank": ranks,
            "application": [program.applications.get(rank, name) for rank in ranks],
            "host": [f"node{machine.host_of(rank) + 1:04d}" for rank in ranks],
            "pid": [10_000 + rank for rank in ranks],
        }
    )
    return PROCESSES.conform(table)
