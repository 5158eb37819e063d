"""Sums over jobs mean one thing: one unit, one file system, one kind of missing."""

from __future__ import annotations

from typing import Any

import polars as pl

from ioprism.reports.to_terminal.site import main_cause
from ioprism.site.store import SITE_TABLES
from ioprism.site.summary import (
    Chosen,
    SiteTables,
    site_story,
    site_table,
    top_advice,
    with_hours,
)


def tables(causes: list[dict[str, Any]]) -> SiteTables:
    made = {name: schema.empty() for name, schema in SITE_TABLES.items()}
    jobs = [
        {"job": cause["job"], "application": "cfd", "path": cause["job"], "ranks": 1}
        for cause in causes
    ]
    made["jobs"] = SITE_TABLES["jobs"].conform(pl.DataFrame(jobs))
    made["causes"] = SITE_TABLES["causes"].conform(pl.DataFrame(causes))
    return with_hours(
        SiteTables(*(made[name] for name in ("jobs", "causes", "targets", "hosts", "files")))
    )


def cause(job: str, code: str, subject: str, hours: float) -> dict[str, Any]:
    return {"job": job, "code": code, "subject": subject, "saving": 3600 * hours, "title": subject}


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


def job(name: str, **facts: object) -> dict[str, object]:
    return {
        "job": name, "path": name, "ranks": 64, "runtime": 3600.0, "status": "none",
        "io_stall": 36.0, "saving": 0.0, **facts,
    }  # fmt: skip


def tables_of(**given: list[dict[str, Any]]) -> SiteTables:
    made = [
        SITE_TABLES[name].conform(pl.DataFrame(given[name]))
        if name in given
        else SITE_TABLES[name].empty()
        for name in ("jobs", "causes", "targets", "hosts", "files")
    ]
    return with_hours(SiteTables(*made))


def test_node_hours_have_one_unit_and_estimates_are_marked() -> None:
    made = tables_of(
        jobs=[
            job("named", nodes=2, application="a"),
            job("unnamed", nodes=None, application="b"),
            job("told", nodes=None, cores_per_node=16, application="c"),
        ]
    )

    hours = {row["job"]: row for row in site_table(made, "jobs").rows}
    groups = {row["application"]: row for row in site_table(made, "applications").rows}

    assert [hours[name]["node_hours"] for name in ("named", "unnamed", "told")] == [2.0, 2.0, 4.0]
    assert [hours[name]["nodes_estimated"] for name in ("named", "unnamed", "told")] == [
        False,
        True,
        True,
    ]
    assert [groups[name]["estimated_share"] for name in "abc"] == [0.0, 1.0, 1.0]
    assert "2 of 3 jobs" in str(site_table(made, "jobs").note)


def test_a_log_that_cannot_be_judged_is_counted_apart() -> None:
    unjudged = job("lost", status="cannot-judge", io_stall=None, saving=None, application="a")
    made = tables_of(jobs=[job("well", application="a"), unjudged, {**unjudged, "job": "more"}])

    (group,) = site_table(made, "applications").rows

    assert (group["jobs"], group["not_judged"]) == (3, 2)
    assert site_story(made).totals["not_judged"] == 2
    assert main_cause(group) == "none"
    assert main_cause(dict(site_table(tables_of(jobs=[unjudged]), "applications").rows[0])) == (
        "not judged"
    )
    assert main_cause(unjudged) == "not judged"


def target(job_name: str, system: str, number: int, relative: float | None) -> dict[str, Any]:
    return {
        "job": job_name, "start": 0.0, "file_system": system, "target": str(number),
        "operations": 1, "bytes": 2**30, "seconds": 1.0, "rate": 1.0, "relative": relative,
    }  # fmt: skip


def test_the_target_that_is_50_times_slower_comes_first_and_systems_are_kept_apart() -> None:
    names = [f"job{number}" for number in range(20)]
    rows = [target(name, "/a", 7, 0.02 if number < 4 else 3.0) for number, name in enumerate(names)]
    rows += [target(name, "/b", 7, 0.9) for name in names]
    rows += [target(name, "/b", 8, None) for name in names]
    made = tables_of(jobs=[job(name) for name in names], targets=rows)

    found = site_table(made, "targets").rows

    assert [(row["file_system"], row["target"]) for row in found] == [
        ("/a", "7"),
        ("/b", "7"),
        ("/b", "8"),
    ]
    assert found[0]["relative_rate_worst_tenth"] == 0.02


def file(job_name: str, path: str | None, pattern: str, seconds: float) -> dict[str, Any]:
    return {
        "job": job_name, "file_system": "/scratch", "pattern": pattern, "file": path, "files": 1,
        "operations": 4, "bytes_read": 2**20, "bytes_written": 0, "seconds": seconds,
    }  # fmt: skip


def test_files_are_summed_over_jobs_by_kind_and_one_by_one() -> None:
    rows = [
        file("one", "/scratch/in1", "/scratch/in#", 1.0),
        file("one", None, "/scratch/in#", 2.0),
        file("two", "/scratch/in1", "/scratch/in#", 4.0),
    ]
    made = tables_of(jobs=[job("one", user="u"), job("two", user=None)], files=rows)

    (kind,) = site_table(made, "files").rows
    (single,) = site_table(made, "files", by="file").rows
    elsewhere = site_table(made.chosen(Chosen(mount="/home")), "files").rows

    assert (kind["pattern"], kind["jobs"], kind["seconds"]) == ("/scratch/in#", 2, 7.0)
    assert (single["file"], single["jobs"], single["seconds"]) == ("/scratch/in1", 2, 5.0)
    assert (kind["users"], kind["request_bytes"]) == (1, 2**18)
    assert elsewhere == ()
