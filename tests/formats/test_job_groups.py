"""Files of one job are found by what is in them, in folders and lists, whatever their names."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from ioprism import SeveralJobsError, read, read_jobs
from ioprism.cli import main
from ioprism.formats.job_groups import ProcessFile, group_files
from tests.conftest import TEST_DATA
from tests.counted_work import lines_run

Case = Callable[[Path], Sequence[set[str]]]
HASHES = ("03deb6a7d2688e4f", "f5a2bfa3a3f78f0b", "a1ffeb1862e69540", "61febe589de59e8a",
          "ffeb1862e69540f7", "10d71eb1a43c8fc1", "beadfeedcafeface", "6df8e91da18d3748",
          "c533533ade58cf2b", "9c01b1093d08519f", "deadbeefdeadbeef", "483a6565b100e519",
          )  # fmt: skip


def dftracer(
    path: Path,
    *,
    pid: int,
    parent: int,
    span: tuple[float, float] = (0, 10),
    command: str = "python;train.py",
    host: str = "node1",
) -> str:
    """Write the file of one process, as DFTracer does; return its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hosts, program, file = (f"{abs(hash(text)):016x}" for text in (host, command, str(path)))

    def line(name: str, kind: str, **more: object) -> str:
        arguments = {"hhash": hosts, **more.pop("args", {})}  # type: ignore[dict-item]
        return json.dumps({"name": name, "cat": kind, "pid": pid, "tid": pid, **more,
                           "args": arguments}, separators=(",", ":"))  # fmt: skip

    def known(name: str, text: str, value: str) -> str:
        return line(name, "dftracer", ph=4, args={"name": text, "value": value})

    begin, end = (int((1.7e9 + seconds) * 1e6) for seconds in span)
    lines = [
        known("HH", host, hosts),
        known("SH", command, program),
        known("FH", f"/scratch/{pid}", file),
        line("start", "dftracer", ts=begin, dur=0, ph=1,
             args={"ppid": parent, "cmd_hash": program, "exec_hash": program}),
        line("write", "POSIX", ts=begin + 5, dur=9, ph=1, args={"ret": 4096, "fhash": file}),
        line("end", "dftracer", ts=end, dur=0, ph=1),
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return path.name


def twelve_hashes(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"t-{name}-preload.pfw", pid=100 + rank, parent=9)
             for rank, name in enumerate(HASHES)}]  # fmt: skip


def renamed_by_the_user(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"{name}.pfw", pid=100 + rank, parent=9,
                      command=f"python;train.py;--rank;{rank}")
             for rank, name in enumerate(("first", "second", "left", "right"))}]  # fmt: skip


def three_hosts(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"t-{HASHES[rank]}-app.pfw", pid=50 + rank, parent=7 + rank // 2,
                      host=f"node{rank // 2}") for rank in range(6)}]  # fmt: skip


def folders_of_hosts(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"node{rank // 2}" / f"t-{rank}.pfw", pid=50 + rank,
                      parent=rank, host=f"node{rank // 2}") for rank in range(4)}]  # fmt: skip


def a_wrapper_around_each_rank(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"out-{40 + rank}.pfw", pid=40 + rank, parent=20 + rank)
             for rank in range(4)}]  # fmt: skip


def workers_one_after_another(place: Path) -> Sequence[set[str]]:
    loader = dftracer(place / f"t-{HASHES[0]}-preload.pfw", pid=10, parent=1, span=(0, 90))
    workers = {
        dftracer(place / f"t-{name}-fork.pfw", pid=11 + epoch, parent=10,
                 span=(20 * epoch, 20 * epoch + 9), command="python;worker.py")
        for epoch, name in enumerate(HASHES[1:5])
    }  # fmt: skip
    return [{loader, *workers}]


def two_programs_of_one_launcher(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"t-{HASHES[rank]}.pfw", pid=10 + rank, parent=5,
                      command="./server" if rank == 0 else "./client")
             for rank in range(4)}]  # fmt: skip


def two_runs_at_the_same_time(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"{run}-{HASHES[rank + 2 * number]}.pfw", pid=10 * number + rank,
                      parent=5 + 90 * number) for rank in range(2)}
            for number, run in enumerate(("before", "after"))]  # fmt: skip


def two_folders_at_the_same_time(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"job-{job}" / f"t-{10 * job + rank}.pfw", pid=10 * job + rank,
                      parent=500 + job) for rank in range(2)} for job in (1, 2)]  # fmt: skip


def other_programs_at_the_same_time(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"t-{HASHES[number]}.pfw", pid=10 + number, parent=90 + number,
                      command=command)}
            for number, command in enumerate(("./ocean", "./climate"))]  # fmt: skip


def repeated_by_one_shell(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"t-{HASHES[run]}.pfw", pid=10 + run, parent=5,
                      span=(11 * run, 11 * run + 10))} for run in range(3)]  # fmt: skip


