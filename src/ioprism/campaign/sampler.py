"""Measure planned writes until each mean is known well enough; go on where a crash left off."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import environ
from pathlib import Path

from ioprism.campaign.launchers import Launcher
from ioprism.errors import OutputError, TraceError
from ioprism.storage.run_store import Planned, RunStore
from ioprism.units import format_bytes

Announce = Callable[[str], None]
Judge = Callable[[Sequence[float]], bool]
SPACE = 2  # free space must hold this many times a run's bytes


@dataclass(frozen=True, slots=True)
class StopRule:
    """When the times of a pattern are enough."""

    converged: Judge  # the mean is known well enough
    finished: Judge  # that, or tried as often as allowed


@dataclass(frozen=True, slots=True)
class Progress:
    """What a sampling session did."""

    runs: int
    converged: int
    unconverged: int  # tried as often as allowed
    waiting: int  # not finished yet
    discarded: int  # runs that a crash had interrupted
    obstacles: Mapping[str, int]  # why patterns could not run here -> how many


def sample(
    store: RunStore,
    *,
    rule: StopRule,
    launcher: Launcher,
    folder: Path,
    hosts: Mapping[int, str] | None = None,
    most_runs: int | None = None,
    announce: Announce = lambda _: None,
) -> Progress:
    """Run every planned pattern in rotation, so that repetitions are spread over time.

    Raises:
        OutputError: the files cannot be written, or do not fit twice.
        TraceError: another sampler works on the store.
    """
    with _alone(store.path):
        discarded = _clean_up(store, folder)
        runs = 0
        while waiting := _runnable(store, rule, launcher):
            for planned in waiting:
                if most_runs is not None and runs >= most_runs:
                    return _progress(store, rule, launcher, runs, discarded)
                seconds = _run(store, _placed(store, planned, hosts or {}), launcher, folder)
                runs += 1
                announce(f"pattern {planned.number}, run {len(planned.times) + 1}: {seconds:.3f} s")
    return _progress(store, rule, launcher, runs, discarded)


def allocated_hosts(hostname: str | None) -> dict[int, str]:
    """Return the hosts of this Slurm job by node number.

    Args:
        hostname: regular expression whose group 1 is the node number; None: not known.
    """
    listed = environ.get("SLURM_JOB_NODELIST")
    if not listed or hostname is None or shutil.which("scontrol") is None:
        return {}
    command = ["scontrol", "show", "hostnames", listed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    numbered = ((re.search(hostname, name), name) for name in done.stdout.split())
    return {int(found[1]): name for found, name in numbered if found}


@contextmanager
def _alone(store: Path) -> Iterator[None]:
    with store.with_name(f"{store.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TraceError(
                "another `sample run` works on this store.\nHint: wait for it, or end it.",
                source=store,
            ) from None
        yield


def _run_folder(store: Path, folder: Path, run: int) -> Path:
    mark = hashlib.sha256(str(store.resolve()).encode()).hexdigest()[:8]
    return folder / f".ioprism-write-{mark}-{run}"


def _clean_up(store: RunStore, folder: Path) -> int:
    """Forget runs that a crash interrupted, and remove what they left."""
    numbers = store.discard_unfinished()
    for number in numbers:
        shutil.rmtree(_run_folder(store.path, folder, number), ignore_errors=True)
    return len(numbers)


def _runnable(store: RunStore, rule: StopRule, launcher: Launcher) -> list[Planned]:
    waiting = [p for p in store.planned() if not rule.finished(p.times)]
    return [p for p in waiting if launcher.obstacle(p.pattern) is None]


def _placed(store: RunStore, planned: Planned, hosts: Mapping[int, str]) -> Planned:
    """Choose nodes of the allocation for a pattern that has none, and keep to them."""
    pattern = planned.pattern
    if pattern.node_list is not None or len(hosts) < pattern.nodes:
        return planned
    members = sorted(hosts)
    stride = 1 + planned.number % max(1, len(members) // pattern.nodes)
    chosen = tuple(members[: pattern.nodes * stride : stride])
    return replace(planned, pattern=store.place(planned, chosen))


def _run(store: RunStore, planned: Planned, launcher: Launcher, folder: Path) -> float:
    _check_space(planned, folder)
    run = store.begin(planned.number)
    target = _run_folder(store.path, folder, run)
    try:
        target.mkdir()
        measured = launcher.run(planned.pattern, target)
    except BaseException:
        store.discard_unfinished()
        raise
    finally:
        shutil.rmtree(target, ignore_errors=True)
    store.finish(run, seconds=measured.seconds, details=measured.details)
    return measured.seconds


def _check_space(planned: Planned, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < SPACE * planned.pattern.total_bytes:
        raise OutputError(
            f"{folder} has {format_bytes(free)} free, a run of "
            f"{format_bytes(planned.pattern.total_bytes)} wants twice its size.\n"
            "Hint: choose another --directory, or plan with --max-bytes."
        )


def _progress(
    store: RunStore, rule: StopRule, launcher: Launcher, runs: int, discarded: int
) -> Progress:
    planned = store.planned()
    known = sum(rule.converged(p.times) for p in planned)
    ended = sum(rule.finished(p.times) for p in planned)
    return Progress(
        runs=runs,
        converged=known,
        unconverged=ended - known,
        waiting=len(planned) - ended,
        discarded=discarded,
        obstacles=_obstacles([p for p in planned if not rule.finished(p.times)], launcher),
    )


def _obstacles(waiting: Sequence[Planned], launcher: Launcher) -> dict[str, int]:
    reasons = [launcher.obstacle(planned.pattern) for planned in waiting]
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons) if reason}
