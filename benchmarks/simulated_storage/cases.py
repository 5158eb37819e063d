"""Cases with a planted cause, by kind and seed, also as Darshan logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.simulated_storage.dftracer_writer import write_dftracer
from benchmarks.simulated_storage.draw import Draw, draw
from benchmarks.simulated_storage.kinds import (
    collective,
    file_handling,
    mixed,
    requests,
    storage_path,
    workflow,
)
from benchmarks.simulated_storage.scenario import Case, Scenario, play
from benchmarks.synthetic.darshan_content import FILE_ALIGNMENT, log_content
from benchmarks.synthetic.darshan_writer import write_log, write_trace
from ioprism.storage.atomic import atomic_write_text

WORTH = 0.04  # of the run time; what saves less is drawn again
DRAWS = 40

KINDS: Mapping[str, Callable[[Draw], Scenario]] = {
    "healthy": storage_path.healthy,
    "healthy-shared": storage_path.healthy_shared,
    "healthy-collective": collective.healthy_collective,
    "late-rank": mixed.late_rank,
    "late-rank-collective": collective.late_collective,
    "ugly-but-cheap": mixed.ugly_but_cheap,
    "slow-target": storage_path.slow_target,
    "slow-targets": storage_path.slow_targets,
    "slow-target-shared": storage_path.slow_target_shared,
    "second-file-system": storage_path.second_file_system,
    "slow-node": storage_path.slow_node,
    "slow-rank": storage_path.slow_rank,
    "hot-target": storage_path.hot_target,
    "few-targets": storage_path.few_targets,
    "interference": storage_path.interference,
    "data-skew": requests.data_skew,
    "rank-zero": requests.rank_zero,
    "small-requests": requests.small_requests,
    "interleaved-shared": requests.interleaved_shared,
    "misaligned-shared": requests.misaligned_shared,
    "random-reads": requests.random_reads,
    "redundant-reads": requests.redundant_reads,
    "metadata-storm": file_handling.metadata_storm,
    "reopen-each": file_handling.reopen_each,
    "sync-each": file_handling.sync_each,
    "library-start": file_handling.library_start,
    "two-causes": mixed.two_causes,
    "two-causes-node": mixed.slow_node_and_syncs,
    "mixed-slow-target": mixed.many_kinds_of_io,
    "single-aggregator": collective.single_aggregator,
    "unaggregated": collective.unaggregated,
    "read-modify-write": collective.read_modify_write,
}
WORKFLOWS: Mapping[str, Callable[[Draw], Scenario]] = {
    "workflow-healthy": workflow.healthy,
    "workflow-late-task": workflow.late_task,
    "workflow-slow-rank": workflow.slow_rank,
    "workflow-independent-slow-rank": workflow.independent_slow_rank,
    "workflow-metadata": workflow.metadata,
    "workflow-small-requests": workflow.small_requests,
}
COUNTED = (  # kinds that counters alone can show
    "healthy", "ugly-but-cheap", "slow-target", "hot-target", "few-targets", "data-skew",
    "rank-zero", "small-requests", "redundant-reads", "metadata-storm", "reopen-each", "sync-each",
)  # fmt: skip


def make(kind: str, *, seed: int) -> Case:
    """Draw scenarios of a kind until its cause is worth something, and run it."""
    for attempt in range(DRAWS):
        scenario = {**KINDS, **WORKFLOWS}[kind](draw(seed * DRAWS + attempt, kind))
        case = play(scenario, seed=seed)
        if not scenario.causes or _worth(case):
            return case
    return case


def _worth(case: Case) -> bool:
    """Whether each planted cause would be missed."""
    return all(saving >= WORTH * case.run.runtime for saving in case.savings)


COUNTERS_ONLY = ("POSIX", "MPI-IO", "STDIO", "LUSTRE")


def write_case(folder: Path, name: str, case: Case, *, counters_only: bool = False) -> None:
    """Write NAME.darshan and NAME.truth.json."""
    trace = case.run.trace()
    path = folder / f"{name}.darshan"
    if counters_only:
        content = log_content(trace, file_alignment=FILE_ALIGNMENT, modules=COUNTERS_ONLY)
        write_log(path, content)
    else:
        write_trace(path, trace)
    _write_truth(folder, name, case)


def write_workflow(folder: Path, name: str, case: Case) -> None:
    """Write the folder NAME with one DFTracer file per process, and NAME.truth.json."""
    write_dftracer(case.run.trace(), folder / name)
    _write_truth(folder, name, case)


def _write_truth(folder: Path, name: str, case: Case) -> None:
    atomic_write_text(folder / f"{name}.truth.json", json.dumps(case.truth) + "\n")