def ten_unrelated_jobs(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"trace-{job}.pfw", pid=10 + job, parent=1000 + job,
                      command=f"./{'abcdefghij'[job]}", span=(100 * job, 100 * job + 150))}
            for job in range(10)]  # fmt: skip


def one_process_id_on_two_days(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"t-{HASHES[day]}.pfw", pid=77, parent=76,
                      span=(86_400 * day, 86_400 * day + 60))} for day in range(2)]  # fmt: skip


def left_to_init(place: Path) -> Sequence[set[str]]:
    return [{dftracer(place / f"{name}-{number}.pfw", pid=10 + number, parent=1)}
            for number, name in enumerate(("ocean", "climate"))]  # fmt: skip


def a_date_that_is_none(place: Path) -> Sequence[set[str]]:
    return [{gekko(place / f"write_2024-99-99_99:99:99_x001_{client}.json", "x001", client)
             for client in range(5, 7)}]  # fmt: skip


def gekko(path: Path, host: str, pid: int) -> str:
    report = {"hostname": host, "pid": pid, "start_t_micro": [1e6, 3e6], "end_t_micro": [2e6, 4e6],
              "req_size": [4096, 4096], "avg_thruput_mib": [1.0, 1.0]}  # fmt: skip
    path.write_text(json.dumps(report))
    return path.name


def clients_of_gekkofs(place: Path) -> Sequence[set[str]]:
    return [{gekko(place / f"write_2024-02-28_20:50:02_x00{client // 2}_{300 + client}.json",
                   f"x00{client // 2}", 300 + client) for client in range(4)}]  # fmt: skip


def two_runs_on_gekkofs(place: Path) -> Sequence[set[str]]:
    return [{gekko(place / f"write_2024-02-{day}_20:50:02_x001_{day}{client}.json", "x001",
                   10 * day + client) for client in range(2)} for day in (27, 28)]  # fmt: skip


def recorder_text(folder: Path) -> set[str]:
    folder.mkdir()
    for rank in range(3):
        call = f"0.10{rank}000 0.20{rank}000 write 0 ( /scratch/out 4096 )\n"
        (folder / f"{rank}.txt").write_text(call)
    return {"0.txt", "1.txt", "2.txt"}


def two_runs_as_text_of_recorder(place: Path) -> Sequence[set[str]]:
    return [recorder_text(place / name) for name in ("before", "after")]


def strace(target: Path, *command: str, each: bool = False) -> subprocess.Popen[bytes]:
    follow = "-ff" if each else "-f"
    return subprocess.Popen(["strace", follow, "-ttt", "-T", "-yy", "-o", target, *command])


def names(place: Path, pattern: str) -> set[str]:
    return {path.name for path in place.glob(pattern)}


def each_process_of_a_shell(place: Path) -> Sequence[set[str]]:
    script = "cat /etc/passwd > /dev/null; (sleep 0.1; cat /etc/group > /dev/null) & wait"
    assert strace(place / "t", "sh", "-c", script, each=True).wait() == 0
    return [names(place, "t.*")]


def two_straces_at_the_same_time(place: Path) -> Sequence[set[str]]:
    copies = [strace(place / name, "sh", "-c", "cat /etc/passwd; sleep 0.3", each=True)
              for name in ("one", "two")]  # fmt: skip
    assert [copy.wait() for copy in copies] == [0, 0]
    return [names(place, "one.*"), names(place, "two.*")]


def straces_one_after_another(place: Path) -> Sequence[set[str]]:
    for run in range(3):
        assert strace(place / f"run{run}.strace", "cat", "/etc/passwd").wait() == 0
    return [{f"run{run}.strace"} for run in range(3)]


def a_strace_around_each_rank(place: Path) -> Sequence[set[str]]:
    code = "import time; open('/etc/passwd').read(); time.sleep(0.5); open('/etc/group').read()"
    ranks = [strace(place / f"rank{rank}.strace", sys.executable, "-c", code) for rank in range(3)]
    assert [rank.wait() for rank in ranks] == [0, 0, 0]
    return [{f"rank{rank}.strace" for rank in range(3)}]


def logs_beside_a_traced_run(place: Path) -> Sequence[set[str]]:
    logs = ("a_ckpt_fpp_period5s.darshan", "c_rank0_all_io.darshan")
    for log in logs:
        shutil.copy(TEST_DATA / "darshan" / log, place)
    (place / "notes.md").write_text("which run was it?")
    run = {dftracer(place / f"t-{rank}.pfw", pid=10 + rank, parent=1) for rank in range(2)}
    return [*({log} for log in logs), run]


CASES = [value for name, value in list(globals().items())
         if callable(value) and getattr(value, "__annotations__", {}).get("return")
         == "Sequence[set[str]]"]  # fmt: skip
WITH_STRACE = {each_process_of_a_shell, two_straces_at_the_same_time, straces_one_after_another,
               a_strace_around_each_rank}  # fmt: skip


