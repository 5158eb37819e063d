"""Damaged samples of every format give an error of ours or a trace, never anything else."""

from __future__ import annotations

import gzip
import shutil
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ioprism import EVENTS, IoprismError, convert, read
from tests import fuzz
from tests.conftest import ROOT
from tests.formats.recorder.test_parquet_reader import part
from tests.formats.tables.test_reader import write_table

DATA = ROOT / "tests/data"
MEMORY = 256 * 2**20  # bytes that Python may hold while it reads a small damaged file

cuts = st.tuples(st.just("cut"), st.integers(0, 2**20), st.just(b""))
flips = st.tuples(st.just("flip"), st.integers(0, 2**20), st.binary(min_size=1, max_size=8))
inserts = st.tuples(
    st.just("insert"),
    st.integers(0, 2**20),
    st.one_of(
        st.binary(max_size=16),
        st.sampled_from([b"\xff\xff\xff\x7f", b"\xff" * 8, b"99999999999999999999", b"-1", b"1e999",
                         b'"', b"{", b"}", b"[", b",", b"\n", b"\\", b"NaN", b"null", b'"ret":'])
    ),
)  # fmt: skip
damages = st.lists(st.one_of(cuts, flips, inserts), min_size=1, max_size=4)
Damage = list[tuple[str, int, bytes]]

bounded = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def damaged(content: bytes, damage: Damage) -> bytes:
    data = bytearray(content)
    for kind, place, what in damage:
        at = place % (len(data) + 1)
        if kind == "cut":
            del data[max(at, len(data) // 4) :]
        elif kind == "flip":
            data[at : at + len(what)] = what
        else:
            data[at:at] = what
    return bytes(data)


def read_all(path: Path, *, name: str) -> None:
    """Read everything; only errors of ours may come out, and what comes out must be sound."""
    tracemalloc.start()
    try:
        trace = read(path, format=name)
        events = trace.events()
        assert events.schema == EVENTS.schema
        assert events.filter(pl.col("end") < pl.col("start")).is_empty()
        assert events.filter(pl.col("bytes") < 0).is_empty()
        rows = trace.files["file"]
        assert events["file"].drop_nulls().is_in(rows.implode()).all()
        assert trace.processes.height > 0 or events.is_empty()
        assert all(isinstance(warning, str) for warning in trace.completeness.warnings)
    except IoprismError as error:
        assert str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MEMORY


@pytest.mark.parametrize("sample", ["v2.2.0-md1-plain.pfw", "v2.2.0-agg.pfw", "v2.0.3-md1.pfw.gz"])
@bounded
@given(damage=damages)
def test_dftracer(tmp_path: Path, sample: str, damage: Damage) -> None:
    path = tmp_path / "a.pfw"
    path.write_bytes(damaged((DATA / "dftracer" / sample).read_bytes(), damage))
    read_all(path, name="dftracer")


@bounded
@given(damage=damages)
def test_dftracer_inside_gzip(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "a.pfw.gz"
    text = (DATA / "dftracer/v2.2.0-ns.pfw").read_bytes()
    path.write_bytes(gzip.compress(damaged(text, damage), 1))
    read_all(path, name="dftracer")


def with_one_damaged(sample: Path, files: Sequence[str], folder: Path, data: st.DataObject) -> Path:
    """A copy of a sample folder in which one of these files is damaged."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sample, folder, ignore=shutil.ignore_patterns("_text"))
    path = folder / data.draw(st.sampled_from(files))
    path.write_bytes(damaged(path.read_bytes(), data.draw(damages)))
    return folder


@pytest.mark.parametrize(
    ("sample", "files"),
    [
        ("gotcha-hdf5", ["recorder.mt", "recorder.cst", "recorder.ts", "ug.cfg", "ug.mt"]),
        ("v2.4.0-mpiio_coll", ["recorder.mt", "0.cst", "1.cfg", "2.ts"]),
        ("pilgrim-ckpt_interproc", ["recorder.mt", "0.cst", "1.cfg", "ug.mt"]),
        ("master-ckpt", ["recorder.mt", "0.itf", "1.mt"]),
    ],
)
@bounded
@given(data=st.data())
def test_recorder(tmp_path: Path, sample: str, files: list[str], data: st.DataObject) -> None:
    folder = with_one_damaged(DATA / "recorder" / sample, files, tmp_path / "trace", data)
    read_all(folder, name="recorder")


@bounded
@given(damage=damages)
def test_recorder_text(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "0.txt"
    content = (DATA / "recorder/master-hdf5/_text/0.txt").read_bytes()
    path.write_bytes(damaged(content, damage))
    read_all(path, name="recorder-text")


@bounded
@given(damage=damages)
def test_recorder_parquet(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "a.parquet"
    part(0).write_parquet(path)
    path.write_bytes(damaged(path.read_bytes(), damage))
    read_all(path, name="recorder-parquet")


@bounded
@given(data=st.data())
def test_otf2(tmp_path: Path, data: st.DataObject) -> None:
    pytest.importorskip("otf2")
    parts = ["traces.otf2", "traces.def", "traces/0.def", "traces/0.evt"]
    folder = with_one_damaged(DATA / "otf2", parts, tmp_path / "archive", data)
    read_all(folder, name="otf2")


@bounded
@given(damage=damages)
def test_strace(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "a.strace"
    content = (DATA / "strace/randread_np2.strace").read_bytes()[:20_000]
    path.write_bytes(damaged(content, damage))
    read_all(path, name="strace")


@bounded
@given(damage=damages, packed=st.booleans())
def test_chrome(tmp_path: Path, damage: Damage, packed: bool) -> None:
    whole, path = tmp_path / "whole.json", tmp_path / "a.json"
    if not whole.exists():
        convert(read(DATA / "dftracer/v2.2.0-ns.pfw"), whole)
    content = gzip.compress(whole.read_bytes(), 1) if packed else whole.read_bytes()
    path.write_bytes(damaged(content, damage))
    read_all(path, name="chrome")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@bounded
@given(damage=damages)
def test_table(tmp_path: Path, suffix: str, damage: Damage) -> None:
    whole, path = tmp_path / f"whole.{suffix}", tmp_path / "a"
    if not whole.exists():
        csv = tmp_path / "first.csv"
        convert(read(DATA / "dftracer/v2.2.0-ns.pfw"), csv)
        table = pl.read_csv(csv)
        write_table(table, whole, suffix)
    path.write_bytes(damaged(whole.read_bytes(), damage))
    read_all(path, name="table")


@pytest.mark.parametrize("case", (DATA / "fuzz_cases.txt").read_text().splitlines())
def test_a_case_that_once_went_wrong_is_fine(case: str) -> None:
    number, among, *harms = case.split()
    if harms:
        told, _ = fuzz.hostile_outcome(int(number), among=int(among), harms=int(harms[-1]))
    else:
        told, _ = fuzz.outcome(int(number), among=int(among))

    assert told in ("read", "refused")
