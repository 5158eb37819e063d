"""Synthetic traces hold what their truth says, counted here in another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from benchmarks.synthetic import (
    Access,
    Burst,
    MetadataStorm,
    Requests,
    Straggler,
    Striping,
    SyntheticTrace,
    Workload,
    checkpointing_job,
    synthesise,
)
from ioprism import EVENTS, FILES, PROCESSES, UsageError

SHARED = Burst("/scratch/shared.dat", "write", Requests(count=20, size=8192), start=1.0, length=2.0)
PERIODIC = replace(SHARED, path="/scratch/{phase}.dat", period=10.0, repetitions=8)


def made(*bursts: Burst, ranks: int = 8, **options: object) -> SyntheticTrace:
    return synthesise(Workload(ranks=ranks, bursts=bursts, **options))  # type: ignore[arg-type]


def counted(events: pl.DataFrame, *, alignment: int = 4096, small_below: int = 2**20) -> Access:
    """Count the requests of one burst from its events alone."""
    calls = events.sort("rank", "file", "start")
    reached = (pl.col("offset") + pl.col("bytes")).shift(1).over("rank", "file")
    return Access(
        requests=calls.height,
        bytes=int(calls["bytes"].sum()),
        small=calls.filter(pl.col("bytes") < small_below).height,
        misaligned=calls.filter(pl.col("offset") % alignment != 0).height,
        consecutive=calls.filter(pl.col("offset") == reached).height,
        backward=calls.filter(pl.col("offset") < reached).height,
    )


BURSTS = {
    "shared": SHARED,
    "file per process": replace(SHARED, path="/scratch/{rank}.dat"),
    "new file each phase": PERIODIC,
    "same file each phase": replace(PERIODIC, path="/scratch/one.dat"),
    "own file, same each phase": replace(PERIODIC, path="/scratch/{rank}.dat"),
    "interleaved": replace(SHARED, interleaved=True),
    "random": replace(SHARED, requests=Requests(count=40, size=8192, random=0.5)),
    "misaligned": replace(SHARED, requests=Requests(count=40, size=8192, misaligned=0.25)),
    "aligned": replace(SHARED, requests=Requests(count=40, size=47_008, misaligned=0.0)),
    "small": replace(SHARED, requests=Requests(count=40, size=2**21, small=0.3)),
    "read": replace(SHARED, direction="read"),
    "stdio": replace(SHARED, layer="stdio", sync=True),
    "some ranks": replace(SHARED, ranks=(1, 5)),
    "independent MPI-IO": replace(PERIODIC, layer="mpiio", sync=True),
    "collective MPI-IO": replace(PERIODIC, layer="mpiio", collective=True, aggregators=3),
    "collective, same file": replace(
        PERIODIC, path="/scratch/one.dat", layer="mpiio", collective=True, aggregators=2
    ),
    "seeks": replace(SHARED, seeks=True),
}


@pytest.mark.parametrize("burst", BURSTS.values(), ids=BURSTS)
def test_truth_is_what_the_events_say(burst: Burst) -> None:
    found = made(burst)
    events = found.trace.events()

    for (layer, direction), access in found.truth.access.items():
        own = events.filter(layer=layer, operation=direction)
        assert replace(access, random=0) == counted(own)
    calls = events.group_by("layer", "operation").len().rows()
    assert found.truth.operations == {(layer, operation): n for layer, operation, n in calls}
    assert found.truth.events == events.height


@pytest.mark.parametrize("burst", BURSTS.values(), ids=BURSTS)
def test_events_are_well_formed(burst: Burst) -> None:
    found = made(burst, hosts=2, stragglers=(Straggler(5, 2.0),))
    events = found.trace.events()

    assert events.schema == EVENTS.schema
    assert found.trace.files.schema == FILES.schema
    assert found.trace.processes.schema == PROCESSES.schema
    assert (events["end"] >= events["start"]).all()
    assert events["start"].is_sorted()
    assert events["start"].min() >= 0.0  # type: ignore[operator]
    assert events["end"].max() <= found.trace.job.runtime  # type: ignore[operator]
    assert events["file"].max() < found.trace.files.height  # type: ignore[operator]
    assert events["file"].n_unique() == found.trace.files.height


@pytest.mark.parametrize("burst", BURSTS.values(), ids=BURSTS)
def test_a_rank_does_one_thing_at_a_time_in_each_layer(burst: Burst) -> None:
    events = made(burst).trace.events().sort("rank", "layer", "start")

    free = pl.col("end").shift(1).over("rank", "layer").fill_null(0.0)
    assert events.filter(pl.col("start") < free).is_empty()


@pytest.mark.parametrize("name", ["independent MPI-IO", "collective MPI-IO"])
def test_posix_calls_happen_inside_mpiio_calls(name: str) -> None:
    events = made(BURSTS[name]).trace.events().sort("start")
    inner = events.filter(layer="posix")
    outer = events.filter(layer="mpiio").select("rank", "operation", "start", outer_end="end")

    joined = inner.join_asof(outer, on="start", by=["rank", "operation"], strategy="backward",
                             check_sortedness=False)  # fmt: skip
    assert (joined["outer_end"] >= joined["end"]).all()
    assert joined["outer_end"].null_count() == 0


def test_collective_calls_move_the_same_bytes_through_fewer_ranks() -> None:
    burst = replace(SHARED, layer="mpiio", collective=True, aggregators=2)

    found = made(burst)
    events = found.trace.events().filter(operation="write")

    above, below = (events.filter(layer=layer) for layer in ("mpiio", "posix"))
    assert above["bytes"].sum() == below["bytes"].sum() == 8 * 20 * 8192
    assert above["collective"].all()
    assert below["rank"].unique().sort().to_list() == [0, 4]
    assert below.height == 2 * 20


def test_random_requests_visit_the_same_places_in_another_order() -> None:
    orderly = made(SHARED).trace.events().filter(operation="write")
    random = replace(SHARED, requests=replace(SHARED.requests, random=1.0))

    found = made(random)
    shuffled = found.trace.events().filter(operation="write")

    access = found.truth.access["posix", "write"]
    assert access.random_share == 1.0
    assert access.consecutive_share < 0.2
    assert access.backward > 0.3 * access.requests
    assert sorted(shuffled["offset"]) == sorted(orderly["offset"])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 1.0])
def test_shares_are_met_exactly(share: float) -> None:
    requests = Requests(count=40, size=2**21, small=share, misaligned=share)

    access = made(replace(SHARED, requests=requests)).truth.access["posix", "write"]

    assert access.small_share == pytest.approx(share)
    assert access.misaligned_share == pytest.approx(share)


def test_phases_keep_their_period_without_jitter() -> None:
    (phases,) = made(PERIODIC).truth.repetitions

    gaps = np.diff(phases.starts)
    assert gaps == pytest.approx(np.full(7, 10.0), abs=0.1)
    assert phases.period == pytest.approx(10.0, abs=0.02)
    assert all(
        1.8 < end - start < 2.0 for start, end in zip(phases.starts, phases.ends, strict=True)
    )


def test_phase_times_are_those_of_the_events() -> None:
    found = made(replace(PERIODIC, gap_jitter=0.2, length_jitter=0.2))
    (phases,) = found.truth.repetitions

    data = found.trace.events().filter(operation="write")
    bounds = data.group_by("file").agg(pl.min("start"), pl.max("end")).sort("start")
    assert bounds["start"].to_list() == list(phases.starts)
    assert bounds["end"].to_list() == list(phases.ends)


def test_jitter_varies_gaps_and_lengths_as_much_as_asked() -> None:
    jittered = replace(
        PERIODIC, requests=Requests(count=1, size=1), repetitions=2000, gap_jitter=0.1
    )
    (phases,) = made(jittered, ranks=1).truth.repetitions

    gaps = np.diff(phases.starts)
    assert gaps.mean() == pytest.approx(10.0, rel=0.01)
    assert gaps.std() == pytest.approx(0.1 * 8.0, rel=0.1)  # the gap is the period less the length


def test_a_straggler_takes_longer_and_the_period_stays() -> None:
    found = made(PERIODIC, stragglers=(Straggler(3, 2.5),))

    data = found.trace.events().filter(operation="write")
    seconds = data.group_by("rank").agg((pl.col("end") - pl.col("start")).sum()).sort("rank")
    times = seconds["end"].to_numpy()
    others = np.delete(times, 3)
    assert found.truth.stragglers == (3,)
    assert times[3] / others.mean() == pytest.approx(2.5, rel=0.05)
    assert found.truth.period == pytest.approx(10.0, abs=0.02)


def test_a_metadata_storm_makes_as_many_calls_as_asked() -> None:
    storm = MetadataStorm("/home/lib/{number}.so", start=1.0, length=2.0, opens=30, stats=50,
                          files=10)  # fmt: skip

    found = synthesise(Workload(ranks=4, storms=(storm,)))
    events = found.trace.events()

    calls = dict(events.group_by(pl.col("operation").cast(pl.String)).len().rows())
    assert calls == {"open": 120, "close": 120, "stat": 200}
    assert found.truth.metadata_calls == 440
    assert events["bytes"].null_count() == events["offset"].null_count() == 440
    assert found.trace.files["path"].to_list() == [f"/home/lib/{n}.so" for n in range(10)]
    assert 1.0 <= events["start"].min() <= events["end"].max() <= 3.1  # type: ignore[operator]


def test_files_know_their_mount_and_stripes() -> None:
    striping = Striping(size=2**22, count=3, targets=4)

    files = made(PERIODIC, replace(SHARED, path="/home/log"), striping=striping).trace.files

    on_lustre = files.filter(filesystem="lustre")
    assert on_lustre.height == 8
    assert on_lustre["targets"].to_list()[:2] == [[0, 1, 2], [3, 0, 1]]
    assert set(on_lustre["stripe_size"]) == {2**22}
    assert files.filter(filesystem="nfs")["targets"].to_list() == [None]


def test_ranks_are_spread_over_hosts() -> None:
    processes = made(SHARED, hosts=3).trace.processes

    assert processes["host"].to_list() == ["node0001"] * 3 + ["node0002"] * 3 + ["node0003"] * 2


def test_the_same_seed_gives_the_same_trace_and_another_another() -> None:
    jittered = replace(PERIODIC, gap_jitter=0.1)
    one, same, other = (made(jittered, seed=seed) for seed in (7, 7, 8))

    assert one.trace.events().equals(same.trace.events())
    assert one.truth == same.truth
    assert not one.trace.events().equals(other.trace.events())


def test_partitions_are_of_the_size_asked_for() -> None:
    workload = Workload(ranks=8, bursts=(SHARED,))

    whole, cut = synthesise(workload), synthesise(workload, partition_rows=50)

    assert len(whole.trace.partitions) == 1
    assert len(cut.trace.partitions) == -(-cut.truth.events // 50)
    assert cut.trace.events().equals(whole.trace.events())


def test_a_workload_without_io_has_no_events() -> None:
    found = synthesise(Workload(ranks=2, runtime=5.0))

    assert found.trace.events().schema == EVENTS.schema
    assert found.trace.events().is_empty()
    assert found.truth.period is None
    assert found.truth.metadata_calls == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"ranks": 0}, "at least one rank"),
        ({"ranks": 2, "hosts": 3}, "no more hosts than ranks"),
        ({"stragglers": (Straggler(9),)}, "not one of the 8"),
        ({"bursts": (replace(SHARED, repetitions=2),)}, "period must be longer"),
        ({"bursts": (PERIODIC,), "stragglers": (Straggler(1, 6.0),)}, "period must be longer"),
        ({"bursts": (replace(SHARED, collective=True),)}, "only MPI-IO"),
        ({"bursts": (replace(SHARED, aggregators=9),)}, "cannot be 9 aggregators"),
        (
            {"bursts": (replace(SHARED, requests=Requests(1, 1, random=1.5)),)},
            "shares between 0 and 1",
        ),
        (
            {
                "bursts": (
                    replace(
                        SHARED, layer="mpiio", collective=True, requests=Requests(1, 1, random=0.5)
                    ),
                )
            },
            "cannot be random",
        ),
    ],
)
def test_impossible_workloads_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Workload(**{"ranks": 8, **options})  # type: ignore[arg-type]


def test_the_sample_is_a_checkpointing_job_with_known_troubles() -> None:
    found = synthesise(checkpointing_job())

    truth, trace = found.truth, found.trace
    assert 100_000 <= truth.events <= 200_000
    assert truth.period == pytest.approx(45.0, rel=0.05)
    assert truth.stragglers == (37,)
    assert truth.access["posix", "write"].small_share == 1.0
    assert truth.access["posix", "write"].misaligned_share > 0.9
    assert truth.access["posix", "read"].random_share > 0.1
    assert truth.operations["posix", "stat"] == 64 * 120
    assert trace.job.runtime == 600.0
    assert trace.processes["host"].n_unique() == 4
    assert trace.events()["end"].max() <= 600.0  # type: ignore[operator]
