"""A process's command line tells how many processes there are, and a data size does not."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from benchmarks.simulated_storage.cases import make
from ioprism import diagnose
from ioprism.diagnosis.from_calls import processes_said


@pytest.mark.parametrize(
    ("command", "paths", "processes"),
    [
        ("python3 rank.py 0 12 36405 /scratch/run", ["/scratch/run/out.0000"], 12),
        ("./solver 0 64 input.nml", ["/p/restart-00.bin"], 64),
        ("train.py --rank 0 --world-size 16", [], 16),
        ("train.py --local_rank=0 --nprocs=8", ["/data/log.txt"], 8),
        ("train.py --rank 2 --nprocs 8", ["/data/log.txt"], None),  # picked out of many
        ("./solver 3 64 input.nml", ["/p/restart-03.bin"], None),
        ("./solver 0 64 input.nml", ["/p/restart.bin"], None),  # no file carries the number
        ("train.py --rank 0", [], None),
        ("train.py --world-size 16", [], None),
        (None, ["/p/out.0"], None),
        ("./solver", [], None),
    ],
)
def test_number_of_processes_on_a_command_line(
    command: str | None, paths: list[str], processes: int | None
) -> None:
    assert processes_said(command, paths) == processes


def test_one_process_of_many_does_the_io_of_all() -> None:
    whole = make("rank-zero", seed=31).run.trace()
    events = whole.events()
    writer = int(events["rank"][0])
    alone = whole.processes.filter(pl.col("rank") == writer)
    files = whole.files.with_columns(path=pl.lit("/scratch/result.000"))

    def said(command: str) -> tuple[list[str], list[str]]:
        job = replace(whole.job, ranks=1, executable=command)
        trace = replace(
            whole, job=job, counters={}, load_files=lambda: files, load_processes=lambda: alone
        )
        found = diagnose(trace)
        return [c.code for c in found.causes], [missing.code for missing in found.not_checked]

    causes, unchecked = said("app 0 512")
    assert causes == ["serial-io"]
    assert "serial-io" not in unchecked

    causes, unchecked = said("app input.nml")
    assert causes == []
    assert "serial-io" in unchecked
