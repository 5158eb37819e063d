"""An estimate names its interval, what makes the time, and why to doubt it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.simulated_machines import Simulator, machine
from ioprism import AnalysisError, NotEnoughDetailError, UsageError
from ioprism.write_time import (
    Sample,
    TrainingSettings,
    TuningLimits,
    WritePattern,
    WriteTimeModel,
    load_model,
    load_system,
)
from ioprism.write_time.estimate import compare_phases, estimate_write
from ioprism.write_time.training import train_model
from ioprism.write_time.tuning import checkpoint_advice, rank_alternatives
from tests.write_time.machines import machine_samples, titan_samples

STAGES = TrainingSettings(kind="stages")
INSIDE = WritePattern(64, 8, 10**9, None, 8, tuple(range(64)))


@pytest.fixture(scope="module")
def model() -> WriteTimeModel:
    return train_model(titan_samples(), system=load_system("titan"), settings=STAGES)


def test_the_parts_add_up_to_the_time_and_the_largest_comes_first(model: WriteTimeModel) -> None:
    found = estimate_write(INSIDE, model=model)

    expected = 2 + 4 + 64 * 8 / 3 + 1.0  # the formula the samples were made with
    assert found.seconds == pytest.approx(expected, rel=0.1)
    assert found.low < found.seconds < found.high
    assert found.noisy[0] <= found.low
    assert found.noisy[1] >= found.high
    assert found.stages[0].stage == "I/O router"
    assert found.leading == ("I/O router",)
    assert sum(part.seconds for part in found.stages) == pytest.approx(found.seconds)
    assert all(part.seconds >= 0 for part in found.stages)
    assert found.warnings == ()


def test_stages_that_always_carry_the_same_are_told_as_a_tie() -> None:
    found = estimate_write(
        WritePattern(64, 16, 10**9, node_list=tuple(range(64))), model=load_model("cetus")
    )
    samples = machine_samples("cetus", scales=(1, 2, 4, 8, 16, 32), each=40)
    model = train_model(samples, system=load_system("cetus"), settings=STAGES)

    bridge = estimate_write(WritePattern(64, 16, 10**9, node_list=tuple(range(64))), model=model)

    assert "link" in found.leading
    assert {"bridge node", "link"} <= set(bridge.leading)
    assert next(p for p in bridge.stages if p.stage == "bridge node").same_as == ("link",)


def test_a_stage_that_no_sample_loads_may_lead_far_out(model: WriteTimeModel) -> None:
    near = estimate_write(INSIDE, model=model)
    small = WritePattern(4096, 16, 10**6, None, 1, tuple(range(4096)))

    far = estimate_write(small, model=model)

    assert near.may_lead == ()
    assert "metadata" in {*far.leading, *far.may_lead}


def test_a_stage_leads_where_it_does_on_the_machine_itself() -> None:
    """Clear cases are those in which one stage alone takes half as long again as any other."""
    right = clear = 0
    for name in ("cetus", "titan"):
        which = machine(name, seed=5)
        samples = machine_samples(name, seed=5)
        model = train_model(samples, system=which.system, settings=STAGES)
        simulator = Simulator(which)
        for sample in machine_samples(name, seed=6, scales=(64, 256), each=30):
            times = simulator.stage_seconds(sample.pattern)
            first, second = sorted(times.values(), reverse=True)[:2]
            if first < 1.5 * second or sample.seconds < 5:
                continue
            clear += 1
            right += (
                max(times, key=times.__getitem__)
                in estimate_write(sample.pattern, model=model).leading
            )

    assert clear > 30
    assert right >= 0.9 * clear


def test_intervals_grow_beyond_the_training_scales_and_say_so(model: WriteTimeModel) -> None:
    near = estimate_write(INSIDE, model=model)
    far = estimate_write(WritePattern(1024, 8, 10**9, None, 8, tuple(range(1024))), model=model)

    assert far.high / far.low > near.high / near.low
    assert any("1024 nodes are beyond the 128 of training" in text for text in far.warnings)


def test_values_outside_the_training_are_named(model: WriteTimeModel) -> None:
    found = estimate_write(WritePattern(64, 8, 10**6), model=model)

    assert any("burst size in MB 1 is outside" in text for text in found.warnings)
    assert any("no node list" in text for text in found.warnings)


def test_features_that_moved_together_are_named_when_they_part() -> None:
    def in_a_row(sample: Sample) -> Sample:
        nodes = tuple(range(sample.pattern.nodes))
        pattern = WritePattern(
            sample.pattern.nodes, sample.pattern.cores_per_node, sample.pattern.burst_bytes,
            None, sample.pattern.stripe_count, nodes,
        )  # fmt: skip
        return Sample(pattern, tuple(2 + 3e-10 * pattern.total_bytes * f for f in (1, 1.02, 0.98)))

    samples = [in_a_row(s) for s in titan_samples((1, 2, 4, 8, 16, 32, 64))]
    settings = TrainingSettings(kind="relative-lasso")
    found = train_model(samples, system=load_system("titan"), settings=settings)
    scattered = WritePattern(32, 8, 10**9, None, 8, tuple(range(0, 3200, 100)))

    warnings = estimate_write(scattered, model=found).warnings

    assert found.facts.copied_features or found.together
    assert any("I/O routers in use" in text or "changed together" in text for text in warnings)


def test_impossible_patterns_are_refused(model: WriteTimeModel) -> None:
    with pytest.raises(AnalysisError, match="cores per node"):
        estimate_write(WritePattern(4, 64, 10**9), model=model)


def test_phases_of_a_trace_become_patterns(model: WriteTimeModel) -> None:
    intervals: list[dict[str, Any]] = [
        {"start": 5.0, "end": 25.0, "ranks": 32, "hosts": 4, "bytes": 32 * 10**9},
        {"start": 50.0, "end": 70.0, "ranks": 32, "hosts": None, "bytes": 32 * 10**9},
    ]

    first, second = compare_phases(intervals, model=model, stripe_count=4)

    assert (first.start, first.end, first.duration) == (5.0, 25.0, 20.0)
    assert first.estimate.pattern == WritePattern(4, 8, 10**9, stripe_count=4)
    assert second.estimate.pattern == WritePattern(2, 16, 10**9, stripe_count=4)
    assert first.ratio == pytest.approx(20.0 / first.estimate.seconds)


def test_a_trace_without_write_phases_is_refused(model: WriteTimeModel) -> None:
    with pytest.raises(NotEnoughDetailError, match="writes a separate file"):
        compare_phases([], model=model)


def test_tuning_ranks_configurations_of_the_same_bytes(model: WriteTimeModel) -> None:
    limits = TuningLimits(cores=(1, 8), nodes=(16, 64), stripe_counts=(1, 64))

    now, choices = rank_alternatives(INSIDE, model=model, limits=limits)

    seconds = [choice.estimate.seconds for choice in choices]
    assert seconds == sorted(seconds)
    assert {c.estimate.pattern.total_bytes for c in choices} == {INSIDE.total_bytes}
    assert choices[0].speedup == pytest.approx(now.seconds / seconds[0])
    assert all(c.data_moves == (c.estimate.pattern.files < INSIDE.files) for c in choices)
    assert {c.estimate.pattern.stripe_count for c in choices} >= {1, 8, 64}


def test_tuning_keeps_to_the_burst_a_process_can_hold(model: WriteTimeModel) -> None:
    limits = TuningLimits(cores=(1, 8), nodes=(16, 64), burst_bytes=2 * 10**9)

    _, choices = rank_alternatives(INSIDE, model=model, limits=limits)

    assert max(c.estimate.pattern.burst_bytes for c in choices) == 2 * 10**9


def test_checkpoint_intervals_follow_young_and_daly() -> None:
    advice = checkpoint_advice(60.0, mean_time_between_failures=86400.0, io_share=0.05)

    assert advice.young == pytest.approx(3219.94, abs=0.01)
    assert advice.daly == pytest.approx(3180.06, abs=0.01)
    assert advice.least_interval == pytest.approx(1140.0)
    assert 60 / (60 + 1140) == 0.05


def test_writes_longer_than_failures_are_apart_do_not_break_the_advice() -> None:
    assert checkpoint_advice(100.0, mean_time_between_failures=10.0, io_share=None).daly == 10.0


@pytest.mark.parametrize(("failures", "share"), [(0.0, None), (None, 1.5)])
def test_advice_refuses_what_makes_no_sense(failures: float | None, share: float | None) -> None:
    with pytest.raises(UsageError):
        checkpoint_advice(1.0, mean_time_between_failures=failures, io_share=share)
