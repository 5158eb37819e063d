"""Plug-ins add causes; a site's benchmark, model and servers sharpen the answer; clusters agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from benchmarks.simulated_storage.cases import make, write_case
from benchmarks.simulated_storage.scenario import Case
from benchmarks.synthetic import Burst, Requests, Workload, synthesise
from benchmarks.synthetic.darshan_content import log_content
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import (
    CallGroup,
    Contrast,
    DaskEngine,
    PluginError,
    Trace,
    diagnose,
    read,
    servers,
)
from ioprism.cli import main
from ioprism.diagnosis import steps as verdict
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario
from tests.call_tables import trace_of

MIB = 2**20


@pytest.fixture(scope="module")
def disturbed() -> Case:
    return make("interference", seed=303)


@pytest.fixture(scope="module")
def log(disturbed: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("case")
    write_case(folder, "case", disturbed)
    return folder / "case.darshan"


def answer(*arguments: object) -> Any:
    done = CliRunner().invoke(main, ["diagnose", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def saved(found: Any) -> float:
    return sum(float(cause["saving"]["seconds"]) for cause in found["causes"])


def full_moon(job: Observed) -> Iterator[Proposal]:
    """A cause that a plug-in finds: half of every phase."""
    half = Scenario(0.0 * job.own, floor=job.stall / 2, waiting=0.0 * job.stall)
    yield Proposal(
        "full-moon", {"night": 3}, np.ones(len(job.rows), np.bool_), Change(half, half, half), 0.0,
        Contrast("full-moon", CallGroup(1)), facts={"title": "The moon is full"},
    )  # fmt: skip


def declare(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    declared = EntryPoint("moon", value, verdict.GROUP)
    monkeypatch.setattr(verdict, "declared", lambda group: [declared] * (group == verdict.GROUP))


def test_a_plug_in_adds_a_cause_with_its_own_title(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, f"{__name__}:full_moon")

    found = verdict.diagnose(make("healthy", seed=303).run.trace())

    (cause,) = found.causes
    assert (cause.code, cause.title) == ("full-moon", "The moon is full")
    assert cause.saving.seconds == pytest.approx(found.io_stall.seconds / 2)
    assert sum(line.seconds for line in found.ledger) == pytest.approx(found.io_stall.seconds)


def test_a_plug_in_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, "no_such_package:find")

    with pytest.raises(PluginError, match=r"'moon' \(ioprism.causes\) of no_such_package"):
        verdict.diagnose(make("healthy", seed=303).run.trace())


def test_a_benchmark_of_the_system_limits_what_can_be_saved(log: Path, tmp_path: Path) -> None:
    alone = answer(log)
    slow = alone["io_stall"]["seconds"] - saved(alone) / 2
    result, rate = tmp_path / "ior.txt", _bytes_moved(log) / slow / MIB
    result.write_text(
        f"tasks : 8\nMax Write: {rate:.4f} MiB/sec (1 MB/sec)\n"
        f"Max Read:  {rate:.4f} MiB/sec (1 MB/sec)\n"
    )

    limited = answer(log, "--ceiling", result)

    assert saved(limited) == pytest.approx(saved(alone) / 2, rel=0.02)
    assert sum(line["seconds"] for line in limited["ledger"]) == pytest.approx(
        limited["io_stall"]["seconds"]
    )


def _bytes_moved(log: Path) -> int:
    done = CliRunner().invoke(main, ["characterise", str(log), "--json"])
    operations = json.loads(done.output)["by_operation"]
    return sum(int(operations[name]["bytes"]) for name in ("read", "write"))


def test_a_write_time_model_limits_what_can_be_saved(log: Path) -> None:
    alone, limited = answer(log), answer(log, "--model", "cetus")

    assert saved(limited) < saved(alone)
    assert limited["io_stall"] == alone["io_stall"]


@pytest.mark.parametrize(("factor", "kept"), [(8.0, True), (0.1, False)])
def test_the_servers_counters_confirm_interference_or_take_it_back(
    log: Path, disturbed: Case, tmp_path: Path, factor: float, kept: bool
) -> None:
    store = _server_store(disturbed, tmp_path, factor)

    (alone, judged) = answer(log), answer(log, "--servers", store)

    assert alone["causes"][0]["code"] == "interference"
    codes = [cause["code"] for cause in judged["causes"]]
    assert ("interference" in codes) is kept
    if kept:
        assert judged["causes"][0]["confidence"] >= 0.97
    else:
        assert any(line["what"] == "unexplained" for line in judged["ledger"])


def _server_store(case: Case, folder: Path, factor: float) -> Path:
    """Counters of one server, every second: its rate is so many times higher in the window."""
    job, culprit = case.run.trace().job, case.truth["culprit"]
    start = int(job.start_time or 0)
    times = np.arange(-60, int(case.run.runtime) + 60)
    inside = (times >= culprit["from"]) & (times < culprit["to"])  # type: ignore[index]
    total = np.cumsum(np.where(inside, factor, 1.0) * 1e8).astype(int)
    lines = [f"ion0,{start + t},0,{n},0,0,0,0" for t, n in zip(times, total, strict=True)]
    source = folder / "ion0.csv"
    source.write_text("\n".join(["server,t,br,bw,rdc,wc,oc,cc", *lines]) + "\n")
    servers.ingest(source, store=folder / "store")
    return folder / "store"


def test_workers_of_a_cluster_give_the_same_answer() -> None:
    distributed = pytest.importorskip("distributed")
    case = make("slow-target", seed=2)
    whole = case.run.trace()
    trace = _in_parts(whole)
    local = verdict.diagnose(trace)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit="1GB"
    ) as cluster:
        spread = verdict.diagnose(trace, engine=DaskEngine(cluster.scheduler_address))

    assert len(trace.partitions) > 1
    assert local.causes[0].code == "slow-target"
    assert spread.to_dict() == local.to_dict()


def _in_parts(whole: Trace) -> Trace:
    events = whole.events().sort("start", maintain_order=True)
    parts = trace_of(*events.iter_slices(-(-events.height // 3)))
    return replace(whole, partitions=parts.partitions)


@pytest.mark.corpus
def test_the_command_and_the_library_agree_on_logs_of_counters_alone(shared_data: Path) -> None:
    compared = 0
    for log in sorted((shared_data / "darshan").rglob("*.darshan")):
        trace = read(log)
        if trace.partitions:
            continue
        whole, printed = diagnose(trace).to_dict(), answer(log)
        assert {key: printed[key] for key in whole} == json.loads(json.dumps(whole)), log
        compared += 1

    assert compared > 60


def test_counters_of_mpi_io_alone_say_how_long_and_what_is_missing(tmp_path: Path) -> None:
    burst = Burst(
        "/scratch/out", "write", Requests(count=500, size=4096),
        start=1.0, length=3.0, period=5.0, repetitions=6, layer="mpiio",
    )  # fmt: skip
    made = synthesise(Workload(ranks=8, bursts=(burst,), seed=1))
    path = tmp_path / "alone.darshan"
    write_log(path, log_content(made.trace, file_alignment=4096, modules=["MPI-IO"]))

    found = answer(path)

    assert found["io_stall"]["basis"] == "counters"
    calls = made.trace.events().filter(pl.col("layer") == "mpiio")
    spent = calls.group_by("rank").agg((pl.col("end") - pl.col("start")).sum())
    assert found["io_stall"]["seconds"] == pytest.approx(spent["end"].max(), rel=0.01)
    assert found["causes"] == []
    (needs,) = {n["needs"] for n in found["not_checked"] if n["code"] == "small-requests"}
    assert "POSIX" in needs
