"""A store that many processes write is the store that one writes, also after an interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import OutputError, Partition, Trace, UsageError, read
from ioprism.conversion import convert
from ioprism.storage.store_parts import WrittenPartition, write_store_in_parts
from tests.call_tables import trace_of
from tests.storage.faults import IN_PROCESS
from tests.storage.writers import content

Work = Callable[[int, Partition | None], WrittenPartition]


@pytest.fixture(scope="module")
def job() -> Trace:
    events = synthesise(checkpointing_job()).trace.events().sort("start", maintain_order=True)
    return trace_of(*events.iter_slices(9_000))


class Workers:
    """Do one partition after the other; some attempts end early."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.fail_at = fail_at
        self.written: list[int] = []

    def map_partitions(self, trace: Trace, work: Work) -> list[WrittenPartition]:
        done = []
        for number, partition in enumerate(trace.partitions):
            if number == self.fail_at:
                raise KeyboardInterrupt
            noted = self.noted(partition, number)
            done.append(work(number, noted))
        return done

    def noted(self, partition: Partition, number: int) -> Partition:
        class Noted:
            def batches(inner, warn):  # type: ignore[no-untyped-def] # noqa: N805
                self.written.append(number)
                warn(f"partition {number} was read")
                yield from partition.batches(warn)

        return Noted()


def test_parts_make_the_store_that_one_process_writes(job: Trace, tmp_path: Path) -> None:
    convert(job, tmp_path / "alone")
    convert(job, tmp_path / "parts", engine=Workers())
    alone, parts = (read(tmp_path / name) for name in ("alone", "parts"))

    assert_frame_equal(parts.events(), alone.events(), check_row_order=False)
    assert len(parts.partitions) == len(job.partitions)
    assert parts.completeness.warnings[-1] == f"partition {len(job.partitions) - 1} was read"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_interrupted_store_is_gone_on_with(job: Trace, tmp_path: Path) -> None:
    first, second = Workers(fail_at=3), Workers()
    with pytest.raises(KeyboardInterrupt):
        write_store_in_parts(job, tmp_path / "store", first.map_partitions)
    there_already = (tmp_path / "store").exists()
    write_store_in_parts(job, tmp_path / "store", second.map_partitions)
    warnings = read(tmp_path / "store").completeness.warnings

    assert not there_already
    assert first.written == [0, 1, 2]
    assert second.written == list(range(3, len(job.partitions)))
    assert_frame_equal(read(tmp_path / "store").events(), job.events(), check_row_order=False)
    assert len(warnings) == len(job.partitions)  # also those of the first attempt


def test_parts_of_another_trace_are_not_used(job: Trace, tmp_path: Path) -> None:
    workers = Workers(fail_at=2)
    with pytest.raises(KeyboardInterrupt):
        write_store_in_parts(job, tmp_path / "store", workers.map_partitions)
    other = trace_of(*[one.events for one in job.partitions[:4]])  # type: ignore[attr-defined]
    again = Workers()
    write_store_in_parts(other, tmp_path / "store", again.map_partitions)

    assert again.written == [0, 1, 2, 3]


def test_a_store_is_not_replaced_unasked(job: Trace, tmp_path: Path) -> None:
    convert(job, tmp_path / "store")

    with pytest.raises(OutputError, match="--force"):
        convert(job, tmp_path / "store", engine=Workers())
    convert(job, tmp_path / "store", engine=Workers(), replace=True)
    assert len(read(tmp_path / "store").partitions) == len(job.partitions)


@pytest.mark.parametrize("fault", IN_PROCESS)
def test_the_old_store_survives_what_goes_wrong(job: Trace, tmp_path: Path, fault: str) -> None:
    store = tmp_path / "store"
    convert(job, store)
    before = content(store)
    with (
        IN_PROCESS[fault](tmp_path),
        pytest.raises((OutputError, KeyboardInterrupt)),
    ):
        convert(job, store, engine=Workers(), replace=True)
    after = content(store)
    convert(job, store, engine=Workers(), replace=True)

    assert after == before
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert not list(store.glob("part-*.json")) and not (store / "plan.json").exists()


def test_a_folder_of_somebody_else_is_not_taken_for_parts(job: Trace, tmp_path: Path) -> None:
    (tmp_path / ".store.parts").mkdir()
    (tmp_path / ".store.parts/thesis.tex").write_text("precious")

    with pytest.raises(OutputError, match="was not made by ioprism"):
        convert(job, tmp_path / "store", engine=Workers())
    assert (tmp_path / ".store.parts/thesis.tex").read_text() == "precious"


def test_two_runs_do_not_write_the_same_store(job: Trace, tmp_path: Path) -> None:
    class Second(Workers):
        def map_partitions(self, trace: Trace, work: Work) -> list[WrittenPartition]:
            with pytest.raises(OutputError, match="another run is writing"):
                convert(job, tmp_path / "store", engine=Workers())
            return super().map_partitions(trace, work)

    convert(job, tmp_path / "store", engine=Second())
    assert len(read(tmp_path / "store").partitions) == len(job.partitions)


def test_workers_write_stores_only(job: Trace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="write only stores"):
        convert(job, tmp_path / "events.csv", engine=Workers())


@pytest.mark.parametrize("name", ["", "events-00001-00000.parquet"])
def test_parts_are_not_written_through_a_link(job: Trace, tmp_path: Path, name: str) -> None:
    """Parts of an interrupted run may have come out of an archive."""
    with pytest.raises(KeyboardInterrupt):
        write_store_in_parts(job, tmp_path / "store", Workers(fail_at=1).map_partitions)
    parts, precious = tmp_path / ".store.parts", tmp_path / "precious"
    if name:
        precious.write_text("mine")
        (parts / name).symlink_to(precious)
    else:
        parts.rename(tmp_path / "moved")
        precious.mkdir()
        parts.symlink_to(precious)

    with pytest.raises(OutputError, match="symbolic link"):
        write_store_in_parts(job, tmp_path / "store", Workers().map_partitions)
    assert not list(precious.iterdir()) if precious.is_dir() else precious.read_text() == "mine"
