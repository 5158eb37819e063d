"""A simulated year of a centre: is everything planted named with its dates, and nothing else?

``python -m benchmarks.site_year [SEED…]`` writes 20,000 logs a seed (``--jobs``, ``--days``; keep
55 jobs a day, or dates become as coarse as the jobs are rare), adds them to a store, and compares
the events with what was planted. ``--keep FOLDER`` keeps logs
and stores, and uses logs that are there.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioprism.analyses.site.event import SiteEvent
from ioprism.analyses.site.summary import Chosen
from ioprism.pipeline.site import SiteOptions, add_logs, chosen_tables
from ioprism.storage.site_store import make_site
from ioprism.synthetic.site_year import DAY, RANKS_PER_NODE, Centre, centre, write_year

SEEDS = (1, 2, 3)


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(arguments.keep or folder)
        for seed in arguments.seeds or SEEDS:
            made = centre(seed, jobs=arguments.jobs, days=arguments.days)
            _run(place / str(seed), made)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--days", type=float, default=365.0)
    parser.add_argument("--keep", type=Path)
    return parser.parse_args()


def _run(folder: Path, made: Centre) -> None:
    logs, store = folder / "logs", make_site(folder / "store")
    written = len(list(logs.rglob("*.darshan"))) if logs.is_dir() else write_year(logs, made)
    options = SiteOptions(RANKS_PER_NODE)
    began, used = time.perf_counter(), _processor_seconds()
    added = add_logs(store, [logs], options=options)
    took, used = time.perf_counter() - began, _processor_seconds() - used
    began = time.perf_counter()
    again = add_logs(store, [max(logs.iterdir())], options=options)
    print(f"seed {made.seed}: {written} logs written, {added.added} added, "
          f"{added.added / took:.0f} logs/s, {1000 * used / added.added:.0f} ms of processor each, "
          f"peak {_peak():.0f} MB; a day again: {again.known} known, "
          f"{time.perf_counter() - began:.1f} s")  # fmt: skip
    _judge(made.truth(), chosen_tables(store.folder, Chosen()).events())


def _judge(truth: Sequence[dict[str, Any]], found: Sequence[SiteEvent]) -> None:
    left = {(event.kind, event.subject): event for event in found}
    for planted in truth:
        event = left.pop((planted["kind"], planted["subject"]), None)
        print(f"  {planted['kind']} {planted['subject']}: {_said(planted, event)}")
    for event in left.values():
        print(f"  NOT PLANTED: {event.kind} {event.subject}, p = {event.probability:.1e}")


def _said(planted: dict[str, Any], event: SiteEvent | None) -> str:
    if event is None:
        return "MISSED"
    off = [event.start - planted["from"]]
    if event.end is not None and planted["to"] is not None:
        off.append(event.end - planted["to"])
    days = ", ".join(f"{seconds / DAY:+.2f}" for seconds in off)
    verdict = "within a day" if max(map(abs, off)) <= DAY else "LATE OR EARLY"
    return f"{verdict} ({days} days), p = {event.probability:.1e}"


def _processor_seconds() -> float:
    """Of this process and those it started."""
    return sum(os.times()[:4])


def _peak() -> float:
    """MB of the largest of all processes."""
    every = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in every) / 1e3


if __name__ == "__main__":
    main()
