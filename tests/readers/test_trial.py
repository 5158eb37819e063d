"""What would crash or hang this process is tried in another."""

from __future__ import annotations

import pytest

from ioprism.readers.trial import TrialError, attempt


def test_what_it_prints_comes_back() -> None:
    assert attempt("print(input()[::-1])", "abc", seconds=20) == "cba\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise ValueError('why')", "ValueError: why"),
        ("import os; os.abort()", "crashes its library"),
        ("while True: pass", "no end after 2 s"),
    ],
)
def test_a_failure_is_told(code: str, message: str) -> None:
    with pytest.raises(TrialError, match=message):
        attempt(code, "", seconds=2)
