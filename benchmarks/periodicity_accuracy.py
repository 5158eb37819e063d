"""Periods of signals with known answers, beside FTIO on the same traces.

The table gives, per group of traces, the share answered right: within 10 % of the mean
distance of phases, or "no period" for the controls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.peers import OURS, SHARED, peer, row, run

FTIO = "ftio-hpc==0.0.9"
WIDTHS = (30, 8, 8, 8)

EACH = """
import contextlib, io, json, pathlib, sys
import numpy as np
{setup}
answers = {{}}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*/*.npz")):
    data = np.load(path)
    time, values = data["time"], data["bandwidth"]
    {work}
    answers[f"{{path.parent.name}}/{{path.stem}}"] = [seconds, ranges]
print(json.dumps(answers))
"""

OUR_SETUP = "from ioprism import period"
OUR_WORK = """
    found = period(time, values)
    seconds = found.seconds if found else None
    ranges = found.valid_ranges if found else []
"""

THEIR_SETUP = """
from ftio.cli.ftio_core import core
from ftio.parse.args import parse_args
plain = ["-e", "no", "-f", "10"]
hybrid = [*plain, "-tr", "wave_disc", "-le", "4"]

def ask(options, time, values):
    args = parse_args(options, "ftio")  # anew each time: core changes them
    sim = {"time": time, "bandwidth": values, "total_bytes": 0, "ranks": 1}
    with contextlib.redirect_stdout(io.StringIO()):
        prediction, _ = core(sim, args)
    frequency = float(prediction.get_dominant_freq())
    return (1 / frequency if frequency > 0 else None), np.asarray(prediction.ranges).tolist()
"""
THEIR_WORK = """
    seconds, _ = ask(plain, time, values)
    ranges = ask(hybrid, time, values)[1] if path.parent.name.startswith("part") else []
"""

Answers = Mapping[str, Sequence[Any]]
GROUPS: dict[str, Callable[[str], bool]] = {
    "jitter up to 10 %": lambda cell: "_j0_" in cell or "_j10_" in cell,
    "length jitter 30 to 50 %": lambda cell: "len_j30" in cell or "len_j50" in cell,
    "gap jitter 30 %": lambda cell: "gap_j30" in cell,
    "gap jitter 50 %": lambda cell: "gap_j50" in cell,
    "partly periodic": lambda cell: cell.startswith("part"),
    "pulses, duty 2 to 60 %": lambda cell: cell[0] == "d" and float(cell[1:]) >= 0.02,
    "pulses, duty 0.5 to 1 %": lambda cell: cell[0] == "d" and float(cell[1:]) < 0.02,
    "controls without period": lambda cell: cell.startswith("ctl"),
}


def main() -> None:
    signals = SHARED / "signals"
    ours = run(OURS, EACH.format(setup=OUR_SETUP, work=OUR_WORK), signals)
    theirs = run(peer("ftio", FTIO), EACH.format(setup=THEIR_SETUP, work=THEIR_WORK), signals)
    truth = {
        f"{path.parent.name}/{path.stem}": _truth(np.load(path))
        for path in sorted(signals.glob("*/*.npz"))
    }
    row("share right", "traces", "ioprism", "FTIO", widths=WIDTHS)
    for name, chosen in GROUPS.items():
        traces = [trace for trace in truth if chosen(trace.split("/")[0])]
        shares = [_share_right(traces, truth, answers) for answers in (ours.said, theirs.said)]
        row(name, len(traces), *(f"{share:.2f}" for share in shares), widths=WIDTHS)
    both = (ours.said, theirs.said)
    worst = [f"{_worst_control(truth, answers):.2f}" for answers in both]
    row("worst kind of control", "", *worst, widths=WIDTHS)
    errors = [f"{_median_error(truth, answers):.4%}" for answers in both]
    row("median error, no jitter", "", *errors, widths=WIDTHS)
    overlaps = [f"{_mean_overlap(truth, answers):.2f}" for answers in both]
    row("overlap of ranges (IoU)", "", *overlaps, widths=WIDTHS)


def _truth(data: Mapping[str, Any]) -> tuple[float, list[list[float]]]:
    return float(data["period_mean"]), data["valid"].tolist()


def _error(answer: Sequence[Any], seconds: float) -> float:
    return float("inf") if answer[0] is None else abs(answer[0] / seconds - 1.0)


def _right(trace: str, truth: Mapping[str, Any], answers: Answers) -> bool:
    seconds = truth[trace][0]
    if np.isnan(seconds):
        return answers[trace][0] is None
    return _error(answers[trace], seconds) <= 0.1


def _share_right(traces: Sequence[str], truth: Mapping[str, Any], answers: Answers) -> float:
    return float(np.mean([_right(trace, truth, answers) for trace in traces]))


def _worst_control(truth: Mapping[str, Any], answers: Answers) -> float:
    kinds: dict[str, list[str]] = defaultdict(list)
    for trace in truth:
        if trace.startswith("ctl"):
            kinds[trace.split("/")[0]].append(trace)
    return min(_share_right(traces, truth, answers) for traces in kinds.values())


def _median_error(truth: Mapping[str, Any], answers: Answers) -> float:
    errors = [_error(answers[trace], truth[trace][0]) for trace in truth if "_j0_" in trace]
    return float(np.median([error for error in errors if error <= 0.1]))


def _mean_overlap(truth: Mapping[str, Any], answers: Answers) -> float:
    partly = [trace for trace in truth if trace.startswith("part") and answers[trace][0]]
    return float(np.mean([_overlap(truth[trace][1], answers[trace][1]) for trace in partly]))


def _overlap(true: Sequence[Any], found: Sequence[Any]) -> float:
    edges = [edge for ranges in (true, found) for range_ in ranges for edge in range_]
    grid = np.linspace(min(edges), max(edges), 4000)
    inside = [
        np.any([(grid >= start) & (grid <= end) for start, end in ranges], axis=0)
        if len(ranges)
        else np.zeros(len(grid), dtype=bool)
        for ranges in (true, found)
    ]
    return float((inside[0] & inside[1]).sum() / max(1, (inside[0] | inside[1]).sum()))


if __name__ == "__main__":
    main()
