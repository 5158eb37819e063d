"""`servers watch` shows who loads the file system now, and keeps every round it has shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from ioprism import servers
from ioprism.cli import main
from ioprism.servers.raw_files import CommandSource, FileSource, FollowedFile
from ioprism.servers.watch import LoadRound, LoadWatch, WatchPlan

MIB = 2**20
START = 1_700_000_000.0


class Machine:
    """Targets whose answers are written by hand, and clocks that are turned by hand."""

    def __init__(self, tmp_path: Path, **options: Any) -> None:
        self.now = START
        self.path = tmp_path / "answer"
        self.watch = LoadWatch(
            [FileSource(self.path)],
            WatchPlan(**options),
            wall=lambda: self.now,
            steady=lambda: self.now,
        )

    def round(self, text: str, *, seconds: float = 10.0) -> LoadRound:
        self.now += seconds
        self.path.write_text(text)
        return self.watch.round()


def answer(
    time: float, jobs: dict[str, int], *, target: str = "fs-OST0000", since: float | None = None
) -> str:
    """What a target answers: bytes written by each job, and by all."""
    total = sum(jobs.values())
    lines = [
        f"obdfilter.{target}.stats=",
        f"snapshot_time             {time:.6f} secs.nsecs",
        f"write_bytes               {total // MIB} samples [bytes] 1 1048576 {total}",
        f"obdfilter.{target}.job_stats=",
        "job_stats:",
    ]
    for job, size in jobs.items():
        lines += [f"- job_id:          {job}", f"  snapshot_time:   {time:.6f} secs.nsecs"]
        lines += [] if since is None else [f"  start_time:      {since:.6f} secs.nsecs"]
        counted = f"samples: {size // MIB}, unit: bytes, min: 1, max: 1048576, sum: {size}"
        lines.append(f"  write_bytes:     {{ {counted} }}")
    return "\n".join([*lines, ""])


def test_rates_are_the_growth_since_the_last_round(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.round(answer(machine.now, {"7:alice:n1": MIB, "9": 5 * MIB}))

    result = machine.round(answer(machine.now, {"7:alice:n1": 21 * MIB, "9": 15 * MIB}))

    assert [(row.name, row.user, row.write) for row in result.jobs] == [
        ("7", "alice", 2 * MIB),
        ("9", "unknown", MIB),
    ]
    assert {row.name: row.write for row in result.users} == {"alice": 2 * MIB, "unknown": MIB}
    assert [(row.name, row.write, row.share) for row in result.targets] == [
        ("fs-OST0000", 3 * MIB, 1.0)
    ]
    assert result.moved["write"] == 30 * MIB
    assert not result.notes


def test_more_jobs_than_asked_for_are_one_row(tmp_path: Path) -> None:
    machine = Machine(tmp_path, top=3)
    jobs = {str(number): 0 for number in range(50)}
    machine.round(answer(machine.now, jobs))

    result = machine.round(answer(machine.now, dict.fromkeys(jobs, 10 * MIB)))

    assert [row.name for row in result.jobs] == ["0", "1", "10", "other"]
    assert result.jobs[-1].write == 47 * MIB
    assert result.counts["jobs"] == 50


def test_counters_that_restart_and_jobs_that_come_and_go(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.round(answer(machine.now, {"old": 90 * MIB, "gone": MIB}, since=START - 100))
    machine.round(answer(machine.now, {"old": 90 * MIB, "new": 10 * MIB}, since=START - 100))

    machine.round(answer(machine.now, {"old": 90 * MIB}, since=START - 100))
    result = machine.round(answer(machine.now, {"old": 20 * MIB}, since=machine.now))

    assert [(row.name, row.write) for row in result.jobs] == [("old", 2 * MIB)]
    assert any("restarted" in note for note in result.notes)


def test_a_job_that_was_missing_from_one_answer_is_not_new(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.round(answer(machine.now, {"1": MIB}, since=START - 5000))

    result = machine.round(answer(machine.now, {"1": MIB, "2": 900 * MIB}, since=START - 5000))

    assert not result.jobs


def test_a_clock_that_steps_changes_no_rate_and_is_reported(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.round(answer(machine.now, {"1": 0}))
    machine.round(answer(machine.now, {"1": 0}))

    result = machine.round(answer(machine.now - 3600, {"1": 10 * MIB}))

    assert result.jobs[0].write == MIB
    assert any("the clock of fs-OST0000 stepped by -36" in note for note in result.notes)


def test_a_source_that_stops_answering_is_reported_and_its_pause_gives_no_peak(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.round(answer(machine.now, {"1": 0}))
    machine.path.unlink()
    machine.now += 10
    silent = machine.watch.round()

    result = machine.round(answer(machine.now, {"1": 20 * MIB}), seconds=10.0)

    assert silent.counts["answered"] == 0
    assert "no counters since" in silent.notes[0]
    assert result.jobs[0].write == MIB
    assert any("answers again" in note for note in result.notes)


def test_an_appended_file_is_followed_by_whole_lines(tmp_path: Path) -> None:
    path, now = tmp_path / "io", [START]
    record = (
        "_fs_io_s_ _n_ 10.0.0.1 _nn_ n1 _rc_ 0 _t_ {} _tu_ 0 _cl_ c _fs_ f _d_ 1 _br_ 0 _bw_ {} "
    )
    record += "_oc_ 0 _cc_ 0 _rdc_ 0 _wc_ 0 _dir_ 0 _iu_ 0\n"
    watch = LoadWatch([FollowedFile(path)], WatchPlan(), steady=lambda: now[0])
    path.write_text(record.format(1000, 0))
    watch.round()
    with path.open("a") as file:
        file.write(record.format(1100, 100 * MIB) + record.format(1200, 300 * MIB)[:50])
    now[0] += 10

    result = watch.round()
    now[0] += 10
    later = watch.round()

    assert [(row.name, row.write) for row in result.targets] == [("n1 c/f", MIB)]
    assert later.targets == result.targets  # until its next record is overdue


@pytest.mark.parametrize(("command", "shell", "wrong"), [
    ("sleep 60", False, "no answer within 0.2 s"),
    ("sh -c 'echo down >&2; exit 3'", False, "exit code 3: down"),
    ("echo $HOME && true", False, "not counters in a known format"),
    ("no-such-program-here", False, "cannot be run"),
    ("exit 4", True, "exit code 4"),
])  # fmt: skip
def test_commands_that_fail_are_one_note(command: str, shell: bool, wrong: str) -> None:
    watch = LoadWatch([CommandSource(command, shell=shell)], WatchPlan(timeout=0.2))

    begun = time.monotonic()
    result = watch.round()

    assert wrong in result.notes[0]
    assert time.monotonic() - begun < 20


def test_what_is_stored_equals_what_is_ingested(tmp_path: Path) -> None:
    machine = Machine(tmp_path, store=tmp_path / "watched")
    for number in range(11):
        text = answer(machine.now, {"1": 3 * MIB * number, "2": MIB * (number // 2)})
        machine.round(text, seconds=60.0)
        raw = tmp_path / f"raw{number}"
        raw.write_text(text)
        servers.ingest(raw, store=tmp_path / "ingested", time=machine.now)

    watched, ingested = (
        servers.report(tmp_path / name, min_runtime=0.0) for name in ("watched", "ingested")
    )

    assert watched.metrics.table.equals(ingested.metrics.table)
    assert watched.fleet.totals == ingested.fleet.totals
    assert len(list((tmp_path / "watched" / "watched").glob("*.parquet"))) >= 4
    assert machine.watch.moved["write"] == sum(watched.metrics.table["write_bytes"])


def test_a_store_in_use_loses_nothing(tmp_path: Path) -> None:
    from ioprism.servers.store import store_for_writing

    machine = Machine(tmp_path, store=tmp_path / "store")
    machine.round(answer(machine.now, {"1": 0}))
    with store_for_writing(tmp_path / "store"):
        blocked = machine.round(answer(machine.now, {"1": MIB}))
    machine.round(answer(machine.now, {"1": 2 * MIB}))

    assert any("not stored yet" in note for note in blocked.notes)
    assert servers.jobs(tmp_path / "store", min_runtime=0.0).table["write_bytes"].to_list() == [
        2 * MIB
    ]


def test_a_killed_watch_keeps_every_round_before(tmp_path: Path) -> None:
    script = tmp_path / "answer.py"
    script.write_text(
        f"import time\nmoved = int(1000 * (time.time() - {time.time()}))\n"
        "print('obdfilter.fs-OST0000.job_stats=\\njob_stats:\\n- job_id: 1')\n"
        "print(f'  snapshot_time: {time.time():.6f}')\n"
        "print(f'  write_bytes: {{ samples: 1, unit: bytes, min: 1, max: 1, sum: {moved} }}')\n"
    )
    command = f"{sys.executable} -S {script}"
    words = ["--store", str(tmp_path / "store"), "--interval", "0", "--json-lines"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ioprism", "servers", "watch", "--command", command, *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    last = [json.loads(process.stdout.readline()) for _ in range(2)][-1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()

    stored = servers.jobs(tmp_path / "store", min_runtime=0.0).table["write_bytes"][0]

    assert stored >= last["moved"]["write"] > 0


def test_the_page_json_and_metrics_need_the_token(tmp_path: Path) -> None:
    from ioprism.servers.watch_output import LoadServer

    machine = Machine(tmp_path, top=2)
    machine.round(answer(machine.now, dict.fromkeys("abcd", 0)))
    server = LoadServer("127.0.0.1", 0)
    try:
        server.latest = machine.round(answer(machine.now, dict.fromkeys("abcd", 10 * MIB)))
        texts = {
            path: urllib.request.urlopen(f"{server.url}{path}").read().decode()
            for path in ("/", "/load", "/metrics")
        }
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics")
    finally:
        server.close()

    assert "who loads it now" in texts["/"]
    assert json.loads(texts["/load"])["jobs"][0]["write"] == MIB
    job = 'ioprism_servers_job_written_bytes_per_second{job="'
    named = [line for line in texts["/metrics"].splitlines() if line.startswith(job)]
    assert named == [f'{job}a"}} {MIB}', f'{job}b"}} {MIB}', f'{job}other"}} {2 * MIB}']
    assert f"ioprism_servers_written_bytes_total {40 * MIB}" in texts["/metrics"]


def test_the_page_follows_rounds_and_goes_on_after_a_lost_connection(
    browser: Browser, tmp_path: Path
) -> None:
    from ioprism.servers.watch_output import LoadServer

    evil = "<img/src=x/onerror=document.title='owned'>"
    machine = Machine(tmp_path)
    page = browser.new_page()

    def serve(size: int) -> None:
        server.latest = machine.round(answer(machine.now, {evil: 10 * size, "9": size}))

    def says(place: str, words: str) -> None:
        page.wait_for_function(
            "([place, words]) => document.querySelector(place)?.textContent.includes(words)",
            arg=[place, words],
        )

    server = LoadServer("127.0.0.1", 0)
    try:
        page.goto(server.url)
        says("#verdict", "Waiting for the first answers")
        serve(MIB)
        says("#verdict", "rates follow")
        serve(2 * MIB)
        says("#verdict", f"1.10 MiB/s written by 2 jobs on 1 target; most by job {evil}")
        says("#next-step", "connected")
        assert page.inner_text("#tab-panel tbody tr:first-child td:first-child") == evil
        rows = page.evaluate("ioprism.pane.layout.rows.map((row) => row.label)")
        assert rows == ["all bytes", "requests/s", "opens/s", evil, "9"]
        page.context.set_offline(True)
        says("#next-step", "Not connected")
        machine.path.unlink()
        machine.now += 10
        server.latest = machine.watch.round()
        page.context.set_offline(False)
        says("#next-step", "round 3")
        says("#verdict", "No answer from the source")
        says("#warnings", "no counters since")
        assert page.title() == "File system: who loads it now?"
    finally:
        page.close()
        server.close()


def test_the_command_without_a_source_says_what_to_give() -> None:
    result = CliRunner().invoke(main, ["servers", "watch"])

    assert result.exit_code == 2
    assert "--command, --prometheus, --file or --follow" in result.output
