"""Peer tools in environments of their own, and what a process costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BENCH = ROOT / ".bench"
SHARED = ROOT.parent / "shared" / "data"
OURS = Path(sys.executable)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process needed."""

    cpu: float  # seconds, user and system, start-up included
    peak: int  # bytes resident at most
    said: dict[str, Any]  # the JSON object it printed last, if any


def peer(name: str, *requirements: str) -> Path:
    """Return the Python of an environment with these packages, made on first use."""
    folder = BENCH / name
    python = folder / "bin/python"
    ready = folder / ".ready"
    wanted = "\n".join(requirements)
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        ready.write_text(wanted)
    return python


def run(python: Path, code: str, *args: object) -> Cost:
    """Run a piece of Python in a process of its own and measure it."""
    return measure([str(python), "-c", code, *map(str, args)])


# A process inherits the peak of the one that starts it, so a small one stands in between.
LAUNCHER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as said:
    print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, file=said)
process.returncode = os.waitstatus_to_exitcode(status)
sys.exit(process.returncode != 0)
"""


def measure(command: list[str]) -> Cost:
    """Run a command and measure it, children included."""
    with tempfile.NamedTemporaryFile("r") as said:
        between = [str(OURS), "-S", "-c", LAUNCHER, said.name, *command]
        # Where this process has loaded polars, it has set the allocator of its children, too.
        plain = {name: text for name, text in os.environ.items() if name != "_RJEM_MALLOC_CONF"}
        done = subprocess.run(between, capture_output=True, text=True, check=False, env=plain)
        if done.returncode:
            raise RuntimeError(f"{command[:3]} failed: {done.stderr[-2000:]}")
        cpu, peak = said.read().split()
        return Cost(float(cpu), int(peak), _last(done.stdout))


def _last(text: str) -> dict[str, Any]:
    """The last line that is a JSON object."""
    for line in reversed(text.strip().splitlines()):
        if line.startswith("{") and line.endswith("}"):
            said: dict[str, Any] = json.loads(line)
            return said
    return {}


def row(*cells: object, widths: tuple[int, ...]) -> None:
    """Print one row of a table."""
    print("  ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)))
