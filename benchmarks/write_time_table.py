"""How well `auto` predicts larger scales, beside other ways to predict, on simulated machines.

Two systems: three machines each, one with changed speeds, one with 2.5 times the noise, one with a
drifting load, and one whose components slow down when shared.
Models learn from at most 128 nodes. Printed: shares of samples predicted within 20 % and 30 %, and
how many measurements lie in the 90 % interval. Exits 1 when `auto` is more than three points below
the best of the others, or an interval holds too little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import numpy.typing as npt

from benchmarks.simulated_machines import Machine, machine, measure
from ioprism.model.samples import Sample, WritePattern
from ioprism.write_time.features import feature_table
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.training import train_model
from ioprism.write_time.training_data import TrainingSettings, prepare, sort_samples

FloatArray = npt.NDArray[np.float64]
Predict = Callable[[Sequence[WritePattern]], FloatArray]

SETS: Mapping[str, tuple[int, ...]] = {
    "small": (200, 256),
    "medium": (400, 512),
    "1,024": (1024,),
    "2,048": (2048,),
}
MARGIN = 0.03  # that auto may lie below the best
LEAST_COVERAGE = 0.9  # of a 90 % interval
LEAST_SECONDS = 5.0  # shorter writes do not count as samples: nobody need predict less
SEEDS = (1501, 1502, 1503, 1504, 1505, 1506, 1507)  # made after the rule was fixed


@dataclass(frozen=True, slots=True)
class Row:
    """One way to predict, on one set of samples."""

    way: str
    within_20: float
    within_30: float


def main(seeds: Sequence[int] = SEEDS) -> int:
    short: list[str] = []
    for name in ("cetus", "titan"):
        for title, which in _machines(name, seeds).items():
            short += _report(f"{name}, {title}", which)
    print("\n".join(["", *short]) if short else "\nauto is never more than 3 points below the best")
    return bool(short)


def _machines(name: str, seeds: Sequence[int]) -> dict[str, Machine]:
    changed, noisy, drifting, crowded = seeds[-4:]
    found = {f"seed {seed}": machine(name, seed=seed) for seed in seeds[:-4]}
    found[f"seed {changed}, changed speeds"] = machine(name, seed=changed, speed=2.0)
    found[f"seed {noisy}, 2.5 times the noise"] = machine(name, seed=noisy, noise=2.5)
    found[f"seed {drifting}, drifting load"] = machine(name, seed=drifting, drift=0.1)
    found[f"seed {crowded}, contention"] = machine(name, seed=crowded, contention=0.15)
    return found


def _report(title: str, which: Machine) -> list[str]:
    samples = measure(which)
    began = time.perf_counter()
    model = train_model(samples, system=which.system)
    spent = time.perf_counter() - began
    print(f"\n{title}: {model.fit.kind}, trained in {spent:.0f} s")
    ways = _ways(model, samples, which)
    short: list[str] = []
    found = sort_samples(samples, which.system)
    for name, scales in SETS.items():
        chosen = [s for s in found.converged if s.pattern.nodes in scales]
        rows = [_row(way, predict, chosen) for way, predict in ways.items()]
        coverage, width = _coverage(model, chosen, noisy=False)
        print(f"  {name:>7} ({len(chosen)})  " + "  ".join(map(_cell, rows)), end="  ")
        print(f"in interval {coverage:.0%}, upper/lower {width:.2f}")
        best = max(row.within_20 for row in rows)
        if rows[0].within_20 < best - MARGIN:
            short.append(f"{title}, {name}: auto {rows[0].within_20:.3f}, best {best:.3f}")
        if coverage < LEAST_COVERAGE:
            short.append(f"{title}, {name}: the interval holds {coverage:.3f}")
    coverage, width = _coverage(model, found.unconverged, noisy=True)
    print(f"  unconverged ({len(found.unconverged)}): in interval {coverage:.0%}, {width:.2f}")
    return short


def _cell(row: Row) -> str:
    return f"{row.way} {100 * row.within_20:.0f}/{100 * row.within_30:.0f}"


def _row(way: str, predict: Predict, samples: Sequence[Sample]) -> Row:
    measured = np.array([s.seconds for s in samples])
    predicted = np.maximum(predict([s.pattern for s in samples]), LEAST_SECONDS)
    errors = np.abs(predicted / measured - 1.0)
    return Row(way, float(np.mean(errors <= 0.2)), float(np.mean(errors <= 0.3)))


def _coverage(
    model: WriteTimeModel, samples: Sequence[Sample], *, noisy: bool
) -> tuple[float, float]:
    if not samples:
        return 1.0, 1.0
    measured = np.array([s.seconds for s in samples])
    low, high = model.intervals([s.pattern for s in samples], noisy=noisy)
    inside = (measured >= low) & (measured <= high)
    return float(np.mean(inside)), float(np.median(high / low))


def _ways(model: WriteTimeModel, samples: Sequence[Sample], which: Machine) -> dict[str, Predict]:
    by_kind = {fit.kind: fit for fit in (model.fit, *model.beside)}
    found: dict[str, Predict] = {"auto": model.predict}
    for way, kind in (("Lasso", "relative-lasso"), ("boosting", "boosting")):
        found[way] = lambda patterns, fit=by_kind[kind]: model.predict(patterns, fit=fit)  # type: ignore[misc]
    return found | _other_ways(samples, which)


def _other_ways(samples: Sequence[Sample], which: Machine) -> dict[str, Predict]:
    system = which.system
    prepared = prepare(samples, system, TrainingSettings())
    logarithms = np.log(prepared.data.seconds)

    def table(patterns: Sequence[WritePattern]) -> FloatArray:
        return feature_table(patterns, system=system, chosen=prepared.features)

    boosted = import_module("sklearn.ensemble").GradientBoostingRegressor(random_state=1)
    boosted.fit(prepared.data.table, logarithms)
    scaler = import_module("sklearn.preprocessing").StandardScaler()
    near = import_module("sklearn.neighbors").KNeighborsRegressor(5, weights="distance")
    near.fit(scaler.fit_transform(np.log1p(prepared.data.table)), logarithms)
    node_bytes = np.array([p.cores_per_node * p.burst_bytes for p in prepared.patterns])
    rate = float(np.mean(node_bytes / prepared.data.seconds))
    return {
        "sklearn": lambda patterns: np.exp(boosted.predict(table(patterns))),
        "k-NN": lambda patterns: np.exp(near.predict(scaler.transform(np.log1p(table(patterns))))),
        "mean rate": lambda patterns: np.array(
            [p.cores_per_node * p.burst_bytes / rate for p in patterns]
        ),
    }


if __name__ == "__main__":
    sys.exit(main(tuple(map(int, sys.argv[1:])) or SEEDS))
