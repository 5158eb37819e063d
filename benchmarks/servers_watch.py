"""`servers watch` over a simulated Lustre: CPU per round, memory, and totals beside `ingest`."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ioprism import servers
from ioprism.servers.raw_files import FileSource
from ioprism.servers.watch import LoadWatch, WatchPlan

TARGETS, JOBS, TARGETS_PER_JOB = 60, 10_000, 4
INTERVAL, ROUNDS, COMPARED = 30.0, 120, 4  # an hour; rounds that are also ingested
START = 1_700_000_000
OTHERS = ("read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs",
          "get_info", "set_info", "quotactl")  # fmt: skip


def answers(rounds: int, *, seed: int = 1) -> Iterator[tuple[float, str]]:
    """Yield when each answer was given, and its text as Lustre 2.15 prints it.

    In every round a tenth of the jobs ends and is replaced by new ones.
    """
    rng = np.random.default_rng(seed)
    number = 0
    jobs: list[tuple[int, list[int], float, int]] = []  # name, targets, since, rate
    totals = np.zeros(TARGETS, dtype=np.int64)
    for turn in range(rounds):
        now = START + turn * INTERVAL
        keep = jobs[: int(0.9 * len(jobs))] if turn else []
        for _ in range(JOBS - len(keep)):
            chosen = rng.choice(TARGETS, TARGETS_PER_JOB, replace=False).tolist()
            keep.insert(0, (number, chosen, now - INTERVAL / 2, int(rng.integers(1, 2**20))))
            number += 1
        jobs = keep
        entries: list[list[str]] = [[] for _ in range(TARGETS)]
        for job, chosen, since, rate in jobs:
            moved = int(rate * (now - since))
            for target in chosen:
                totals[target] += int(rate * min(now - since, INTERVAL))
                entries[target].append(_entry(job, now, since, moved))
        yield now, "\n".join(_target(n, now, int(totals[n]), entries[n]) for n in range(TARGETS))


def _target(number: int, now: float, total: int, entries: list[str]) -> str:
    name = f"obdfilter.scratch-OST{number:04x}"
    return "\n".join([
        f"{name}.stats=", f"snapshot_time             {now:.9f} secs.nsecs",
        f"write_bytes               {total >> 20} samples [bytes] 4096 4194304 {total}",
        f"{name}.job_stats=", "job_stats:", *entries,
    ])  # fmt: skip


def _entry(job: int, now: float, since: float, moved: int) -> str:
    sizes = f"samples: {moved >> 20:11}, unit: bytes, min: 4096, max: 4194304, sum: {moved:15}"
    others = (f"  {name + ':':16} {{ samples:           0, unit:  reqs }}" for name in OTHERS)
    return "\n".join([
        f"- job_id:          {job}", f"  snapshot_time:   {now:.9f} secs.nsecs",
        f"  start_time:      {since:.9f} secs.nsecs",
        f"  elapsed_time:    {now - since:.9f} secs.nsecs",
        "  read_bytes:      { samples:           0, unit: bytes, min: 0, max: 0, sum: 0 }",
        f"  write_bytes:     {{ {sizes}, sumsq: 17432258604 }}", *others,
    ])  # fmt: skip


def main() -> None:
    """Print the CPU time of rounds, the memory at some of them, and both totals."""
    seconds, memory = [], []
    with tempfile.TemporaryDirectory() as folder:
        place, clock = Path(folder), [0.0]
        path = place / "answer"
        options = WatchPlan(interval=INTERVAL, store=place / "watched")
        watch = LoadWatch([FileSource(path)], options, lambda: clock[0], lambda: clock[0])
        for number, (now, text) in enumerate(answers(ROUNDS)):
            clock[0] = now
            path.write_text(text)
            before = time.process_time()
            result = watch.round()
            seconds.append(time.process_time() - before)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            if number < COMPARED:
                servers.ingest(path, store=place / "ingested", time=now)
                if number == COMPARED - 1:
                    _compare(place, watch.moved["write"])
    print(f"{result.counts['jobs']:,} jobs on {result.counts['targets']} targets, {ROUNDS} rounds")
    print(f"CPU per round: median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")
    print(
        "memory (MiB) after rounds 10, 30, 60, 120:",
        *(f"{memory[n - 1]:.0f}" for n in (10, 30, 60, 120)),
    )


def _compare(place: Path, moved: int) -> None:
    """Compare what both stores hold of the first rounds."""
    both = [servers.jobs(place / name, min_runtime=0.0) for name in ("watched", "ingested")]
    totals = [int(metrics.table["write_bytes"].sum()) for metrics in both]
    same = both[0].table.equals(both[1].table)
    print(f"jobs of both stores equal: {same}; bytes {totals[0]:,} and {totals[1]:,}")
    print(f"targets' bytes by the watch: {moved:,}")


if __name__ == "__main__":
    main()
