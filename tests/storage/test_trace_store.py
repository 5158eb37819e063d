"""A kept trace is the same trace, is there whole or not at all, and is never trusted."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from ioprism import BrokenTraceError, OutputError, Trace, convert, read
from ioprism.model.trace import Warn
from ioprism.storage import trace_store as store
from ioprism.storage.trace_store import MANIFEST
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


@pytest.fixture(params=["a_ckpt_fpp_period5s", "n_hdf5_collective_write", "hostile-xss"])
def trace(request: pytest.FixtureRequest) -> Trace:
    return read(DATA / f"{request.param}.darshan")


def test_everything_comes_back(trace: Trace, tmp_path: Path) -> None:
    convert(trace, tmp_path / "kept")
    again = read(tmp_path / "kept")

    assert_frame_equal(again.events(), trace.events().sort("start"), check_row_order=False)
    assert again.events()["start"].is_sorted()
    assert_frame_equal(again.files, trace.files)
    assert_frame_equal(again.processes, trace.processes)
    assert again.job == trace.job
    assert again.format == trace.format
    assert set(again.counters) == set(trace.counters)
    for name, table in trace.counters.items():
        assert_frame_equal(again.counters[name], table)


def test_many_events_become_many_files(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "EVENTS_PER_FILE", 10)
    split = replace(trace, partitions=tuple(Slices(p) for p in trace.partitions))
    convert(split, tmp_path / "kept")
    again = read(tmp_path / "kept")

    assert len(again.partitions) > 1
    assert_frame_equal(again.events(), trace.events(), check_row_order=False)


@dataclass(frozen=True)
class Slices:
    """A partition that yields few events at a time."""

    inner: object

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        for batch in self.inner.batches(warn):  # type: ignore[attr-defined]
            yield from (part.lazy() for part in batch.collect().iter_slices(7))


def test_warnings_are_kept(tmp_path: Path) -> None:
    trace = read(DATA / "l_killed_job_merged.darshan")
    convert(trace, tmp_path / "kept")

    assert read(tmp_path / "kept").completeness.warnings == trace.completeness.warnings


def test_nothing_is_overwritten_unasked(trace: Trace, tmp_path: Path) -> None:
    convert(trace, tmp_path / "kept")
    before = (tmp_path / "kept" / MANIFEST).read_bytes()

    with pytest.raises(OutputError, match="already exists and is left as it is"):
        convert(trace, tmp_path / "kept")
    assert (tmp_path / "kept" / MANIFEST).read_bytes() == before


def test_a_store_is_replaced_when_asked(trace: Trace, tmp_path: Path) -> None:
    convert(trace, tmp_path / "kept")
    convert(trace, tmp_path / "kept", replace=True)

    assert read(tmp_path / "kept").job == trace.job
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_is_no_store_is_never_replaced(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter1.tex").write_text("precious")

    with pytest.raises(OutputError, match="was not made by ioprism"):
        convert(trace, tmp_path / "thesis", replace=True)
    assert (tmp_path / "thesis/chapter1.tex").read_text() == "precious"


@dataclass(frozen=True)
class FailingPartition:
    """A partition that cannot be read to its end."""

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:  # noqa: ARG002
        yield pl.LazyFrame()
        raise KeyboardInterrupt


def test_an_interrupted_write_leaves_nothing_behind(trace: Trace, tmp_path: Path) -> None:
    failing = replace(trace, partitions=(FailingPartition(),))

    with pytest.raises(KeyboardInterrupt):
        convert(failing, tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ioprism_store": 99}, "has version 99"),
        ({"events": ["../../etc/passwd"]}, "not a plain file name"),
        ({"events": ["gone.parquet"]}, "gone.parquet is missing"),
        ({"job": {"ranks": 1}}, "is incomplete"),
        ({"job": None}, "is incomplete"),
        ({"warnings": None}, "is incomplete"),
    ],
)
def test_a_damaged_manifest_is_one_clear_error(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    convert(read(DATA / "a_ckpt_fpp_period5s.darshan"), tmp_path / "kept")
    manifest = tmp_path / "kept" / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))

    with pytest.raises(BrokenTraceError, match=message):
        read(tmp_path / "kept")


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, '"text"'])
def test_a_manifest_that_is_no_object_is_one_clear_error(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)

    with pytest.raises(BrokenTraceError, match="manifest cannot be read"):
        read(tmp_path)


def test_a_damaged_table_is_one_clear_error(tmp_path: Path) -> None:
    convert(read(DATA / "a_ckpt_fpp_period5s.darshan"), tmp_path / "kept")
    (tmp_path / "kept/files.parquet").write_bytes(b"PAR1 but not really PAR1")

    with pytest.raises(BrokenTraceError, match="content was changed"):
        _ = read(tmp_path / "kept").files


def test_a_folder_named_like_a_pattern_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "run[1]*"
    convert(read(DATA / "a_ckpt_fpp_period5s.darshan"), folder)

    assert read(folder).events().height > 0


def test_events_without_a_column_are_one_clear_error(tmp_path: Path) -> None:
    convert(read(DATA / "a_ckpt_fpp_period5s.darshan"), tmp_path / "kept")
    path, manifest = tmp_path / "kept/events-00000.parquet", tmp_path / "kept" / MANIFEST
    pl.read_parquet(path).drop("offset").write_parquet(path)
    facts = json.loads(manifest.read_text())
    facts["checksums"][path.name] = zlib.crc32(path.read_bytes())
    manifest.write_text(json.dumps(facts))

    with pytest.raises(BrokenTraceError, match="not those of events"):
        read(tmp_path / "kept").events()


def test_one_changed_byte_of_the_events_is_found(tmp_path: Path) -> None:
    convert(read(DATA / "a_ckpt_fpp_period5s.darshan"), tmp_path / "kept")
    path = tmp_path / "kept/events-00000.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(BrokenTraceError, match="content was changed"):
        read(tmp_path / "kept").events()
