"""What an expert would check: jobs that were judged wrongly once, as logs or made twins of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ioprism
from ioprism import FILES, Finding, Insights, Job, Severity, Trace
from ioprism.diagnosis.evidence import Evidence, by_stripes, without_pipes
from ioprism.diagnosis.rank_balance import slowest_rank
from ioprism.diagnosis.rules.registry import RuleAnswers, judge
from ioprism.model.usage import Striping
from ioprism.model.verdict import SERIOUS
from tests.call_tables import calls, trace_of
from tests.conftest import TEST_DATA
from tests.diagnosis.rules.jobs import MIB, Entry, evidence, layer_phases, moves, phase, usage

IMBALANCE = {
    "unbalanced-ranks", "rank-data-imbalance", "rank-time-imbalance", "stragglers",
    "shared-file-data-imbalance", "shared-file-time-imbalance", "file-write-imbalance",
}  # fmt: skip


def serious(found: Insights | RuleAnswers) -> set[str]:
    return {f.code for f in found.findings if f.severity in SERIOUS}


def of(found: Insights | RuleAnswers, code: str) -> Finding:
    return next(finding for finding in found.findings if finding.code == code)


def judged(path: Path) -> Insights:
    return ioprism.insights(ioprism.read(path))


# Seconds


@pytest.mark.corpus
def test_small_reads_cost_what_they_take_and_not_their_share_of_the_calls(
    shared_data: Path,
) -> None:
    """6,400 of 7,200 reads of the DLIO trace are small; they take 23 ms over all processes."""
    found = judged(shared_data / "dftracer/dlio")

    assert of(found, "small-reads").seconds_at_stake == pytest.approx(0.0033, abs=0.003)
    assert "small-reads" not in serious(found)


def test_the_rank_most_concerned_gives_the_seconds() -> None:
    rows = [
        {"start": n, "seconds": 0.2 if process else 0.1, "process": process, "bytes": size,
         "offset": 2**21 * n}
        for process in (0, 1)
        for n, size in enumerate([512, 512, 2**21, 2**21])
    ]  # fmt: skip
    finding = of(ioprism.insights(trace_of(calls(rows))), "small-reads")

    assert finding.seconds_at_stake == pytest.approx(0.4)
    assert "estimated" not in finding.evidence


def test_an_estimate_from_counters_says_so() -> None:
    entry = Entry(write=moves(100, small=50, seconds=10.0))
    finding = of(judge(evidence(usage("posix", entry))), "small-writes")

    # 100 requests of which each costs 1 MiB, and 400 MiB that long ones move.
    assert finding.seconds_at_stake == pytest.approx(10.0 * 50 / 500)
    assert finding.evidence["estimated"] == 1


def test_nothing_costs_more_than_the_slowest_rank_or_the_run() -> None:
    entries = [Entry(f, r, write=moves(50, 512, 90.0), metadata_seconds=200.0)
               for f, r in ((0, 0), (0, 1), (1, 0))]  # fmt: skip
    job = evidence(usage("posix", *entries))
    slowest = slowest_rank(job)

    assert slowest is not None
    assert slowest.seconds == 100.0
    for finding in judge(job).findings:
        assert (finding.seconds_at_stake or 0.0) <= slowest.seconds


def test_what_is_fine_costs_nothing() -> None:
    job = evidence(usage("posix", Entry(write=moves(100))))

    assert all(f.seconds_at_stake is None for f in judge(job).findings if f.severity is Severity.OK)


def test_the_headline_is_that_of_the_slowest_rank() -> None:
    """One of 16 ranks is in I/O for nearly all of the run; the mean is 6 %."""
    rows = [{"start": 0, "seconds": 9.8, "process": 3, "bytes": 2**23, "operation": "write"}]
    rows += [{"start": 0, "seconds": 0.1, "process": n, "bytes": 2**23, "operation": "write"}
             for n in range(16) if n != 3]  # fmt: skip
    line = json.loads(ioprism.analyse(trace_of(calls(rows))).to_json())["verdict"]["line"]

    assert line.startswith("I/O stalls the job for 9.8")


def test_slowest_ranks_of_joined_records_are_added_to_their_own() -> None:
    joined = Entry(rank=-1, write=moves(40, seconds=8.0),
                   spread={"slowest": 2, "slowest_seconds": 60.0})  # fmt: skip
    own = Entry(1, 2, write=moves(4, seconds=7.0))
    slowest = slowest_rank(evidence(usage("posix", joined, own)))

    assert slowest is not None
    assert (slowest.rank, slowest.seconds) == (2, 67.0)


# Rules


def aggregated_job(ranks: int, aggregators: int) -> Evidence:
    """I/O tasks with equal parts write for all ranks, as PIO lets them with PnetCDF."""
    step = ranks // aggregators
    entries = [Entry(0, r, write=moves(100, 8 * MIB, 50.0, collective=100, independent=0))
               for r in range(0, ranks, step)]  # fmt: skip
    return evidence(usage("mpiio", *entries), usage("posix", *entries), ranks=ranks)


def test_aggregators_are_no_imbalance() -> None:
    assert not serious(judge(aggregated_job(1344, 56))) & IMBALANCE


def test_aggregators_are_no_imbalance_where_ranks_are_joined() -> None:
    ranks, count, whole = 1344, 56, 56 * 100 * 8 * MIB
    deviation = (whole**2 / (ranks * count) - (whole / ranks) ** 2) ** 0.5
    entry = Entry(
        rank=-1,
        write=moves(5600, 8 * MIB, 2800.0, collective=5600, independent=0),
        spread={"slowest": 24, "slowest_seconds": 50.0, "slowest_bytes": whole // count,
                "deviation_bytes": deviation},
    )  # fmt: skip
    found = judge(evidence(usage("mpiio", entry), usage("posix", entry), ranks=ranks))

    assert not serious(found) & IMBALANCE


def test_a_few_ranks_that_move_more_than_the_others_are_an_imbalance() -> None:
    entries = [Entry(r, r, write=moves(100 if r < 4 else 10, 8 * MIB, 40.0 if r < 4 else 4.0))
               for r in range(64)]  # fmt: skip

    assert "rank-data-imbalance" in serious(judge(evidence(usage("posix", *entries), ranks=64)))


def test_reads_of_data_sieving_are_not_blamed_on_the_program() -> None:
    reads = moves(5000, 512, 30.0, forward=100, small=5000)
    asked = Entry(write=moves(5000, 512, 40.0))
    below = Entry(write=moves(5000, 1024, 10.0), read=reads)
    found = judge(evidence(usage("mpiio", asked), usage("posix", below)))

    assert "data-sieving" in serious(found)
    assert not {"small-reads", "small-reads-shared", "random-reads"} & serious(found)


@pytest.mark.parametrize("slowest_bytes", [0, 65_536 * MIB])
def test_rank_0_that_writes_everything_of_65_536_ranks_is_named(slowest_bytes: int) -> None:
    ranks, whole = 65_536, 65_536 * MIB
    deviation = whole * (1 / ranks - 1 / ranks**2) ** 0.5
    entry = Entry(
        rank=-1,
        write=moves(65_536, MIB, 700.0, collective=0),
        metadata_seconds=65_536.0,  # every rank opens the file, and waits a second for it
        opens=ranks,
        spread={"slowest": 77, "slowest_seconds": 90.0, "slowest_bytes": slowest_bytes,
                "deviation_bytes": deviation},
    )  # fmt: skip
    found = judge(evidence(usage("mpiio", entry), usage("posix", entry), ranks=ranks))

    assert "single-aggregator" in serious(found)


@pytest.mark.parametrize("name", ["a_ckpt_fpp_period5s", "h_ior_easy_fpp_posix"])
@pytest.mark.corpus
def test_a_healthy_file_per_process_job_is_not_told_to_change(name: str, shared_data: Path) -> None:
    found = judged(shared_data / f"darshan/made/{name}.darshan")

    assert not {
        "redundant-writes",
        "no-parallel-interface", "blocking-writes", "blocking-reads", "hideable-io"
    } & serious(found)  # fmt: skip


def test_large_requests_through_mpi_io_are_fine_though_they_wait() -> None:
    entries = [Entry(r, r, write=moves(100, seconds=30.0)) for r in range(4)]
    found = judge(evidence(usage("mpiio", *entries), usage("posix", *entries)))

    assert serious(found) == set()


def test_one_sick_target_is_named_and_wider_stripes_are_not_advised() -> None:
    entries = [Entry(r, r, write=moves(10, seconds=80.0 if r % 8 == 3 else 5.0))
               for r in range(1024)]  # fmt: skip
    striping = {r: Striping(MIB, [r % 8]) for r in range(1024)}
    found = judge(evidence(usage("posix", *entries), ranks=1024, striping=striping))
    told = of(found, "slow-target")

    assert told.subject.name == "3"
    assert told.evidence["factor"] == pytest.approx(16.0)
    assert "target-contention" not in serious(found)
    assert all(
        "lfs setstripe -c -1" not in (advice.snippet or "")
        for finding in found.findings
        for advice in finding.recommendations
    )


def test_flushes_of_streams_are_no_sync_storm() -> None:
    from ioprism.formats.darshan.meaning import MODULES

    assert "FLUSHES" not in MODULES["STDIO"].syncs


def striped_trace(offset: int, size: int) -> Trace:
    rows = [{"start": n * 0.1, "seconds": 0.09, "bytes": size, "offset": offset + n * size,
             "operation": "write", "process": n % 2} for n in range(100)]  # fmt: skip
    trace = trace_of(calls(rows), paths=["/lustre/a"])
    layout: dict[str, Any] = {
        "stripe_size": MIB,
        "stripe_count": 4,
        "targets": pl.Series([[1, 2, 3, 4]]),
    }
    files = FILES.conform(trace.files.with_columns(**layout))
    return replace(trace, load_files=lambda: files, load_processes=lambda: trace.processes)


@pytest.mark.parametrize(
    ("offset", "size", "off"),
    [(0, MIB, False), (4096, MIB, True), (4096, 65_536, False), (0, 3 * MIB // 2, True)],
)
def test_alignment_is_that_of_the_stripes_where_the_layout_is_known(
    offset: int, size: int, off: bool
) -> None:
    found = ioprism.insights(striped_trace(offset, size))

    assert ("misaligned-file" in serious(found)) == off


@pytest.mark.parametrize(("size", "off"), [(64 * MIB, False), (65_536, True)])
def test_a_long_read_may_begin_anywhere(size: int, off: bool) -> None:
    rows = [{"start": n * 0.1, "seconds": 0.09, "bytes": size, "offset": 100 + n * size}
            for n in range(100)]  # fmt: skip

    found = ioprism.insights(trace_of(calls(rows)))

    assert ("misaligned-file" in {finding.code for finding in found.findings}) == off
    assert "misaligned-file" not in serious(found)  # reads do not wait for each other


def test_one_phase_tells_nothing_of_phases() -> None:
    job = evidence(
        usage("posix", Entry(write=moves(10)), Entry(1, 1, write=moves(10))),
        phases={"posix": layer_phases(phase(0.0, 90.0, slowest=80.0, typical=5.0))},
    )

    assert not {"phase-stragglers", "hideable-io", "many-phases"} & {
        finding.code for finding in judge(job).findings
    }


def test_a_workflow_of_short_processes_that_only_look_up_files_is_heavy_in_metadata() -> None:
    """No process is long in metadata calls, but they follow each other."""
    rows = [{"start": 0.05 * n, "seconds": 0.04, "process": n, "operation": "open", "file": n}
            for n in range(200)]  # fmt: skip
    rows += [{"start": 0.05 * n + 0.04, "seconds": 0.005, "process": n, "file": n, "bytes": 100,
              "operation": "write"} for n in range(200)]  # fmt: skip
    found = ioprism.insights(trace_of(calls(rows)))
    told = of(found, "metadata-heavy")

    assert told.severity is Severity.HIGH
    assert told.seconds_at_stake == pytest.approx(8.0, rel=0.01)


def test_waiting_for_other_processes_is_no_metadata() -> None:
    rows = [{"start": 0, "seconds": 9.0, "operation": "other", "function": "waitpid"},
            {"start": 9, "seconds": 0.5, "bytes": 2**23, "operation": "write"}]  # fmt: skip
    found = ioprism.insights(trace_of(calls(rows)))

    assert "metadata-heavy" not in {finding.code for finding in found.findings}
    assert found.slowest is not None
    assert found.slowest.seconds == pytest.approx(0.5)


def test_the_title_of_slow_ranks_and_their_rows_tell_the_same_time() -> None:
    own = [Entry(1 + r, r, write=moves(100, seconds=15.1 if r == 3 else 4.0)) for r in range(8)]
    joined = Entry(0, -1, write=moves(8, 64, 700.0),
                   spread={"slowest": 5, "slowest_seconds": 683.0})  # fmt: skip
    found = judge(evidence(usage("posix", *own, joined), ranks=8, runtime=800.0))

    told = of(found, "stragglers")
    assert told.evidence["slowest"] == max(row["time"] for row in told.details)  # type: ignore[type-var]


def test_a_file_that_some_ranks_are_long_in_is_told_once() -> None:
    joined = Entry(0, -1, write=moves(8, 64 * MIB, 80.0),
                   spread={"slowest": 5, "slowest_seconds": 40.0})  # fmt: skip
    codes = {f.code for f in judge(evidence(usage("posix", joined), ranks=8)).findings}

    assert "shared-file-time-imbalance" in codes
    assert "rank-time-imbalance" not in codes


def test_the_log_of_one_rank_says_nothing_of_the_balance_of_ranks() -> None:
    killed = evidence(usage("posix", Entry(write=moves(100))), ranks=2, format="darshan")
    codes = {f.code for f in judge(killed).findings}

    assert "rank-0-heavy" not in codes
    assert "rank-0-heavy" in {one.code for one in judge(killed).not_checked}
    assert "rank-0-heavy" in {f.code for f in judge(replace(killed, logs=2)).findings}


def test_what_is_written_anew_may_be_read_anew() -> None:
    """A benchmark with two repetitions: each writes all of the file, and reads all of it."""
    twice = moves(200, MIB, 10.0, extent=100 * MIB)
    again = {**twice, "begin": 50.0}

    def found(written: dict[str, Any]) -> set[str]:
        entry = Entry(read=again, write=written, opens=4)
        return {finding.code for finding in judge(evidence(usage("posix", entry))).findings}

    assert "redundant-reads" not in found(twice)
    assert "redundant-reads" in found(moves(100, MIB, 10.0))


def test_the_slowest_rank_of_a_joined_record_counts_not_the_mean_one() -> None:
    entry = Entry(rank=-1, write=moves(1000, 4096, 80.0),
                  spread={"slowest": 3, "slowest_seconds": 60.0})  # fmt: skip
    finding = of(judge(evidence(usage("posix", entry))), "small-writes")

    assert finding.seconds_at_stake == pytest.approx(60.0)


def test_long_requests_lose_little_by_crossing_stripes() -> None:
    entries = [Entry(rank=r, write=moves(100, 128 * MIB, 90.0), misaligned=100) for r in (0, 1)]
    striping = {0: Striping(MIB, [1, 2, 3])}
    finding = of(judge(evidence(usage("posix", *entries), striping=striping)), "misaligned-file")

    assert finding.seconds_at_stake == pytest.approx(90.0 * 2 / 128)


@pytest.mark.parametrize(
    ("size", "block", "off", "crossing"),
    [
        (64 * 1024, 4096, 0, 0),  # sixteen of them fill a stripe
        (64 * 1024, MIB, 100, 6),  # off the block: one of sixteen crosses
        (MIB, MIB, 0, 0),
        (MIB, MIB, 100, 100),
        (3 * MIB, 4 * MIB, 75, 75),  # the block is not what the file is striped by
        (3 * MIB // 2, 4096, 0, 100),  # on the block, and yet across stripes
        (47_008, 4096, 100, 100),  # not whole pages: each begins or ends inside one
    ],
)
def test_counters_are_judged_by_the_stripes_where_the_layout_is_known(
    size: int, block: int, off: int, crossing: int
) -> None:
    plain = usage("posix", Entry(write=moves(100, size), misaligned=off))
    counted = replace(plain, alignment=[block], common_sizes=[([size], [100])])

    assert by_stripes(counted, {0: Striping(MIB, [1, 2])}).misaligned == [crossing]


def test_a_killed_job_has_a_slowest_rank_too() -> None:
    whole = trace_of(calls([{"seconds": 2.0}]))
    killed = replace(whole, job=Job(ranks=1), load_files=lambda: whole.files,
                     load_processes=lambda: whole.processes)  # fmt: skip

    slowest = ioprism.insights(killed).slowest

    assert slowest is not None
    assert slowest.seconds == pytest.approx(2.0)


def test_opens_are_those_of_a_pipe_by_its_name_or_where_no_other_open_takes_so_long() -> None:
    quick = Entry(write=moves(2, MIB, 0.1), metadata_seconds=0.001, opens=1, file=1)
    slow = Entry(write=moves(2, MIB, 0.1), metadata_seconds=2.0, opens=1, file=1)
    message = Entry(write=moves(2, 20, 0.0), metadata_seconds=6.0, opens=2, file=0)

    told = [
        without_pipes(usage("posix", message, other), {0: name}).metadata_seconds[0]
        for other, name in ((quick, "/a/out"), (slow, "/a/out"), (slow, "/a/pipe_12"))
    ]

    assert told == [0.0, 6.0, 0.0]  # where all opens are slow, it is the metadata server


def test_opens_that_wait_for_the_other_end_of_a_pipe_are_no_metadata_load() -> None:
    """Two messages of 40 bytes, and 1,400 s in two opens: no storage is that slow."""
    pipe = usage("posix", Entry(write=moves(2, 20, 0.0), metadata_seconds=1400.0, opens=2))
    slow = usage("posix", Entry(write=moves(2, 20, 0.0), metadata_seconds=1400.0, opens=20_000))

    assert without_pipes(pipe).metadata_seconds == [0.0]
    assert without_pipes(slow).metadata_seconds == [1400.0]


# Seconds that the log itself tells


@pytest.mark.parametrize(("metadata", "seeks", "expected"), [
    (5.0, 100_000, 0.12),  # 1.2 microseconds each, as measured
    (0.05, 100_000, 0.05),  # no more than all metadata calls of the file
])  # fmt: skip
def test_seeks_cost_what_a_seek_takes_and_never_more_than_the_metadata(
    metadata: float, seeks: int, expected: float
) -> None:
    entry = Entry(write=moves(100_000), metadata_seconds=metadata, seeks=seeks)
    finding = of(judge(evidence(usage("posix", entry))), "many-seeks")

    assert finding.seconds_at_stake == pytest.approx(expected)


def test_another_file_of_the_log_tells_that_seeks_are_quicker() -> None:
    quick = Entry(file=1, rank=1, write=moves(100_000), metadata_seconds=0.01, seeks=100_000)
    slow = Entry(write=moves(100_000), metadata_seconds=5.0, seeks=100_000)
    finding = of(judge(evidence(usage("posix", quick, slow))), "many-seeks")

    assert finding.seconds_at_stake == pytest.approx(0.01)


def test_bytes_read_again_cost_what_reading_them_again_takes() -> None:
    """The first pass comes from storage and takes long, the second from memory."""
    rows = [
        {"start": 0.1 * n + 5 * again, "seconds": 0.001 if again else 0.09, "bytes": 2**21,
         "offset": 2**21 * n}
        for again in (0, 1) for n in range(40)
    ]  # fmt: skip
    finding = of(ioprism.insights(trace_of(calls(rows))), "redundant-reads")

    assert finding.seconds_at_stake == pytest.approx(0.04)


# Libraries


def test_reads_across_holes_are_not_called_repeated_reads_of_the_program() -> None:
    asked = Entry(read=moves(1000, 4096, independent=1000))
    below = Entry(read=moves(1000, 4 * MIB, extent=MIB * 1000))
    found = judge(evidence(usage("mpiio", asked), usage("posix", below), ranks=4))

    assert "redundant-reads" not in {finding.code for finding in found.findings}


def test_no_order_is_told_where_the_source_counts_none() -> None:
    """DFTracer's sums have no offsets: nothing jumps backwards in them."""
    found = judged(TEST_DATA / "dftracer/v2.2.0-agg.pfw")

    assert not {f.code for f in found.findings} & {"random-reads", "random-writes"}
