"""A single gzip member is cut where an index allows it, and read as if it were whole."""

from __future__ import annotations

import gzip
import os
import pickle
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from ioprism import read
from ioprism.formats.dftracer import checkpoints, ranges, reader
from ioprism.formats.dftracer.checkpoints import index_of, inflated_from, make_index
from ioprism.formats.surveys import surveyed_by
from tests.formats.dftracer.test_reader import many_calls

pytest.importorskip("indexed_gzip")


def here(look: Any, items: Any) -> list[Any]:
    """As workers do it: everything travels."""
    return [pickle.loads(pickle.dumps(look(pickle.loads(pickle.dumps(one))))) for one in items]


@pytest.fixture
def single(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ranges, "PLAIN", 200_000)
    monkeypatch.setattr(ranges, "COMPRESSED", 10_000)
    monkeypatch.setattr(reader, "PARTITION", 200_000)
    monkeypatch.setattr(checkpoints, "SPACING", 100_000)
    path = tmp_path / "a.pfw.gz"
    # Little memory makes many blocks, at which checkpoints can be.
    packed = zlib.compressobj(wbits=31, memLevel=1)
    path.write_bytes(packed.compress(many_calls(20_000)) + packed.flush())
    return path


def test_inflating_begins_at_every_checkpoint(single: Path) -> None:
    text = gzip.decompress(single.read_bytes())
    assert make_index(single)
    index = index_of(single)

    assert index.size == len(text)
    assert len(index.points) > 3
    assert {point.bits for point in index.points} != {0}
    for point in index.points:
        with single.open("rb") as file:
            assert b"".join(inflated_from(file, point)) == text[point.text :]


def test_workers_share_a_single_member(single: Path) -> None:
    whole = read(single)
    with surveyed_by(here):
        cut = read(single.parent)

    assert len(whole.partitions) == 1
    assert len(cut.partitions) >= 4
    assert single.with_name("a.pfw.gz.gzidx").is_file()
    assert_frame_equal(cut.events(), whole.events())
    assert_frame_equal(cut.files, whole.files)
    assert cut.job == whole.job
    assert not cut.completeness.warnings


def test_the_tables_of_dftracer_utils_are_an_index_too(single: Path) -> None:
    whole = read(single)
    make_index(single)
    index = index_of(single)
    single.with_name("a.pfw.gz.gzidx").unlink()
    with closing(sqlite3.connect(single.with_name("a.pfw.gz.zindex"))) as tables, tables:
        tables.execute(
            "CREATE TABLE checkpoints (id INTEGER PRIMARY KEY, file_id, checkpoint_idx, "
            "uc_offset, uc_size, c_offset, c_size, bits, dict_compressed, num_lines)"
        )
        ends = [point.text for point in index.points[1:]] + [index.size]
        for point, end in zip(index.points, ends, strict=True):
            values = (point.text, end - point.text, point.at, point.bits)
            tables.execute(
                "INSERT INTO checkpoints VALUES (NULL, 1, 0, ?, ?, ?, 0, ?, ?, 0)",
                (*values, zlib.compress(point.before)),
            )
    cut = read(single)

    assert len(cut.partitions) >= 4
    assert_frame_equal(cut.events(), whole.events())


@pytest.mark.parametrize("harm", ["older", "of another file", "damaged", "no index"])
def test_an_index_that_is_of_no_use_changes_nothing(single: Path, harm: str) -> None:
    whole = read(single).events()
    make_index(single)
    kept = single.with_name("a.pfw.gz.gzidx")
    content = bytearray(kept.read_bytes())
    if harm == "older":
        os.utime(kept, ns=(0, 0))
    elif harm == "of another file":
        content[7] ^= 1
        kept.write_bytes(content)
    elif harm == "damaged":
        for place in range(35, 35 + 18 * 4, 18):  # every checkpoint's position
            content[place + 18] ^= 5
        kept.write_bytes(content)
    else:
        kept.write_bytes(b"no index")

    assert_frame_equal(read(single).events(), whole)


def test_several_members_are_read_whatever_an_index_of_the_first_says(single: Path) -> None:
    make_index(single)
    whole = single.read_bytes()
    single.write_bytes(whole + whole)
    kept = single.with_name("a.pfw.gz.gzidx")
    content = bytearray(kept.read_bytes())
    content[7:15] = len(whole + whole).to_bytes(8, "little")
    kept.write_bytes(content)
    text = gzip.decompress(whole)

    assert read(single).events().height == 2 * text.count(b'"ph":"X"')


@pytest.mark.parametrize(
    "row",
    [(5, None, 3, 0), ("a", 5, 3, 0), (5, 5, 3, 99), (5, 5, -3, 0), (5, 5, 10**9, 0), (5, 0, 3, 0)],
)
def test_an_index_that_cannot_be_of_the_file_is_not_used(
    tmp_path: Path, row: tuple[object, ...]
) -> None:
    path = tmp_path / "a.pfw.gz"
    path.write_bytes(gzip.compress(b"x" * 1000))
    with closing(sqlite3.connect(tmp_path / "a.pfw.gz.zindex")) as tables, tables:
        tables.execute(
            "CREATE TABLE checkpoints (uc_offset, uc_size, c_offset, bits, dict_compressed)"
        )
        tables.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", (*row, zlib.compress(b"x"))
        )

    assert index_of(path).points == ()


def test_looking_for_an_index_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a?b.pfw.gz"
    path.write_bytes(gzip.compress(b"x"))
    (tmp_path / "a?b.pfw.gz.zindex").write_bytes(b"SQLite format 3\0")

    assert index_of(path).points == ()
    assert len(list(tmp_path.iterdir())) == 2
