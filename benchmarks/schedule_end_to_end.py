"""Two real writers on one throttled target, kept apart by the reference agent.

Both compute and write in turn and begin together. The target is this machine's disk, limited by a
cgroup that holds both of them (version 1 of `blkio`; needs root), written with O_DIRECT. "alone"
is one writer, "together" both without the agent, "agent" both with it and `ioprism watch`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers import ROOT, row

EXAMPLE = ROOT / "docs/examples/agent"
LIMIT = 20 * 2**20  # bytes per second of the target
STEPS, COMPUTE, VOLUME = 6, 2.0, 40 * 2**20  # 2 s of computing, 2 s of writing alone
REPETITIONS = int(os.environ.get("IOPRISM_BENCH_REPETITIONS", "3"))
WIDTHS = (14, 12, 12, 12, 12)

WRITER = """
import mmap, os, sys, time
path, steps, compute, volume = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
data = mmap.mmap(-1, 2**20)
begin = time.monotonic()
for step in range(steps):
    time.sleep(compute)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
    for _ in range(volume // len(data)):
        os.write(file, data)
    os.close(file)
print(time.monotonic() - begin)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("IOPRISM_BENCH_DISK", "/tmp")) as name:
        folder = Path(name)
        library = folder / "throttle.so"
        build = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(EXAMPLE / "throttle.c")]
        subprocess.run([*build, "-ldl"], check=True)
        with limited(folder) as procs:
            row("seconds", "alone", "together", "agent", "gain", widths=WIDTHS)
            means = []
            for number in range(1, REPETITIONS + 1):
                alone = run(folder, procs, 1)
                together = run(folder, procs, 2)
                agent = run(folder, procs, 2, library)
                means.append((alone, together, agent))
                show(f"repetition {number}", alone, together, agent)
            show("mean", *(statistics.mean(column) for column in zip(*means, strict=True)))


def show(name: str, alone: float, together: float, agent: float) -> None:
    times = [f"{seconds:.2f}" for seconds in (alone, together, agent)]
    row(name, *times, f"{1 - agent / together:+.1%}", widths=WIDTHS)
    sys.stdout.flush()


def run(folder: Path, procs: Path, writers: int, library: Path | None = None) -> float:
    """Mean run time of writers that begin together; with a library, throttled by the agent."""
    names = [f"writer{number}" for number in range(writers)]
    if library is None:
        return _run_times(folder, procs, names, {})
    from docs.examples.agent.agent import Program
    from docs.examples.agent.agent import run as run_agent

    reports = {name: folder / f"{name}.jsonl" for name in names}
    for report in reports.values():
        report.write_text("")
    programs = [Program(f"{name}.jsonl", folder / f"{name}.control") for name in names]
    extra = {
        name: {
            "LD_PRELOAD": str(library),
            "IOPRISM_THROTTLE": str(folder / f"{name}.control"),
            "IOPRISM_REPORT": str(reports[name]),
        }
        for name in names
    }
    follow = [word for report in reports.values() for word in ("--follow", str(report))]
    command = [sys.executable, "-m", "ioprism", "watch", *follow, "--http", "0", "--json-lines"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as service:
        url = next(line for line in service.stderr or [] if line.startswith("page: "))[6:].strip()
        reader = threading.Thread(target=lambda: list(service.stderr or []))
        reader.start()
        stop = threading.Event()
        agent = threading.Thread(
            target=run_agent, args=(url, LIMIT, programs), kwargs={"stop": stop}
        )
        agent.start()
        try:
            return _run_times(folder, procs, names, extra)
        finally:
            stop.set()
            agent.join()
            service.terminate()
            reader.join()


def _run_times(
    folder: Path, procs: Path, names: list[str], extra: dict[str, dict[str, str]]
) -> float:
    started = []
    for name in names:
        arguments = (str(folder / f"{name}.bin"), str(STEPS), str(COMPUTE), str(VOLUME))
        shell = f'echo $$ > {procs}; exec "$@"'
        started.append(
            subprocess.Popen(
                ["sh", "-c", shell, "sh", sys.executable, "-c", WRITER, *arguments],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **extra.get(name, {})},
            )
        )
    return statistics.mean(float(one.communicate()[0]) for one in started)


@contextmanager
def limited(folder: Path) -> Iterator[Path]:
    """A cgroup whose processes share a limited write bandwidth to the disk of a folder."""
    device = folder.stat().st_dev
    group = Path("/sys/fs/cgroup/blkio") / f"ioprism-{os.getpid()}"
    group.mkdir()
    try:
        limit = f"{os.major(device)}:{os.minor(device)} {LIMIT}"
        (group / "blkio.throttle.write_bps_device").write_text(limit)
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


if __name__ == "__main__":
    main()
