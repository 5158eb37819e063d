"""The cost of finding a period in plain arrays, beside FTIO in one run.

CPU seconds are those of a process that imports the package and asks; up to 100,000 samples
it asks three times, and "call" is the ratio of the quickest call alone (of the first for the
hybrid, since FTIO changes its arguments on the way). Memory is the peak of the process. Our
own cost is given with all samples kept too, and with the spectrum asked, to show that it
grows as N log N.
"""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.peers import BENCH, OURS, Cost, peer, row, run

FTIO = "ftio-hpc==0.0.9"
SIZES = (10**4, 10**5, 10**6, 10**7)
HYBRID_SIZE = 10**5
WIDTHS = (22, 9, 9, 7, 7, 10, 10, 7)

TIMED = """
import contextlib, io, json, resource, sys
import numpy as np
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
{setup}
data = np.load(sys.argv[1])
time, values = data[0], data[1]
costs = []
for _ in range(3 if len(time) <= 100_000 else 1):
    began = cpu()
    {work}
    costs.append(cpu() - began)
print(json.dumps({{"cpu": min(costs), "first": costs[0], "seconds": seconds}}))
"""
BURSTS = """
import sys
import numpy as np
size = int(sys.argv[2])
noise = np.random.default_rng(seed=1).normal(1.0, 0.2, size)
time = np.arange(size) / 10.0
values = np.where(time % 30.0 < 6.0, 1e9 * np.maximum(noise, 0.0), 0.0)
np.save(sys.argv[1], np.stack((time, values)))
"""
OUR_SETUP = "from ioprism import period"
OUR_PERIOD = """
    found = period(time, values)
    seconds = found.seconds if found else None
"""
OUR_FIXED = """
    found = period(time, values, frequency=10.0, method="harmonic")
    seconds = found.seconds if found else None
"""
OUR_HYBRID_SETUP = """
from ioprism.periodicity.time_frequency import analyse_hybrid
from ioprism.periodicity.sampling import sample, step_function
"""
OUR_HYBRID = """
    found = analyse_hybrid(sample(step_function(time, values), frequency=10.0))
    seconds = 1 / found.frequency if found else None
"""
THEIR_SETUP = """
from ftio.cli.ftio_core import core
from ftio.parse.args import parse_args
args = parse_args(["-e", "no", "-f", "10", *sys.argv[2:]], "ftio")
sim = {"total_bytes": 0, "ranks": 1}
"""
THEIR_WORK = """
    sim |= {"time": time, "bandwidth": values}
    with contextlib.redirect_stdout(io.StringIO()):
        prediction, _ = core(sim, args)
    frequency = float(prediction.get_dominant_freq())
    seconds = 1 / frequency if frequency > 0 else None
"""


def main() -> None:
    ftio = peer("ftio", FTIO)
    row("", "ioprism", "FTIO", "ratio", "call", "ioprism", "FTIO", "ratio", widths=WIDTHS)
    for size in SIZES:
        data = _bursts(size)
        ours = run(OURS, TIMED.format(setup=OUR_SETUP, work=OUR_PERIOD), data)
        theirs = run(ftio, TIMED.format(setup=THEIR_SETUP, work=THEIR_WORK), data)
        _compare(f"period, {size:.0e} samples", ours, theirs)
    data = _bursts(HYBRID_SIZE)
    ours = run(OURS, TIMED.format(setup=OUR_HYBRID_SETUP, work=OUR_HYBRID), data)
    theirs = run(
        ftio, TIMED.format(setup=THEIR_SETUP, work=THEIR_WORK), data, "-tr", "wave_disc", "-le", 4
    )
    _compare(f"hybrid, {HYBRID_SIZE:.0e} samples", ours, theirs, call="first")
    _growth()


def _bursts(size: int) -> Path:
    """Noisy bursts every 30 s, two rows: time and bandwidth."""
    path = BENCH / "periodicity" / f"bursts_{size}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # In a process of its own: children inherit the peak memory of their parent.
        run(OURS, BURSTS, path, size)
    return path


def _compare(name: str, ours: Cost, theirs: Cost, *, call: str = "cpu") -> None:
    row(
        name,
        f"{ours.cpu:.3f} s",
        f"{theirs.cpu:.3f} s",
        f"{theirs.cpu / ours.cpu:.1f}",
        f"{theirs.said[call] / ours.said[call]:.1f}",
        f"{ours.peak / 2**20:.0f} MiB",
        f"{theirs.peak / 2**20:.0f} MiB",
        f"{theirs.peak / ours.peak:.1f}",
        widths=WIDTHS,
    )


def _growth() -> None:
    print("\nall samples kept: CPU per N log2 N")
    for size in SIZES[:-1]:
        cost = run(OURS, TIMED.format(setup=OUR_SETUP, work=OUR_FIXED), _bursts(size)).said["cpu"]
        print(
            f"{size:>10,} samples  {cost:7.3f} s  {1e9 * cost / (size * math.log2(size)):6.1f} ns"
        )


if __name__ == "__main__":
    main()
