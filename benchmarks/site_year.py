"""A simulated year of a centre: is everything planted named with its dates, and nothing else?

``python -m benchmarks.site_year [SEED…]`` writes 20,000 logs a seed (``--jobs``, ``--days``; keep
55 jobs a day, or dates become as coarse as the jobs are rare), adds them to a store, the last day
by itself, compares the events with what was planted, and writes the page. ``--keep FOLDER`` keeps
logs, stores and pages, and uses logs that are there.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import psutil

from benchmarks.simulated_storage.site_year import DAY, RANKS_PER_NODE, Centre, centre, write_year
from ioprism.reports.to_html.site import page as site_page
from ioprism.site.events import SiteEvent
from ioprism.site.steps import SiteOptions, add_logs, chosen_tables
from ioprism.site.store import make_site
from ioprism.site.summary import Chosen, site_story

SEEDS = (1, 2, 3)
Result = TypeVar("Result")


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
    *year, last_day = sorted(logs.iterdir())
    with peak_memory() as peak:
        year_added, took, used = _timed(lambda: add_logs(store, year, options=options))
        day_added, day_took, _ = _timed(lambda: add_logs(store, [last_day], options=options))
    print(f"seed {made.seed}: {written} logs written, {year_added.added} added, "
          f"{took:.0f} s, {year_added.added / took:.0f} logs/s, "
          f"{1000 * used / max(1, year_added.added):.0f} ms of processor each, "
          f"peak of all processes {peak.bytes / 1e6:.0f} MB; one more day: "
          f"{day_added.added} logs, {day_took:.1f} s")  # fmt: skip
    story, took, _ = _timed(lambda: site_story(chosen_tables(store.folder, Chosen())))
    page = folder / "site.html"
    page.write_text(site_page(story), encoding="utf-8")
    print(f"  the page: {took:.1f} s, {page.stat().st_size / 1e3:.0f} kB")
    _judge(made.truth(), story.events)


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


def _timed(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """What it gives, the seconds it takes, and those of processor time."""
    began, used = time.perf_counter(), _processor_seconds()
    result = work()
    return result, time.perf_counter() - began, _processor_seconds() - used


def _processor_seconds() -> float:
    """Of this process and those it started that have ended."""
    return sum(os.times()[:4])


@dataclass(slots=True)
class Peak:
    """The most memory that this process and those it started held together."""

    bytes: int = 0


@contextmanager
def peak_memory(*, every: float = 0.5) -> Iterator[Peak]:
    """Add up the resident memory of all processes again and again."""
    peak, done = Peak(), Event()

    def look() -> None:
        while not done.wait(every):
            family = [psutil.Process(), *psutil.Process().children(recursive=True)]
            with suppress(psutil.NoSuchProcess):
                peak.bytes = max(peak.bytes, sum(one.memory_info().rss for one in family))

    thread = Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


if __name__ == "__main__":
    main()
