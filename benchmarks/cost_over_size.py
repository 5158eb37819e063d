"""Draw what commands cost over the size of a log: `docs/images/cost-over-size.svg`.

CPU seconds and peak memory of whole commands, start-up included, on DXT logs of a thousand to fifty
million calls over up to 1,024 ranks. `IOPRISM_BENCH_CALLS` names other sizes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path

from benchmarks.darshan_reading import dxt_log
from benchmarks.peers import OURS, Cost, measure, row

CALLS = [
    int(float(n)) for n in os.environ.get("IOPRISM_BENCH_CALLS", "1e3 1e4 1e5 1e6 1e7 5e7").split()
]
COLOURS = {"characterise": "#0072b2", "diagnose": "#d55e00", "bottlenecks": "#009e73"}
PICTURE = Path(__file__).parent.parent / "docs/images/cost-over-size.svg"
SIDE, MARGIN, GAP = 300, 60, 90
WIDTHS = (14, 14, 10, 10)

Point = tuple[float, float]


def main() -> None:
    row("calls", "command", "CPU s", "peak MB", widths=WIDTHS)
    costs: dict[str, dict[int, Cost]] = {command: {} for command in COLOURS}
    for calls in CALLS:
        log = str(dxt_log(calls))
        for command, found in costs.items():
            cost = measure([str(OURS), "-m", "ioprism", command, log, "--json", "--quiet"])
            found[calls] = cost
            row(f"{calls:,}", command, f"{cost.cpu:.2f}", f"{cost.peak / 1e6:.0f}", widths=WIDTHS)
    PICTURE.write_text(_picture(costs), encoding="utf-8")
    print(f"wrote {PICTURE.name}")


def _picture(costs: Mapping[str, Mapping[int, Cost]]) -> str:
    width, height = 2 * SIDE + GAP + 2 * MARGIN, SIDE + 2 * MARGIN
    titles: dict[str, Callable[[Cost], float]] = {
        "CPU seconds, start-up included": lambda cost: cost.cpu,
        "peak memory, MB": lambda cost: cost.peak / 1e6,
    }
    charts = [
        part
        for number, (title, of) in enumerate(titles.items())
        for part in _chart(MARGIN + number * (SIDE + GAP), title, _lines(costs, of))
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join(
        [head, f'<rect width="{width}" height="{height}" fill="white"/>', *charts, "</svg>", ""]
    )


def _lines(
    costs: Mapping[str, Mapping[int, Cost]], of: Callable[[Cost], float]
) -> dict[str, list[Point]]:
    """Logarithms of calls and cost, by command."""
    return {
        command: [(log10(calls), log10(of(cost))) for calls, cost in found.items()]
        for command, found in costs.items()
    }


def _chart(left: float, title: str, lines: Mapping[str, Sequence[Point]]) -> list[str]:
    points = [point for line in lines.values() for point in line]
    across, up = ([floor(min(part)), ceil(max(part))] for part in zip(*points, strict=True))

    def at(point: Point) -> Point:
        shares = [
            (value - low) / ((high - low) or 1)
            for value, (low, high) in zip(point, (across, up), strict=True)
        ]
        return left + SIDE * shares[0], MARGIN + SIDE * (1 - shares[1])

    parts = [
        f'<rect x="{left}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#999"/>',
        f'<text x="{left}" y="{MARGIN - 12}">{title}</text>',
        f'<text x="{left + SIDE / 2}" y="{MARGIN + SIDE + 40}" text-anchor="middle">calls</text>',
    ]
    for power in range(across[0], across[1] + 1):
        x, y = at((power, up[0]))
        parts.append(
            f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{_short(power)}</text>'
        )
    for power in range(up[0], up[1] + 1):
        x, y = at((across[0], power))
        parts.append(
            f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
        parts.append(f'<path d="M{left} {y:.1f}h{SIDE}" stroke="#ddd"/>')
    for number, (command, line) in enumerate(lines.items()):
        path = " ".join("{:.1f},{:.1f}".format(*at(point)) for point in line)
        colour = COLOURS[command]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = MARGIN + 18 + 16 * number
        parts.append(f'<text x="{left + 10}" y="{y}" fill="{colour}">{command}</text>')
    return parts


def _short(power: int) -> str:
    """A power of ten as people write it: 1 k, 10 M."""
    unit, rest = divmod(power, 3)
    return f"{10**rest}{('', ' k', ' M', ' G')[unit]}"


if __name__ == "__main__":
    main()
