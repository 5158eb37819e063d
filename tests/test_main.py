"""What the command line sets before it loads anything."""

from __future__ import annotations

import os
import sys

import pytest

from ioprism.__main__ import ALLOCATOR, KEEP, main


@pytest.mark.parametrize(
    ("words", "set_before", "expected"),
    [
        ([], None, KEEP),
        ([], "mine", "mine"),
        (["--memory-limit=1GB"], None, None),
        (["--memory-limit", "1GB"], None, None),
    ],
)
def test_freed_memory_is_kept_unless_it_is_limited(
    monkeypatch: pytest.MonkeyPatch, words: list[str], set_before: str | None, expected: str | None
) -> None:
    monkeypatch.setenv(ALLOCATOR, set_before or "")
    if set_before is None:
        monkeypatch.delenv(ALLOCATOR)
    monkeypatch.setattr(sys, "argv", ["ioprism", "formats", *words, "--help"])

    with pytest.raises(SystemExit):
        main()
    assert os.environ.get(ALLOCATOR) == expected
