"""Ask FTIO's predictor for the period of phases, in a Python that has FTIO.

FTIO is asked as its predictor asks itself: with all phases until now, or, after the same answer
came more than three times in a row, with the last three periods only.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ioprism.errors import ServiceError

SERVER = """
import contextlib, io, json, sys
import numpy as np
with contextlib.redirect_stdout(sys.stderr):
    from ftio.cli.ftio_core import core
    from ftio.parse.args import parse_args
for line in sys.stdin:
    time, values = json.loads(line)
    args = parse_args(["-e", "no", "-f", "10"], "ftio")
    sim = {"time": np.array(time), "bandwidth": np.array(values), "total_bytes": 0, "ranks": 1}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            prediction, _ = core(sim, args)
        frequency = float(prediction.get_dominant_freq())
    except Exception:
        frequency = 0.0
    print(json.dumps(1 / frequency if frequency > 0 else None), flush=True)
"""
HITS = 3  # equal answers in a row, after which only the last periods are looked at
LAST_PERIODS = 3.0
FEWEST_PHASES = 3
MOST_PHASES = 64  # that FTIO is asked about one by one; then every sixteenth
SELDOM = 16


class FtioPredictor:
    """Keeps one process with FTIO; jobs are told apart by their first phase."""

    def __init__(self, python: Path) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user names the interpreter
                [str(python), "-c", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError as error:
            raise ServiceError(f"{python} cannot be started: {error}.") from error
        self._hits: dict[float, tuple[int, float | None]] = {}

    def __call__(self, phases: Sequence[tuple[float, float, float]]) -> float | None:
        """Return the period of phases (start, end, bytes), or None if FTIO finds none."""
        count = len(phases)
        if count < FEWEST_PHASES or (count > MOST_PHASES and count % SELDOM):
            return None
        hits, last = self._hits.get(phases[0][0], (0, None))
        begin = phases[-1][1] - LAST_PERIODS * last if hits > HITS and last else phases[0][0]
        time, values = [], []
        for start, end, moved in phases:
            if end > begin:
                time += [start, end]
                values += [moved / max(end - start, 1e-6), 0.0]
        found = self._ask(time, values)
        self._hits[phases[0][0]] = (hits + 1 if found else 0, found)
        return found

    def close(self) -> None:
        """End its process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, time: list[float], values: list[float]) -> float | None:
        if self._process.stdin is None or self._process.stdout is None:
            raise ServiceError("FTIO's process has no pipes.")
        try:
            self._process.stdin.write(json.dumps([time, values]) + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        except OSError as error:
            raise ServiceError(f"FTIO's process ended: {error}.") from error
        if not said:
            raise ServiceError(
                "FTIO's process ended without an answer.\n"
                "Hint: --ftio-python must name a Python in which `import ftio` works."
            )
        found: float | None = json.loads(said)
        return found
