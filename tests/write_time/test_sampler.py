"""A campaign measures every pattern that can be measured, whatever the launcher does meanwhile."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ioprism import RunFailedError
from ioprism.write_time import WritePattern
from ioprism.write_time.campaign.launchers import Measured
from ioprism.write_time.campaign.sampler import Limits, StopRule, sample
from ioprism.write_time.run_store import open_store

SYSTEM = """
name = "cluster"
filesystem = "plain"
nodes = 64
cores_per_node = 4
[sampling]
relative_error = 5.0
minimum_runs = 3
maximum_runs = 3
"""
# Stands in for srun and IOR. Among its first calls for a pattern it refuses, prints rubbish and,
# with 2 nodes, hangs; 64 nodes are always refused.
LAUNCHER = """#!/bin/sh
nodes=$2 tasks=$4 per_node=$6
for word; do
  case $previous in -b) block=$word;; esac
  case $word in summaryFile=*) summary=${word#summaryFile=};; esac
  previous=$word
done
[ "$nodes" = 64 ] && { echo "srun: error: only 8 nodes" >&2; exit 1; }
count=$(dirname "$0")/count.$nodes.$per_node.$block
echo >> "$count"
case $(wc -l < "$count") in
  1) echo "srun: error: node down" >&2; exit 1;;
  3) echo "%!PS rubbish" > "$summary"; exit 0;;
  5) [ "$nodes" = 2 ] && { sleep 60; exit 0; };;
esac
cat > "$summary" <<END
{"tests": [{"Parameters": {"filePerProc": 1, "segmentCount": 1, "blockSize": $block},
  "Options": {"tasks": $tasks, "clients per node": $per_node},
  "Results": [{"access": "write", "totalTime": 7.5}]}]}
END
"""
PATTERNS = [WritePattern(2, 2, 2**20), WritePattern(4, 1, 2**21), WritePattern(64, 4, 2**20)]


def states(store: Path) -> list[str]:
    connection = sqlite3.connect(store)
    try:
        return [state for (state,) in connection.execute("SELECT state FROM run ORDER BY id")]
    finally:
        connection.close()


def test_a_campaign_ends_with_every_possible_pattern_measured(tmp_path: Path) -> None:
    programs, data, store = tmp_path / "bin", tmp_path / "data", tmp_path / "s.db"
    programs.mkdir()
    data.mkdir()
    for name, text in (("srun", LAUNCHER), ("ior", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    with open_store(store, create_for=("cluster", SYSTEM)) as runs:
        runs.add_plan(PATTERNS)
    command = [
        sys.executable, "-m", "ioprism", "write-time", "sample", "run", "--json",
        "--store", str(store), "--directory", str(data), "--launcher", "srun",
        "--timeout", "5", "--pause", "0",  # far more than a good run takes
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while states(store).count("done") < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=True
    )

    done = json.loads(second.stdout)
    with open_store(store) as runs:
        measured = {s.pattern.nodes: s.times for s in runs.samples()}
    assert measured == {2: (7.5,) * 3, 4: (7.5,) * 3}
    assert done["sampling"]["waiting"] == done["sampling"]["left_aside"] == 1
    assert "only 8 nodes" in done["source"]["warnings"][0]
    assert "running" not in states(store)
    assert list(data.iterdir()) == []


class Shaky:
    """Fails on chosen calls."""

    name = "shaky"
    chooses_hosts = False

    def __init__(self, *failing: int) -> None:
        self.calls = 0
        self.failing = failing

    def obstacle(self, pattern: WritePattern) -> str | None:
        del pattern
        return None

    def run(self, pattern: WritePattern, folder: Path, *, timeout: float) -> Measured:
        del pattern, folder
        assert timeout > 0
        self.calls += 1
        if self.calls in self.failing:
            raise RunFailedError("out of order")
        return Measured(2.0, {})


RULE = StopRule(lambda times: len(times) >= 3, lambda times: len(times) >= 3)


def test_failures_are_noted_with_their_reason_and_success_forgives_them(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8)])
        launcher = Shaky(1, 2, 4, 5)

        done = sample(store, rule=RULE, launcher=launcher, folder=tmp_path, limits=Limits(pause=0))

    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        query = "SELECT details FROM run WHERE state = 'discarded'"
        notes = connection.execute(query).fetchall()
    assert (done.runs, done.failed, done.converged) == (3, 4, 1)
    assert [json.loads(text) for (text,) in notes] == 4 * [{"failure": "out of order"}]
    assert not done.worth_another


def test_a_time_limit_leaves_the_rest_to_another_session(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8), WritePattern(1, 2, 8)])

        some = sample(store, rule=RULE, launcher=Shaky(), folder=tmp_path, limits=Limits(runs=1))
        none = sample(
            store, rule=RULE, launcher=Shaky(), folder=tmp_path, limits=Limits(seconds=0.0)
        )

    assert some.worth_another
    assert (none.runs, none.waiting, none.worth_another) == (0, 2, False)


def test_a_pattern_that_does_not_fit_the_disk_is_left_aside(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8), WritePattern(1, 1, 10**15)])

        done = sample(store, rule=RULE, launcher=Shaky(), folder=tmp_path, limits=Limits(pause=0))

    (reason,) = done.given_up
    assert "needs twice its size" in reason
    assert done.converged == 1


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_run_leaves_nothing_behind(
    tmp_path: Path, interrupt: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> Measured:
        raise interrupt

    launcher = Shaky()
    monkeypatch.setattr(launcher, "run", stop)
    data = tmp_path / "data"
    data.mkdir()
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8)])
        with pytest.raises(interrupt):
            sample(store, rule=RULE, launcher=launcher, folder=data)

    assert states(tmp_path / "s.db") == ["discarded"]
    assert list(data.iterdir()) == []