def found_in(jobs: Sequence[Sequence[Path]]) -> list[list[str]]:
    """The files of each job; a folder stands for the files in it."""
    every = [[file for path in paths for file in ([path] if path.is_file() else path.rglob("*.*"))]
             for paths in jobs]  # fmt: skip
    return sorted(sorted(path.name for path in paths if path.is_file()) for paths in every)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_files_of_one_job_are_one_job(case: Case, tmp_path: Path) -> None:
    if case in WITH_STRACE and shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    expected = sorted(sorted(job) for job in case(tmp_path))
    listed = sorted((path for path in tmp_path.rglob("*.*") if path.suffix != ".md"
                     and path.is_file()), reverse=True)  # fmt: skip

    assert len(CASES) >= 20
    for paths in ([tmp_path], listed):
        jobs = read_jobs(*paths)
        assert len(jobs) == len(expected)
        # Without a call on a file, a process is left out with a warning.
        assert all(set(mine) <= set(theirs) for mine, theirs in
                   zip(found_in([job.paths for job in jobs]), expected, strict=True))  # fmt: skip
    if len(expected) == 1:
        assert read(tmp_path).events().height > 0
    else:
        with pytest.raises(SeveralJobsError, match=f"{len(expected)} jobs were given"):
            read(tmp_path)
        assert read(tmp_path, one_job=True).events().height > 0


@pytest.mark.parametrize("case", [twelve_hashes, ten_unrelated_jobs, logs_beside_a_traced_run])
def test_commands_follow_the_same_rule(case: Case, tmp_path: Path) -> None:
    jobs = len(case(tmp_path))
    runner = CliRunner()
    one = runner.invoke(main, ["characterise", str(tmp_path), "--json"])
    many = runner.invoke(main, ["insights", str(tmp_path), "--json"])

    assert one.exit_code == (0 if jobs == 1 else 2)
    assert (f"{jobs} jobs were given" in one.output) == (jobs > 1)
    assert many.exit_code == 0
    assert len(json.loads(many.stdout).get("jobs", [None])) == jobs


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("folder", "jobs"),
    [("dftracer/gen-large-v22", 1), ("dftracer/formats", 6), ("dftracer/dlio", 1),
     ("tmio/gekkofs", 1), ("darshan/made/l_killed_job_mmap_logs", 1),
     ("recorder/gotcha/ckpt/_text", 1), ("recorder/gotcha/ckpt", 1), ("darshan/made/hostile", 2)],
)  # fmt: skip
def test_real_traces(shared_data: Path, folder: str, jobs: int) -> None:
    assert len(read_jobs(shared_data / folder)) == jobs
    files = sorted(path for path in (shared_data / folder).iterdir() if path.is_file())
    if folder != "recorder/gotcha/ckpt":  # its files are one trace together only
        assert len(read_jobs(*files)) == jobs


def naive_groups(files: Sequence[ProcessFile]) -> set[frozenset[int]]:
    """Join pair by pair, as the rule says it."""
    groups = {number: {number} for number in range(len(files))}
    for one, a in enumerate(files):
        for other, b in enumerate(files):
            dated = a.span is not None and b.span is not None
            gap = max(a.span[0], b.span[0]) - min(a.span[1], b.span[1]) if dated else 0.0  # type: ignore[index]
            related = a.processes & b.processes and gap <= 0
            related = related or ((a.parents | a.children) & b.processes and gap <= 60)
            if related and groups[one] is not groups[other]:
                joined = groups[one] | groups[other]
                groups |= dict.fromkeys(joined, joined)
    return {frozenset(group) for group in groups.values()}


@pytest.mark.parametrize("seed", range(30))
def test_processes_are_joined_as_pairs_would_be(seed: int) -> None:
    chance = random.Random(seed)

    def some() -> frozenset[tuple[str, int]]:
        return frozenset(("", chance.randrange(4)) for _ in range(chance.randrange(3)))

    def file(number: int) -> ProcessFile:
        start = chance.randrange(0, 2000, 20)
        span = (
            (float(start), float(start + chance.randrange(50))) if chance.random() < 0.97 else None
        )
        return ProcessFile(Path(chr(97 + number)), "strace", span=span, processes=some(),
                           parents=some(), program=chr(97 + number))  # fmt: skip

    files = [file(number) for number in range(20)]
    # A parent and a span in common would join more: names and programs differ here.
    assert {frozenset(group) for group in group_files(files)} == naive_groups(files)


def test_files_with_one_process_id_are_not_compared_pair_by_pair() -> None:
    process = frozenset({("", 1)})

    def grouped(number_of_files: int) -> int:
        files = [
            ProcessFile(Path(str(number)), "strace", span=(10.0 * number, 10.0 * number + 5),
                        processes=process, children=process, program=str(number))
            for number in range(number_of_files)
        ]  # fmt: skip
        groups: list[list[int]] = []
        work = lines_run(lambda: groups.extend(group_files(files)))
        assert len(groups) == 1
        return work

    assert grouped(4000) < 3 * grouped(2000)
