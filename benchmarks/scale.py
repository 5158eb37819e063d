"""One big trace over several workers: time, memory of each process, and the same answer.

`IOPRISM_SCALE_TEXT` (bytes of DFTracer text, 0.5 GB unless given) and
`IOPRISM_SCALE_SEGMENTS` (of a DXT log, 10 M) set the sizes, `IOPRISM_SCALE_EVENTS` (50 M)
those of the store for the memory limit; `IOPRISM_SCALE_ONLY` names the parts to run.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bottlenecks_scale import store_of
from benchmarks.darshan_reading import dxt_log
from benchmarks.peers import BENCH, OURS, row

WIDTHS = (44, 8, 8, 12, 30, 10, 12)
LOOK = 0.05  # seconds between looks at the memory of processes
KILL_AT = 0.4  # of the time that two workers took
MEMBER = 16 * 2**20  # bytes of text, as DFTracer 2.2 writes them


@dataclass(slots=True)
class Run:
    """What a command and the processes that it started needed."""

    wall: float = 0.0
    cpu: float = 0.0
    peaks: dict[int, int] = field(default_factory=dict)  # bytes by process
    answer: str = ""

    @property
    def calls(self) -> str:
        """How many the answer is made of."""
        return f"{json.loads(self.answer)['totals']['operations']:,}" if self.answer else "-"

    @property
    def checksum(self) -> str:
        """Of the answer, without what names the run."""
        if not self.answer:
            return "-"
        body = {k: v for k, v in json.loads(self.answer).items() if k not in ("ioprism", "source")}
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:8]


PARTS: dict[str, Callable[[], None]] = {}


def main() -> None:
    wanted = os.environ.get("IOPRISM_SCALE_ONLY", " ".join(PARTS)).split()
    row("bottlenecks, start-up included", "wall s", "CPU s", "command MB", "workers MB", "answer",
        "calls", widths=WIDTHS)  # fmt: skip
    for name in wanted:
        PARTS[name]()


def _dftracer() -> None:
    text = int(float(os.environ.get("IOPRISM_SCALE_TEXT", "5e8")))
    _workers(f"DFTracer, {text / 1e9:.1f} GB of text as .pfw.gz", _pfw(text, MEMBER))


def _single() -> None:
    text = int(float(os.environ.get("IOPRISM_SCALE_TEXT", "5e8")))
    _workers(f"DFTracer, {text / 1e9:.1f} GB of text, one member", _pfw(text, None))


def _dxt() -> None:
    segments = int(float(os.environ.get("IOPRISM_SCALE_SEGMENTS", "1e7")))
    _workers(f"Darshan, {segments / 1e6:.0f} M segments", dxt_log(segments))


def _memory() -> None:
    millions = int(float(os.environ.get("IOPRISM_SCALE_EVENTS", "5e7")) / 1e6)
    store = store_of(millions)
    for options in ((), ("--workers", "2")):
        found = _measured(store, "--memory-limit", "1GB", *options)
        _line(f"{millions} M events, --memory-limit 1GB {' '.join(options)}", found)


PARTS |= {"dftracer": _dftracer, "single": _single, "dxt": _dxt, "memory": _memory}


def _workers(label: str, trace: Path) -> None:
    print(label)
    _line("  local", _measured(trace))
    took = 0.0
    for workers in (1, 2, 4):
        found = _measured(trace, "--workers", str(workers))
        took = found.wall if workers == 2 else took
        _line(f"  {workers} workers", found)
    _line("  2 workers, one killed", _measured(trace, "--workers", "2", kill_after=KILL_AT * took))


def _line(label: str, found: Run) -> None:
    own, *others = found.peaks.values()
    workers = " ".join(f"{peak / 1e6:.0f}" for peak in others)
    row(label, f"{found.wall:.1f}", f"{found.cpu:.1f}", f"{own / 1e6:.0f}", workers,
        found.checksum, found.calls, widths=WIDTHS)  # fmt: skip


def _measured(trace: Path, *options: str, kill_after: float | None = None) -> Run:
    """Run the command and look at its processes; kill a worker on the way if asked to."""
    command = [str(OURS), "-m", "ioprism", "bottlenecks", str(trace), "--json", "--quiet"]
    found, began = Run(), time.monotonic()
    before = os.times()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([*command, *options], stdout=said)
        found.peaks[process.pid] = 0
        while process.poll() is None:
            workers = _look(process.pid, found.peaks)
            if kill_after is not None and time.monotonic() - began > kill_after and workers:
                os.kill(workers[0], signal.SIGKILL)
                kill_after = None
            time.sleep(LOOK)
        said.seek(0)
        found.answer = said.read()
    after = os.times()
    found.wall = time.monotonic() - began
    found.cpu = after.children_user + after.children_system
    found.cpu -= before.children_user + before.children_system
    return found


def _look(command: int, peaks: dict[int, int]) -> list[int]:
    """Note the most memory that a command and its workers had; return the workers."""
    workers = [pid for pid in _children(command) if _is_worker(pid)]
    for pid in (command, *workers):
        peaks[pid] = max(peaks.get(pid, 0), _peak(pid))
    return workers


def _children(pid: int) -> list[int]:
    try:
        tasks = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    own = [int(child) for text in tasks for child in text.split()]
    return [one for child in own for one in (child, *_children(child))]


def _is_worker(pid: int) -> bool:
    try:
        return "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def _pfw(size: int, member: int | None) -> Path:
    """A DFTracer file of so many bytes of text, in members of a size or in one; made once."""
    kind = "one" if member is None else "many"
    path = BENCH / f"calls-{size}-{kind}.pfw.gz"
    if path.exists():
        return path
    BENCH.mkdir(exist_ok=True)
    aside = path.with_suffix(".part")
    packed, inside, written, number = zlib.compressobj(1, wbits=31), 0, 0, 0
    with aside.open("wb") as file:
        while written < size:
            text = _lines(number)
            number += LINES
            file.write(packed.compress(text))
            inside, written = inside + len(text), written + len(text)
            if member is not None and inside >= member:
                file.write(packed.flush())
                packed, inside = zlib.compressobj(1, wbits=31), 0
        file.write(packed.flush())
    aside.replace(path)
    return path


LINES, FILES, SPREAD = 20_000, 500, 2_654_435_761  # the last one makes numbers look random


def _lines(first: int) -> bytes:
    """Reads and writes of one process on many files; names come before their first use."""
    head = '"cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"hhash":"h","name":'
    names = [
        f'{{"name":"HH",{head}"node1","value":"h"}}}}',
        *(f'{{"name":"FH",{head}"/scratch/{n % 9}/{n}","value":"f{n}"}}}}' for n in range(FILES)),
    ]
    calls = (
        f'{{"id":{n},"name":"{"read" if n % 3 else "write"}","cat":"POSIX","pid":7,"tid":7,'
        f'"ts":{1_700_000_000_000_000 + n * 90},"dur":{20 + n * SPREAD % 997},"ph":"X","args":'
        f'{{"hhash":"h","ret":{n * SPREAD % 2**20},"count":{2**20},'
        f'"fhash":"f{n * SPREAD % FILES}"}}}}'
        for n in range(first, first + LINES)
    )
    return ("\n".join((*(() if first else names), *calls)) + "\n").encode()


if __name__ == "__main__":
    main()
