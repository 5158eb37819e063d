"""The same program traced by several tools did the same, whichever trace is read."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from ioprism import read

# Which tools traced the program in this mode, and which interface moved the data it counted.
TRACES = {
    "ckpt": [
        ("darshan/made/a_ckpt_fpp_period5s.darshan", "posix"),
        ("recorder/master/ckpt", "posix"),
        ("recorder/v2.4.0/ckpt", "posix"),
        ("recorder/gotcha/ckpt", "posix"),
        ("recorder/pilgrim/ckpt_interproc", "posix"),
    ],
    "randread": [
        ("recorder/master/randread", "posix"),
        ("recorder/v2.4.0/randread", "posix"),
        ("recorder/gotcha/randread", "posix"),
        ("strace/randread_np2.strace", "posix"),
    ],
    "mpiio_coll": [
        ("darshan/made/e_mpiio_collective.darshan", "mpiio"),
        ("recorder/v2.4.0/mpiio_coll", "mpiio"),
        ("recorder/pilgrim/mpiio_coll", "mpiio"),
    ],
}
CASES = [(mode, *one) for mode, traces in TRACES.items() for one in traces]


@pytest.mark.corpus
@pytest.mark.parametrize(("mode", "name", "layer"), CASES)
def test_reads_writes_and_bytes_are_what_the_program_counted(
    shared_data: Path, mode: str, name: str, layer: str
) -> None:
    path = shared_data / name
    truth = path.parent / f"{path.name.split('.darshan')[0].split('.strace')[0]}.truth.json"
    counted = json.loads(truth.read_text())["ranks"]
    trace = read(path)
    moves = trace.events().filter(
        pl.col("operation").is_in(["read", "write"]), pl.col("layer") == layer
    )
    named = moves.join(trace.files.select("file", "path"), on="file")
    own = named.filter(pl.col("path").str.contains(r"/io/.*(?:ckpt|shared_in|mpiio|e_)"))
    found = own.group_by("rank").agg(pl.len(), pl.sum("bytes")).sort("rank").rows()

    assert truth.exists(), mode
    assert [row[1:] for row in found] == [(r["data_ops"], r["bytes"]) for r in counted]
