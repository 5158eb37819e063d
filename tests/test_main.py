"""What the command line sets before it loads anything."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ioprism.__main__ import ALLOCATOR, KEEP, KEPT_BY_GLIBC, MATRIX_THREADS, main


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


@pytest.mark.parametrize(("set_before", "expected"), [(None, "1"), ("4", "4")])
def test_loading_numpy_starts_no_threads_unless_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, set_before: str | None, expected: str
) -> None:
    monkeypatch.setenv(MATRIX_THREADS, set_before or "")
    if set_before is None:
        monkeypatch.delenv(MATRIX_THREADS)
    monkeypatch.setattr(sys, "argv", ["ioprism", "formats", "--help"])

    with pytest.raises(SystemExit):
        main()
    assert os.environ[MATRIX_THREADS] == expected


@pytest.mark.parametrize(("words", "expected"), [([], KEPT_BY_GLIBC), (["--memory-limit=1GB"], {})])
def test_memory_of_large_arrays_is_kept_unless_it_is_limited(
    monkeypatch: pytest.MonkeyPatch, words: list[str], expected: dict[int, int]
) -> None:
    told: dict[int, int] = {}
    library = SimpleNamespace(mallopt=told.__setitem__)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setenv(ALLOCATOR, KEEP)
    monkeypatch.setattr(sys, "argv", ["ioprism", "formats", *words, "--help"])

    with pytest.raises(SystemExit):
        main()
    assert told == expected


ENDING = """
import atexit, sys
import ioprism.cli
from ioprism.__main__ import command
ioprism.command.output.prepare_streams = lambda: atexit.register(print, "tidied up")
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


@pytest.mark.parametrize(("code", "expected"), [(0, 1), (1, 1), (3, 3)])
def test_what_cannot_be_flushed_at_the_end_is_an_exit_code_not_a_traceback(
    code: int, expected: int
) -> None:
    """Some versions of Python, Debian 12's among them, keep what could not be written."""
    program = (
        "import sys; from ioprism.__main__ import _leave; sys.stdout = open('/dev/full', 'w'); "
        f"sys.stdout.write('text'); _leave([{code}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (expected, "")
