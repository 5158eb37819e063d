"""A centre's year of jobs with five things planted, as small Darshan logs.

Half of the programs are recorded with extended tracing: only such logs name nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from benchmarks.simulated_storage.draw import Dice
from benchmarks.simulated_storage.hardware import FileSystem, Machine, MiB, Noise, Window
from benchmarks.simulated_storage.many_logs import Wanted, write_many
from benchmarks.simulated_storage.patterns import (
    Builder,
    CollectiveWrite,
    Direction,
    session,
    stripes,
    transfer,
)
from benchmarks.simulated_storage.program import Program
from benchmarks.simulated_storage.simulate import Run, run
from benchmarks.synthetic.darshan_content import FILE_ALIGNMENT, log_content
from benchmarks.synthetic.darshan_writer import write_log

DAY = 86400.0
FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
TARGETS, NODES, RANKS_PER_NODE = 12, 16, 4
SICK_DAYS, SLOW_NODE_DAYS = 14.0, 3.0
SICK, SLOW_NODE, NOISE = 4.0, 8.0, 3.0  # factors on the times
NOISY_HOURS = 3.0
AT_ONCE = 250
TRACED = ("POSIX", "MPI-IO", "LUSTRE", "DXT_POSIX", "DXT_MPIIO")
Way = Literal["own files", "shared file", "collective", "independent"]


@dataclass(frozen=True, slots=True)
class Application:
    """A program that many jobs run."""

    name: str
    way: Way
    ranks: int
    size: int  # bytes of a request
    requests: int  # of a rank in a step
    steps: int
    compute: float  # seconds between steps
    direction: Direction = "write"
    traced: bool = False  # with single calls, which name nodes


@dataclass(frozen=True, slots=True)
class Centre:
    """What runs at a centre, and what is planted."""

    seed: int
    days: float
    jobs: int
    applications: tuple[Application, ...]
    weights: tuple[float, ...]
    users: int
    sick_target: int
    sick_from: float  # days since the start
    slow_node: int
    slow_from: float
    halves: str  # the application whose requests become half as large
    halves_at: float
    independent: str  # the application that stops using collective calls
    independent_at: float
    noisy: str

    def truth(self) -> list[dict[str, object]]:
        """Return the planted events as `ioprism site` should tell them."""

        def event(kind: str, subject: str, first: float, days: float | None) -> dict[str, object]:
            start = FIRST_DAY + first * DAY
            return {"kind": kind, "subject": subject, "from": start,
                    "to": None if days is None else start + days * DAY}  # fmt: skip

        noise = _noisy_starts(self, _dice(self))
        return [
            event("slow-target", str(self.sick_target), self.sick_from, SICK_DAYS),
            event("slow-node", node_name(self.slow_node), self.slow_from, SLOW_NODE_DAYS),
            event("changed-application", self.halves, self.halves_at, None),
            event("changed-application", self.independent, self.independent_at, None),
            event("noisy-neighbour", self.noisy, noise[0], noise[-1] - noise[0] + NOISY_HOURS / 24),
        ]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job: who runs what, when, on which nodes."""

    number: int
    start: float  # days
    application: Application
    user: int
    steps: int
    nodes: tuple[int, ...]
    beside_noise: bool


def node_name(node: int) -> str:
    """Return the name of a node."""
    return f"node{node + 1:04d}"


def centre(seed: int, *, jobs: int = 20_000, days: float = 365.0, applications: int = 30,
           users: int = 200) -> Centre:  # fmt: skip
    """Draw a centre; the same seed gives the same one."""
    dice = Dice(np.random.default_rng([seed, 1]))
    drawn = [_application(dice, number) for number in range(applications)]
    weights = dice.rng.lognormal(0.0, 0.5, applications)
    # What changes is run several times a day: a change has no better date than the job after it.
    often = dice.rng.permutation(applications)[:2].tolist()
    weights[often] = 1.5 * weights.max()
    drawn[often[0]] = replace(drawn[often[0]], way="own files")
    drawn[often[1]] = replace(drawn[often[1]], way="collective", ranks=16, direction="write")
    noisy = Application("noisy-io", "own files", 16, 8 * MiB, 4, 4, NOISY_HOURS * 900)
    free = days - SICK_DAYS - 6
    return Centre(
        seed, days, jobs, (*drawn, noisy), tuple(weights.tolist()), users,
        sick_target=dice.whole(0, TARGETS - 1), sick_from=3 + free * float(dice.rng.random()),
        slow_node=dice.whole(0, NODES - 1), slow_from=3 + free * float(dice.rng.random()),
        halves=drawn[often[0]].name, halves_at=days * float(dice.rng.uniform(0.3, 0.7)),
        independent=drawn[often[1]].name, independent_at=days * float(dice.rng.uniform(0.3, 0.7)),
        noisy=noisy.name,
    )  # fmt: skip


