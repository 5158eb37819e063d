"""What `import ioprism` offers is what it says it offers."""

from __future__ import annotations

import doctest
import importlib
import json
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import ioprism
from ioprism import servers, write_time
from ioprism.model.result import Result
from tests.conftest import TEST_DATA

DATA = TEST_DATA


def test_every_public_name_can_be_used() -> None:
    for name in ioprism.__all__:
        assert getattr(ioprism, name) is not None


def test_dir_shows_the_public_names() -> None:
    assert dir(ioprism) == sorted(ioprism.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'explode'"):
        _ = ioprism.explode


def classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for inner in get_args(hint):
        yield from classes(inner)


@pytest.mark.parametrize("module", [servers, write_time])
def test_what_functions_take_and_return_is_public(module: ModuleType) -> None:
    offered = [getattr(module, name) for name in module.__all__]
    offered += [getattr(ioprism, name) for name in ioprism.__all__]

    for function in filter(isfunction, offered[: len(module.__all__)]):
        for hint in get_type_hints(function).values():
            own = [one for one in classes(hint) if one.__module__.startswith("ioprism.")]
            assert all(one in offered for one in own), (function, own)


def test_a_trace_is_read_and_described_in_two_lines() -> None:
    trace = ioprism.read(DATA / "darshan/a_ckpt_fpp_period5s.darshan")

    assert ioprism.characterise(trace).by_operation["write"].bytes == 1_610_613_149


def test_a_trace_that_was_kept_is_read_again(tmp_path: Path) -> None:
    trace = ioprism.read(DATA / "darshan/a_ckpt_fpp_period5s.darshan")
    ioprism.convert(trace, tmp_path / "kept")

    again = ioprism.read(tmp_path / "kept")
    assert ioprism.characterise(again) == ioprism.characterise(trace)


@pytest.fixture(scope="module")
def straggling() -> ioprism.Trace:
    return ioprism.read(DATA / "darshan/g_straggler_rank2.darshan")


@pytest.fixture(scope="module")
def results(straggling: ioprism.Trace) -> list[Result]:
    bottlenecks = ioprism.bottlenecks(straggling, top=3)
    return [
        ioprism.characterise(straggling),
        ioprism.diagnose(straggling),
        ioprism.insights(straggling),
        ioprism.phases(straggling),
        ioprism.period(straggling),
        ioprism.period(ioprism.read(DATA / "darshan/a_ckpt_fpp_period5s.darshan")),
        bottlenecks,
        ioprism.inspect(straggling, "stragglers"),
        ioprism.inspect(straggling, bottlenecks.bottlenecks[0].id),
        ioprism.compare(straggling, straggling),
    ]


def test_every_result_is_plain_data_a_table_a_line_and_a_cell(results: list[Result]) -> None:
    for result in results:
        json.dumps(result.to_dict())
        assert result.to_frame().columns
        assert repr(result) == f"<{type(result).__name__}: {result.summary()}>"
        assert len(repr(result)) < 300
        assert "<table" in result._repr_html_()


def test_a_report_prints_its_first_line(straggling: ioprism.Trace) -> None:
    assert repr(ioprism.report(straggling)).startswith("<Report: I/O stalls the job for 11.7 s")


def test_a_trace_prints_what_it_is(straggling: ioprism.Trace) -> None:
    assert repr(straggling).startswith("<Trace: darshan trace g_straggler_rank2.darshan, ")
    assert "4 ranks" in repr(straggling)
    assert straggling._repr_html_().startswith("<p>darshan trace")


def test_a_run_compared_with_itself_keeps_all_findings(straggling: ioprism.Trace) -> None:
    found = ioprism.compare(straggling, straggling)

    assert (found.gone, found.new) == ((), ())
    assert found.to_frame().filter(name="runtime")["ratio"].item() == 1.0


@pytest.mark.parametrize("name", ["calls.csv", "calls.json"])
def test_a_trace_is_written_in_the_form_that_the_name_tells(
    straggling: ioprism.Trace, tmp_path: Path, name: str
) -> None:
    ioprism.convert(straggling, tmp_path / name)

    assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("name", ["characterise", "diagnose", "insights", "phases", "bottlenecks"])
def test_a_path_will_do_for_a_trace(name: str) -> None:
    log, ask = TEST_DATA / "darshan/c_rank0_all_io.darshan", getattr(ioprism, name)

    assert ask(str(log)).to_dict() == ask(ioprism.read(log)).to_dict()


@pytest.mark.parametrize("module", ["", ".api", ".periodicity.of_job", ".write_time.steps"])
def test_the_examples_of_docstrings_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(f"ioprism{module}"))

    assert (done.failed, done.attempted > 0) == (0, True)


def test_a_trace_without_events_says_so() -> None:
    trace = ioprism.read(DATA / "darshan/l_killed_job_merged.darshan")

    with pytest.warns(UserWarning, match="no events, only counters"):
        assert trace.events().is_empty()


def test_the_period_of_a_log_is_found_by_its_path() -> None:
    log = DATA / "darshan/a_ckpt_fpp_period5s.darshan"

    assert ioprism.period(log).period == ioprism.period(ioprism.read(log)).period


def test_a_diagnosis_takes_what_the_command_takes(tmp_path: Path) -> None:
    ceiling = tmp_path / "ior.json"
    ceiling.write_text("{}")

    with pytest.raises(ioprism.IoprismError, match=r"ior\.json"):
        ioprism.diagnose(ioprism.sample_log(), ceilings=[ceiling])
