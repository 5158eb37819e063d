"""A single gzip member is cut where an index allows it, and read as if it were whole."""

from __future__ import annotations

import gzip
import os
import pickle
import sqlite3
import struct
import time
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from ioprism import read
from ioprism.formats.dftracer import checkpoints, lines, reader
from ioprism.formats.dftracer.checkpoints import (
    index_of,
    inflated_from,
    make_index,
)
from ioprism.formats.reading import Reading
from ioprism.formats.registry import read_trace
from tests.formats.dftracer.test_reader import many_calls

pytest.importorskip("indexed_gzip")


def here(look: Any, items: Any) -> list[Any]:
    """As workers do it: everything travels."""
    return [pickle.loads(pickle.dumps(look(pickle.loads(pickle.dumps(one))))) for one in items]


@pytest.fixture
def single(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lines, "PLAIN", 200_000)
    monkeypatch.setattr(lines, "COMPRESSED", 10_000)
    monkeypatch.setattr(reader, "PARTITION", 200_000)
    monkeypatch.setattr(checkpoints, "SPACING", 100_000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "trace").mkdir()
    path = tmp_path / "trace/a.pfw.gz"
    # Little memory makes many blocks, at which checkpoints can be.
    packed = zlib.compressobj(wbits=31, memLevel=1)
    path.write_bytes(packed.compress(many_calls(20_000)) + packed.flush())
    return path


def beside(single: Path) -> Path:
    return single.with_name("a.pfw.gz.gzidx")


def test_inflating_begins_at_every_checkpoint(single: Path) -> None:
    text = gzip.decompress(single.read_bytes())
    assert make_index(single, beside(single))
    index = index_of(single)

    assert index.size == len(text)
    assert len(index.points) > 3
    assert {point.bits for point in index.points} != {0}
    for point in index.points:
        with single.open("rb") as file:
            assert b"".join(inflated_from(file, point)) == text[point.text :]


def test_workers_share_a_single_member(single: Path) -> None:
    whole = read(single)
    cut = read_trace(single.parent, reading=Reading(workers=here))

    assert len(whole.partitions) == 1
    assert len(cut.partitions) >= 4
    assert list(single.parent.iterdir()) == [single]
    assert_frame_equal(cut.events(), whole.events())
    assert_frame_equal(cut.files, whole.files)
    assert cut.job == whole.job
    assert not cut.completeness.warnings


def test_an_index_is_kept_beside_the_trace_only_where_that_is_asked_for(
    single: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_trace(single, reading=Reading(workers=here))
    assert not beside(single).exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))

    cut = read_trace(single, reading=Reading(workers=here, indexes_beside_files=True))

    assert len(cut.partitions) >= 4
    assert beside(single).is_file()


@pytest.mark.parametrize("asked", [False, True])
def test_a_link_beside_a_trace_is_not_written_through(single: Path, asked: bool) -> None:
    precious = single.parent.parent / "precious"
    precious.write_text("mine")
    for name in (".a.pfw.gz.gzidx.part", "a.pfw.gz.gzidx"):
        single.with_name(name).symlink_to(precious)
    read_trace(single, reading=Reading(workers=here, indexes_beside_files=asked))

    assert precious.read_text() == "mine"
    assert beside(single).is_symlink()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE VIEW checkpoints AS {ENDLESS} SELECT i AS uc_offset, 1 AS uc_size, 1 AS c_offset,"
        " 0 AS bits, zeroblob(1000) AS dict_compressed FROM n",
        "CREATE TABLE checkpoints (uc_offset, uc_size, c_offset, bits,"
        " dict_compressed AS (zeroblob(900000000)))",
        "CREATE VIRTUAL TABLE checkpoints USING fts5(uc_offset, uc_size, c_offset, bits,"
        " dict_compressed)",
    ],
    ids=["endless view", "computed column", "virtual table"],
)
def test_an_index_that_computes_is_left_aside(single: Path, statement: str) -> None:
    whole = read(single).events()
    with closing(sqlite3.connect(single.with_name("a.pfw.gz.zindex"))) as tables, tables:
        tables.execute(statement)
        if "AS (zeroblob" in statement:
            tables.execute("INSERT INTO checkpoints VALUES (300000, 400000, 100000, 0)")
    begun = time.monotonic()

    assert_frame_equal(read(single).events(), whole)
    assert time.monotonic() - begun < 20.0


def test_an_index_larger_than_its_trace_can_need_is_not_read(single: Path) -> None:
    whole = read(single).events()
    with beside(single).open("wb") as file:
        file.truncate(2**40)

    assert_frame_equal(read(single).events(), whole)


def test_the_tables_of_dftracer_utils_are_an_index_too(single: Path) -> None:
    whole = read(single)
    make_index(single, beside(single))
    index = index_of(single)
    beside(single).unlink()
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
    make_index(single, beside(single))
    kept = beside(single)
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
    make_index(single, beside(single))
    whole = single.read_bytes()
    single.write_bytes(whole + whole)
    kept = beside(single)
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


@pytest.mark.parametrize("kind", ["the end", "a checkpoint"])
def test_an_index_that_leaves_text_out_is_left_aside(single: Path, kind: str) -> None:
    whole = read(single).events()
    assert make_index(single, beside(single))
    content = bytearray(beside(single).read_bytes())
    _, _, _, _, size, _, _, count = checkpoints._HEAD.unpack_from(content)
    if kind == "the end":
        struct.pack_into("<Q", content, 15, size - 300_000)
    else:
        place = checkpoints._HEAD.size + count // 2 * checkpoints._POINT.size + 8
        (text,) = struct.unpack_from("<Q", content, place)
        struct.pack_into("<Q", content, place, text - 20_000)
    beside(single).write_bytes(content)

    assert_frame_equal(read(single).events(), whole)
