"""Workflows of several applications: which of them a cause belongs to, and when it acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Flags
from ioprism.analyses.diagnosis.result import Cause, Diagnosis
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.model.trace import Trace

NEARLY_ALL = 0.9  # of the seconds concerned, for an application to be the one


def applications(trace: Trace) -> Mapping[int, str]:
    """The application of each rank; empty where there are not several."""
    known = trace.processes.drop_nulls("application").unique("rank", keep="first")
    if known["application"].n_unique() < 2:
        return {}
    return dict(known.select("rank", "application").iter_rows())


def located(found: Diagnosis, at: Situation, names: Mapping[int, str]) -> Diagnosis:
    """Return the diagnosis with the application and the time window of each cause."""
    return replace(found, causes=tuple(_located(cause, at, names) for cause in found.causes))


def _located(cause: Cause, at: Situation, names: Mapping[int, str]) -> Cause:
    some = _concerned(cause.culprit, at)
    if not some.any() or "from" in cause.culprit:
        return cause
    where = _application(some, at, names)
    if where is None:
        return cause
    window = {"from": float(at.calls.start[some].min()), "to": float(at.calls.end[some].max())}
    return replace(cause, culprit={**cause.culprit, "application": where, **window})


def _concerned(culprit: Mapping[str, Any], at: Situation) -> Flags:
    """The calls that a culprit names: by ranks, directory or file, the first that it has."""
    if "ranks" in culprit:
        return np.isin(at.seen.rank_numbers[at.calls.rank], culprit["ranks"])
    path = pl.col("path")
    if "directory" in culprit:
        chosen = path.str.starts_with(str(culprit["directory"]).rstrip("/") + "/")
    elif "file" in culprit:
        chosen = path == str(culprit["file"])
    else:
        return np.zeros(len(at.calls), np.bool_)
    files: Sequence[int] = at.seen.files.filter(chosen)["file"].to_list()
    return np.isin(at.calls.file, files)


def _application(some: Flags, at: Situation, names: Mapping[int, str]) -> str | None:
    """The application that nearly all of these calls' seconds belong to."""
    seconds: dict[str, float] = {}
    for place in np.unique(at.calls.rank[some]).tolist():
        name = names.get(int(at.seen.rank_numbers[place]), "")
        spent = float(at.own[some & (at.calls.rank == place)].sum())
        seconds[name] = seconds.get(name, 0.0) + spent
    most = max(seconds, key=lambda name: seconds[name])
    return most if most and seconds[most] >= NEARLY_ALL * sum(seconds.values()) else None
