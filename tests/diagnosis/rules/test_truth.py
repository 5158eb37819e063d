"""Jobs whose truth is known are judged by it: real ones, and ones made to have one fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ioprism
from benchmarks.synthetic import (
    Burst,
    MetadataStorm,
    Requests,
    Straggler,
    Workload,
    checkpointing_job,
    synthesise,
)
from benchmarks.synthetic.darshan_writer import write_trace
from ioprism import Finding, Insights, Severity, Trace
from ioprism.diagnosis.rules.registry import RuleAnswers
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
MIB = 2**20
GOOD = Requests(count=32, size=4 * MIB)


def judged(log: Path) -> Insights:
    return ioprism.insights(ioprism.read(log))


def high(found: Insights | RuleAnswers) -> set[str]:
    return {f.code for f in found.findings if f.severity is Severity.HIGH}


def finding(found: Insights, code: str) -> Finding:
    return next(f for f in found.findings if f.code == code)


def test_c_is_rank_0_heavy_and_nothing_contradicts_it() -> None:
    assert high(judged(DATA / "c_rank0_all_io.darshan")) == {"rank-0-heavy"}


def test_a_has_nothing_that_is_high() -> None:
    assert high(judged(DATA / "a_ckpt_fpp_period5s.darshan")) == set()


def test_e_collective_is_ok() -> None:
    found = judged(DATA / "e_mpiio_collective.darshan")
    ok = {f.code for f in found.findings if f.severity is Severity.OK}

    assert {"collective-reads", "collective-writes"} <= ok
    assert high(found) == {"collective-overhead"}  # 59 s, of which storage takes 0.1 s


def test_g_names_rank_2_as_the_straggler() -> None:
    found = judged(DATA / "g_straggler_rank2.darshan")
    slow = finding(found, "stragglers")

    assert slow.subject.name == "2"
    assert [row["rank"] for row in slow.details] == [2]
    assert high(found) == {"stragglers", "rank-time-imbalance", "small-writes"}


@pytest.mark.corpus
def test_d_is_heavy_in_metadata_and_its_partial_log_says_so(shared_data: Path) -> None:
    made = shared_data / "darshan/made"
    full = judged(made / "d_metadata_storm_full.darshan")
    partial = judged(made / "d_metadata_storm_default_mem.darshan")

    assert high(full) == high(partial) == {"metadata-heavy"}
    assert "incomplete-data" not in {f.code for f in full.findings}
    assert "partial" in str(finding(partial, "incomplete-data").details)


@pytest.mark.corpus
def test_e_independent_is_told_with_the_time_of_its_calls(shared_data: Path) -> None:
    """Its counters say 72 ms a rank, but that is fsync: the 400 writes of a rank take 12 ms."""
    found = judged(shared_data / "darshan/made/e_mpiio_independent.darshan")
    told = finding(found, "independent-writes")

    assert told.seconds_at_stake == pytest.approx(0.0121, rel=0.01)
    assert "estimated" not in told.evidence
    assert high(found) == set()


def burst(**options: object) -> Burst:
    told: dict[str, object] = {
        "path": "/scratch/out.{rank}", "direction": "write", "requests": GOOD, "length": 4.0,
        **options,
    }  # fmt: skip
    return Burst(**told)  # type: ignore[arg-type]


FAULTS: dict[str, tuple[Workload, set[str]]] = {
    "nothing": (Workload(8, (burst(),), runtime=60.0), set()),
    "small writes": (
        Workload(8, (burst(requests=Requests(400, 4096)),), runtime=60.0),
        {"small-writes"},
    ),
    "small reads": (
        Workload(8, (burst(direction="read", requests=Requests(400, 4096)),), runtime=60.0),
        {"small-reads"},
    ),
    "random reads": (
        Workload(
            8, (burst(direction="read", requests=Requests(400, MIB, random=1.0)),), runtime=60.0
        ),
        {"random-reads"},
    ),
    "misaligned writes": (
        Workload(
            8,
            (burst(path="/scratch/out", requests=Requests(100, 2 * MIB, misaligned=0.5)),),
            runtime=60.0,
        ),
        {"misaligned-file"},
    ),
    "a straggler": (
        Workload(8, (burst(),), stragglers=(Straggler(5, 4.0),), runtime=60.0),
        {"stragglers", "rank-time-imbalance"},
    ),
    "rank 0 alone": (Workload(8, (burst(ranks=(0,)),), runtime=60.0), {"rank-0-heavy"}),
    "data through STDIO": (
        Workload(8, (burst(layer="stdio"),), runtime=60.0),
        {"stdio-data"},
    ),
    "a metadata storm": (
        Workload(
            8,
            (burst(),),
            (MetadataStorm("/scratch/f{number}", 10.0, 20.0, 500, 500, 500),),
            runtime=60.0,
        ),
        {"metadata-heavy"},
    ),
    "independent small MPI-IO": (
        Workload(
            8,
            (burst(path="/scratch/shared", layer="mpiio", interleaved=True,
                   requests=Requests(200, 8192)),),
            runtime=60.0,
        ),
        {"independent-writes", "small-writes", "small-writes-shared"},
    ),
    "collective MPI-IO": (
        Workload(
            8,
            (burst(path="/scratch/shared", layer="mpiio", collective=True, aggregators=2,
                   requests=Requests(200, MIB)),),
            runtime=60.0,
            hosts=2,
        ),
        set(),
    ),
}  # fmt: skip


def from_calls(trace: Trace, _: Path) -> Insights:
    return ioprism.insights(trace)


def from_log(trace: Trace, folder: Path) -> Insights:
    log = folder / "job.darshan"
    write_trace(log, trace)
    return judged(log)


@pytest.mark.parametrize("look", [from_calls, from_log], ids=["calls", "log"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_made_job_has_the_fault_it_was_made_with_and_no_other(
    fault: str, look: Callable[[Trace, Path], Insights], tmp_path: Path
) -> None:
    workload, expected = FAULTS[fault]
    found = high(look(synthesise(workload).trace, tmp_path))

    # A log joins the ranks of a shared file, and says so with codes of its own.
    assert found - {"shared-file-time-imbalance"} == expected


def test_the_sample_job_has_everything_that_was_put_into_it() -> None:
    found = ioprism.insights(synthesise(checkpointing_job()).trace)

    assert high(found) == {
        "independent-writes", "small-writes", "small-writes-shared",
        "stragglers", "rank-time-imbalance",
    }  # fmt: skip
    assert finding(found, "random-reads").severity is Severity.INFO  # of 1 MiB: jumps cost little
    assert finding(found, "stragglers").subject.name == "37"


@pytest.mark.parametrize("path", ["/scratch/out.{rank}", "/scratch/shared"])
@pytest.mark.parametrize("slow", [True, False])
def test_one_slow_rank_of_thousands_is_told_from_an_even_job(
    path: str, slow: bool, tmp_path: Path
) -> None:
    stragglers = (Straggler(1234, 60.0),) if slow else ()
    work = Workload(
        2048, (burst(path=path, requests=Requests(2, 4 * MIB)),), stragglers=stragglers,
        runtime=300.0,
    )  # fmt: skip
    found = from_log(synthesise(work).trace, tmp_path)
    codes = {"stragglers", "rank-time-imbalance"}

    assert high(found) & codes == (codes if slow else set())
    if slow:
        assert finding(found, "stragglers").subject.name == "1234"
        assert finding(found, "stragglers").seconds_at_stake == pytest.approx(200, rel=0.2)


def test_one_slow_rank_of_thousands_is_seen_without_single_calls(tmp_path: Path) -> None:
    """Counters alone, as most production logs have them."""
    work = Workload(
        2048, (burst(path="/scratch/shared", requests=Requests(2, 4 * MIB)),),
        stragglers=(Straggler(7, 60.0),), runtime=300.0,
    )  # fmt: skip
    log = tmp_path / "job.darshan"
    write_trace(log, synthesise(work).trace)
    trace = ioprism.read(log)
    blind = Trace(
        trace.format, trace.paths, trace.job, (), trace.counters,
        load_files=trace.load_files, load_processes=trace.load_processes,
    )  # fmt: skip
    found = ioprism.insights(blind)

    assert finding(found, "stragglers").subject.name == "7"
    assert "stragglers" in high(found)
