"""A centre's year: the same seed gives the same jobs, and only traced programs name nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.simulated_storage.site_year import DAY, FIRST_DAY, centre, job_plans, write_year
from ioprism import read

SMALL = {"jobs": 40, "days": 21.0, "applications": 6, "users": 10}


def test_the_same_seed_gives_the_same_jobs_and_another_gives_others() -> None:
    first, again, other = (job_plans(centre(seed, **SMALL)) for seed in (1, 1, 2))  # type: ignore[arg-type]

    assert first == again
    assert first != other


def test_five_things_are_planted_within_the_year() -> None:
    truth = centre(4).truth()

    assert sorted(str(event["kind"]) for event in truth) == [
        "changed-application", "changed-application", "noisy-neighbour", "slow-node", "slow-target",
    ]  # fmt: skip
    for event in truth:
        assert FIRST_DAY <= float(str(event["from"])) < FIRST_DAY + 365 * DAY


def test_logs_say_who_ran_what_when_and_traced_ones_name_nodes(tmp_path: Path) -> None:
    made = centre(3, **SMALL)  # type: ignore[arg-type]
    plans = {f"{p.application.name}_{p.number:06d}": p for p in job_plans(made)[:12]}
    written = write_year(tmp_path, made)
    logs = {path.stem: path for path in tmp_path.rglob("*.darshan")}

    assert len(logs) == written == len(job_plans(made))
    for name, plan in plans.items():
        trace = read(logs[name])
        assert trace.job.user == plan.user
        assert trace.job.start_time == pytest.approx(FIRST_DAY + plan.start * DAY, abs=1.0)
        named = trace.processes["host"].null_count() == 0
        assert named is plan.application.traced
