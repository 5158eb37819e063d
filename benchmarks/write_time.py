"""How much faster the search for a write-time model is than a loop over scikit-learn's Lasso."""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

from ioprism.model.samples import Sample, WritePattern
from ioprism.write_time.features import feature_table, features
from ioprism.write_time.fitting import KINDS
from ioprism.write_time.lasso import all_subsets, search
from ioprism.write_time.run_files import read_runs
from ioprism.write_time.sampling import PlanSettings, draw_patterns
from ioprism.write_time.system import System, bundled_system
from ioprism.write_time.training_data import TrainingData, TrainingSettings, prepare

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "write_time" / "simulated"
NAIVE_SETS = 6  # training sets that the naive loop is timed on
LIMIT = 2.0  # CPU seconds of the whole search
RATIO = 50


def main() -> None:
    for name in ("cetus", "titan"):
        system = bundled_system(name)
        samples, origin = _samples(name, system)
        _report(system, samples, origin)


def _report(system: System, samples: list[Sample], origin: str) -> None:
    prepared = prepare(samples, system, TrainingSettings())
    shape = prepared.data.table.shape
    print(f"{system.title}: {shape[0]} samples, {shape[1]} features ({origin})")
    per_fit = 0.0
    for kind in KINDS.values():
        if not kind.every_subset or len(kind.penalties) == 1:
            continue
        began = time.process_time()
        found = search(
            prepared.data,
            kind.objective,
            penalties=kind.penalties,
            relative_penalties=kind.relative_penalties,
        )
        found.squared_errors(prepared.validation, kind.objective)
        spent = time.process_time() - began
        verdict = "under" if spent < LIMIT else "OVER"
        sets = len(found.subsets)
        print(f"  {kind.name}: {sets} training sets x {len(kind.penalties)} lambda, scored, in")
        print(f"    {spent:.2f} s CPU ({verdict} the limit of {LIMIT:g} s)")
        per_fit = max(per_fit, spent / (sets * len(kind.penalties)))
    naive, unconverged = _naive_per_fit(prepared.data)
    ratio = naive / per_fit
    print(
        f"  naive loop over scikit-learn's Lasso: {naive * 1e3:.1f} ms a fit, {unconverged:.0%} of"
    )
    print(f"    them unconverged; the slowest search above: {per_fit * 1e3:.3f} ms a fit")
    print(f"  ratio {ratio:.0f} ({'at least' if ratio >= RATIO else 'BELOW'} {RATIO})")


def _naive_per_fit(data: TrainingData) -> tuple[float, float]:
    """CPU seconds of one fit in raw units with scikit-learn's defaults, and how many fail."""
    lasso = import_module("sklearn.linear_model").Lasso
    subsets = all_subsets(data.scales)
    chosen = [subsets[i] for i in np.linspace(0, len(subsets) - 1, NAIVE_SETS).astype(int)]
    penalties = KINDS["lasso"].penalties
    failed = 0
    began = time.process_time()
    for subset in chosen:
        wanted = np.isin(data.nodes, [data.scales[position] for position in subset])
        part = data.part(wanted & ~data.held_out)
        for penalty in penalties:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                lasso(alpha=penalty).fit(part.table, part.seconds)
            failed += bool(caught)
    fits = len(chosen) * len(penalties)
    return (time.process_time() - began) / fits, failed / fits


def _samples(name: str, system: System) -> tuple[list[Sample], str]:
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        return _made_samples(system), "made by formula: the shared data folder is missing"
    times: dict[WritePattern, list[float]] = {}
    for run in read_runs(path).runs:
        times.setdefault(run.pattern, []).append(run.seconds)
    return [Sample(pattern, tuple(seconds)) for pattern, seconds in times.items()], path.name


def _made_samples(system: System) -> list[Sample]:
    settings = PlanSettings(scales=(1, 2, 4, 8, 16, 32, 64, 128))
    patterns = draw_patterns(system, settings)
    table = feature_table(patterns, system=system, chosen=features(system)[:6])
    seconds = 6 + table[:, 2] / 5e4 + table[:, 4] / 2e3
    return [
        Sample(pattern, (float(s), float(s) * 1.02, float(s) * 0.98))
        for pattern, s in zip(patterns, seconds, strict=True)
    ]


if __name__ == "__main__":
    main()
