"""Write runs as Darshan logs: extended, or counters only."""

from __future__ import annotations

import json
from pathlib import Path

from ioprism.readers.darshan.from_trace import FILE_ALIGNMENT, log_content
from ioprism.readers.darshan.writer import write_log, write_trace
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
    (folder / f"{name}.truth.json").write_text(json.dumps(case.truth) + "\n")
