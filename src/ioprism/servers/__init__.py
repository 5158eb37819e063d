"""`ioprism servers` as functions: counters of file-system servers, jobs, the whole machine.

>>> from ioprism import servers
>>> servers.ingest("mmpmon/", "sacct.txt", store="machine.store")  # doctest: +SKIP
>>> servers.jobs("machine.store", min_runtime=600).table            # doctest: +SKIP
>>> machine = servers.report("machine.store", shared="split")       # doctest: +SKIP
>>> machine.fleet.totals["write"].unattributed                      # doctest: +SKIP
>>> servers.write_page(machine, "machine.html")                     # doctest: +SKIP
"""

from __future__ import annotations

from ioprism.model.counters import COUNTERS, JOBS, ReadingOptions, Tally
from ioprism.servers.job_metrics import JobMetrics
from ioprism.servers.page import write_page
from ioprism.servers.raw_files import IngestedFile, ingest
from ioprism.servers.steps import MachineReport, Question, figure, jobs, report

__all__ = [
    "COUNTERS",
    "JOBS",
    "IngestedFile",
    "JobMetrics",
    "MachineReport",
    "Question",
    "ReadingOptions",
    "Tally",
    "figure",
    "ingest",
    "jobs",
    "report",
    "write_page",
]
