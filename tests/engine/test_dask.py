"""A cluster gives the answer of one machine: any number of workers, even when one is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import (
    AnalysisError,
    DaskEngine,
    LocalEngine,
    MemoryPartition,
    TooManyPiecesError,
    Trace,
    UsageError,
    convert,
    read,
)
from ioprism.engine.cluster import ClusterSettings, Session, close
from ioprism.formats.dftracer import lines, reader
from ioprism.formats.reading import Reading
from ioprism.formats.registry import read_trace
from ioprism.views.access import AccessPattern
from ioprism.views.main_view import MainView
from ioprism.views.totals import RequestSizes, Totals
from tests.call_tables import calls, trace_of
from tests.engine.deadly import DeadlyPartition, GreedyPartition
from tests.formats.dftracer.test_reader import many_calls

distributed = pytest.importorskip("distributed")

PATIENCE = 180  # seconds until a busy machine has started a worker
ROOT = Path(__file__).parent.parent.parent
VIEWS = (
    MainView(),
    AccessPattern(2**20, 4096),
    Totals(("rank", "operation")),
    RequestSizes(("layer", "operation")),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    started = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit="1GB",
        env={"PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "1"},
    )
    yield started
    close(started)


def test_news_of_a_forgotten_worker_does_not_keep_a_cluster_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    monkeypatch.setattr(started, "_update_worker_status", _forgotten)

    close(started)

    assert started.status is distributed.Status.closed


def _forgotten(_: str, worker: object) -> None:
    raise KeyError(worker)


def test_a_worker_that_takes_long_to_end_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    started = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    (nanny,) = started.workers.values()
    close_nanny = nanny.close

    async def late(**options: Any) -> None:
        await close_nanny(**options)
        raise TimeoutError

    monkeypatch.setattr(nanny, "close", late)

    close(started)

    assert started.status is distributed.Status.closed


def test_workers_of_a_local_cluster_do_not_measure_themselves() -> None:
    session = Session(ClusterSettings(workers=1))
    try:
        (measured,) = session.client().run(_measures).values()
    finally:
        session.close()

    assert measured == (False, 1000)


def test_workers_that_are_gone_for_good_are_not_waited_for(
    job: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ioprism.engine.cluster.WORKER_PATIENCE", 1)
    with closing(Session(ClusterSettings(workers=1))) as session:
        session.client().retire_workers()

        with pytest.raises(AnalysisError, match="without any running workers"):
            DaskEngine(session=session).run(job, *VIEWS)


@pytest.mark.usefixtures("without_shared_memory")
def test_a_machine_without_shared_memory_is_told_at_once(job: Trace) -> None:
    with pytest.raises(
        AnalysisError, match=r"no usable shared memory \(.*\)\.\nHint: make /dev/shm"
    ):
        DaskEngine(workers=1).run(job, *VIEWS)


def _measures(dask_worker: Any) -> tuple[bool, float]:
    tasks = dask_worker.periodic_callbacks
    return "profile" in tasks, tasks["tick"].callback_time


@pytest.fixture(scope="module")
def job() -> Trace:
    events = synthesise(checkpointing_job()).trace.events().sort("start", maintain_order=True)
    return trace_of(*events.iter_slices(9_000))


@pytest.fixture(autouse=True, scope="module")
def all_closed() -> Iterator[None]:
    yield
    assert not open_clusters()


def open_clusters() -> list[Any]:
    known = distributed.SpecCluster._instances
    return [cluster for cluster in known if cluster.status != distributed.Status.closed]


def same(one: tuple[pl.DataFrame, ...], other: tuple[pl.DataFrame, ...]) -> None:
    for left, right in zip(one, other, strict=True):
        assert_frame_equal(left, right, check_row_order=False, rel_tol=1e-9)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_any_number_of_workers_gives_the_same_answer(
    cluster: Any, job: Trace, workers: int
) -> None:
    cluster.scale(workers)
    cluster.wait_for_workers(workers, timeout=PATIENCE)

    same(LocalEngine().run(job, *VIEWS), DaskEngine(cluster.scheduler_address).run(job, *VIEWS))


def test_a_killed_worker_changes_no_answer(cluster: Any, job: Trace, tmp_path: Path) -> None:
    cluster.scale(2)
    cluster.wait_for_workers(2, timeout=PATIENCE)
    events = job.partitions[3]
    assert isinstance(events, MemoryPartition)
    deadly = DeadlyPartition(events.events, tmp_path / "died")
    risky = replace(job, partitions=(*job.partitions[:3], deadly, *job.partitions[4:]))

    found = DaskEngine(cluster.scheduler_address).run(risky, *VIEWS)

    assert int((tmp_path / "died").read_text()) != os.getpid()
    same(LocalEngine().run(job, *VIEWS), found)
    assert risky.completeness.warnings == ("a warning from a worker",)
    # A worker that is being replaced cannot be closed.
    cluster.wait_for_workers(2, timeout=PATIENCE)


def test_no_events_give_empty_tables(cluster: Any) -> None:
    same(
        LocalEngine().run(trace_of(), *VIEWS),
        DaskEngine(cluster.scheduler_address).run(trace_of(), *VIEWS),
    )


def test_an_expected_failure_on_a_worker_is_the_same_error_here(cluster: Any) -> None:
    endless = trace_of(calls([{"seconds": 1.0}]), calls([{"seconds": 1e12}]))

    with pytest.raises(TooManyPiecesError, match="--time-bucket"):
        DaskEngine(cluster.scheduler_address).run(endless, MainView())


def test_the_engine_starts_a_cluster_of_its_own_and_reads_a_store(
    job: Trace, tmp_path: Path
) -> None:
    convert(job, tmp_path / "store")
    stored = read(tmp_path / "store")
    heard: list[int] = []
    engine = DaskEngine(workers=1, memory_limit=1_000_000_000, progress=heard.append)

    same(LocalEngine(memory_limit=1_000_000_000).run(stored, *VIEWS), engine.run(stored, *VIEWS))
    assert heard


def test_workers_write_a_store_and_read_a_file_in_parts(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PLAIN", 20_000)
    monkeypatch.setattr(reader, "PARTITION", 20_000)
    path = tmp_path / "a.pfw"
    path.write_bytes(many_calls(2000))
    trace = read(path)
    engine = DaskEngine(cluster.scheduler_address)
    convert(trace, tmp_path / "store", engine=engine)
    stored = read(tmp_path / "store")

    assert len(trace.partitions) >= 4
    assert_frame_equal(stored.events(), trace.events(), check_row_order=False)
    same(LocalEngine().run(trace, *VIEWS), engine.run(trace, *VIEWS))


def test_workers_look_through_the_files(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "a.pfw").write_bytes(many_calls(10))
    heard: list[str] = []

    with closing(Session(ClusterSettings(cluster.scheduler_address))) as session:

        def mapper(look: Any, items: Any) -> list[Any]:
            heard.append(look.__name__)
            return session.map(look, items)

        trace = read_trace(tmp_path, reading=Reading(workers=mapper))

    assert heard == ["survey"]
    assert trace.events().height == 11


@pytest.mark.parametrize(
    "address", ["", "localhost", "tcp://node1", "http://node1:8786", "node1:0", "node1:99999"]
)
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(UsageError, match="tcp://node1:8786"):
        DaskEngine(address).run(trace_of())


def test_a_worker_that_dies_again_and_again_is_named_with_the_reason(job: Trace) -> None:
    engine = DaskEngine(workers=1, memory_limit=300_000_000)

    with pytest.raises(AnalysisError, match=r"workers kept dying .*they ran out of memory"):
        engine.run(replace(job, partitions=(GreedyPartition(),)), VIEWS[2])


def test_a_cluster_is_closed_even_if_nothing_can_be_computed(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, job: Trace
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise TimeoutError("nobody there")

    monkeypatch.setattr(distributed, "Client", unreachable)

    with pytest.raises(AnalysisError, match="nobody there"):
        DaskEngine(workers=1).run(job, *VIEWS)
    assert open_clusters() == [cluster]


def test_a_cluster_that_cannot_be_started_is_one_message(
    monkeypatch: pytest.MonkeyPatch, job: Trace
) -> None:
    def fails(**_: object) -> None:
        raise RuntimeError("Cluster failed to start: no port is free")

    monkeypatch.setattr(distributed, "LocalCluster", fails)

    with pytest.raises(UsageError, match="no port is free"):
        DaskEngine(workers=1).run(job, *VIEWS)


def test_a_scheduler_that_is_not_there_is_one_message(
    monkeypatch: pytest.MonkeyPatch, job: Trace
) -> None:
    monkeypatch.setattr("ioprism.engine.cluster.PATIENCE", 0.5)

    with pytest.raises(AnalysisError, match="does not answer"):
        DaskEngine("tcp://127.0.0.1:9").run(job, *VIEWS)
