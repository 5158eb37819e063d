"""What an installation takes: ioprism, each extra alone in an empty environment, and the peers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.peers import BENCH, OURS, ROOT, row

PEERS = ("wisio", "drishti-io", "dxt-explorer", "ftio-hpc", "darshan")
DATA = ROOT / "tests/data"
LOG = DATA / "darshan/a_ckpt_fpp_period5s.darshan"
# A command that needs the extra: without it, one message; with it, an answer.
USES: dict[str, Sequence[object]] = {
    "boosting": ("write-time", "train", "--store", "runs.db", "--model", "boosting", "-o", "model"),
    "dask": ("bottlenecks", LOG, "--engine", "dask", "--workers", 1, "--top", 1),
    "figures": ("report", LOG, "--figure", "sizes", "-o", "sizes.svg"),
    "mcp": ("mcp", "."),
    "otf2": ("characterise", DATA / "otf2/traces.otf2"),
    "outliers": ("period", LOG, "--method", "dft", "--outliers", "dbscan"),
    "remote": ("characterise", "s3://bucket/run.darshan"),
    "server": ("watch", "--zmq", "ipc://watch.me", "--exit-when-idle", "0.2"),
    "tokio": ("servers", "ingest", "day.hdf5", "--store", "machine"),
    "wavelets": ("period", LOG, "--hybrid", "--wavelet", "db4"),
    "yaml": ("bottlenecks", LOG, "--rules", "rules.yaml"),
}  # fmt: skip
HEADER = "pattern,nodes,cores_per_node,burst_bytes,stripe_bytes,stripe_count,node_list,seconds"
WIDTHS = (16, 9, 30, 90)


def main(python: Path = OURS) -> None:
    wheel = _wheel(python)
    work = _inputs(BENCH / "sizes")
    row("extra", "MB", "with it", "without it", widths=WIDTHS)
    plain = _installed(python, work / "plain", str(wheel))
    _asked(
        plain, work, ("write-time", "import", "runs.csv", "--system", "titan", "--store", "runs.db")
    )
    row("(none)", str(_megabytes(plain)), _asked(plain, work, ("--version",)), "", widths=WIDTHS)
    for extra, arguments in USES.items():
        place = _installed(python, work / extra, f"{wheel}[{extra}]")
        told = _asked(plain, work, arguments), _asked(place, work, arguments)
        row(extra, str(_megabytes(place)), told[1], told[0], widths=WIDTHS)
        shutil.rmtree(place)
    for name in PEERS:
        try:
            place = _installed(OURS, work / name, name)
        except subprocess.CalledProcessError as error:
            row(name, "–", f"cannot be installed: {error.stderr[-80:]!r}", "", widths=WIDTHS)
            continue
        row(name, str(_megabytes(place)), "", "", widths=WIDTHS)
        shutil.rmtree(place)


def _wheel(python: Path) -> Path:
    folder = BENCH / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    command = [str(python), "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), "."]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def _inputs(work: Path) -> Path:
    """A folder with what the commands read."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "runs.csv").write_text("\n".join([HEADER, *_runs()]) + "\n", encoding="utf-8")
    (work / "rules.yaml").write_text("{}\n", encoding="utf-8")
    (work / "day.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(1000))
    return work


def _runs() -> Iterator[str]:
    """Runs of up to 128 nodes that a model can be trained on: 3 of each, alike."""
    for number, (nodes, size) in enumerate((2**n, 2**s) for n in range(8) for s in range(24, 32)):
        seconds = 5 + nodes * size / 2e9
        for run in range(3):
            yield f"{number},{nodes},8,{size},,4,0-{nodes - 1},{seconds * (1 + run / 100):.3f}"


def _installed(python: Path, place: Path, requirement: str) -> Path:
    """An empty environment with one thing installed; pip itself is not part of it."""
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(place)], check=True)
    inside = str(place / "bin/python")
    command = [str(OURS), "-m", "pip", "--python", inside, "install", "--quiet", requirement]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return place


def _megabytes(place: Path) -> int:
    packages = next(place.glob("lib/python*/site-packages"))
    sizes = (path.lstat().st_blocks * 512 for path in packages.rglob("*"))
    return round(sum(sizes) / 1e6)


def _asked(place: Path, work: Path, arguments: Sequence[object]) -> str:
    """The first line of what a command says."""
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "x",
               "AWS_SECRET_ACCESS_KEY": "x"}  # fmt: skip
    done = subprocess.run(
        [str(place / "bin/ioprism"), *map(str, arguments)],
        cwd=work, env={**os.environ, **nowhere}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    return f"{done.returncode}: {' '.join(said[:2])[:200]}"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))  # another Python may be named
