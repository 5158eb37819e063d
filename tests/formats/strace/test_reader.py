"""strace's calls are followed through files, copies, children and interruptions."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import polars as pl
import pytest

from ioprism import BrokenTraceError, Trace, read
from ioprism.formats.strace import reader as strace_reader
from ioprism.formats.strace.reader import StraceReader
from tests.conftest import ROOT

DATA = ROOT / "tests/data/strace"


def read_text(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "a.strace"
    path.write_text(text)
    return read(path)


def moves(trace: Trace) -> list[tuple[str, int | None, int | None]]:
    events = trace.events().filter(pl.col("operation").is_in(["read", "write"]))
    named = events.join(trace.files.select("file", "path"), on="file", maintain_order="left")
    return named.select("path", "offset", "bytes").rows()


@pytest.mark.parametrize("packed", [False, True])
def test_each_rank_reads_what_the_program_counted(tmp_path: Path, packed: bool) -> None:
    path = DATA / "randread_np2.strace"
    if packed:
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress((DATA / "randread_np2.strace").read_bytes()))
    trace = read(path)
    counted = json.loads((DATA / "randread_np2.truth.json").read_text())["ranks"]
    named = trace.events().join(trace.files.select("file", "path"), on="file")
    reads = named.filter(pl.col("path").str.ends_with("shared_in.dat"), operation="read")
    found = reads.group_by("rank").agg(pl.len(), pl.sum("bytes")).sort("rank").rows()

    assert [row[1:] for row in found] == [(r["data_ops"], r["bytes"]) for r in counted]
    assert reads["offset"].null_count() == 0
    assert trace.processes["application"].unique().sort().to_list() == [
        "hydra_pmi_proxy", "iob", "mpirun",
    ]  # fmt: skip


def test_descriptors_are_followed_without_paths_in_the_text(tmp_path: Path) -> None:
    trace = read_text(
        tmp_path,
        """7 1700000000.000000 openat(AT_FDCWD, "/data/a", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
7 1700000000.100000 write(3, "x"..., 100) = 100 <0.000010>
7 1700000000.200000 dup(3) = 4 <0.000001>
7 1700000000.300000 write(4, "x", 1) = 1 <0.000010>
7 1700000000.400000 lseek(3, 0, SEEK_SET) = 0 <0.000001>
7 1700000000.500000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 8 <0.000100>
8 1700000000.600000 read(3, "x", 10) = 10 <0.000010>
7 1700000000.700000 read(3, "x", 10) = 10 <0.000010>
7 1700000000.800000 close(3) = 0 <0.000001>
7 1700000000.850000 pipe2([5, 6], O_CLOEXEC) = 0 <0.000001>
7 1700000000.900000 write(6, "x", 1) = 1 <0.000001>
7 1700000000.950000 openat(AT_FDCWD, "/data/b", O_WRONLY|O_APPEND) = 3 <0.000001>
7 1700000000.960000 write(3, "x", 5) = 5 <0.000001>
""",
    )

    assert moves(trace) == [
        ("/data/a", 0, 100), ("/data/a", 100, 1), ("/data/a", 0, 10), ("/data/a", 10, 10),
        ("/data/b", None, 5),
    ]  # fmt: skip
    assert trace.job.ranks == 2


def test_interrupted_calls_are_put_together(tmp_path: Path) -> None:
    trace = read_text(
        tmp_path,
        """7 1700000000.000000 openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a> <0.000010>
[pid 7] 1700000001.000000 pread64(3</w/a>,  <unfinished ...>
[pid 8] 1700000001.500000 close(9</w/b>) = 0 <0.000010>
[pid 7] 1700000003.000000 <... pread64 resumed>"abc"..., 4096, 512) = 100 <2.000000>
7 1700000004.000000 read(3</w/a>, 0x7ff, 10) = -1 EIO (Input/output error) <0.000001>
7 1700000005.000000 fsync(3</w/a> <unfinished ...>
""",
    )
    events = trace.events()

    assert moves(trace) == [("/w/a", 512, 100), ("/w/a", 0, 0)]
    assert events.filter(function="pread64").select("start", "end").row(0) == pytest.approx(
        (1.0, 3.0)
    )
    assert any("unfinished call" in warning for warning in trace.completeness.warnings)


def test_threads_share_the_files_and_the_rank_of_their_process(tmp_path: Path) -> None:
    trace = read_text(
        tmp_path,
        """7 10:00:00.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3
7 10:00:00.100000 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack=0x1}, 88) = 9
9 10:00:00.200000 read(3, "x", 4) = 4
7 10:00:00.300000 newfstatat(AT_FDCWD, "b", {st_size=1}, 0) = 0
""",
    )

    assert moves(trace) == [("/a", 0, 4)]
    assert trace.events()["rank"].unique().to_list() == [0]
    assert trace.processes.select("pid", "tid").rows() == [(7, 7), (7, 9)]
    assert "strace ran without -T: calls have no duration" in trace.completeness.warnings
    assert trace.job.start_time is None


def test_a_text_without_calls_on_files_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1700000000.000000 getpid() = 5 <0.000001>\n")

    assert StraceReader().recognises(path)
    with pytest.raises(BrokenTraceError, match="strace -f -ttt -T -yy"):
        read(path)


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    whole = (DATA / "randread_np2.strace").read_text()
    trace = read_text(tmp_path, whole + "no call at all\n\x00\x01\n")
    trace.events()

    assert "a.strace: 2 damaged lines left out" in trace.completeness.warnings


def test_sockets_and_events_are_no_files(tmp_path: Path) -> None:
    trace = read_text(
        tmp_path,
        """7 1700000000.000000 socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4]) = 0 <0.000010>
