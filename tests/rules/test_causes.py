"""Every cause has words, and advice fits what the job uses."""

from __future__ import annotations

import pytest

from ioprism import CallGroup, Cause, Contrast, Verdict, StallTime, Saving, read
from ioprism.pipeline.verdict import surroundings
from ioprism.rules.causes.symptoms import SYMPTOMS
from ioprism.diagnosis.wording import FOLDER, texts, worded
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan" / "e_mpiio_collective.darshan"


def cause(code: str, **culprit: object) -> Verdict:
    saving = Saving(1.0, 0.9, 1.1, 0.1)
    found = Cause(code, culprit, saving, 0.9, Contrast(code, CallGroup(1)))
    return Verdict(10.0, StallTime(2.0, 0.2, "phases"), (found,))


@pytest.mark.parametrize("code", sorted(path.stem for path in FOLDER.glob("*.toml")))
def test_every_cause_has_a_title_a_subject_and_names_for_both_groups(code: str) -> None:
    words = texts(code)

    assert words["title"]
    assert words["subject"]
    assert len(words["groups"]) == 2


def test_symptoms_are_findings_that_exist() -> None:
    from ioprism.rules.registry import RULES

    known = {rule.code for rule in RULES}
    assert {code for codes in SYMPTOMS.values() for code in codes} <= known


def test_hints_are_given_by_the_names_of_the_mpi_that_was_used() -> None:
    trace = read(LOG)
    found = worded(cause("few-aggregators", file="/x/y", rank=0), surroundings(trace))

    snippets = " ".join(item.snippet or "" for item in found.causes[0].advice)
    assert "cb_nodes" in snippets
    assert "mca" not in snippets


def test_a_finding_is_told_below_one_cause_only() -> None:
    trace = read(LOG)
    two = cause("slow-node", host="n1")
    both = Verdict(10.0, two.io_stall, (*two.causes, *cause("slow-rank", ranks=[1]).causes))

    found = worded(both, surroundings(trace), ["stragglers"])

    assert [c.symptoms for c in found.causes] == [("stragglers",), ()]
