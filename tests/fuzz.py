"""Damage samples of every format, for as long as one likes, and watch the readers: `make fuzz`.

A case is a number: it says which sample is damaged, and how. A reader may refuse what it gets
with an error of ours, or read it; it must not raise anything else, die, hang, take more than
`MEMORY` or `TIME`, change a file that it was not given, or lose calls that the damage took away
without a word. Every fourth case is not damage but harm (`tests.fuzz_hostile`): links, pipes,
devices, databases that compute, files that unpack to more than any memory holds. Numbers of cases
that went wrong are printed, with the number of samples, and repeated with `--case` and `--among`;
those in `tests/data/fuzz_cases.txt` are repeated by the tests.

Usage: python -m tests.fuzz [--seconds 600] [--first 0] [--case NUMBER [--among SAMPLES]]
                            [--hostile KINDS]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil

from ioprism import IoprismError
from tests.fuzz_hostile import HARMS, PRECIOUS, harm
from tests.fuzz_samples import SAMPLES, Sums

MEMORY = 2 * 10**9  # bytes that a case may take
TIME = 30.0  # seconds of processor time that a case may take
PATIENCE = 300.0  # seconds, on a machine that others use; longer is a hang
LOOK = 0.05  # seconds between looks at a case that runs
LARGEST_FILE = 2**30  # bytes that a case may write into one file
EVERY = 4  # cases, one of which is harm
TOKENS = (b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"99999999999999999999", b"-1", b"1e999",
          b"NaN", b"null", b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\\")  # fmt: skip


@cache
def _whole(number: int) -> Sums:
    with tempfile.TemporaryDirectory() as place:
        sample = SAMPLES[number]
        return sample.read(sample.make(Path(place)))[0]


def outcome(case: int, *, among: int = len(SAMPLES)) -> tuple[str, str]:
    """Return what became of a case: fine, or what is wrong; and which sample it was.

    Samples are only ever added at the end, so that a case means the same `among` the first ones.
    """
    chance = random.Random(case)
    number = chance.randrange(among)
    sample, whole = SAMPLES[number], _whole(number)
    with tempfile.TemporaryDirectory() as place:
        source = sample.make(Path(place))
        kind, at_line_end = _damage(source, chance)
        try:
            sums, said = sample.read(source)
        except IoprismError as error:
            return ("refused" if str(error) else "an error without a message"), sample.name
        except BaseException:  # noqa: BLE001 - that is what is looked for
            return f"traceback: {traceback.format_exc(limit=-3)}", sample.name
    noticeable = sample.notices_cuts or (sample.notices_torn_lines and not at_line_end)
    lost = kind in ("cut", "removed") and noticeable and sums[0] < whole[0]
    return ("silent loss" if lost and not said else "read"), sample.name


def hostile_outcome(
    case: int, *, among: int = len(SAMPLES), harms: int = len(HARMS)
) -> tuple[str, str]:
    """Return what became of a trace with something harmful in it or beside it.

    Harms, too, are only ever added at the end.
    """
    chance = random.Random(f"harm {case}")
    sample = SAMPLES[chance.randrange(among)]
    with tempfile.TemporaryDirectory() as place:
        precious = Path(place) / "precious"
        precious.write_bytes(PRECIOUS)
        (Path(place) / "trace").mkdir()
        source = sample.make(Path(place) / "trace")
        source = harm(source, precious, chance, among=harms)
        try:
            sample.read(source)
            told = "read"
        except IoprismError as error:
            told = "refused" if str(error) else "an error without a message"
        except BaseException:  # noqa: BLE001 - that is what is looked for
            told = f"traceback: {traceback.format_exc(limit=-3)}"
        if precious.read_bytes() != PRECIOUS:
            told = "a file that was not given has changed"
    return told, sample.name


def _damage(source: Path, chance: random.Random) -> tuple[str, bool]:
    """Damage one file of what is to be read; return how, and whether it now ends with a line."""
    files = sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]
    path = chance.choice([file for file in files if file.name != ".lock"])
    kind = chance.choice(["cut", "flip", "insert", "token", "removed" if len(files) > 1 else "cut"])
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data) + 1)
    if kind == "removed":
        path.unlink()
        return kind, True
    if kind == "cut":
        del data[at:]
    elif kind == "flip":
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == "insert":
        data[at:at] = chance.randbytes(chance.randrange(1, 16))
    else:
        data[at : at + chance.randrange(8)] = chance.choice(TOKENS)
    path.write_bytes(data)
    return kind, not data or data[-1] in b"\r\n"


def work() -> None:
    """Answer the numbers of cases on standard input; native code may end this process."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    for line in sys.stdin:
        case = int(line)
        told, sample = hostile_outcome(case) if is_harm(case) else outcome(case)
        sys.stdout.write(json.dumps([told, sample]) + "\n")
        sys.stdout.flush()


