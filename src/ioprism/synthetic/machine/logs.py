"""Write runs as Darshan logs: extended, or counters only."""

from __future__ import annotations

import json
from pathlib import Path

from ioprism.formats.darshan.from_trace import FILE_ALIGNMENT, log_content
from ioprism.formats.darshan.writer import write_log, write_trace
from ioprism.formats.dftracer.writer import write_dftracer
from ioprism.storage.atomic import atomic_write_text
from ioprism.synthetic.machine.scenario import Case

COUNTERS_ONLY = ("POSIX", "MPI-IO", "STDIO", "LUSTRE")


def write_case(folder: Path, name: str, case: Case, *, counters_only: bool = False) -> None:
    """Write NAME.darshan and NAME.truth.json."""
    trace = case.run.trace()
    path = folder / f"{name}.darshan"
    if counters_only:
        content = log_content(trace, file_alignment=FILE_ALIGNMENT, modules=COUNTERS_ONLY)
        write_log(path, content)
    else:
        write_trace(path, trace)
    _write_truth(folder, name, case)


def write_workflow(folder: Path, name: str, case: Case) -> None:
    """Write the folder NAME with one DFTracer file per process, and NAME.truth.json."""
    write_dftracer(case.run.trace(), folder / name)
    _write_truth(folder, name, case)


def _write_truth(folder: Path, name: str, case: Case) -> None:
    atomic_write_text(folder / f"{name}.truth.json", json.dumps(case.truth) + "\n")
