"""A program on a machine with something wrong, and the same without: the truth of a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.simulated_storage.hardware import Machine
from benchmarks.simulated_storage.program import Program
from benchmarks.simulated_storage.simulate import Run, run

Setting = tuple[Program, Machine]
Truth = dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A case before it is run. Without accepted causes there is nothing to gain."""

    program: Program
    machine: Machine
    causes: tuple[str, ...] = ()  # codes accepted as the first cause, best first
    culprit: Mapping[str, object] = field(default_factory=dict)
    without: Setting | None = None  # the same with everything put right
    each: Mapping[str, Setting] = field(default_factory=dict)  # two causes: one put right


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A scenario that was run, and what is true of it."""

    run: Run
    truth: Truth
    savings: tuple[float, ...] = ()  # of each planted cause alone


def play(scenario: Scenario, *, seed: int) -> Case:
    """Run a scenario with and without its causes; savings are differences of run times."""
    done = run(scenario.program, scenario.machine, seed=seed)

    def saved(setting: Setting) -> float:
        return round(done.runtime - run(*setting, seed=seed).runtime, 3)

    saving = saved(scenario.without) if scenario.without else 0.0
    each = {code: saved(setting) for code, setting in scenario.each.items()}
    truth: Truth = {
        "causes": list(scenario.causes),
        "culprit": dict(scenario.culprit) | _window(done, scenario.culprit),
        "runtime": round(done.runtime, 3),
        "saving": saving,
        "in_io": round(done.in_io, 3),
        "ranks": scenario.program.ranks,
        "calls": done.calls,
    }
    if each:
        truth["savings"] = each
    return Case(done, truth, tuple(each.values()) or (saving,))


def _window(done: Run, culprit: Mapping[str, object]) -> dict[str, object]:
    """When the application that is to blame made its calls."""
    if "application" not in culprit:
        return {}
    names = done.program.applications
    blamed = {rank for rank, name in names.items() if name == culprit["application"]}
    calls = done.recorded
    own = [place for place, rank in enumerate(calls.rank) if rank in blamed]
    first, last = min(calls.start[i] for i in own), max(calls.end[i] for i in own)
    return {"from": round(first, 3), "to": round(last, 3)}