def _application(dice: Dice, number: int) -> Application:
    return Application(
        f"code{number:02d}",
        dice.choose("own files", "own files", "shared file", "collective"),
        dice.choose(8, 8, 12, 16),
        dice.choose(1, 2, 4) * MiB,
        dice.whole(3, 6),
        dice.whole(2, 3),
        dice.real(4.0, 15.0),
        dice.choose("write", "write", "read"),
        traced=number % 2 == 0,
    )


def job_plans(of: Centre) -> list[JobPlan]:
    """Return all jobs in the order they start."""
    dice = _dice(of)
    noise = _noisy_starts(of, dice)
    plans = [(start, of.applications[-1], 1000, 4) for start in noise]
    for user, (application, first, last, steps) in enumerate(_users(of, dice), start=1001):
        starts = dice.rng.uniform(first, last, _share(of, application, dice)).tolist()
        plans += [(start, application, user, steps) for start in starts]
    plans.sort(key=lambda job: job[0])
    return [
        JobPlan(
            number, start, application, user, steps,
            tuple(dice.rng.permutation(NODES)[: application.ranks // RANKS_PER_NODE].tolist()),
            application.name != of.noisy and _inside(start, noise),
        )
        for number, (start, application, user, steps) in enumerate(plans)
    ]  # fmt: skip


def _dice(of: Centre) -> Dice:
    return Dice(np.random.default_rng([of.seed, 2]))


def _noisy_starts(of: Centre, dice: Dice) -> list[float]:
    """One run of the noisy program on most days."""
    return [
        day + float(dice.rng.uniform(0, 1 - NOISY_HOURS / 24))
        for day in range(int(of.days))
        if dice.rng.random() < 0.8
    ]


def _inside(start: float, noise: Sequence[float]) -> bool:
    return any(0 <= start - begun < NOISY_HOURS / 24 for begun in noise)


def _users(of: Centre, dice: Dice) -> list[tuple[Application, float, float, int]]:
    """What each user runs, from when to when, and how long; the first ones run all the time."""
    programs = of.applications[:-1]
    users = [(program, 0.0, of.days, program.steps) for program in programs]
    for _ in range(of.users - len(programs)):
        program = programs[int(dice.rng.integers(len(programs)))]
        length = of.days * float(dice.rng.uniform(0.3, 1.0))
        first = float(dice.rng.uniform(0, of.days - length))
        users.append((program, first, first + length, program.steps * dice.choose(1, 1, 2)))
    return users


def _share(of: Centre, application: Application, dice: Dice) -> int:
    """How many jobs a user runs."""
    weight = of.weights[of.applications.index(application)]
    return int(dice.rng.poisson(of.jobs / of.users * weight / float(np.mean(of.weights))))


def write_year(folder: Path, of: Centre) -> int:
    """Write the logs of all jobs, a folder for each day; return how many."""
    written, left = 0, iter(job_plans(of))
    while batch := list(islice(left, AT_ONCE)):
        traced = [plan for plan in batch if plan.application.traced]
        counted = [plan for plan in batch if not plan.application.traced]
        for plan in traced:
            _write_traced(_place(folder, plan), plan, simulate_job(of, plan))
        written += len(traced) + write_many(_wanted(folder, of, counted))
    return written


def _place(folder: Path, plan: JobPlan) -> Path:
    day = datetime.fromtimestamp(FIRST_DAY + plan.start * DAY, UTC).strftime("%Y-%m-%d")
    (folder / day).mkdir(parents=True, exist_ok=True)
    return folder / day / f"{plan.application.name}_{plan.number:06d}.darshan"


def _wanted(folder: Path, of: Centre, plans: Iterable[JobPlan]) -> Iterator[Wanted]:
    for plan in plans:
        done = simulate_job(of, plan)
        job = replace(
            done.job(start_time=FIRST_DAY + plan.start * DAY, job_id=str(plan.number)),
            user=plan.user,
        )
        yield Wanted(_place(folder, plan), done, job)


def _write_traced(path: Path, plan: JobPlan, done: Run) -> None:
    trace = done.trace(start_time=FIRST_DAY + plan.start * DAY, job_id=str(plan.number))
    names = [node_name(plan.nodes[rank // RANKS_PER_NODE]) for rank in range(done.program.ranks)]
    processes = trace.processes.with_columns(host=pl.Series(names))
    named = replace(
        trace,
        job=replace(trace.job, user=plan.user),
        load_files=partial(_same, trace.files),
        load_processes=partial(_same, processes),
    )
    write_log(path, log_content(named, file_alignment=FILE_ALIGNMENT, modules=TRACED))


def _same(table: pl.DataFrame) -> pl.DataFrame:
    return table


def simulate_job(of: Centre, plan: JobPlan) -> Run:
    """Run one job on the machine as it is that day."""
    sick = of.sick_from <= plan.start < of.sick_from + SICK_DAYS
    slow = of.slow_from <= plan.start < of.slow_from + SLOW_NODE_DAYS
    at = plan.nodes.index(of.slow_node) if of.slow_node in plan.nodes else None
    system = FileSystem(
        targets=TARGETS, rate=25 * MiB, noise=Noise("lognormal", 0.1), unsteady=0.03,
        slow={of.sick_target: SICK} if sick else {},
        windows=(Window(0.0, 1e9, NOISE),) if plan.beside_noise else (),
    )  # fmt: skip
    machine = Machine(
        RANKS_PER_NODE, link_rate=400 * MiB, file_systems=(system,),
        slow_hosts={at: SLOW_NODE * 4} if slow and at is not None else {},
    )  # fmt: skip
    return run(_program(of, plan), machine, seed=of.seed * 1_000_003 + plan.number)


def _program(of: Centre, plan: JobPlan) -> Program:
    app = replace(plan.application, steps=plan.steps)
    if app.name == of.halves and plan.start >= of.halves_at:
        app = replace(app, size=app.size // 2, requests=app.requests * 2)
    if app.name == of.independent and plan.start >= of.independent_at:
        app = replace(app, way="independent")
    builder = Builder(app.ranks)
    first = plan.number % TARGETS
    if app.way == "own files":
        _own_files(builder, app, first)
    elif app.way == "shared file":
        _shared_file(builder, app, first)
    else:
        _through_mpi(builder, app, first)
    return builder.program(executable=f"/apps/bin/{app.name} input.toml")


def _own_files(builder: Builder, app: Application, first: int) -> None:
    files = builder.file_per_rank(
        f"/scratch/{app.name}/state.{{rank:04d}}", lambda rank: stripes(first + rank, 1, TARGETS)
    )
    each = app.size * app.requests
    for step in range(app.steps):
        scripts = {
            rank: session(file, transfer(file, app.direction, step * each, each, app.size))
            for rank, file in enumerate(files)
        }
        builder.step(scripts, app.compute)


def _shared_file(builder: Builder, app: Application, first: int) -> None:
    file = builder.file(f"/scratch/{app.name}/all.dat", stripes(first, 4, TARGETS), app.size)
    each = app.size * app.requests
    for step in range(app.steps):
        scripts = {
            rank: session(
                file,
                transfer(file, app.direction, (step * app.ranks + rank) * each, each, app.size),
            )
            for rank in range(app.ranks)
        }
        builder.step(scripts, app.compute)


def _through_mpi(builder: Builder, app: Application, first: int) -> None:
    """Interleaved pieces: gathered by one process of each node, or written as they lie."""
    file = builder.file(f"/scratch/{app.name}/field.h5", stripes(first, 4, TARGETS), app.size)
    write = CollectiveWrite(
        file, app.ranks, app.ranks // RANKS_PER_NODE, app.size // 4, app.requests, app.direction
    )
    for step in range(app.steps):
        if app.way == "collective":
            scripts = write.aggregated(step, write.one_per_host(), app.size)
            builder.step(
                scripts, app.compute, asked=write.asked(step), collective=True,
                exchanged=write.step_bytes, receivers=write.hosts,
            )  # fmt: skip
        else:
            own = {rank: write.own_pieces(step, rank) for rank in range(app.ranks)}
            builder.step(own, app.compute, asked=write.asked(step))
