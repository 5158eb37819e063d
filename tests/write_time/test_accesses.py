"""Shared files and reads are patterns of their own: sampled, imported, learned and asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulated_machines import machine, measure
from ioprism import UsageError, read, write_time
from ioprism.model.samples import ACCESSES, Run
from ioprism.write_time import Sample, WritePattern, load_system
from ioprism.write_time.launchers import BuiltIn, ior_arguments
from ioprism.write_time.loads import parameters, stage_loads
from ioprism.write_time.run_files import read_runs
from ioprism.write_time.run_store import open_store
from ioprism.write_time.training import train_model
from ioprism.write_time.training_data import TrainingSettings
from tests.conftest import TEST_DATA


def test_a_shared_file_lies_on_its_stripes_however_many_processes_write_it() -> None:
    titan = load_system("titan")
    shared = WritePattern(64, 16, 10**8, 10**6, 8, access="shared-write")

    values = {name: float(value[0]) for name, value in parameters([shared], system=titan).items()}

    assert (values["n_ost"], values["n_oss"]) == (8, 8)
    assert values["s_ost"] == pytest.approx(64 * 16 * 100 / 8)
    assert values["w"] == 64 * 16 / 8
    assert stage_loads([shared], system=titan)[0, -1] == values["w"] - 1


def test_a_shared_file_of_gpfs_is_one_file() -> None:
    cetus = load_system("cetus")
    shared = WritePattern(32, 16, 10**8, access="shared-write")

    values = {name: float(value[0]) for name, value in parameters([shared], system=cetus).items()}

    assert (values["n_d"], values["n_nsd"]) == (336, 336)
    assert values["w"] == pytest.approx(32 * 16 / 336)


@pytest.mark.parametrize(("access", "given", "missing"), [
    ("write", ["-F", "-w"], ["-r"]),
    ("shared-write", ["-w"], ["-F", "-r"]),
    ("read", ["-F", "-w", "-r", "-C"], []),
    ("shared-read", ["-w", "-r", "-C"], ["-F"]),
])  # fmt: skip
def test_ior_is_asked_for_the_access(access: str, given: list[str], missing: list[str]) -> None:
    words = ior_arguments(WritePattern(1, 2, 10**6, access=access), Path("/scratch/x"))

    assert all(word in words for word in given)
    assert not any(word in words for word in missing)


@pytest.mark.parametrize("access", ACCESSES)
def test_the_built_in_writer_does_every_access(tmp_path: Path, access: str) -> None:
    measured = BuiltIn().run(WritePattern(1, 1, 300_000, access=access), tmp_path, timeout=60)

    (file,) = tmp_path.iterdir()
    assert measured.seconds > 0
    assert file.stat().st_size == 300_000


def test_ior_results_say_what_was_done(tmp_path: Path) -> None:
    results = [{"access": "write", "totalTime": 2.0}, {"access": "read", "totalTime": 1.5}]
    given = {"filePerProc": 0, "tasksPerNode": 4, "blockSize": 10**6, "segmentCount": 2}
    test = {"Parameters": given, "Options": {"tasks": 8, "clients per node": 4}, "Results": results}
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"tests": [test]}))

    runs = read_runs(path).runs

    assert [(run.pattern.access, run.seconds) for run in runs] == [
        ("shared-write", 2.0),
        ("shared-read", 1.5),
    ]


def test_a_store_keeps_accesses_apart(tmp_path: Path) -> None:
    patterns = [WritePattern(2, 4, 10**8, access=access) for access in ACCESSES]
    runs = [Run(pattern, 1.0 + number) for number, pattern in enumerate(patterns)]
    with open_store(tmp_path / "s.db", create_for=("titan", load_system("titan").text)) as store:
        store.add_runs(runs, origin="here", content=b"1")

    _, samples = write_time.load_samples(tmp_path / "s.db")

    assert [(s.pattern.access, s.times) for s in samples] == [
        (access, (1.0 + number,)) for number, access in enumerate(ACCESSES)
    ]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    which = machine("titan", seed=7)
    scales = (1, 2, 4, 8, 16, 32, 64, 128, 200, 256)
    return [
        sample
        for access in ("write", "shared-write")
        for sample in measure(which, training=30, test=30, scales=scales, access=access)
    ]


def test_a_model_learns_one_access_and_predicts_larger_scales(samples: list[Sample]) -> None:
    titan = load_system("titan")
    settings = TrainingSettings(access="shared-write", kind="stages")

    model = train_model(samples, system=titan, settings=settings)
    usual = train_model(samples, system=titan, settings=TrainingSettings(kind="stages"))

    beyond = [s for s in samples if s.pattern.access == "shared-write" and s.pattern.nodes > 128]
    ratio = model.predict([s.pattern for s in beyond]) / np.array([s.seconds for s in beyond])
    assert np.mean(np.abs(ratio - 1) <= 0.3) > 0.8
    answer = write_time.estimate(model, nodes=256, cores=16, burst=10**9, stripe_count=4)
    assert answer.pattern.access == "shared-write"
    assert usual.facts.access == "write"
    assert any("--access" in note for note in usual.facts.notes)
    with pytest.raises(UsageError, match="this model is of shared-write"):
        write_time.compare(model, read(TEST_DATA / "strace" / "randread_np2.strace"))
