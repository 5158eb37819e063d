"""Plans follow the templates; a session measures every pattern that can run, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ioprism import RunFailedError, UsageError
from ioprism.write_time import PlanSettings, WritePattern, load_system
from ioprism.write_time.launchers import BuiltIn, Measured
from ioprism.write_time.run_store import open_store
from ioprism.write_time.sampling import SessionLimits, draw_patterns, plan_cost, run_session
from ioprism.write_time.system import SamplingRule
from tests.write_time.machines import plain_system

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


def test_cetus_has_five_core_counts_for_every_burst_range() -> None:
    patterns = draw_patterns(load_system("cetus"))

    assert {p.cores_per_node for p in patterns} == {1, 2, 4, 8, 16}
    assert len([p for p in patterns if p.nodes == 8]) == 10 * 5
    assert len([p for p in patterns if p.nodes == 256]) == 7 * 5
    assert max(p.burst_bytes for p in patterns if p.nodes > 128) <= 2560 * 10**6


def test_titan_also_varies_the_stripe_count() -> None:
    patterns = [p for p in draw_patterns(load_system("titan")) if p.nodes == 4]

    assert len(patterns) == (7 * 8 + 3 * 4) * 5
    stripes = {p.stripe_count or 0 for p in patterns}
    assert min(stripes) <= 4
    assert 33 <= max(stripes) <= 64


def test_placements_are_both_in_a_row_and_scattered() -> None:
    lists = [p.node_list for p in draw_patterns(load_system("cetus")) if p.nodes == 32]

    spans = [nodes[-1] - nodes[0] + 1 for nodes in lists if nodes]
    assert min(spans) == 32
    assert max(spans) > 64


def test_limits_are_kept() -> None:
    settings = PlanSettings(scales=(1, 2), largest_burst=30 * 10**6, most_bytes=10**8)

    patterns = draw_patterns(plain_system(), settings)

    assert max(p.burst_bytes for p in patterns) <= 30 * 10**6
    assert max(p.total_bytes for p in patterns) <= 10**8


def test_the_same_seed_gives_the_same_plan() -> None:
    system = load_system("titan")
    assert draw_patterns(system) == draw_patterns(system)
    assert draw_patterns(system) != draw_patterns(system, PlanSettings(seed=2))


def test_a_plan_that_allows_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to sample"):
        draw_patterns(plain_system(), PlanSettings(scales=(5000,)))


def test_the_cost_spans_three_to_nine_runs() -> None:
    system = plain_system()
    patterns = draw_patterns(system, PlanSettings(scales=(2,)))

    found = plan_cost(patterns, system, rate=1e9)

    total = sum(p.total_bytes for p in patterns)
    assert (found.fewest_bytes, found.most_bytes) == (3 * total, 9 * total)
    assert found.most_seconds == pytest.approx(9 * total / 2 / 1e9)
    assert found.node_hours == pytest.approx(2 * found.most_seconds / 3600)


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


@dataclass(frozen=True)
class Shaky(BuiltIn):
    """Fails on chosen calls."""

    failing: tuple[int, ...] = ()
    calls: list[WritePattern] = field(default_factory=list)

    def obstacle(self, pattern: WritePattern) -> str | None:
        del pattern
        return None

    def run(self, pattern: WritePattern, folder: Path, *, timeout: float) -> Measured:
        del folder
        assert timeout > 0
        self.calls.append(pattern)
        if len(self.calls) in self.failing:
            raise RunFailedError("out of order")
        return Measured(2.0, {})


RULE = SamplingRule(relative_error=5.0, minimum_runs=3, maximum_runs=3)


def test_failures_are_noted_with_their_reason_and_success_forgives_them(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8)])
        launcher = Shaky(failing=(1, 2, 4, 5))

        done = run_session(
            store, rule=RULE, launcher=launcher, folder=tmp_path, limits=SessionLimits(pause=0)
        )

    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        query = "SELECT details FROM run WHERE state = 'discarded'"
        notes = connection.execute(query).fetchall()
    assert (done.runs, done.failed, done.converged) == (3, 4, 1)
    assert [json.loads(text) for (text,) in notes] == 4 * [{"failure": "out of order"}]
    assert not done.worth_another


def test_a_time_limit_leaves_the_rest_to_another_session(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8), WritePattern(1, 2, 8)])

        some = run_session(
            store, rule=RULE, launcher=Shaky(), folder=tmp_path, limits=SessionLimits(runs=1)
        )
        none = run_session(
            store, rule=RULE, launcher=Shaky(), folder=tmp_path, limits=SessionLimits(seconds=0.0)
        )

    assert some.worth_another
    assert (none.runs, none.waiting, none.worth_another) == (0, 2, False)


def test_a_pattern_that_does_not_fit_the_disk_is_left_aside(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8), WritePattern(1, 1, 10**15)])

        done = run_session(
            store, rule=RULE, launcher=Shaky(), folder=tmp_path, limits=SessionLimits(pause=0)
        )

    (reason,) = done.given_up
    assert "needs twice its size" in reason
    assert done.converged == 1


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_run_leaves_nothing_behind(
    tmp_path: Path, interrupt: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> Measured:
        raise interrupt

    monkeypatch.setattr(Shaky, "run", stop)
    data = tmp_path / "data"
    data.mkdir()
    with open_store(tmp_path / "s.db", create_for=("x", "y")) as store:
        store.add_plan([WritePattern(1, 1, 8)])
        with pytest.raises(interrupt):
            run_session(store, rule=RULE, launcher=Shaky(), folder=data)

    assert states(tmp_path / "s.db") == ["discarded"]
    assert list(data.iterdir()) == []
