"""What `ioprism diagnose` says of public logs, beside what their counters and authors say.

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
from ioprism.storage.atomic import atomic_write

DARSHAN, LOGS = "darshan/public/pydarshan", "darshan/public/darshan-logs"
WORKER = "dlio_logs/snyder_python3_id3116902-2110489_12-19-66980-340762111060676411_1.darshan"
DFS = "ior_daos/snyder_ior-DFS_id4681120-53379_5-8-15060-3270540599978592154_1.darshan"
MACSIO = "shane_macsio_id29959_5-22-32552-7035573431850780836_1590156158.darshan"
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
    "darshan/public/dxt-explorer-sample": "collective writes 1.95 s, 133 tiny writes of HDF5's "
    "metadata 0.67 s, 122,862 independent reads of half a KiB 0.45 s, collective reads 0.66 s",
    f"{LOGS}/hdf5_diagonal_write_only/hdf5_diagonal_write_bytes_range_dxt.darshan": "245 of 289 ms "
    "read modules of Python",
    f"{LOGS}/{WORKER}": "a training worker reads 10 GiB in 5.2 s; 100 opens and 186 "
    "stats take 1.8 s",
    f"{LOGS}/{DFS}": "16 ranks move 32 MiB through DFS, the slowest 55 ms",
    f"{DARSHAN}/{MACSIO}": "7,695 independent writes of 1.7 KiB: 1.37 s in MPI-IO, 58 ms of it "
    "in POSIX",
    "darshan/public/pytokio/sample-2.darshan": "2,048 ranks read 1.5 TiB from 24 targets "
    "at 20 GB/s",
    "darshan/made/g_straggler_rank2.darshan": "rank 2 takes 11.4 s, the others 1.1 to 2.6 s: it "
    "writes the same bytes in 16 times as many requests",
    "darshan/made/d_metadata_storm_full.darshan": "16,000 opens of 8,000 empty files, 1.66 s",
    "darshan/made/c_rank0_all_io.darshan": "rank 0 of 8 writes everything, 0.21 s",
    "darshan/made/e_mpiio_collective.darshan": "collective calls of 64 KiB take 59 s, 0.1 s of it "
    "in POSIX: four ranks on few cores",
    "darshan/made/h_ior_easy_fpp_posix.darshan": "IOR, a file per process, sound",
    "dftracer/dlio": "the training loop reads its samples itself, 12 to 16 s in each process",
    "dftracer/example": "the first epoch reads at 52 MiB/s, what is read again comes at 1 GiB/s",
    "dftracer/gen-large-v22": "four processes of their own read one 50 MiB file 2,400 times; the "
    "slowest is 46.1 s in calls, 31.0 s of them these reads",
    "dftracer/small": "one removal takes 760 of 931 ms",
    "recorder/gotcha/randread_400k": "four ranks of their own read 4 KiB at random; the slowest is "
    "812 ms in calls",
    "recorder/pilgrim/mpiio_coll": "collective calls take 4.4 s, storage below them 2 ms",
    "recorder/gotcha/ckpt": "checkpoints of five files, each synced",
    "strace/randread_np2.strace": "two processes read 4 KiB at random, 32 ms in calls",
    "wisio/darshan-dxt": "Python starts, 0.5 s of 76",
    "wisio/recorder-parquet": "CM1: 4 to 6 s of opens in 11 min",
}
HEAD = """# Answers for public logs

Logs that the Darshan, Drishti, DXT Explorer, DFTracer and WisIO projects publish, and some that
were made for ioprism by programs whose I/O is known: the first line of `ioprism report`, beside
what their counters, their calls and their authors say.
`python -m benchmarks.checked_logs` prints the table.

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
        line = ioprism.diagnose(ioprism.read(SHARED / name)).line
        yield f"| {_short(name)} | {line} | {truth} |\n"


def _short(name: str) -> str:
    """The log without the folders that all have in common."""
    for prefix in (f"{LOGS}/", f"{DARSHAN}/", "darshan/public/"):
        name = name.removeprefix(prefix)
    return f"`{name}`"


if __name__ == "__main__":
    main()
