"""Bottlenecks of 2.1 M DFTracer events beside WisIO and dfanalyzer; rates of both stages."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.peers import BENCH, OURS, SHARED, Cost, measure, peer, row, run

TRACE = "dftracer/gen-large-v22"
VIEWS = "view_types=[file_name,proc_name,time_range]"
WIDTHS = (44, 10, 10, 12, 12)

RATES = """
import json, sys, time
import numpy as np, polars as pl
from ioprism.bottleneck_search.settings import Settings
from ioprism.bottleneck_search.severity import rate_records
from ioprism.bottleneck_search.rule_language.explain import apply_rules
from ioprism.bottleneck_search.rule_language.load import rules
from ioprism.views.perspectives.records import FIELDS

def best(work):
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)

rng = np.random.default_rng(seed=1)
n = 5_000_000
times = rng.exponential(1.0, n)
records = pl.DataFrame({
    "seconds": times, "slowest_process": times, "count": rng.exponential(1.0, n),
    "bytes": np.zeros(n), "data_seconds": times, "slowest_process_data": times,
})
classify = n / best(lambda: rate_records(records, Settings(), io_time=1.0))
del records
n = 1_000_000
table = pl.DataFrame({name: rng.exponential(1.0, n) for name in FIELDS})
known = rules()
reason = n / best(lambda: apply_rules(table, known))
print(json.dumps({"classify": classify, "reason": reason, "rules": len(known)}))
"""


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
    said = run(OURS, RATES).said
    print(f"classified per CPU second: {said['classify'] / 1e6:.1f} M records")
    print(f"explained per CPU second:  {said['reason'] / 1e6:.1f} M by {said['rules']} rules")


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
