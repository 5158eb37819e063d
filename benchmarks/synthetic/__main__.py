"""Write the sample log that the package ships: `python -m benchmarks.synthetic`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.synthetic import checkpointing_job, synthesise
from benchmarks.synthetic.darshan_writer import write_trace

SAMPLE = Path(__file__).parents[2] / "src/ioprism/sample/checkpointing-job.darshan"

if __name__ == "__main__":
    SAMPLE.unlink(missing_ok=True)
    write_trace(SAMPLE, synthesise(checkpointing_job()).trace, compression="bzip2")
