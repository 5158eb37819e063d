"""Insights beside Drishti on public logs and on a log of 30,000 files; phases; a folder of logs.

CPU seconds of whole processes, start-up included; both tools run from compiled bytecode, as
installed packages do.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import BENCH, OURS, SHARED, measure, peer, row, run

WIDTHS = (46, 12, 12, 10)
FILES = 30_000
LOGS = 1_000
SMALL = 2 * 2**20  # bytes; larger logs are left out of the folder

PHASES = """
import json, resource
import numpy as np, polars as pl
from ioprism.phase_detection.find import phases
from ioprism.engine.base import LocalEngine
from ioprism.model.schema import EVENTS
from ioprism.model.trace import Job, MemoryPartition, Trace
count, ranks, bursts = 10_000_000, 1024, 60
chance = np.random.default_rng(1)
start = np.sort(chance.uniform(0, 4, count)) + 10.0 * (np.arange(count) * bursts // count)
events = EVENTS.conform(pl.DataFrame({
    "start": start, "end": start + chance.exponential(1e-3, count),
    "rank": chance.integers(0, ranks, count), "process": 0, "file": 0,
    "layer": "posix", "operation": "write", "offset": 0, "bytes": 4096,
}))
trace = Trace("made", (), Job(ranks=ranks), (MemoryPartition(events),),
              load_files=pl.DataFrame, load_processes=pl.DataFrame)
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
began = cpu()
found = phases(trace, LocalEngine())
print(json.dumps({"cpu": cpu() - began, "phases": len(found.layers["posix"].phases)}))
"""


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(BENCH / "bytecode")
    drishti = peer("drishti", "drishti-io").parent / "drishti"
    row("", "ioprism", "Drishti", "ratio", widths=WIDTHS)
    if SHARED.exists():
        public_logs(drishti)
    else:
        print("the shared data folder is not beside this checkout")
    many_files(drishti)
    cost = run(OURS, PHASES)
    row("phases of 10 M calls, CPU s", f"{cost.said['cpu']:.2f}", "", "", widths=WIDTHS)
    if SHARED.exists():
        folder_of_logs()


def ours(log: Path, *options: str) -> float:
    return measure([str(OURS), "-m", "ioprism", "insights", str(log), *options]).cpu


def theirs(drishti: Path, log: Path) -> float | None:
    """None where it fails."""
    try:
        return measure([str(drishti), str(log)]).cpu
    except RuntimeError:
        return None


def public_logs(drishti: Path) -> None:
    logs = sorted((SHARED / "darshan/public").rglob("*.darshan"))
    ours(logs[0], "--json")  # compiles
    pairs = [(ours(log, "--json"), ours(log), theirs(drishti, log)) for log in logs]
    answered = [(json, text, other) for json, text, other in pairs if other is not None]
    median = statistics.median(other for _, _, other in answered)
    for label, place in (("JSON", 0), ("text", 1)):
        own = statistics.median(pair[place] for pair in answered)
        ratio = statistics.median(pair[2] / pair[place] for pair in answered)
        title = f"median of {len(answered)} public logs, {label}, CPU s"
        row(title, f"{own:.3f}", f"{median:.3f}", f"{ratio:.1f}x", widths=WIDTHS)


def many_files(drishti: Path) -> None:
    log = file_log()
    own = min(ours(log, "--json") for _ in range(3))
    other = theirs(drishti, log)
    assert other is not None
    label = f"a log with {FILES:,} files, CPU s"
    row(label, f"{own:.2f}", f"{other:.2f}", f"{other / own:.1f}x", widths=WIDTHS)


def file_log() -> Path:
    """A log with the counters of many files, made once."""
    path = BENCH / f"files-{FILES}.darshan"
    if path.exists():
        return path
    from benchmarks.synthetic import Burst, Requests, Workload, synthesise
    from benchmarks.synthetic.darshan_content import log_content
    from benchmarks.synthetic.darshan_writer import write_log

    BENCH.mkdir(exist_ok=True)
    ranks = 8
    burst = Burst(
        "/scratch/run/part.{rank}.{phase}", "write", Requests(4, 65_536), length=0.02,
        period=0.05, repetitions=FILES // ranks,
    )  # fmt: skip
    trace = synthesise(Workload(ranks, (burst,))).trace
    content = log_content(trace, file_alignment=4096, modules=("POSIX",))
    write_log(path, replace(content, modules=content.modules[:1]))
    return path


def folder_of_logs() -> None:
    folder = BENCH / "thousand-logs"
    if not folder.exists():
        folder.mkdir(parents=True)
        logs = sorted((SHARED / "darshan/public").rglob("*.darshan"))
        small = [log for log in logs if log.stat().st_size < SMALL]
        for number in range(LOGS):
            shutil.copy(small[number % len(small)], folder / f"{number:04d}.darshan")
    began = time.monotonic()
    cost = measure([str(OURS), "-m", "ioprism", "insights", str(folder), "--json"])
    wall = time.monotonic() - began
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    label = f"{LOGS:,} logs in a folder, {cores} cores, logs/s"
    row(label, f"{LOGS / wall:.0f}", "", "", widths=WIDTHS)
    row("  CPU s for all of them", f"{cost.cpu:.1f}", "", "", widths=WIDTHS)


if __name__ == "__main__":
    main()
