"""Advice is summed over jobs that mean the same, not over whatever they blame."""

from __future__ import annotations

from typing import Any

import polars as pl

from ioprism.site.columns import SITE_TABLES
from ioprism.site.summary import SiteTables, site_table, top_advice


def tables(causes: list[dict[str, Any]]) -> SiteTables:
    made = {name: schema.empty() for name, schema in SITE_TABLES.items()}
    jobs = [{"job": cause["job"], "application": "cfd", "path": cause["job"]} for cause in causes]
    made["jobs"] = SITE_TABLES["jobs"].conform(pl.DataFrame(jobs))
    made["causes"] = SITE_TABLES["causes"].conform(pl.DataFrame(causes))
    return SiteTables(*(made[name] for name in ("jobs", "causes", "targets", "hosts", "files")))


def cause(job: str, code: str, subject: str, hours: float) -> dict[str, Any]:
    return {"job": job, "code": code, "subject": subject, "node_hours": hours, "title": subject}


def test_jobs_that_blame_different_nodes_are_not_summed_to_one_advice() -> None:
    blamed = [cause(f"job{n}", "slow-node", f"host node{n}", 1.0) for n in range(5)]
    small = [cause(f"more{n}", "small-requests", f"file {n}", 1.0) for n in range(3)]

    (first,) = top_advice(tables([*blamed, *small]))

    assert (first["code"], first["jobs"], first["node_hours"]) == ("small-requests", 3, 3.0)


def test_what_costs_the_same_is_told_in_one_order() -> None:
    codes = [f"cause-{n}" for n in range(9)]
    equal = tables([cause("job0", code, "", 1.0) for code in reversed(codes)])

    assert list(site_table(equal, "applications").rows[0]["savings"]) == codes
    assert {top_advice(equal)[0]["code"] for _ in range(20)} == {"cause-0"}
