"""A trained model predicts larger scales from smaller ones, and says what it learned from."""

from __future__ import annotations

import dataclasses
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ioprism import AnalysisError, MissingPackageError, TraceError
from ioprism.write_time import (
    Sample,
    TrainingSettings,
    WritePattern,
    WriteTimeModel,
    load_model,
    load_system,
)
from ioprism.write_time.estimate import estimate_write
from ioprism.write_time.evaluation import evaluate_samples
from ioprism.write_time.fitting import LinearFit
from ioprism.write_time.model import model_from_dict, model_to_dict
from ioprism.write_time.run_files import read_table
from ioprism.write_time.system import parse_system
from ioprism.write_time.training import train_model
from ioprism.write_time.training_data import LEAKING, sort_samples
from tests.write_time.machines import SCALES, machine_samples, plain_system, titan_samples

TITAN = load_system("titan")
FAST = TrainingSettings(kind="stages")  # where the choice does not matter


@pytest.fixture(scope="module")
def model() -> WriteTimeModel:
    return train_model(titan_samples(), system=TITAN)


def simulated(folder: Path, name: str) -> list[Sample]:
    path = folder / f"write_time/simulated/{name}.csv.gz"
    runs, _ = read_table(gzip.decompress(path.read_bytes()).decode(), path, False)
    times: dict[WritePattern, list[float]] = {}
    for run in runs:
        times.setdefault(run.pattern, []).append(run.seconds)
    return [Sample(pattern, tuple(seconds)) for pattern, seconds in times.items()]


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["cetus", "titan"])
def test_simulated_machines_are_predicted_beyond_the_training_scales(
    shared_data: Path, name: str
) -> None:
    system, samples = load_system(name), simulated(shared_data, name)
    seen = [s for s in samples if s.pattern.nodes <= 128][::3]  # a third is enough, and fast

    found = evaluate_samples(samples, model=train_model(seen, system=system), system=system)

    sets = {s.name: s for s in found.sets}
    for kind, least_20, least_30 in (("small", 0.90, 0.95), ("medium", 0.85, 0.92)):
        assert (sets[kind].within(0.2) or 0) >= least_20
        assert (sets[kind].within(0.3) or 0) >= least_30
        assert (sets[kind].coverage or 0) >= 0.85
        assert (sets[kind].within_beside("lasso")[0] or 0) < (sets[kind].within(0.2) or 0)
    assert (sets["unconverged"].coverage or 0) >= 0.85


def test_larger_scales_are_predicted_from_smaller_ones(model: WriteTimeModel) -> None:
    far = titan_samples((256, 512), each=60, seed=9)

    found = evaluate_samples(far, model=model, system=TITAN)

    for sample_set in found.sets[:2]:
        assert (sample_set.within(0.2) or 0) > 0.95
        assert (sample_set.coverage or 0) > 0.85


def test_samples_beyond_the_limit_are_never_touched() -> None:
    near = titan_samples()
    wild = [dataclasses.replace(s, times=(1e6,) * 3) for s in titan_samples((256,), seed=4)]

    with_wild = train_model(near + wild, system=TITAN, settings=FAST)

    assert model_to_dict(with_wild) == model_to_dict(train_model(near, system=TITAN, settings=FAST))


def test_unconverged_samples_are_left_out_and_counted() -> None:
    odd = [Sample(s.pattern, (10.0, 90.0, 20.0)) for s in titan_samples((4,), each=5, seed=8)]

    found = train_model(titan_samples() + odd, system=TITAN, settings=FAST)

    assert found.facts.unconverged == 5
    assert found.facts.samples + found.facts.too_short == 40 * len(SCALES)


def test_the_default_is_what_predicts_larger_training_scales_best(model: WriteTimeModel) -> None:
    errors = {
        kind: score.forward_error
        for kind, score in model.scores.items()
        if score.forward_error is not None
    }
    assert {"stages", "relative-lasso", "boosting"} <= set(errors)
    assert errors[model.fit.kind] <= 1.05 * min(errors.values())