def is_harm(case: int) -> bool:
    """Whether a case is harm rather than damage."""
    return case % EVERY == EVERY - 1


@contextmanager
def _worker() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz", "--work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": tempfile.gettempdir()},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _asked(process: subprocess.Popen[str], case: int) -> tuple[str, str]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the worker has no pipes")
    process.stdin.write(f"{case}\n")
    process.stdin.flush()
    watched = psutil.Process(process.pid)
    begun, used = time.monotonic(), sum(watched.cpu_times()[:4])
    while not select.select([process.stdout], [], [], LOOK)[0]:
        try:
            own = watched.cmdline()
            memory = watched.memory_info().rss
            memory += sum(_memory(child, own) for child in watched.children())
            spent = sum(watched.cpu_times()[:4]) - used  # its own and its children's
        except psutil.NoSuchProcess:
            break
        if memory > MEMORY:
            return f"over budget: {memory / 1e9:.1f} GB", "?"
        if spent > TIME:
            return f"over budget: {spent:.0f} s", "?"
        if time.monotonic() - begun > PATIENCE:
            return "hang", "?"
    line = process.stdout.readline()
    if not line:
        return f"ended by {process.wait()}", "?"
    told, sample = json.loads(line)
    return str(told), str(sample)


def _memory(child: psutil.Process, parent: list[str]) -> int:
    """A child that has not begun its own program shares the memory of its parent."""
    try:
        return 0 if child.cmdline() == parent else int(child.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


LOST = ("hang", "ended", "over budget")  # what a worker does not outlive


def run(seconds: float, first: int) -> Counter[str]:
    """Try cases from a number on until the time is over; return what became of them."""
    until, case = time.monotonic() + seconds, first
    results: Counter[str] = Counter()
    while time.monotonic() < until:
        with _worker() as process:
            told = "fine"
            while time.monotonic() < until and not told.startswith(LOST):
                told, sample = _asked(process, case)
                results[told.partition(":")[0]] += 1
                if told not in ("refused", "read"):
                    kind = f" hostile {len(HARMS)}" if is_harm(case) else ""
                    sys.stdout.write(f"case {case} {len(SAMPLES)}{kind} ({sample}): {told}\n")
                    sys.stdout.flush()
                case += 1
    return results


def main() -> None:
    """Fuzz, or repeat one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--among", type=int, default=len(SAMPLES), help="the first samples")
    parser.add_argument("--hostile", type=int, help="the case is harm, one of so many kinds")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
    elif options.case is not None:
        told = (
            hostile_outcome(options.case, among=options.among, harms=options.hostile)
            if options.hostile
            else outcome(options.case, among=options.among)
        )
        sys.stdout.write(": ".join(told) + "\n")
    else:
        results = run(options.seconds, options.first)
        listed = ", ".join(f"{number} {told}" for told, number in sorted(results.items()))
        sys.stdout.write(f"{results.total()} cases: {listed}\n")
        if set(results) - {"refused", "read"}:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
