"""Draw how far stated probabilities hold: `docs/images/period-calibration.svg`.

Left: of streams without a period, the share whose false-alarm probability is at or below a level,
one line a family; what lies below the diagonal is on the safe side. Right: of live predictions
with a stated confidence, the share whose phase began within a tenth of the period.
`IOPRISM_BENCH_STREAMS` sets how many streams of each family are drawn (100 by default).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.period_families import NOT_PERIODIC, PERIODIC, Family, Stream, draw
from benchmarks.periodicity_families import batches
from ioprism.periodicity.detect import find_by_phases_or_spectrum
from ioprism.periodicity.sampling import sample
from ioprism.periodicity.tracker import Tracker

STREAMS = int(os.environ.get("IOPRISM_BENCH_STREAMS", "100"))
PICTURE = Path(__file__).parent.parent / "docs/images/period-calibration.svg"
LIVE = ("pulses", "drifting", "clocked", "missing_bursts", "change", "varying_length")
LEVELS = np.geomspace(0.003, 1.0, 40)
BINS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
SIDE, MARGIN, GAP = 300, 50, 90
ON_TIME = 0.1  # of the period

Point = tuple[float, float]


def main() -> None:
    chances = {name: _chances(family) for name, family in NOT_PERIODIC.items()}
    for name, found in chances.items():
        print(
            f"{name:32} p <= 0.01: {np.mean(found <= 0.01):.1%}, 0.1: {np.mean(found <= 0.1):.1%}"
        )
    pairs = [pair for name in LIVE for pair in _predictions(PERIODIC[name])]
    points = reliability(pairs)
    for stated, hit in points:
        print(f"stated {stated:.2f}, on time {hit:.2f}")
    lines = [_line_of_family(found) for found in chances.values()]
    PICTURE.write_text(_picture(lines, points), encoding="utf-8")
    print(f"wrote {PICTURE.name}")


def _chances(family: Family) -> np.ndarray:
    found = [
        find_by_phases_or_spectrum(sample(draw(family, number).steps()))
        for number in range(STREAMS)
    ]
    return np.array([1.0 if one is None else one.false_alarm_probability for one in found])


def _predictions(family: Family) -> list[Point]:
    pairs = []
    for number in range(max(1, STREAMS // 5)):
        pairs += stated_and_hit(draw(family, 1000 + number))
    return pairs


def stated_and_hit(stream: Stream) -> list[Point]:
    """The confidence of the first prediction of every phase, and whether it was on time."""
    tracker, starts, pairs, told = Tracker(), np.sort(stream.start), [], -np.inf
    for pieces in batches(stream):
        tracker.add(stream.start[pieces], stream.end[pieces], stream.amount[pieces])
        latest = tracker.predict()
        if latest is None or latest.next_phase is None or latest.period is None:
            continue
        expected, seconds = latest.next_phase, latest.period.seconds
        if expected.start < told + seconds / 2 or expected.start > starts[-1] + seconds / 2:
            continue
        told = expected.start
        nearest = float(np.abs(starts - expected.start).min())
        pairs.append((expected.confidence, float(nearest <= ON_TIME * seconds)))
    return pairs


def reliability(pairs: Sequence[Point]) -> list[Point]:
    """Mean stated confidence and share on time, in bins of the stated one."""
    stated, hit = (np.array(part) for part in zip(*pairs, strict=True))
    points = []
    for low, high in pairwise(BINS):
        inside = (stated >= low) & (stated < high + (high == BINS[-1]))
        if np.count_nonzero(inside) >= 10:
            points.append((float(stated[inside].mean()), float(hit[inside].mean())))
    return points


def _line_of_family(chances: np.ndarray) -> list[Point]:
    return [(_logarithmic(level), _logarithmic(float(np.mean(chances <= level))))
            for level in LEVELS]  # fmt: skip


def _logarithmic(share: float) -> float:
    """From 0.003 to 1 as 0 to 1."""
    return float(1.0 + np.log(max(share, LEVELS[0])) / -np.log(LEVELS[0]))


def _picture(lines: Sequence[Sequence[Point]], points: Sequence[Point]) -> str:
    width, height = 2 * SIDE + GAP + 2 * MARGIN, SIDE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_frame(MARGIN, "false-alarm probability", "share of streams without a period"),
        *(_polyline(MARGIN, line, "#0072b2", 0.5) for line in lines),
        *_log_ticks(MARGIN),
        *_frame(MARGIN + SIDE + GAP, "stated confidence", "share of phases on time"),
        _polyline(MARGIN + SIDE + GAP, points, "#d55e00", 1.0),
        *(_dot(MARGIN + SIDE + GAP, point) for point in points),
        *_linear_ticks(MARGIN + SIDE + GAP),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _at(left: float, point: Point) -> str:
    return f"{left + SIDE * point[0]:.1f},{MARGIN + SIDE * (1 - point[1]):.1f}"


def _polyline(left: float, points: Sequence[Point], colour: str, opacity: float) -> str:
    path = " ".join(_at(left, point) for point in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" opacity="{opacity}"/>'


def _dot(left: float, point: Point) -> str:
    x, y = _at(left, point).split(",")
    return f'<circle cx="{x}" cy="{y}" r="4" fill="#d55e00"/>'


def _frame(left: float, across: str, up: str) -> list[str]:
    middle = MARGIN + SIDE / 2
    return [
        f'<rect x="{left}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#999"/>',
        f'<polyline points="{_at(left, (0, 0))} {_at(left, (1, 1))}" stroke="#999" '
        'stroke-dasharray="4 4"/>',
        f'<text x="{left + SIDE / 2}" y="{SIDE + MARGIN + 36}" '
        f'text-anchor="middle">{across}</text>',
        f'<text x="{left - 36}" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 {left - 36} {middle})">{up}</text>',
    ]


def _log_ticks(left: float) -> list[str]:
    return [_tick(left, _logarithmic(level), f"{level:g}") for level in (0.01, 0.1, 1.0)]


def _linear_ticks(left: float) -> list[str]:
    return [_tick(left, share, f"{share:.0%}") for share in (0.0, 0.5, 1.0)]


def _tick(left: float, share: float, text: str) -> str:
    x, y = left + SIDE * share, MARGIN + SIDE * (1 - share)
    return (
        f'<text x="{x:.1f}" y="{MARGIN + SIDE + 16}" text-anchor="middle">{text}</text>'
        f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )


if __name__ == "__main__":
    main()
