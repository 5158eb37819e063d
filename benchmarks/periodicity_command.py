"""The whole `period` command beside FTIO's, start-up included, on files of TMIO."""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np

from benchmarks.peers import BENCH, OURS, SHARED, Cost, measure, peer, row

FTIO = "ftio-hpc==0.0.9"
MILLION = 1_000_000
WIDTHS = (30, 10, 10, 8, 12, 10, 8)


def main() -> None:
    ftio = peer("ftio", FTIO).with_name("ftio")
    row("", "ioprism", "FTIO", "ratio", "ioprism MB", "FTIO MB", "ratio", widths=WIDTHS)
    files = [SHARED / "tmio/8.jsonl", SHARED / "tmio/384.msgpack", a_million_intervals()]
    for path in files:
        if not path.exists():
            print("the shared data folder is not beside this checkout")
            continue
        ours = measure([str(OURS), "-m", "ioprism", "period", str(path), "--direction", "write"])
        theirs = measure([str(ftio), str(path), "-e", "no", "-m", "write_sync"])
        show(path.name, ours, theirs)


def show(name: str, ours: Cost, theirs: Cost) -> None:
    row(
        name,
        f"{ours.cpu:.2f} s",
        f"{theirs.cpu:.2f} s",
        f"{theirs.cpu / ours.cpu:.1f}x",
        f"{ours.peak / 1e6:.0f}",
        f"{theirs.peak / 1e6:.0f}",
        f"{theirs.peak / ours.peak:.1f}x",
        widths=WIDTHS,
    )


def a_million_intervals() -> Path:
    """A TMIO file of 1,000 ranks that write 1,000 phases each, made once: 70 MB."""
    path = BENCH / "1000.msgpack"
    if path.exists():
        return path
    BENCH.mkdir(exist_ok=True)
    chance = np.random.default_rng(7)
    phases = []
    for rank in range(1000):
        starts = 10.0 * np.arange(1000) + 1e-3 * rank + chance.uniform(0, 0.2, 1000)
        ends = starts + chance.uniform(0.5, 1.5, 1000)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            rate = 2_097_152 / (end - start)
            phases.append([2_097_152, start, end, 0, rate, rate, 0, 0, 1])
    head = ["write_sync", False, True, 2_097_152 * MILLION, 1, 1, 1, MILLION, 1, 1, MILLION]
    path.write_bytes(msgpack.packb([*head, 1000, 1000, phases]))
    return path


if __name__ == "__main__":
    main()
