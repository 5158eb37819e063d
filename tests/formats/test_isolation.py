"""What would crash or hang this process is tried in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioprism.formats.isolation import IsolationError, attempt


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
