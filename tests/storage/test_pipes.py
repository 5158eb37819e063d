"""A pipe where a file of a trace or store should be is refused, and nobody waits for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ioprism import IoprismError, api, read
from tests.fuzz_samples import SAMPLES

SOON = 30.0  # seconds; whoever waits for a pipe waits for ever
BY_NAME = {sample.name: sample for sample in SAMPLES}
PLACES = [
    ("recorder gotcha-hdf5", "recorder.cst"),
    ("recorder gotcha-hdf5", "recorder.ts"),
    ("recorder v2.4.0-mpiio_coll", "1.cfg"),
    ("recorder master-ckpt", "0.mt"),
    ("site store", "jobs/00000001.parquet"),
    ("site store", "ioprism-site.json"),
    ("store", "files.parquet"),
    ("store", "ioprism-trace.json"),
    ("counter store", "ledger.json"),
    ("watch state", "state"),
]


def in_time(ask: Callable[[], object]) -> bool:
    """Whether something answers, or refuses with an error of ours."""
    ended: list[bool] = []

    def run() -> None:
        with suppress(IoprismError):
            ask()
        ended.append(True)

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(SOON)
    return bool(ended)


@pytest.mark.parametrize(("name", "file"), PLACES)
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str, file: str) -> None:
    sample = BY_NAME[name]
    source = sample.make(tmp_path)
    (source / file).unlink()
    os.mkfifo(source / file)

    assert in_time(lambda: sample.read(source))


def test_nor_are_the_pipes_of_a_folder_of_traces(tmp_path: Path) -> None:
    for name in ("a.darshan", "a.pfw", "b.pfw.gz", "c.strace", "t.csv"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "zero.json").symlink_to("/dev/zero")

    assert in_time(lambda: api.characterise(read(tmp_path)))
