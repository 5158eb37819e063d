"""Reading DFTracer traces, beside `json.loads` line by line and DFTracer's own analyser.

CPU seconds are those of the reading itself, start-up excluded; memory is the peak of the
whole process, start-up included. All of them end with columns of names, times and bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.peers import BENCH, OURS, SHARED, Cost, measure, peer, row, run

LINES = 400_000
TARGET = 8  # times faster than line by line
WIDTHS = (40, 8, 8, 9, 14, 8, 8)

TIMED = """
import json, resource, sys, time
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
{setup}
best = None
for _ in range({runs}):
    began, clock = cpu(), time.perf_counter()
    {work}
    said = {{"cpu": cpu() - began, "wall": time.perf_counter() - clock, "rows": int(rows)}}
    best = said if best is None or said["cpu"] < best["cpu"] else best
print(json.dumps(best))
"""

PARSE_SETUP = """
from pathlib import Path
from typing import Any
from ioprism.formats.dftracer.lines import LARGE_PIECE, Trouble, chunks, pieces
from ioprism.formats.dftracer.lines import decode_text
source, trouble = Path(sys.argv[1]), Trouble()
"""
PARSE = """
text = pieces(chunks(source, trouble), trouble, size=LARGE_PIECE)
rows = sum(len(decode_text(piece).calls) for piece in text)
"""

READ_SETUP = """
from pathlib import Path
from typing import Any
import numpy, polars
from ioprism.formats.dftracer.reader import DftracerReader
"""
READ = "rows = sum(b.collect().height for b in DftracerReader().read(Path(sys.argv[1])).batches())"

SLOW_SETUP = """
import gzip
from pathlib import Path
from typing import Any
source = Path(sys.argv[1])
files = sorted(source.iterdir()) if source.is_dir() else [source]
"""
SLOW = """
names, starts, lengths, moved, files_of = [], [], [], [], []
for file in files:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as text:
        for line in text:
            event = json.loads(line)
            if event["ph"] == 1:
                arguments = event.get("args", {})
                names.append(event["name"])
                starts.append(event["ts"])
                lengths.append(event["dur"])
                moved.append(arguments.get("ret"))
                files_of.append(arguments.get("fhash"))
rows = len(names)
"""


def main() -> None:
    large = SHARED / "dftracer/gen-large-v22"
    one = max(large.glob("*.pfw.gz"), key=lambda p: p.stat().st_size) if large.exists() else made()
    row("", "CPU s", "ratio", "seconds", "events per s", "ratio", "peak MB", widths=WIDTHS)
    print(f"one file, {one.stat().st_size / 1e6:.1f} MB compressed")
    slow = timed(SLOW_SETUP, SLOW, one, runs=3)
    show("  json.loads line by line, to lists", slow, slow)
    show("  the decoder alone, to objects", timed(PARSE_SETUP, PARSE, one), slow)
    show("  ioprism, survey and events", timed(READ_SETUP, READ, one), slow)
    if large.exists():
        print("the whole folder, 2.1 M events")
        slow = timed(SLOW_SETUP, SLOW, large, runs=1)
        show("  json.loads line by line, to lists", slow, slow)
        show("  ioprism, survey and events", timed(READ_SETUP, READ, large), slow)
    print(f"target: at least {TARGET} times as many events per second as line by line")
    if large.exists():
        theirs(large)


def timed(setup: str, work: str, *args: object, runs: int = 5) -> Cost:
    """The best of a few runs: other programs share the machine."""
    inside = work.strip().replace("\n", "\n    ")
    return run(OURS, TIMED.format(setup=setup, work=inside, runs=runs), *args)


def show(label: str, cost: Cost, slow: Cost) -> None:
    said = cost.said
    row(
        label,
        f"{said['cpu']:.2f}",
        f"{slow.said['cpu'] / said['cpu']:.1f}x",
        f"{said['wall']:.2f}",
        f"{said['rows'] / said['wall']:,.0f}",
        f"{slow.said['wall'] / said['wall']:.1f}x",
        f"{cost.peak / 1e6:.0f}",
        widths=WIDTHS,
    )


def theirs(folder: Path) -> None:
    """The whole command beside DFTracer's own analyser, with the versions that fit together.

    The analyser says how many events it counted: of 2.1 million it reads about half.
    """
    copy = BENCH / "dftracer-copy"  # it writes an index beside the traces
    if not copy.exists():
        shutil.copytree(folder, copy, copy_function=shutil.copyfile)
    os.environ.setdefault("USER", "bench")  # its configuration asks for it
    ours = measure([str(OURS.parent / "ioprism"), "characterise", "--json", str(folder)])
    print(f"  ioprism characterise: {ours.cpu:.1f} CPU s, peak {ours.peak / 1e6:.0f} MB")
    try:
        python = peer("dftracer", "dftracer-analyzer==0.0.9", "dftracer-utils==0.0.12")
        options = ["analyzer=dftracer", "analyzer/preset=posix", "output=json"]
        places = [f"trace_path={copy}", f"hydra.run.dir={BENCH / 'dftracer-run'}"]
        cost = measure([str(python.parent / "dfanalyzer"), *options, *places])
    except (subprocess.CalledProcessError, RuntimeError) as error:
        print(f"  dfanalyzer cannot be run here: {str(error).strip().splitlines()[-1][:100]}")
        return
    print(f"  dfanalyzer 0.0.9:     {cost.cpu:.1f} CPU s, peak {cost.peak / 1e6:.0f} MB")


def made() -> Path:
    """A file of equal lines, where the shared data are missing."""
    path = BENCH / "made.pfw.gz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        with gzip.open(path, "wt", compresslevel=1) as file:
            for number in range(LINES):
                arguments = {
                    "hhash": "ab",
                    "ret": 4096,
                    "count": 4096,
                    "fhash": f"{number % 97:016x}",
                }
                event: dict[str, Any] = {
                    "id": number,
                    "name": "read",
                    "cat": "POSIX",
                    "type": 3,
                    "pid": 1,
                }
                event |= {"tid": 1, "ts": 1_700_000_000_000_000 + number, "dur": 3, "ph": 1}
                event |= {"args": arguments}
                file.write(json.dumps(event, separators=(",", ":")) + "\n")
    return path