def test_the_lasso_finds_few_features(model: WriteTimeModel) -> None:
    (fit,) = (f for f in (model.fit, *model.beside) if f.kind == "relative-lasso")
    assert isinstance(fit, LinearFit)
    names = {f.name for f, value in zip(model.features, fit.coefficients, strict=True) if value}
    assert "s_r*m*K" in names
    assert len(names) < 20


def test_the_leaking_rule_is_labelled_and_its_samples_are_not_scored() -> None:
    samples = titan_samples((*SCALES, 256, 512))
    settings = TrainingSettings(validation=LEAKING, kind="lasso")

    found = train_model(samples, system=TITAN, settings=settings)
    scored = evaluate_samples(samples, model=found, system=TITAN)

    assert found.facts.validation == LEAKING
    assert scored.excluded == 16
    assert sum(len(s.measured) for s in scored.sets[:2]) == 80 - 16


def test_a_model_file_gives_the_same_predictions(model: WriteTimeModel) -> None:
    patterns = [s.pattern for s in titan_samples((8, 256), each=3)]

    read = model_from_dict(json.loads(json.dumps(model_to_dict(model))), source="model.json")

    assert read.predict(patterns).tolist() == model.predict(patterns).tolist()
    assert estimate_write(patterns[0], model=read) == estimate_write(patterns[0], model=model)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "x"}, "not a write-time model"),
        ({"version": 99}, "version 99"),
        ({"fit": {}}, "damaged"),
        ({"features": [{"name": "warp"}]}, "damaged"),
        ({"facts": {}}, "damaged"),
    ],
)
def test_a_bad_model_file_is_refused(
    model: WriteTimeModel, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(AnalysisError, match=reason):
        model_from_dict(model_to_dict(model) | change, source="model.json")


def test_runs_of_another_system_are_not_evaluated(model: WriteTimeModel) -> None:
    with pytest.raises(AnalysisError, match="'plain' and the model is of 'titan'"):
        evaluate_samples(titan_samples((4,)), model=model, system=plain_system())


def test_one_scale_is_refused_unless_asked_for() -> None:
    samples = titan_samples((4,))
    with pytest.raises(AnalysisError, match="all 40 samples have 4 node"):
        train_model(samples, system=TITAN)

    found = train_model(
        samples, system=TITAN, settings=TrainingSettings(kind="stages", one_scale=True)
    )

    assert found.facts.scales == ((4, 40),)
    assert not found.calibration.measured_ahead


def test_too_few_samples_are_refused_with_the_reasons() -> None:
    with pytest.raises(AnalysisError, match="only 3 converged samples"):
        train_model(titan_samples((4,), each=3), system=TITAN)


def test_samples_that_do_not_differ_teach_nothing() -> None:
    same = [Sample(WritePattern(4, 2, 10**9, label=str(i)), (9.0, 9.1, 9.0)) for i in range(20)]
    with pytest.raises(AnalysisError, match="every feature is constant"):
        train_model(same, system=plain_system(), settings=TrainingSettings(one_scale=True))


def test_constant_and_copied_features_are_named() -> None:
    text = TITAN.text.replace("count = 172", "count = 1")
    one_router = parse_system(text, source="x")

    found = train_model(titan_samples(), system=one_router, settings=FAST)

    assert "n_r" in found.facts.constant_features
    assert ("n/(m*n*K)", "1/(m*K)") in found.facts.copied_features


def test_boosting_predicts_without_the_package_it_was_trained_with() -> None:
    pytest.importorskip("sklearn")
    samples = titan_samples(each=20)
    found = train_model(samples, system=TITAN, settings=TrainingSettings(kind="boosting"))
    read = model_from_dict(json.loads(json.dumps(model_to_dict(found))), source="m.json")
    measured = np.array([s.seconds for s in samples])

    predicted = read.predict([s.pattern for s in samples])

    assert np.mean(np.abs(predicted / measured - 1) <= 0.2) > 0.95
    assert found.scores["boosting"].within_20 > 0.7


def test_without_scikit_learn_auto_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    samples = titan_samples(each=20)

    found = train_model(samples, system=TITAN)

    assert "boosting" not in found.scores
    assert any("scikit-learn is not installed" in note for note in found.facts.notes)
    with pytest.raises(MissingPackageError, match=r"ioprism\[boosting\]"):
        train_model(samples, system=TITAN, settings=TrainingSettings(kind="boosting"))


@pytest.mark.parametrize(
    ("name", "noise", "drift"), [("cetus", 1.0, 0.0), ("titan", 2.5, 0.0), ("titan", 1.0, 0.1)]
)
def test_intervals_hold_far_out_and_are_narrow_near_the_training_scales(
    name: str, noise: float, drift: float
) -> None:
    scales = (*SCALES, 1024, 2048)
    samples = machine_samples(name, seed=7, scales=scales, each=90, noise=noise, drift=drift)
    system = load_system(name)
    model = train_model(samples, system=system, settings=FAST)

    converged = sort_samples(samples, system).converged
    widths = {}
    for nodes in (64, 1024, 2048):
        patterns = [s.pattern for s in converged if s.pattern.nodes == nodes]
        measured = np.array([s.seconds for s in converged if s.pattern.nodes == nodes])
        low, high = model.intervals(patterns)
        assert np.mean((measured >= low) & (measured <= high)) >= 0.85
        widths[nodes] = float(np.median(high / low))
    assert widths[64] < widths[1024] <= widths[2048]
    assert widths[64] < 1.6


def test_intervals_of_noisy_writes_hold_unconverged_samples() -> None:
    samples = machine_samples("cetus", seed=8, scales=(*SCALES, 256), each=90, noise=3.0)
    system = load_system("cetus")
    model = train_model(samples, system=system, settings=FAST)

    found = {s.name: s for s in evaluate_samples(samples, model=model, system=system).sets}

    assert len(found["unconverged"].measured) > 30
    assert (found["unconverged"].coverage or 0) >= 0.85


def test_the_models_of_the_paper_are_ready_to_be_asked() -> None:
    titan = load_model("titan")
    pattern = WritePattern(64, 16, 10**9, None, 4, tuple(range(64)))

    found = estimate_write(pattern, model=titan)

    read = model_from_dict(json.loads(json.dumps(model_to_dict(titan))), source="m")
    by_hand = 1.7826 + 3.485e-4 * 1000 - 0.010 + 2.91e-4 * 64 * 16_000
    assert by_hand < found.seconds < 1.5 * by_hand
    assert found.leading == ("I/O router",)
    assert estimate_write(pattern, model=read) == found
    with pytest.raises(TraceError, match="no such model"):
        load_model("frontier")


def test_writes_too_short_to_count_tell_what_creating_files_costs() -> None:
    samples = machine_samples("titan", seed=8)
    system = load_system("titan")
    long = [s for s in samples if s.seconds > system.sampling.minimum_seconds]

    with_short = train_model(samples, system=system, settings=FAST)
    without = train_model(long, system=system, settings=FAST)

    assert without.facts.short_used == 0
    assert 0 < with_short.facts.short_used <= with_short.facts.too_short
    assert with_short.facts.samples == without.facts.samples
    assert with_short.stages.bounds[0] < 0.5 * without.stages.bounds[0]
    assert with_short.stages.start == pytest.approx(1.5, rel=0.1)


def test_short_writes_that_a_cache_took_in_are_left_out() -> None:
    system = load_system("titan")
    samples = [
        dataclasses.replace(s, times=tuple(0.1 * t for t in s.times))
        if s.seconds <= system.sampling.minimum_seconds
        else s
        for s in machine_samples("titan", seed=8)
    ]

    found = train_model(samples, system=system, settings=FAST)

    assert found.facts.too_short > 0
    assert found.facts.short_used == 0
