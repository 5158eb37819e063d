"""Tables of pandas hold the numbers of ours, gaps and large ids included."""

from __future__ import annotations

import sys

import polars as pl
import pytest

import ioprism
from ioprism import MissingPackageError, Trace, UsageError, read
from ioprism.model.result import to_pandas
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/n_hdf5_collective_write.darshan"
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read(LOG)


def test_gaps_and_large_numbers_stay_what_they_are() -> None:
    table = pl.DataFrame(
        {"id": [2**63 + 1, None], "size": [-1, None], "on": [True, None], "time": [0.5, None],
         "name": ["a", None], "targets": [[1, 2], None]},
        schema_overrides={"id": pl.UInt64},
    )  # fmt: skip
    same = to_pandas(table)

    assert int(same["id"][0]) == 2**63 + 1
    assert same["size"].tolist() == [-1, pandas.NA]
    assert same["on"].tolist() == [True, pandas.NA]
    assert same["time"].isna().tolist() == [False, True]
    assert same["name"].tolist() == ["a", None]
    assert same["targets"].tolist() == [[1, 2], None]
    assert to_pandas(table.clear()).columns.tolist() == table.columns


def test_every_table_of_a_trace(trace: Trace) -> None:
    ours = {"files": trace.files, "processes": trace.processes, "events": trace.events()}
    for name, table in {**ours, **trace.counters}.items():
        same = trace.to_pandas(name)

        assert same.shape == table.shape
        for column in (c for c in table.columns if table[c].dtype.is_integer()):
            theirs = [None if value is pandas.NA else int(value) for value in same[column]]
            assert theirs == table[column].to_list()
    with pytest.raises(UsageError, match="there is no table 'nonsense'"):
        trace.to_pandas("nonsense")


@pytest.mark.parametrize(
    "ask", ["characterise", "phases", "insights", "diagnose", "period", "bottlenecks"]
)
def test_every_result(trace: Trace, ask: str) -> None:
    result = getattr(ioprism, ask)(trace)

    assert result.to_pandas().shape == result.to_frame().shape


def test_without_pandas_the_error_says_what_to_install(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(MissingPackageError, match=r"Hint: pip install 'ioprism\[pandas\]'"):
        trace.to_pandas("files")
