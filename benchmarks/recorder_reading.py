"""Reading Recorder's worst case, 400,000 calls with hardly two alike, beside inflating it.

CPU seconds are those of the reading itself, start-up excluded; memory is the peak of the
whole process, start-up included. Recorder's own reader has no package that works.
"""

from __future__ import annotations

from benchmarks.dftracer_reading import timed
from benchmarks.peers import SHARED, row

SETUP = """
from pathlib import Path
import numpy, polars
from ioprism.formats.recorder.reader import RecorderReader
"""
READ = "rows = RecorderReader().read(Path(sys.argv[1])).events().height"
INFLATE_SETUP = """
from pathlib import Path
from ioprism.formats.recorder.streams import blobs
"""
INFLATE = "rows = sum(map(len, blobs((Path(sys.argv[1]) / 'recorder.cst').read_bytes())))"


def main() -> None:
    folder = SHARED / "recorder/gotcha/randread_400k"
    if not folder.exists():
        print("the shared data folder is not beside this checkout")
        return
    widths = (40, 10, 14, 10)
    row("", "CPU s", "rows", "peak MB", widths=widths)
    for label, setup, work in (
        ("ioprism, to a DataFrame", SETUP, READ),
        ("inflating the signatures alone (bytes)", INFLATE_SETUP, INFLATE),
    ):
        cost = timed(setup, work, folder)
        said = cost.said
        row(
            label,
            f"{said['cpu']:.2f}",
            f"{said['rows']:,}",
            f"{cost.peak / 1e6:.0f}",
            widths=widths,
        )
