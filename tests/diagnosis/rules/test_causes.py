"""Every check has words, every placeholder in them is filled, and advice fits what the job uses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ioprism
from ioprism import CallGroup, Cause, Contrast, Job, Saving, StallTime, Verdict
from ioprism.diagnosis import checks
from ioprism.diagnosis.wording import FOLDER, JobContext, texts, values, word_verdict
from ioprism.model.usage import FileFacts
from tests.conftest import TEST_DATA

CODES = sorted(path.stem for path in FOLDER.glob("*.toml"))
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
SAMPLES = [
    *sorted((TEST_DATA / "darshan").glob("*.darshan")),
    TEST_DATA / "recorder" / "gotcha-ckpt",
    TEST_DATA / "strace" / "randread_np2.strace",
]


def cause(code: str, **culprit: object) -> Cause:
    saving = Saving(1.0, 0.9, 1.1, 0.1)
    return Cause(code, culprit, saving, 0.9, Contrast(code, CallGroup(1)))


def context(**job: Any) -> JobContext:
    return JobContext(Job(**job), FileFacts({}), frozenset({"POSIX", "MPI-IO"}))


def worded(one: Cause, where: JobContext) -> Cause:
    stall = StallTime(2.0, 0.2, None, "phases")
    return word_verdict(Verdict("cause", 10.0, stall, causes=(one,)), where).causes[0]


def test_every_code_of_a_check_has_words_and_no_words_are_left_over() -> None:
    said = [
        code.strip()
        for module in Path(str(checks.__file__)).parent.glob("*.py")
        for line in re.findall(r"^Codes?: ((?:.|\n)*?)\.(?:\s|$)", module.read_text(), re.MULTILINE)
        for code in line.split(",")
    ]

    assert sorted(said) == CODES


@pytest.mark.parametrize("code", CODES)
def test_every_check_has_a_title_a_noun_and_names_for_both_groups(code: str) -> None:
    words = texts(code)

    assert words["title"]
    assert words["noun"]
    assert len(words["groups"]) == 2


@pytest.mark.parametrize("code", CODES)
def test_every_placeholder_is_a_value_that_some_check_gives(code: str) -> None:
    named = set(PLACEHOLDER.findall((FOLDER / f"{code}.toml").read_text()))
    always = set(values(cause(code), context()))
    source = "".join(path.read_text() for path in FOLDER.glob("*.py"))

    for name in named - always:
        given = name.removeprefix("plural_")
        assert f'"{given}"' in source or f"{given}=" in source, name


def texts_of(document: object) -> list[str]:
    """All text in a document but code, which may have braces of its own."""
    if isinstance(document, dict):
        return [text for key, value in document.items() if key != "snippet"
                for text in texts_of(value)]  # fmt: skip
    if isinstance(document, list | tuple):
        return [text for value in document for text in texts_of(value)]
    return [document] if isinstance(document, str) else []


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_no_placeholder_is_left_in_any_answer(path: Path) -> None:
    trace = ioprism.read(path)
    report = ioprism.report(trace)
    answers = [
        ioprism.diagnose(trace).to_dict(),
        ioprism.insights(trace).to_dict(),
        json.loads(report.to_json()),
    ]

    for answer in answers:
        assert not [text for text in texts_of(answer) if PLACEHOLDER.search(text)]


def test_hints_are_given_by_the_names_of_the_mpi_that_was_used() -> None:
    job = context(ranks=8, metadata={"mpi": "MPICH"})
    found = worded(cause("few-aggregators", file="/x/y", rank=0), job)

    snippets = " ".join(item.snippet or "" for item in found.advice)
    assert "cb_nodes" in snippets
    assert "mca" not in snippets


def test_a_plug_in_brings_its_own_words() -> None:
    own = Cause(
        "full-moon", {}, Saving(1.0, 0.9, 1.1, 0.1), 0.9, Contrast("full-moon", CallGroup(1)),
        facts={"title": "The moon is full", "advice": ["Wait two weeks."]},
    )  # fmt: skip

    found = worded(own, context())

    assert found.title == "The moon is full"
    assert [item.text for item in found.advice] == ["Wait two weeks."]
