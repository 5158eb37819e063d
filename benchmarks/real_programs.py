"""Savings that `ioprism diagnose` promises, beside those that a change of a real program brings.

``python -m benchmarks.real_programs`` runs an MPI program (``real_programs.c``) on a local
disk before and after one change, in turn, and diagnoses the traces of the slow side. Every recorder
that is found takes part: Darshan's runtime (counters only, and with DXT), DFTracer (installed below
``.bench`` on first use) and strace. ``--case`` runs some cases only, ``--folder`` names the disk,
``--darshan`` the runtime's library, ``--repeat`` the number of runs. Whether a change pays off
depends on the disk: a case with a measured saving below 3 % of its run counts as one with nothing
to gain, and one whose runs differ more than the two sides do is not judged.
"""

from __future__ import annotations

import argparse
import ctypes.util
import json
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, median_low
from typing import Any

from benchmarks.peers import BENCH, OURS, peer, row

RANKS = 4
REPEAT = 3
WORTH = 0.03  # of the run time: smaller savings count as none, promised or measured
THIRD = 4 / 3  # a promise is right within this factor, as in accept/real_programs.py
SOURCE = Path(__file__).with_suffix(".c")
WIDTHS = (18, 9, 7, 24, 48, 20)


@dataclass(frozen=True, slots=True)
class Case:
    """A program before and after one change."""

    before: str
    after: str | None = None  # None: a healthy run, nothing is changed
    causes: tuple[str, ...] = ()  # accepted where the change pays off