7 1700000000.100000 write(4, "x"..., 100) = 100 <0.000010>
7 1700000000.200000 eventfd2(0, EFD_CLOEXEC) = 5 <0.000001>
7 1700000000.300000 read(5, "x", 8) = 8 <0.000010>
7 1700000000.400000 connect(9, {sa_family=AF_INET, sin_port=htons(80)}, 16) = 0 <0.000001>
7 1700000000.500000 read(9, "x", 10) = 10 <0.000010>
7 1700000000.600000 read(6<TCP:[10.0.0.1:4000->10.0.0.2:80]>, "x", 10) = 10 <0.000010>
7 1700000000.700000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 10 <0.000010>
7 1700000000.800000 read(10, "x", 10) = 10 <0.000010>
""",
    )

    assert moves(trace) == [("/data/a", 0, 10)]
    assert trace.files["path"].to_list() == ["/data/a"]


def test_ranges_of_a_file_are_read_apart_and_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ['7 1700000000.0 openat(AT_FDCWD, "/data/in", O_RDONLY) = 3 <0.001>']
    lines += [f'7 17000000{n:02}.5 read(3, "x"..., 100) = 100 <0.001>' for n in range(1, 40)]
    lines += ["7 1700000041.0 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.001>"]
    lines += ["8 1700000042.0 read(3,  <unfinished ...>", "8 1700000043.0 nonsense"]
    lines += [f'7 17000000{n:02}.5 write(4, "y"..., 10) = 10 <0.001>' for n in range(44, 80)]
    lines += ['8 1700000090.0 <... read resumed>"x"..., 50) = 50 <48.0>']
    lines += ["7 1700000091.0 read(3,  <unfinished ...>"]
    path = tmp_path / "a.strace"
    path.write_text("\n".join(lines) + "\n")
    whole = read(path)
    events = whole.events()
    monkeypatch.setattr(strace_reader, "RANGE", 500)
    cut = pickle.loads(pickle.dumps(read(path).partitions))
    alone = [pl.concat([b.collect() for b in part.batches(print)]) for part in reversed(cut)]

    assert len(cut) > 5
    assert pl.concat(reversed(alone)).equals(events)
    assert events.filter(pl.col("process") == 1)["offset"].to_list() == [39 * 100]
    again = read(path)
    again.events()
    assert again.completeness.warnings == whole.completeness.warnings
    assert len(whole.completeness.warnings) == 3


def test_copies_within_the_kernel_read_one_file_and_write_the_other(tmp_path: Path) -> None:
    trace = read_text(
        tmp_path,
        "7 1700000000.1 copy_file_range(3</a>, NULL, 4</b>, NULL, 9999, 0) = 300 <0.000200>\n"
        "7 1700000000.2 sendfile(4</b>, 3</a>, NULL, 9999) = 50 <0.000200>\n"
        "7 1700000000.3 sendfile(5<socket:[1]>, 3</a>, NULL, 9999) = 20 <0.000200>\n",
    )

    assert moves(trace) == [
        ("/a", None, 300),
        ("/b", None, 300),
        ("/a", None, 50),
        ("/b", None, 50),
        ("/a", None, 20),
    ]


def test_calls_that_were_detached_or_ended_with_their_process_are_not_missed(
    tmp_path: Path,
) -> None:
    trace = read_text(
        tmp_path,
        "7 1700000000.1 write(3</a>, ..., 9) = 9 <0.000200>\n"
        "8 1700000000.2 epoll_wait(5<anon_inode:[eventpoll]>,  <unfinished ...>\n"
        "9 1700000000.2 read(6<pipe:[1]>,  <unfinished ...>\n"
        "7 1700000000.3 wait4(9 <detached ...>\n"
        "9 1700000000.3 <... read resumed> <detached ...>\n"
        "7 1700000000.4 +++ exited with 0 +++\n"
        "8 1700000000.4 +++ exited with 0 +++\n"
        "9 1700000000.4 +++ exited with 0 +++\n",
    )

    assert moves(trace) == [("/a", None, 9)]
    assert not trace.completeness.warnings


def test_a_lock_is_named_with_its_command(tmp_path: Path) -> None:
    trace = read_text(
        tmp_path,
        """7 1700000000.000000 openat(AT_FDCWD, "/data/a", O_RDWR) = 3</data/a> <0.000010>
7 1700000000.100000 fcntl(3</data/a>, F_GETFL) = 0x2 (flags O_RDWR) <0.000010>
7 1700000000.200000 fcntl(3</data/a>, F_SETLKW, {l_type=F_WRLCK, l_len=0}) = 0 <0.000100>
7 1700000000.300000 flock(3</data/a>, LOCK_EX) = 0 <0.000100>
7 1700000000.400000 write(3</data/a>, "x", 1) = 1 <0.000010>
""",
    )

    assert trace.events()["function"].cast(pl.String).to_list() == [
        "openat", "fcntl", "fcntl F_SETLKW", "flock", "write",
    ]  # fmt: skip
