"""A trained model predicts larger scales from smaller ones, and says what it learned from."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from ioprism.analyses.write_time.estimate import estimate
from ioprism.analyses.write_time.evaluation import evaluate
from ioprism.analyses.write_time.fitting import Fit
from ioprism.analyses.write_time.model import WriteTimeModel
from ioprism.analyses.write_time.model_file import from_dict, to_dict
from ioprism.analyses.write_time.preparation import LEAKING, TrainingSettings
from ioprism.analyses.write_time.system import bundled_system, parse_system
from ioprism.analyses.write_time.training import train
from ioprism.errors import AnalysisError
from ioprism.formats.samples.table import read_table
from ioprism.model.samples import Sample, WritePattern
from tests.analyses.write_time.machines import SCALES, plain_system, titan_samples

TITAN = bundled_system("titan")


@pytest.fixture(scope="module")
def model() -> WriteTimeModel:
    return train(titan_samples(), system=TITAN)


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
    system, samples = bundled_system(name), simulated(shared_data, name)
    seen = [s for s in samples if s.pattern.nodes <= 128]

    found = evaluate(samples, model=train(seen, system=system), system=system)

    sets = {s.name: s for s in found.sets}
    for kind, least_20, least_30 in (("small", 0.90, 0.95), ("medium", 0.85, 0.92)):
        assert (sets[kind].within(0.2) or 0) >= least_20
        assert (sets[kind].within(0.3) or 0) >= least_30
        assert (sets[kind].coverage or 0) >= 0.85
        assert sets[kind].beside["lasso"][0] < (sets[kind].within(0.2) or 0)


def test_larger_scales_are_predicted_from_smaller_ones(model: WriteTimeModel) -> None:
    far = titan_samples((256, 512), each=60, seed=9)

    found = evaluate(far, model=model, system=TITAN)

    for sample_set in found.sets[:2]:
        assert (sample_set.within(0.2) or 0) > 0.95
        assert (sample_set.coverage or 0) > 0.85


def test_samples_beyond_the_limit_are_never_touched() -> None:
    near = titan_samples()
    wild = [dataclasses.replace(s, times=(1e6,) * 3) for s in titan_samples((256,), seed=4)]

    with_wild = train(near + wild, system=TITAN)

    assert to_dict(with_wild) == to_dict(train(near, system=TITAN))


def test_unconverged_samples_are_left_out_and_counted() -> None:
    odd = [Sample(s.pattern, (10.0, 90.0, 20.0)) for s in titan_samples((4,), each=5, seed=8)]

    found = train(titan_samples() + odd, system=TITAN)

    assert found.facts.unconverged == 5
    assert found.facts.samples + found.facts.too_short == 40 * len(SCALES)


def test_the_default_is_the_relative_lasso_with_few_features(model: WriteTimeModel) -> None:
    assert isinstance(model.fit, Fit)
    assert model.fit.kind == "relative-lasso"
    names = {
        f.name for f, value in zip(model.features, model.fit.coefficients, strict=True) if value
    }
    assert "s_r*m*K" in names
    assert len(names) < 20


def test_the_leaking_rule_is_labelled_and_its_samples_are_not_scored() -> None:
    samples = titan_samples((*SCALES, 256, 512))
    settings = TrainingSettings(validation=LEAKING)

    found = train(samples, system=TITAN, settings=settings)
    scored = evaluate(samples, model=found, system=TITAN)

    assert found.facts.validation == LEAKING
    assert scored.excluded == 16
    assert sum(len(s.measured) for s in scored.sets[:2]) == 80 - 16


def test_a_model_file_gives_the_same_predictions(model: WriteTimeModel) -> None:
    patterns = [s.pattern for s in titan_samples((8, 256), each=3)]

    read = from_dict(json.loads(json.dumps(to_dict(model))), source="model.json")

    assert read.predict(patterns).tolist() == model.predict(patterns).tolist()
    assert estimate(patterns[0], model=read) == estimate(patterns[0], model=model)


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
        from_dict(to_dict(model) | change, source="model.json")


def test_runs_of_another_system_are_not_evaluated(model: WriteTimeModel) -> None:
    with pytest.raises(AnalysisError, match="'plain' and the model is of 'titan'"):
        evaluate(titan_samples((4,)), model=model, system=plain_system())


def test_one_scale_is_refused_unless_asked_for() -> None:
    samples = titan_samples((4,))
    with pytest.raises(AnalysisError, match="all 40 samples have 4 node"):
        train(samples, system=TITAN)

    found = train(samples, system=TITAN, settings=TrainingSettings(one_scale=True))

    assert found.facts.scales == ((4, 40),)
    assert not found.calibration.measured_ahead


def test_too_few_samples_are_refused_with_the_reasons() -> None:
    with pytest.raises(AnalysisError, match="only 3 converged samples"):
        train(titan_samples((4,), each=3), system=TITAN)


def test_samples_that_do_not_differ_teach_nothing() -> None:
    same = [Sample(WritePattern(4, 2, 10**9, label=str(i)), (9.0, 9.1, 9.0)) for i in range(20)]
    with pytest.raises(AnalysisError, match="every feature is constant"):
        train(same, system=plain_system(), settings=TrainingSettings(one_scale=True))


def test_constant_and_copied_features_are_named() -> None:
    text = TITAN.text.replace("count = 172", "count = 1")
    one_router = parse_system(text, source="x")

    found = train(titan_samples(), system=one_router)

    assert "n_r" in found.facts.constant_features
    assert ("n/(m*n*K)", "1/(m*K)") in found.facts.copied_features


def test_boosting_predicts_without_the_package_it_was_trained_with() -> None:
    pytest.importorskip("sklearn")
    samples = titan_samples(each=20)
    found = train(samples, system=TITAN, settings=TrainingSettings(kind="boosting"))
    read = from_dict(json.loads(json.dumps(to_dict(found))), source="m.json")
    measured = np.array([s.seconds for s in samples])

    predicted = read.predict([s.pattern for s in samples])

    assert np.mean(np.abs(predicted / measured - 1) <= 0.2) > 0.95
    assert found.scores["boosting"].within_20 > 0.7