CASES = {
    "sync-each-write": Case(
        "bytes=4194304 request=32768 sync=1", "bytes=4194304 request=32768 sync=0",
        ("frequent-sync",),
    ),
    "many-small-files": Case(
        "bytes=983040 request=4096 files=240", "bytes=983040 request=4096", ("metadata",)
    ),  # fewer than the 1,024 files that Darshan records by default
    "small-direct": Case(
        "bytes=8388608 request=4096 direct=1", "bytes=8388608 direct=1", ("small-requests",)
    ),
    "small-direct-reads": Case(
        "bytes=8388608 request=4096 direct=1 reads=1", "bytes=8388608 direct=1 reads=1",
        ("small-requests",),
    ),
    "re-read": Case(
        "bytes=16777216 direct=1 reads=4", "bytes=16777216 direct=1 reads=1", ("redundant-reads",)
    ),
    "one-writer": Case(
        "bytes=25165824 direct=1 writers=1", "bytes=25165824 direct=1", ("serial-io",)
    ),
    "stdio-unbuffered": Case(
        "bytes=1048576 request=512 stdio=1", "bytes=1048576 stdio=1", ("small-requests",)
    ),
    "small-cached": Case(
        "bytes=2097152 request=8192", "bytes=2097152", ("small-requests",)
    ),
    "large-direct": Case("bytes=8388608 direct=1 compute=0.3"),
    "one-sync-per-step": Case("bytes=4194304 sync=0 compute=0.3"),
    "mostly-computing": Case("bytes=65536 request=65536 compute=0.5"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorder:
    """A way to trace a program: what is put before its command, and into its environment."""

    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    trace: str = ""  # name of the file or folder that it leaves; empty: the whole place
    slows_the_run: bool = False  # the savings of its runs are not those of the program


def main() -> None:
    arguments = _arguments()
    missing = [name for name in ("mpicc", "mpiexec") if shutil.which(name) is None]
    recorders = {} if missing else dict(_recorders(arguments.darshan))
    if not recorders:
        lacking = missing or ["Darshan, DFTracer and strace"]
        print(f"Nothing was measured: this machine has no {' and no '.join(lacking)}.")
        print("Hint: apt-get install mpich libmpich-dev strace (Debian)")
        return
    folder = arguments.folder or BENCH / "real_programs"
    folder.mkdir(parents=True, exist_ok=True)
    marks: dict[str, list[bool]] = defaultdict(list)
    row("case", "recorder", "run", "measured saving", "promised", "", widths=WIDTHS)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        program = Path(place) / "program"
        subprocess.run(["mpicc", "-O2", "-o", str(program), str(SOURCE)], check=True)
        for name in arguments.case or CASES:
            pair = Pair(CASES[name], program, recorders, Path(place) / name)
            pair.run(arguments.repeat)
            for what, fine in pair.judge(name):
                marks[what].append(fine)
    print("; ".join(f"{what} {sum(right)}/{len(right)}" for what, right in marks.items()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="one case; may be repeated")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to be used")
    parser.add_argument("--darshan", type=Path, help="libdarshan.so built for this MPI")
    parser.add_argument("--repeat", type=int, default=REPEAT)
    known, _ = parser.parse_known_args()
    return known


def _recorders(darshan: Path | None) -> Iterator[tuple[str, Recorder]]:
    """The recorders of this machine; those that are missing are reported."""
    library = str(darshan) if darshan else _darshan()
    if library:
        counters = {"LD_PRELOAD": library, "DARSHAN_LOGFILE": "{place}/log.darshan"}
        yield "darshan", Recorder((), counters, "log.darshan")
        yield "dxt", Recorder((), {**counters, "DXT_ENABLE_IO_TRACE": "1"}, "log.darshan")
    else:
        print("without Darshan: its runtime was not found (use --darshan LIBRARY)")
    try:
        preload = next(peer("dftracer", "dftracer").parent.parent.rglob("libdftracer_preload.so"))
        yield "dftracer", Recorder((), {
            "LD_PRELOAD": str(preload), "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_LOG_FILE": "{place}/trace", "DFTRACER_INC_METADATA": "1",
            "DFTRACER_DATA_DIR": "all",  # else ranks without I/O leave no trace
        })  # fmt: skip
    except (subprocess.CalledProcessError, StopIteration):
        print("without DFTracer: it cannot be installed here")
    if shutil.which("strace"):
        command = ("strace", "-f", "-ttt", "-T", "-y", "-o", "{place}/log.strace")
        yield "strace", Recorder(command, {}, "log.strace", slows_the_run=True)
    else:
        print("without strace: it is not installed")


def _darshan() -> str | None:
    """The library of Darshan's runtime, if it is installed."""
    config = shutil.which("darshan-config")
    beside = Path(config).parent.parent / "lib/libdarshan.so" if config else None
    return str(beside) if beside and beside.exists() else ctypes.util.find_library("darshan")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a change brought, in seconds."""

    run: float  # median before the change
    saving: float  # difference of the medians
    low: float  # smallest and largest difference of any two runs
    high: float

    def __str__(self) -> str:
        return f"{self.saving:.2f} s ({self.low:.2f} to {self.high:.2f})"


@dataclass
class Pair:
    """The runs of one case: seconds of each side, and the traces of the slow one."""

    case: Case
    program: Path
    recorders: Mapping[str, Recorder]
    place: Path
    before: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    after: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self, repeat: int) -> None:
        """Run both sides in turn with every recorder, and keep the traces of the slow one."""
        for number in range(repeat):
            for name, recorder in self.recorders.items():
                if recorder.slows_the_run and number:
                    continue
                trace = self.place / f"{name}.{number}"
                self.before[name].append(self._seconds(self.case.before, recorder, trace))
                if self.case.after is not None:
                    other = self.place / "after"
                    self.after[name].append(self._seconds(self.case.after, recorder, other))
                    shutil.rmtree(other)

    def _seconds(self, options: str, recorder: Recorder, trace: Path) -> float:
        data = self.place / "data"
        for folder in (data, trace):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        if "reads=" in options:
            for rank in range(RANKS):
                _write_cold(data / f"in.{rank}", 1 << 24)
        names = {"place": str(trace), "data": str(data)}
        variables = {key: text.format(**names) for key, text in recorder.environment.items()}
        command = [
            *(word.format(**names) for word in recorder.command), "mpiexec", "-n", str(RANKS),
            "env", *(f"{key}={text}" for key, text in variables.items()), str(self.program),
            f"dir={data}", *options.split(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        shutil.rmtree(data)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
        return float(done.stdout.split("seconds ")[1].split()[0])

    def judge(self, name: str) -> Iterator[tuple[str, bool]]:
        """Print a row for each recorder; yield what is right."""
        measured = self.measured()
        for recorder, how in self.recorders.items():
            runs = self.before[recorder]
            typical = runs.index(median_low(runs))
            answer = _diagnose(self.place / f"{recorder}.{typical}" / how.trace)
            marks = dict(self._marks(answer["causes"], measured, slowed=how.slows_the_run))
            wrong = ", ".join(what for what, fine in marks.items() if not fine)
            result = f"wrong: {wrong}" if wrong else "ok" if marks else "not judged"
            run, saving = f"{runs[typical]:.2f} s", str(measured) if self.case.after else "–"
            row(name, recorder, run, saving, _promise(answer), result, widths=WIDTHS)
            yield from marks.items()

    def measured(self) -> Measured:
        """The saving over the runs of all recorders, without those that slow the program."""
        names = [name for name, how in self.recorders.items() if not how.slows_the_run]
        before = [run for name in names or self.before for run in self.before[name]]
        after = [run for name in names or self.after for run in self.after.get(name, ())] or before
        low, high = min(before) - max(after), max(before) - min(after)
        return Measured(median(before), median(before) - median(after), low, high)

    def _marks(
        self, causes: list[dict[str, Any]], measured: Measured, *, slowed: bool
    ) -> Iterator[tuple[str, bool]]:
        if self.case.after is None or measured.saving < WORTH * measured.run:
            worst = max((cause["saving"]["seconds"] for cause in causes), default=0.0)
            if not slowed:  # a tracer that stops every call makes many calls expensive
                yield "nothing promised where nothing is gained", worst <= WORTH * measured.run
        elif measured.low > 0:
            right = bool(causes) and causes[0]["code"] in self.case.causes
            yield "first cause", right
            if right and not slowed:
                promised, true = causes[0]["saving"], measured.saving
                yield "within a third", true / THIRD <= promised["seconds"] <= true * THIRD
                apart = promised["low"] > measured.high or promised["high"] < measured.low
                yield "interval", not apart


def _write_cold(path: Path, size: int) -> None:
    """Write a file that is not in the page cache afterwards."""
    with path.open("wb") as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _diagnose(trace: Path) -> dict[str, Any]:
    """What the command says of a trace."""
    command = [str(OURS), "-m", "ioprism", "diagnose", str(trace), "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ioprism diagnose {trace} failed: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _promise(answer: Mapping[str, Any]) -> str:
    """The first cause with its saving, or what may be a cause."""
    for cause in answer["causes"]:
        saving = cause["saving"]
        interval = f"{saving['low']:.2f} to {saving['high']:.2f}"
        return f"{cause['code']} {saving['seconds']:.2f} s ({interval})"
    possible = [cause["code"] for cause in answer.get("possible", ())]
    return f"possible: {', '.join(possible)}" if possible else "nothing"


if __name__ == "__main__":
    main()
