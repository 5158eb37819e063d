"""Each rule fires where its threshold is passed, and is silent just under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ioprism import Finding, Severity
from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.registry import RULES, judge
from ioprism.model.machine import BackgroundLoad
from ioprism.model.usage import RankLoad, Striping
from tests.diagnosis.rules.jobs import MIB, Entry, evidence, layer_phases, moves, phase, usage

Case = tuple[str, Evidence, Evidence]  # code, fires, just does not
DIRECTIONS = ("read", "write")
BY_CODE = {rule.code: rule for rule in RULES}


def posix(*entries: Entry, **job: object) -> Evidence:
    return evidence(usage("posix", *entries), **job)  # type: ignore[arg-type]


def one(direction: str, **columns: object) -> Entry:
    """100 requests of one rank to one file all the run long, as told."""
    told = {"operations": 100, "bytes": 400 * MIB, "seconds": 100.0, **columns}
    return Entry(**{direction: {**moves(100), **told}})  # type: ignore[arg-type]


def requests() -> Iterator[Case]:
    for d in DIRECTIONS:
        yield f"small-{d}s", posix(one(d, small=11)), posix(one(d, small=10))
        yield (
            f"small-{d}s-shared",
            posix(one(d, small=11), replace(one(d, small=11), rank=1)),
            posix(one(d, small=50), replace(one(d, small=50), file=1, rank=1)),
        )
        yield f"random-{d}s", posix(one(d, forward=78)), posix(one(d, forward=79))
        yield f"sequential-{d}s", posix(one(d, forward=80)), posix(one(d, forward=79))
        yield (
            f"redundant-{d}s",
            posix(one(d, extent=359 * MIB)),
            posix(one(d, extent=360 * MIB)),
        )
    write = moves(100)
    yield (
        "misaligned-file",
        posix(*(Entry(rank=rank, write=moves(100, 8192, 50.0), misaligned=11) for rank in (0, 1))),
        posix(*(Entry(rank=rank, write=moves(100, 8192, 50.0), misaligned=10) for rank in (0, 1))),
    )
    yield "data-sieving", sieving(11), sieving(10)
    yield (
        "misaligned-memory",
        posix(Entry(write=write, misaligned_memory=11)),
        posix(Entry(write=write, misaligned_memory=10)),
    )


def sieving(reads: int) -> Evidence:
    """MPI-IO writes 100 times 4 MiB, and POSIX reads some of it."""
    asked = Entry(write=moves(100))
    return evidence(usage("mpiio", asked), usage("posix", replace(asked, read=moves(reads))))


def metadata() -> Iterator[Case]:
    long = {"runtime": 1000.0}
    yield (
        "metadata-heavy",
        posix(Entry(metadata_seconds=16.0), Entry(1, metadata_seconds=15.0), **long),
        posix(
            Entry(metadata_seconds=16.0, write=moves(9, seconds=40.0)),
            Entry(1, 1, metadata_seconds=15.0),
            **long,
        ),
    )
    small = moves(1, 1024, 0.01)
    yield (
        "tiny-files",
        posix(*(Entry(n, write=small) for n in range(1001))),
        posix(*(Entry(n, write=small) for n in range(1000))),
    )
    seeking = Entry(write=moves(10**7), metadata_seconds=5.0, opens=0)
    yield "many-seeks", posix(replace(seeking, seeks=5_100_000)), posix(replace(seeking, seeks=5))
    yield (
        "sync-storm",
        posix(Entry(write=moves(100), syncs=11)),
        posix(Entry(write=moves(100), syncs=10)),
    )


def busy(sizes: list[int], seconds: list[float]) -> Evidence:
    """A file per process: what each rank writes, in requests of 4 MiB, and for how long."""
    entries = [
        Entry(rank, rank, write=moves(size, 4 * MIB, time))
        for rank, (size, time) in enumerate(zip(sizes, seconds, strict=True))
    ]
    return posix(*entries, ranks=len(sizes))


def ranks() -> Iterator[Case]:
    even = [10.0] * 4
    yield "rank-0-heavy", busy([150, 100, 100, 100], even), busy([149, 100, 100, 100], even)
    yield (
        "unbalanced-ranks",
        busy([100, 150, 100, 100], [1.0, 5.0, 1.0, 1.0]),
        busy([100, 150, 100, 100], [5.0, 1.0, 5.0, 5.0]),
    )
    yield "rank-data-imbalance", busy([100, 125, 100, 100], even), busy([100, 124, 100, 100], even)
    yield (
        "rank-time-imbalance",
        busy([9, 9, 9, 9], [10.0, 10.0, 10.0, 16.7]),
        busy([9, 9, 9, 9], [10.0, 10.0, 10.0, 16.6]),
    )
    yield (
        "stragglers",
        busy([9, 9, 9, 9], [10.0, 10.0, 10.0, 20.0]),
        busy([9, 9, 9, 9], [10.0, 10.0, 10.0, 19.9]),
    )


def joined(**spread: float) -> Evidence:
    told = {"slowest": 3, "slowest_seconds": 10.0, "fastest": 1, "fastest_seconds": 10.0, **spread}
    return posix(Entry(rank=-1, write=moves(40, seconds=40.0), spread=told))


def file_balance() -> Iterator[Case]:
    mean = 40 * 4 * MIB / 4
    yield (
        "shared-file-data-imbalance",
        joined(deviation_bytes=0.31 * mean, slowest_seconds=12.0),
        joined(deviation_bytes=0.30 * mean, slowest_seconds=12.0),
    )
    yield (
        "shared-file-time-imbalance",
        joined(slowest_seconds=14.3),
        joined(slowest_seconds=14.2),
    )
    for d in DIRECTIONS:
        yield f"file-{d}-imbalance", both_ranks(d, 19), both_ranks(d, 18)


def both_ranks(direction: str, calls: int) -> Evidence:
    """One rank makes 10 calls, the other these; deviation over mean is 0.31 for 19."""
    return posix(
        Entry(**{direction: moves(10)}),  # type: ignore[arg-type]
        Entry(rank=1, **{direction: moves(calls, seconds=30.0)}),  # type: ignore[arg-type]
    )


def mpiio(direction: str, **columns: object) -> Evidence:
    told = {**moves(100, 1024), **columns}
    entries = [Entry(rank=r, **{direction: told}) for r in (0, 1)]  # type: ignore[arg-type]
    return evidence(usage("mpiio", *entries))


def collective() -> Iterator[Case]:
    for d in DIRECTIONS:
        yield (
            f"independent-{d}s",
            mpiio(d, independent=51, collective=49),
            mpiio(d, independent=50, collective=50),
        )
        yield (
            f"collective-{d}s",
            mpiio(d, independent=50, collective=50),
            mpiio(d, independent=51, collective=49),
        )
        yield f"blocking-{d}s", mpiio(d), mpiio(d, nonblocking=1)
    yield "collective-overhead", exchanging(0.9), exchanging(1.1)
    yield "single-aggregator", aggregated([90, 10, 0, 0]), aggregated([89, 11, 0, 0])
    yield "aggregators-across-nodes", aggregated([50, 50, 0, 0]), aggregated([50, 0, 50, 0])
    yield "several-aggregators-per-node", aggregated(TWO_EACH), aggregated([50, 0, 50, 0])
    yield "one-aggregator-per-node", aggregated([50, 0, 50, 0]), aggregated(TWO_EACH)


def exchanging(storage: float) -> Evidence:
    """Collective calls take every rank 10 s, storage so many seconds of the only aggregator."""
    asked = [Entry(rank=r, write=moves(25, collective=25, independent=0)) for r in range(4)]
    return evidence(
        usage("mpiio", *asked), usage("posix", Entry(write=moves(100, seconds=storage)))
    )


TWO_EACH = [25, 25, 0, 0, 25, 25, 0, 0]


def aggregated(calls: list[int], *, independent: int = 0) -> Evidence:
    """A collective file; what each rank, on one of two nodes, does in POSIX."""
    ranks = len(calls)
    together = moves(25, collective=25 - independent, independent=independent)
    asked = [Entry(rank=r, write=together) for r in range(ranks)]
    done = [Entry(rank=r, write=moves(n, seconds=0.2 * n)) for r, n in enumerate(calls) if n]
    return evidence(
        usage("mpiio", *asked),
        usage("posix", *done),
        ranks=ranks,
        hosts={rank: "node1" if rank < ranks // 2 else "node2" for rank in range(ranks)},
        callers={(0, "write"): frozenset(r for r, n in enumerate(calls) if n)},
    )


def library(layer: str, direction: str, **columns: object) -> Evidence:
    told = {**moves(100, seconds=100.0), **columns}
    return evidence(usage(layer, Entry(**{direction: told})))  # type: ignore[arg-type]


def libraries() -> Iterator[Case]:
    for layer in ("hdf5", "pnetcdf"):
        for d in DIRECTIONS:
            yield (
                f"{layer}-small-{d}s",
                library(layer, d, small=11),
                library(layer, d, small=10),
            )
    yield "pnetcdf-independent-access", variables(51), variables(50)
    yield "hdf5-independent-access", datasets(51), datasets(50)
    yield (
        "hdf5-scattered-selections",
        selections(irregular=6, points=6, regular=88),
        selections(irregular=5, points=5, regular=90),
    )


def variables(independent: int) -> Evidence:
    told = moves(100, independent=independent, collective=100 - independent)
    return evidence(usage("pnetcdf", Entry(write=told)), usage("mpiio", Entry(write=moves(1))))


def datasets(independent: int) -> Evidence:
    alone = Entry(write=moves(independent), extras={"collective": 0})
    together = Entry(1, write=moves(100 - independent), extras={"collective": 1})
    return evidence(usage("hdf5", alone, together), usage("mpiio", Entry(write=moves(1))))


def selections(**extras: int) -> Evidence:
    return evidence(usage("hdf5", Entry(write=moves(100), extras=extras)))


def interfaces() -> Iterator[Case]:
    yield "stdio-data", through_stdio(112), through_stdio(111)
    yield (
        "no-parallel-interface",
        posix(*(Entry(rank=r, write=moves(10, MIB - 1)) for r in (0, 1)), ranks=2),
        posix(*(Entry(rank=r, write=moves(10, MIB)) for r in (0, 1)), ranks=2),
    )
    for d, other in (("read", "write"), ("write", "read")):
        told = [{d: moves(n), other: moves(90)} for n in (111, 109)]
        high, low = (posix(Entry(**one_way)) for one_way in told)  # type: ignore[arg-type]
        yield f"more-{d}s", high, low
        yield f"more-bytes-{'read' if d == 'read' else 'written'}", high, low
    yield (
        "single-process",
        posix(Entry(write=moves(1)), ranks=1),
        posix(Entry(write=moves(1)), ranks=2),
    )
    yield (
        "small-total-data",
        posix(Entry(write=moves(1, 4 * MIB - 1))),
        posix(Entry(write=moves(1, 4 * MIB))),
    )
    yield "read-after-write", reread(51), reread(50)
    yield (
        "incomplete-data",
        posix(Entry(write=moves(1)), warnings=("the POSIX data are partial",)),
        posix(Entry(write=moves(1)), warnings=("log: the APMPI module is not read",)),
    )


def through_stdio(calls: int) -> Evidence:
    return evidence(
        usage("posix", Entry(write=moves(1000, MIB))),
        usage("stdio", Entry(1, write=moves(calls, MIB))),
    )


def reread(calls: int) -> Evidence:
    own = Entry(write=moves(100), read=moves(calls, begin=2.0))
    return posix(own, Entry(1, read=moves(100 - calls)))


def over_time(*phases: object, runtime: float = 100.0) -> Evidence:
    found = {"posix": layer_phases(*phases)}  # type: ignore[arg-type]
    return posix(Entry(write=moves(100)), phases=found, runtime=runtime)


def time() -> Iterator[Case]:
    def many(count: int) -> Evidence:
        return over_time(*(phase(n, n + 0.5, slowest=0.1, typical=0.1) for n in range(count)))

    yield "many-phases", many(101), many(100)

    def waiting(count: int) -> Evidence:
        times = [(2.0 if n < count else 1.9) for n in range(100)]
        return over_time(
            *(phase(3.0 * n, 3.0 * n + 2, slowest=t, typical=1.0) for n, t in enumerate(times))
        )

    yield "phase-stragglers", waiting(51), waiting(50)

    def hidden(seconds: float) -> Evidence:
        phases = (phase(start, start + 1, slowest=seconds, typical=0.5) for start in (0.0, 50.0))
        return over_time(*phases)

    yield "hideable-io", hidden(5.1), hidden(5.0)


def striped(loads: dict[int, int], *, ranks: int = 4) -> Evidence:
    files = [Entry(n, n % ranks, write=moves(1, size)) for n, size in enumerate(loads.values())]
    layouts = {n: Striping(MIB, [target]) for n, target in enumerate(loads)}
    return posix(*files, striping=layouts, ranks=ranks)


def storage() -> Iterator[Case]:
    yield (
        "single-target",
        striped({1: 51 * MIB, 2: 29 * MIB, 3: 20 * MIB}),
        striped({1: 50 * MIB, 2: 30 * MIB, 3: 20 * MIB}),
    )
    yield (
        "target-imbalance",
        striped({1: 100 * MIB, 2: 54 * MIB, 3: 55 * MIB}),
        striped({1: 100 * MIB, 2: 56 * MIB, 3: 55 * MIB}),
    )

    def crowd(ranks: int) -> Evidence:
        entries = [Entry(0, r, write=moves(1)) for r in range(ranks)]
        return posix(*entries, striping={0: Striping(MIB, [1, 2])}, ranks=ranks)

    yield "target-contention", crowd(65), crowd(64)

    def targets(slow: float) -> Evidence:
        entries = [Entry(f, f, write=moves(9, seconds=slow if f == 2 else 10.0)) for f in range(5)]
        return posix(*entries, striping={f: Striping(MIB, [f]) for f in range(5)}, ranks=5)

    yield "slow-target", targets(20.1), targets(19.9)
    yield "file-system-weather", beside(501), beside(500)


def beside(others: int, *, coverage: float = 1.0, written: int = 100) -> Evidence:
    """A job that writes 4 MiB so often, and the MiB that others move on its servers meanwhile."""
    own = moves(written)
    seen = BackgroundLoad(8, own["bytes"] + others * MIB, 100.0, 1000 * MIB, coverage)
    return posix(Entry(write=own), background_load=seen)


FAMILIES: tuple[Callable[[], Iterator[Case]], ...] = (
    requests, metadata, ranks, file_balance, collective, libraries, interfaces, time, storage,
)  # fmt: skip
CASES = [case for family in FAMILIES for case in family()]


def found(job: Evidence, code: str) -> Finding | None:
    return next((f for f in judge(job).findings if f.code == code), None)


@pytest.mark.parametrize(("code", "fires", "silent"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_fires_beyond_its_threshold_and_not_just_under(
    code: str, fires: Evidence, silent: Evidence
) -> None:
    finding = found(fires, code)

    assert finding is not None
    assert finding.severity == BY_CODE[code].level
    assert finding.evidence
    assert "{" not in finding.title
    assert found(silent, code) is None


def test_every_rule_has_such_a_case() -> None:
    assert {case[0] for case in CASES} == set(BY_CODE)


def test_calls_of_one_direction_are_counted_once_where_the_other_is_not_known() -> None:
    told = moves(100, independent=60, collective=40)
    reads = Entry(read=told, write=moves(0, independent=None, collective=None))
    job = evidence(usage("pnetcdf", reads), usage("mpiio", Entry(write=moves(1))))
    finding = found(job, "pnetcdf-independent-access")

    assert finding is not None
    assert (finding.evidence["independent"], finding.evidence["collective"]) == (60, 40)


def test_codes_are_not_used_twice() -> None:
    assert len(BY_CODE) == len(RULES)


def test_findings_are_ranked_by_level_and_then_by_time() -> None:
    job = posix(one("write", small=90, forward=20, seconds=50.0))
    listed = judge(job).findings
    levels = [list(Severity).index(f.severity) for f in listed]

    assert levels == sorted(levels)
    high = [f.seconds_at_stake or 0.0 for f in listed if f.severity is Severity.HIGH]
    assert len(high) >= 2
    assert high == sorted(high, reverse=True)


@pytest.mark.parametrize(
    ("seconds", "runtime", "level"),
    [
        (1.01, 100.0, Severity.HIGH),  # over one percent of the run
        (0.99, 100.0, Severity.INFO),
        (0.051, 1.0, Severity.HIGH),  # over 50 ms
        (0.049, 1.0, Severity.INFO),
        (0.051, None, Severity.HIGH),  # a killed job has no run time
    ],
)
def test_nothing_is_high_when_next_to_no_time_is_at_stake(
    seconds: float, runtime: float | None, level: Severity
) -> None:
    finding = found(
        posix(one("write", small=100, seconds=seconds), runtime=runtime), "small-writes"
    )

    assert finding is not None
    assert finding.severity is level
    assert finding.threshold["negligible_share"] == 0.01


def test_what_a_trace_cannot_tell_is_not_called_fine() -> None:
    blind = moves(100, small=None, forward=None, first=None, extent=None)
    job = posix(Entry(write=blind, misaligned=None, misaligned_memory=None))
    answer = judge(job)
    codes = {one.code for one in answer.not_checked}

    assert {"small-writes", "random-writes", "sequential-writes", "redundant-writes",
            "misaligned-file", "misaligned-memory", "many-phases"} <= codes  # fmt: skip
    assert not codes & {f.code for f in answer.findings}
    assert all(one.needs for one in answer.not_checked)


@pytest.mark.parametrize(
    ("job", "needs"),
    [
        (posix(Entry(write=moves(100))), "when the job ran"),
        (beside(900, coverage=0.8), "the store covers 80%"),
        (beside(-250), "those of the store moved less"),
    ],
)
def test_the_weather_is_not_called_fine_where_the_servers_cannot_tell(
    job: Evidence, needs: str
) -> None:
    answer = judge(job)
    told = {one.code: one.needs for one in answer.not_checked}

    assert needs in told["file-system-weather"]


def test_one_process_gets_no_advice_for_many() -> None:
    job = posix(one("write", small=100), ranks=1)
    texts = [r.text for f in judge(job).findings for r in f.recommendations]

    assert texts
    assert not [text for text in texts if "MPI-IO" in text]


@pytest.mark.parametrize(("filesystem", "lustre"), [("lustre", True), ("gpfs", False)])
def test_advice_fits_the_file_system(filesystem: str, lustre: bool) -> None:
    job = posix(Entry(write=moves(100), misaligned=50), filesystem=filesystem)
    finding = found(job, "misaligned-file")

    assert finding is not None
    assert any("lfs" in (r.snippet or "") for r in finding.recommendations) == lustre
    assert any("mmlsfs" in (r.snippet or "") for r in finding.recommendations) != lustre


def test_rank_0_is_named_once() -> None:
    codes = [f.code for f in judge(busy([100, 1, 1, 1], [20.0, 0.1, 0.1, 0.1])).findings]

    assert "rank-0-heavy" in codes
    assert not {"stragglers", "rank-time-imbalance", "rank-data-imbalance"} & set(codes)


def test_ties_are_not_heavy() -> None:
    assert found(busy([100] * 4, [10.0] * 4), "rank-0-heavy") is None


def test_heat_maps_tell_of_ranks_where_records_are_joined() -> None:
    joined_job = posix(
        Entry(rank=-1, write=moves(40, seconds=40.0), spread={"slowest_seconds": 20.0}),
        loads={"posix": RankLoad({0: {"write": 100 * MIB, "read": 0}, 1: {"write": 1, "read": 0}})},
    )
    finding = found(joined_job, "rank-0-heavy")

    assert finding is not None
    assert finding.seconds_at_stake == 20.0


def test_independent_calls_hide_which_ranks_aggregate() -> None:
    codes = {"aggregators-across-nodes", "several-aggregators-per-node", "one-aggregator-per-node"}
    clear, mixed = judge(aggregated(TWO_EACH)), judge(aggregated(TWO_EACH, independent=1))

    assert codes & {f.code for f in clear.findings} == {"several-aggregators-per-node"}
    assert not codes & {f.code for f in mixed.findings}
    assert codes <= {one.code for one in mixed.not_checked}


@pytest.mark.parametrize(("second", "fires"), [(1, True), (0, False)])
def test_the_one_rank_that_writes_has_nobody_to_write_with(second: int, fires: bool) -> None:
    calls = [moves(100, 1024), moves(second, 1024)]
    job = evidence(usage("mpiio", *(Entry(rank=r, write=w) for r, w in enumerate(calls))))

    assert (found(job, "independent-writes") is not None) == fires


def test_non_aggregators_of_collective_writes_are_no_imbalance() -> None:
    codes = {f.code for f in judge(aggregated([100, 0, 0, 0])).findings}

    assert "single-aggregator" in codes
    assert not {"rank-0-heavy", "file-write-imbalance", "rank-data-imbalance"} & codes


def test_ranks_that_all_call_storage_themselves_are_no_aggregators() -> None:
    assert not [f for f in judge(aggregated([25] * 4)).findings if "aggregator" in f.code]


def test_one_aggregator_for_each_target_is_enough() -> None:
    crossing = aggregated([50, 50, 0, 0])
    striped = replace(crossing.files, striping={0: Striping(MIB, (3, 4))})

    assert found(crossing, "aggregators-across-nodes") is not None
    assert found(replace(crossing, files=striped), "aggregators-across-nodes") is None
