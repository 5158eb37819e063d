"""What would crash or hang this process is tried in another."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ioprism.formats import isolation
from ioprism.formats.isolation import IsolationError, attempt, columns_of
from ioprism.formats.reading import VARIABLE


def test_what_it_prints_comes_back() -> None:
    assert attempt("print(input()[::-1])", "abc", seconds=20) == "cba\n"


def test_nothing_is_imported_from_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    monkeypatch.chdir(tmp_path)

    assert attempt("import json; print(json.dumps(1))", "", seconds=20) == "1\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise ValueError('why')", "ValueError: why"),
        ("import os; os.abort()", r"reading it crashes the library \(SIGABRT\)"),
        ("import os; os.write(2, b'bad free'); os.abort()", r"library \(SIGABRT: bad free\)"),
        ("raise SystemExit(3)", "it ended with 3"),
        ("while True: pass", "still running after 2 s"),
    ],
)
def test_a_failure_is_told(code: str, message: str) -> None:
    with pytest.raises(IsolationError, match=message):
        attempt(code, "", seconds=2)


def test_a_small_file_of_many_equal_rows_takes_no_more_than_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "LIBRARIES", 400 * 2**20)
    monkeypatch.setenv(VARIABLE, "1MB")
    for rows in (1000, 10**7):
        equal = pl.repeat(1.5, rows, dtype=pl.Float64)
        table = pl.select(start=equal, end=equal, operation=pl.repeat("read", rows), more=equal)
        table.write_parquet(tmp_path / f"{rows}.parquet", row_group_size=rows)

    assert columns_of([tmp_path / "1000.parquet"]) == [["start", "end", "operation", "more"]]
    assert (tmp_path / "10000000.parquet").stat().st_size < 10**6
    with pytest.raises(IsolationError, match=r"more memory .* see --reading-budget"):
        columns_of([tmp_path / "10000000.parquet"])
