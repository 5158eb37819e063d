"""Are the sentences of a run against its own history right? Checked on a simulated year.

``python -m benchmarks.site_history [SEED…]`` builds the centre of `benchmarks.site_year` (the same
options; ``--keep FOLDER`` uses its logs and store if they are there). Every ``--every``-th job is
judged by the jobs before it:

- after a planted change of a program, the sentence about it must be there;
- a run whose I/O is at least twice as long as without the planted trouble must be called slower
  (the same job is simulated again without the trouble);
- anything said of a job without either is false.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.simulated_storage.site_year import (
    DAY,
    FIRST_DAY,
    RANKS_PER_NODE,
    Centre,
    JobPlan,
    centre,
    job_plans,
    simulate_job,
    write_year,
)
from ioprism.model.verdict import AchievedRate
from ioprism.site.history import earlier_runs, own_history
from ioprism.site.limits import MIN_RUNS
from ioprism.site.steps import SiteOptions, add_logs
from ioprism.site.store import SiteStore, make_site

SLOWER, AS_FAST = 2.0, 1.15  # times the stall without trouble: must be told, must not be told
SAID: dict[str, tuple[str, ...]] = {
    "slower": ("Slower than",),
    "requests": ("request size", "are new", "reads and writes"),
    "collective": ("collective calls",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, default=[1])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--days", type=float, default=365.0)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for seed in given.seeds:
            made = centre(seed, jobs=given.jobs, days=given.days)
            store = filled_store(Path(given.keep or folder) / str(seed), made)
            report(seed, check(made, store, every=given.every))


def filled_store(folder: Path, made: Centre) -> SiteStore:
    """Return the store of a year, made where it is not there."""
    logs, store = folder / "logs", make_site(folder / "store")
    if not logs.is_dir():
        write_year(logs, made)
    add_logs(store, [logs], options=SiteOptions(RANKS_PER_NODE))
    return store


def check(made: Centre, store: SiteStore, *, every: int = 1) -> Counter[str]:
    """Count right, missed, false and silent answers."""
    jobs, rates = store.table("jobs"), store.table("rates")
    plans = {str(plan.number): plan for plan in job_plans(made)}
    counts: Counter[str] = Counter()
    for facts in jobs.sort("start").gather_every(every).iter_rows(named=True):
        plan = plans[facts["job_id"]]
        if plan.application.name != made.noisy:
            counts += _judge_job(made, plan, facts, jobs, rates)
    return counts


def _judge_job(
    made: Centre, plan: JobPlan, facts: Mapping[str, Any], jobs: pl.DataFrame, rates: pl.DataFrame
) -> Counter[str]:
    if earlier_runs(facts, jobs).height < MIN_RUNS:
        return Counter({"too few earlier runs": 1})
    history = own_history(facts, list(_rows(facts["job"], rates)), jobs, rates)
    counts: Counter[str] = Counter({"judged": 1})
    for kind, words in SAID.items():
        said = any(word in line for word in words for line in history.lines)
        wanted = _is_true(kind, made, plan, facts, jobs)
        if wanted is not None:
            counts[f"{kind}: {_outcome(said, wanted)}"] += 1
    return counts


def _outcome(said: bool, wanted: bool) -> str:
    return {(True, True): "right", (False, True): "missed", (True, False): "false"}.get(
        (said, wanted), "silent"
    )


def _rows(job: str, rates: pl.DataFrame) -> Iterator[AchievedRate]:
    mine = rates.filter(pl.col("job") == job).drop("job")
    return (AchievedRate(**row) for row in mine.iter_rows(named=True))


def _is_true(
    kind: str, made: Centre, plan: JobPlan, facts: Mapping[str, Any], jobs: pl.DataFrame
) -> bool | None:
    """Whether a sentence of this kind is true of a job; None where it may be said or not."""
    if kind == "slower":
        ratio = _slower_by(made, plan, float(facts["io_stall"]))
        return None if AS_FAST <= ratio < SLOWER else ratio >= SLOWER
    name, day = {
        "requests": (made.halves, made.halves_at),
        "collective": (made.independent, made.independent_at),
    }[kind]
    if plan.application.name != name:
        # A program that stops to gather its data makes other requests too.
        return None if kind == "requests" and plan.application.name == made.independent else False
    if plan.start < day:
        return False
    before = earlier_runs(facts, jobs).filter(pl.col("start") < FIRST_DAY + day * DAY).height
    return True if before >= MIN_RUNS else None


def _slower_by(made: Centre, plan: JobPlan, stall: float) -> float:
    """Stall time over that of the same job without the planted trouble."""
    well = replace(made, sick_from=1e9, slow_from=1e9)
    quiet = simulate_job(well, replace(plan, beside_noise=False)).runtime
    longer = simulate_job(made, plan).runtime - quiet
    return stall / max(stall - longer, 1e-9)


def report(seed: int, counts: Counter[str]) -> None:
    """Print shares of right and false answers."""
    for kind in SAID:
        right, missed = counts[f"{kind}: right"], counts[f"{kind}: missed"]
        false, silent = counts[f"{kind}: false"], counts[f"{kind}: silent"]
        print(
            f"seed {seed}, {kind}: right {right / max(1, right + missed):.1%} of "
            f"{right + missed}, false {false / max(1, false + silent):.2%} of {false + silent}"
        )
    print(f"seed {seed}: {counts['judged']} jobs judged, "
          f"{counts['too few earlier runs']} with too few earlier runs")  # fmt: skip


if __name__ == "__main__":
    main()
