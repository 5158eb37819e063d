"""A file that all ranks share gets one record; others keep theirs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks.synthetic.darshan_reduce import reduce_shared


def records() -> pl.DataFrame:
    """File 0 is used by all three ranks, file 1 by two of them."""
    return pl.DataFrame(
        {
            "file": pl.Series([0, 0, 0, 1, 1], dtype=pl.UInt32),
            "rank": pl.Series([0, 1, 2, 0, 2], dtype=pl.Int32),
            "POSIX_READS": [1, 2, 3, 4, 5],
            "POSIX_BYTES_READ": [10, 20, 60, 1, 1],
            "POSIX_BYTES_WRITTEN": [0, 0, 0, 1, 1],
            "POSIX_MAX_BYTE_READ": [9, 29, 89, 0, 0],
            "POSIX_MODE": [420] * 5,
            "POSIX_FILE_ALIGNMENT": [4096] * 5,
            "POSIX_MAX_READ_TIME_SIZE": [5, 6, 7, 1, 1],
            "POSIX_ACCESS1_ACCESS": [10, 10, 20, 1, 1],
            "POSIX_ACCESS1_COUNT": [1, 2, 3, 1, 1],
            "POSIX_F_READ_START_TIMESTAMP": [0.0, 2.0, 1.0, 1.0, 1.0],
            "POSIX_F_READ_END_TIMESTAMP": [0.0, 9.0, 4.0, 1.0, 1.0],
            "POSIX_F_READ_TIME": [1.0, 4.0, 2.0, 1.0, 1.0],
            "POSIX_F_WRITE_TIME": [0.0, 0.0, 0.5, 1.0, 1.0],
            "POSIX_F_META_TIME": [0.5, 0.0, 0.0, 1.0, 1.0],
            "POSIX_F_MAX_READ_TIME": [0.3, 0.9, 0.4, 1.0, 1.0],
            **{
                f"POSIX_ACCESS{i}_{name}": [0] * 5
                for i in (2, 3, 4)
                for name in ("ACCESS", "COUNT")
            },
        }
    )


def test_a_file_of_all_ranks_gets_one_record() -> None:
    found = reduce_shared(records(), prefix="POSIX", ranks=3)

    assert found.select("file", "rank").rows() == [(0, -1), (1, 0), (1, 2)]
    shared = found.row(0, named=True)
    assert shared["POSIX_READS"] == 6
    assert shared["POSIX_BYTES_READ"] == 90
    assert shared["POSIX_MAX_BYTE_READ"] == 89
    assert (shared["POSIX_MODE"], shared["POSIX_FILE_ALIGNMENT"]) == (420, 4096)
    assert shared["POSIX_F_READ_START_TIMESTAMP"] == 1.0
    assert shared["POSIX_F_READ_END_TIMESTAMP"] == 9.0
    assert (shared["POSIX_F_MAX_READ_TIME"], shared["POSIX_MAX_READ_TIME_SIZE"]) == (0.9, 6)


def test_the_fastest_and_slowest_rank_are_named_with_the_variance() -> None:
    shared = reduce_shared(records(), prefix="POSIX", ranks=3).row(0, named=True)

    assert (shared["POSIX_FASTEST_RANK"], shared["POSIX_SLOWEST_RANK"]) == (0, 1)
    assert (shared["POSIX_FASTEST_RANK_BYTES"], shared["POSIX_SLOWEST_RANK_BYTES"]) == (10, 20)
    assert shared["POSIX_F_FASTEST_RANK_TIME"] == 1.5
    assert shared["POSIX_F_SLOWEST_RANK_TIME"] == 4.0
    assert shared["POSIX_F_VARIANCE_RANK_TIME"] == pytest.approx(np.var([1.5, 4.0, 2.5]))
    assert shared["POSIX_F_VARIANCE_RANK_BYTES"] == pytest.approx(np.var([10, 20, 60]))


def test_common_sizes_are_merged() -> None:
    shared = reduce_shared(records(), prefix="POSIX", ranks=3).row(0, named=True)

    pairs = [(shared[f"POSIX_ACCESS{i}_ACCESS"], shared[f"POSIX_ACCESS{i}_COUNT"]) for i in (1, 2)]
    assert sorted(pairs) == [(10, 3), (20, 3)]


def test_files_of_some_ranks_keep_their_records() -> None:
    found = reduce_shared(records(), prefix="POSIX", ranks=3).filter(file=1)

    assert found["POSIX_READS"].to_list() == [4, 5]
    assert found["POSIX_SLOWEST_RANK"].to_list() == [0, 0]


@pytest.mark.parametrize("ranks", [1, 4])
def test_nothing_is_reduced_when_not_all_ranks_share(ranks: int) -> None:
    table = records().filter(pl.col("rank") < ranks)

    assert reduce_shared(table, prefix="POSIX", ranks=ranks).equals(table)
