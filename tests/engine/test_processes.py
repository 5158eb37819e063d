"""Many inputs are worked on by processes; one that ends its process takes nothing with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ioprism.engine.cluster import FEW, map_in_processes

MANY = 4 * FEW


def doubled(number: int) -> int:
    if number == 5:
        os.abort()
    return 2 * number


def lost(number: int) -> int:
    return -number


def test_results_come_in_order_and_a_crash_is_told_for_its_input_alone() -> None:
    found = list(map_in_processes(doubled, range(MANY), crashed=lost, processes=2))

    assert found == [lost(n) if n == 5 else 2 * n for n in range(MANY)]


def test_few_inputs_need_no_other_process() -> None:
    here = os.getpid()

    assert list(map_in_processes(lambda _: os.getpid(), range(FEW), crashed=lost)) == [here] * FEW


@pytest.mark.usefixtures("without_shared_memory")
def test_a_machine_without_shared_memory_works_in_one_process() -> None:
    here = os.getpid()

    assert set(map_in_processes(process_number, range(MANY), crashed=lost, processes=2)) == {here}


def process_number(_: int) -> int:
    time.sleep(0.01)
    return os.getpid()


ENDLESS = """
from tests.engine.test_processes import lost, process_number
from ioprism.engine.cluster import map_in_processes
if __name__ == "__main__":
    for number in map_in_processes(process_number, range(10_000), crashed=lost, processes=2):
        print(number, flush=True)
"""


def test_processes_end_with_a_run_that_is_killed() -> None:
    root = Path(__file__).parents[2]
    run = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, cwd=root)
    assert run.stdout is not None
    worker = Path("/proc", run.stdout.readline().decode().strip())
    assert worker.exists()

    run.kill()
    run.wait()
    run.stdout.close()

    for _ in range(100):
        if not worker.exists():
            break
        time.sleep(0.05)
    assert not worker.exists()
