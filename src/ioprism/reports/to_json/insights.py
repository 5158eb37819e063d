"""The JSON of `ioprism insights`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioprism.diagnosis.rules.registry import Insights
from ioprism.model.trace import Job
from ioprism.text import name_of


def body(insights: Insights, job: Job) -> dict[str, Any]:
    """Return what `ioprism insights --json` says of a job."""
    return {"job": job_facts(job), "levels": levels(insights), **insights.to_dict()}


def levels(insights: Insights) -> dict[str, int]:
    """Count the findings of each level."""
    counts = dict.fromkeys(("high", "warn", "info", "ok"), 0)
    for finding in insights.findings:
        counts[finding.severity.value] += 1
    return counts


def job_facts(job: Job) -> dict[str, Any]:
    """Return what the job is."""
    return {
        "job_id": job.job_id,
        "executable": job.executable,
        "ranks": job.ranks,
        "runtime": job.runtime,
        "start_time": job.start_time,
    }


def jobs_body(
    jobs: Sequence[tuple[Sequence[Path], Sequence[str], Job, Insights]],
    failures: Sequence[str],
) -> dict[str, Any]:
    """Return many jobs: each with its findings, and in how many jobs each code comes up."""
    codes: dict[str, int] = {}
    for _, _, _, insights in jobs:
        for finding in insights.findings:
            codes[finding.code] = codes.get(finding.code, 0) + 1
    return {
        "codes": dict(sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))),
        "jobs": [
            {
                "paths": [name_of(path) for path in paths],
                "warnings": list(warnings),
                **body(insights, job),
            }
            for paths, warnings, job, insights in jobs
        ],
        "failures": list(failures),
    }
