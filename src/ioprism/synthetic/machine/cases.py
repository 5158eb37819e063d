"""Cases with a planted cause, by kind and seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ioprism.synthetic.machine import kinds_collective, kinds_program, kinds_storage
from ioprism.synthetic.machine.scenario import Case, Draw, Scenario, draw, play

WORTH = 0.04  # of the run time; what saves less is drawn again
DRAWS = 40

KINDS: Mapping[str, Callable[[Draw], Scenario]] = {
    "healthy": kinds_storage.healthy,
    "healthy-shared": kinds_storage.healthy_shared,
    "healthy-collective": kinds_collective.healthy_collective,
    "late-rank": kinds_program.late_rank,
    "ugly-but-cheap": kinds_program.ugly_but_cheap,
    "slow-target": kinds_storage.slow_target,
    "slow-targets": kinds_storage.slow_targets,
    "slow-target-shared": kinds_storage.slow_target_shared,
    "second-file-system": kinds_storage.second_file_system,
    "slow-node": kinds_storage.slow_node,
    "slow-rank": kinds_storage.slow_rank,
    "hot-target": kinds_storage.hot_target,
    "few-targets": kinds_storage.few_targets,
    "interference": kinds_storage.interference,
    "data-skew": kinds_program.data_skew,
    "rank-zero": kinds_program.rank_zero,
    "small-requests": kinds_program.small_requests,
    "interleaved-shared": kinds_program.interleaved_shared,
    "misaligned-shared": kinds_program.misaligned_shared,
    "random-reads": kinds_program.random_reads,
    "redundant-reads": kinds_program.redundant_reads,
    "metadata-storm": kinds_program.metadata_storm,
    "reopen-each": kinds_program.reopen_each,
    "sync-each": kinds_program.sync_each,
    "library-start": kinds_program.library_start,
    "two-causes": kinds_program.two_causes,
    "single-aggregator": kinds_collective.single_aggregator,
    "unaggregated": kinds_collective.unaggregated,
    "read-modify-write": kinds_collective.read_modify_write,
}
COUNTED = (  # kinds that counters alone can show
    "healthy", "ugly-but-cheap", "slow-target", "hot-target", "few-targets", "data-skew",
    "rank-zero", "small-requests", "redundant-reads", "metadata-storm", "reopen-each", "sync-each",
)  # fmt: skip


def make(kind: str, *, seed: int) -> Case:
    """Draw scenarios of a kind until its cause is worth something, and run it."""
    for attempt in range(DRAWS):
        scenario = KINDS[kind](draw(seed * DRAWS + attempt, kind))
        case = play(scenario, seed=seed)
        if not scenario.causes or _worth(case):
            return case
    return case


def _worth(case: Case) -> bool:
    """Whether each planted cause would be missed."""
    truth = case.truth
    savings = truth.get("savings") or {"all": truth["saving"]}
    assert isinstance(savings, dict)
    return all(saving >= WORTH * case.run.runtime for saving in savings.values())
