"""What jobs gain if the file system serves them by policy: utilisation and I/O slowdown.

Jobs of three magnitudes of period, mixed, as in the IO-Sets paper (Boito, Pallez, Teylo, Vidal,
IEEE TPDS 2023), drawn anew for every seed. Set-10 is told periods as they are (given), as
ioprism's tracker knows them at that moment (live), and as FTIO's predictor does on the same
streams (ftio). `IOPRISM_BENCH_SEEDS` sets the number of seeds (20 by default),
`IOPRISM_BENCH_FIRST_SEED` the first of them (0), and `IOPRISM_BENCH_FTIO` names a Python that
has FTIO; one is made if it is not set.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import peer, row
from ioprism.model.machine import Workload
from ioprism.reports.to_terminal.site import factor, percent, title
from ioprism.scheduling.result import Schedule
from ioprism.scheduling.steps import ScheduleSettings, schedule_workload, three_magnitudes

FTIO = "ftio-hpc==0.0.9"
SEEDS = int(os.environ.get("IOPRISM_BENCH_SEEDS", "20"))
FIRST_SEED = int(os.environ.get("IOPRISM_BENCH_FIRST_SEED", "0"))
HORIZON = 4000.0
WIDTHS = (22, 26, 10, 24, 10, 24)
LOADS = (0.8,)


def main() -> None:
    python = Path(os.environ.get("IOPRISM_BENCH_FTIO") or peer("ftio", FTIO))
    settings = ScheduleSettings(
        phases=("given", "live", "ftio"),
        seeds=SEEDS,
        first_seed=FIRST_SEED,
        horizon=HORIZON,
        ftio_python=python,
    )
    for load in LOADS:
        show(f"load {load:.0%}", schedule_workload(three_magnitudes(load=load), settings))
    show("load 80 %, steps vary by 25 %", schedule_workload(jittering(), settings))


def jittering() -> Workload:
    """The same jobs with computing times that vary strongly, and periods from 3 to 3000 s."""
    plain = three_magnitudes()
    classes = [replace(kind, variation=0.25, spread=0.4) for kind in plain.classes]
    return replace(plain, classes=tuple(classes))


def show(name: str, found: Schedule) -> None:
    """Print a table, and how much of its gain Set-10 keeps without being told periods."""
    row(name, "utilisation", "gain", "I/O slowdown", "less", "max stretch", widths=WIDTHS)
    for one in found.outcomes:
        gain = found.gain(one) or {"utilisation": 0.0, "io_slowdown": 0.0}
        cells = (percent(one.utilisation), f"{gain['utilisation']:+.1%}", factor(one.io_slowdown),
                 f"{gain['io_slowdown']:+.1%}", factor(one.max_stretch))  # fmt: skip
        row(title(one), *cells, widths=WIDTHS)
    given = found.find("set-10", "given")
    for phases in ("live", "ftio"):
        other = found.find("set-10", phases)
        if given is None or other is None:
            continue
        gains, most = found.gain(other) or {}, found.gain(given) or {}
        kept = {key: gains[key] / most[key] for key in most if most[key]}
        print(f"of what Set-10 gains with true periods, {phases} periods reach "
              f"{kept['utilisation']:.0%} in utilisation and {kept['io_slowdown']:.0%} in "
              "I/O slowdown", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
