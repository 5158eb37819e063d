"""What the command line sets before it loads anything."""

from __future__ import annotations

import os
import subprocess
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


ENDING = """
import atexit, sys
import ioprism.cli
from ioprism.__main__ import command
ioprism.cli.failure.prepare_streams = lambda: atexit.register(print, "tidied up")
sys.argv = ["ioprism", *sys.argv[1:]]
command()
"""


@pytest.mark.parametrize(
    ("words", "code", "said"), [(["--version"], 0, "version"), (["insights", "nowhere"], 1, "Hint")]
)
def test_a_command_ends_with_its_exit_code_and_all_that_is_due(
    words: list[str], code: int, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING, *words], capture_output=True, text=True, check=False
    )

    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "tidied up" in done.stdout
