"""What it costs to start: help, and a whole command on a log of a million segments."""

from __future__ import annotations

from benchmarks.peers import OURS, SHARED, measure, row


def main() -> None:
    widths = (44, 10, 10)
    row("", "CPU s", "peak MB", widths=widths)
    log = SHARED / "darshan/made/big/synth_dxt_1M.darshan"
    for args in (["--help"], ["characterise", str(log), "--json"]):
        if args[-1] != "--help" and not log.exists():
            print("the shared data folder is not beside this checkout")
            continue
        costs = [measure([str(OURS), "-m", "ioprism", *args]) for _ in range(5)]
        label = " ".join(["ioprism", args[0], *(["(1 M segments)"] if len(args) > 1 else [])])
        best = min(cost.cpu for cost in costs)
        row(label, f"{best:.2f}", f"{costs[0].peak / 1e6:.0f}", widths=widths)


if __name__ == "__main__":
    main()
