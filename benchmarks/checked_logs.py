"""What `ioprism report` says of public logs, beside what their counters and authors say.

``python -m benchmarks.checked_logs [PAGE]`` prints the table, or writes it to a page of the
documentation: ``docs/explanation/checked-logs.md``. The truth is written by hand, from raw
counters and the notes of whoever made a log; a new reading of a log is compared with it by eye.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import ioprism
from benchmarks.peers import SHARED
from ioprism.reports.wording import verdict
from ioprism.storage.atomic import atomic_write

DARSHAN, LOGS = "darshan/public/pydarshan", "darshan/public/darshan-logs"
CHECKED = {
    f"{LOGS}/imbalanced_io/imbalanced-io.darshan": "one rank moves 99 GiB to and from one of 56 "
    "targets, 583 s; a second file takes as long, but most of its POSIX records are lost; 113 s "
    "in STDIO on rank 0",
    f"{LOGS}/apmpi_apxc/mpi-io-test.darshan": "four ranks write 64 MiB to one target, at 64 MB/s",
    f"{LOGS}/mpi_io_test_with_dxt": "independent writes take 172 s in MPI-IO, 1 s of it in POSIX: "
    "locks",
    f"{LOGS}/partial_data_dxt": "a million reads of one byte",
    f"{LOGS}/hdf5_diagonal_write_only/hdf5_file_opens_only.darshan": "Python starts: 474 opens of "
    "modules",
    f"{LOGS}/release_logs/mpi-io-test-x86_64-3.3.0.darshan": "four ranks move 16 MiB each, sound",
    f"{LOGS}/empty_log/empty_log.darshan": "nothing is recorded",
    f"{DARSHAN}/sample.darshan": "2,048 ranks write 2 TiB to 24 targets at 26 GB/s: the targets "
    "are the limit",
    f"{DARSHAN}/sample-goodost.darshan": "48 files on as many targets, 13.7 GB/s, sound",
    f"{DARSHAN}/noposixopens.darshan": "3,034 opens of one file take 16 s",
    f"{DARSHAN}/noposix.darshan": "6 s of 11 hours",
    f"{DARSHAN}/dxt.darshan": "pipes that are opened for 24 min each are no I/O",
    "darshan/public/drishti-sample": "HDF5 writes fill values first: 258 GB pass MPI-IO for "
    "129 GB of data",
    "darshan/public/dxt-explorer-sample": "122,862 independent reads of half a KiB beside "
    "collective writes",
    "dftracer/dlio": "the training loop reads its samples itself, 12 to 16 s in each process",
    "dftracer/example": "the first epoch reads at 52 MiB/s, what is read again comes at 1 GiB/s",
    "wisio/recorder-parquet": "CM1: 4 to 6 s of opens in 11 min",
}
HEAD = """# What it says of public logs

Logs that the Darshan, Drishti, DXT Explorer, DFTracer and WisIO projects publish: the first line
of `ioprism report`, beside what their counters and authors tell.
`python -m benchmarks.checked_logs` prints the table anew.

| log | `ioprism report` | what is true |
|---|---|---|
"""


def main() -> None:
    if not SHARED.is_dir():
        print("the shared data folder is not beside this checkout")
        return
    table = "".join(_lines())
    pages = [Path(name) for name in sys.argv[1:] if name.endswith(".md")]
    for page in pages:
        with atomic_write(page, replace=True) as temporary:
            temporary.write_text(HEAD + table, encoding="utf-8")
    if not pages:
        print(table)


def _lines() -> Iterator[str]:
    for name, truth in CHECKED.items():
        line = verdict(ioprism.report(ioprism.read(SHARED / name)).document).line
        yield f"| {_short(name)} | {line} | {truth} |\n"


def _short(name: str) -> str:
    """The log without the folders that all have in common."""
    for prefix in (f"{LOGS}/", f"{DARSHAN}/", "darshan/public/"):
        name = name.removeprefix(prefix)
    return f"`{name}`"


if __name__ == "__main__":
    main()
