"""A block of a Python program is recorded from inside it, and nothing of it is changed."""

from __future__ import annotations

import builtins
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ioprism
from ioprism.characteristics.details import by_file
from ioprism.engine.base import LocalEngine
from ioprism.errors import OutputError, UsageError
from ioprism.recording.tracer import find_strace, ptrace_works

STRACE = find_strace()
NO_STRACE = STRACE is None or not ptrace_works(STRACE.where)
TRACERS = [
    "python",
    pytest.param("strace", marks=pytest.mark.skipif(NO_STRACE, reason="strace may not trace here")),
]


def moved(recording: Path, file: Path) -> tuple[int, int]:
    """Return the bytes that a recording has read and written of a file."""
    table = by_file(ioprism.read(recording), LocalEngine())
    rows = [row for row in table.iter_rows(named=True) if row["path"] == str(file)]
    return sum(row["bytes_read"] for row in rows), sum(row["bytes_written"] for row in rows)


@pytest.mark.parametrize("tracer", TRACERS)
def test_bytes_are_those_of_the_block_and_functions_are_put_back(
    tmp_path: Path, tracer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raw, text, low, odd = (tmp_path / name for name in ("raw", "text", "low", 'a<b> "c"\\d'))
    functions = builtins.open, io.open, os.open, os.write
    kept = raw.open("wb", buffering=0)
    with ioprism.record("out", tracer=tracer, quiet=True) as block:
        with Path("raw").open("r+b", buffering=0) as file:  # a relative name
            file.writelines([b"x" * 700] * 30)
            file.seek(0)
            assert len(file.read(1000)) == 1000
        text.write_text("line\n" * 5000)
        assert text.read_text().count("\n") == 5000
        descriptor = os.open(low, os.O_RDWR | os.O_CREAT)
        os.pwrite(descriptor, b"y" * 300, 50)
        assert os.pread(descriptor, 100, 100) == b"y" * 100
        os.close(descriptor)
        thread = threading.Thread(target=lambda: odd.write_bytes(b"z" * 40))
        thread.start()
        thread.join()
    text.write_text("after the block")
    kept.close()

    assert moved(block.folder, raw) == (1000, 21_000)
    assert moved(block.folder, text) == (25_000, 25_000)
    assert moved(block.folder, low) == (100, 300)
    assert moved(block.folder, odd) == (0, 40)
    assert (builtins.open, io.open, os.open, os.write) == functions
    assert block.report is not None
    assert not block.report.document.trace.completeness.warnings
    assert block.report.document.trace.job.ranks == 1
    assert (tmp_path / "out/report.html").exists()


def test_what_python_cannot_time_is_named(tmp_path: Path) -> None:
    with ioprism.record(tmp_path / "out", tracer="python", quiet=True) as block:
        np.zeros(2**20).tofile(tmp_path / "array")  # written by C
        subprocess.run(["true"], check=True)

    assert block.missed[0] == "1 child process"
    assert "8.00 MiB of the 8.0" in block.missed[1]
    assert "that the process wrote" in block.missed[1]


@pytest.mark.skipif(NO_STRACE, reason="strace may not trace here")
def test_strace_sees_libraries_and_child_processes(tmp_path: Path) -> None:
    with ioprism.record(tmp_path / "out", tracer="strace", quiet=True) as block:
        np.zeros(2**12).tofile(tmp_path / "array")
        subprocess.run(["sh", "-c", 'printf hello > "$0"', tmp_path / "child"], check=True)

    assert block.missed == ()
    assert moved(block.folder, tmp_path / "array") == (0, 2**15)
    assert moved(block.folder, tmp_path / "child") == (0, 5)


def test_a_block_that_fails_is_reported_and_fails(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        ioprism.record(tmp_path / "out", tracer="python", quiet=True),
    ):
        (tmp_path / "data").write_bytes(b"x" * 500)
        raise ZeroDivisionError

    assert moved(tmp_path / "out", tmp_path / "data") == (0, 500)
    assert json.loads((tmp_path / "out/record.json").read_text())["runs"][0]["exit_code"] == 1


def test_a_recording_is_replaced_only_if_asked(tmp_path: Path) -> None:
    for force in (False, True):
        with ioprism.record(tmp_path / "out", tracer="python", quiet=True, force=force):
            (tmp_path / "data").write_bytes(b"x")
    with pytest.raises(OutputError, match="holds a recording"):
        ioprism.record(tmp_path / "out", tracer="python").__enter__()
    with pytest.raises(UsageError, match="choose auto, strace or python"):
        ioprism.record(tmp_path / "other", tracer="darshan").__enter__()


def test_a_script_keeps_its_output_and_compares_its_blocks(tmp_path: Path) -> None:
    script = (
        "import ioprism, time\n"
        "for name, against in (('before', None), ('after', 'before')):\n"
        "    with ioprism.record(name, tracer='python', against=against) as block:\n"
        "        open('data', 'wb').write(b'x' * 9000)\n"
        "        time.sleep(0.2 if against is None else 0)\n"
        "print(ioprism.compare('before', 'after').runtime.saved > 0.1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout == "True\n"
    assert "Run time shorter by" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "before", "data"]
