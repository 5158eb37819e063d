"""Without single calls, heat maps tell when phases were slow and who moved more."""

from __future__ import annotations

from pathlib import Path

from benchmarks.simulated_storage.cases import COUNTERS_ONLY, make
from benchmarks.simulated_storage.hardware import Machine, MiB
from benchmarks.simulated_storage.patterns import Builder, session, stripes, transfer
from benchmarks.simulated_storage.simulate import run
from benchmarks.synthetic.darshan_content import FILE_ALIGNMENT, log_content
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import Trace, Verdict, diagnose, read


def of_heat_maps(trace: Trace, folder: Path, *, heat: bool = True) -> Verdict:
    modules = (*COUNTERS_ONLY, "HEATMAP") if heat else COUNTERS_ONLY
    path = folder / "log.darshan"
    content = log_content(trace, file_alignment=FILE_ALIGNMENT, modules=modules)
    write_log(path, content, replace=True)
    return diagnose(read(path))


def test_a_stretch_of_slow_phases_is_interference(tmp_path: Path) -> None:
    case = make("interference", seed=303)
    truth = case.truth

    found = of_heat_maps(case.run.trace(), tmp_path)

    assert found.io_stall.basis == "heatmap"
    cause = found.causes[0]
    assert cause.code == "interference"
    assert abs(cause.culprit["from"] - truth["culprit"]["from"]) < 6  # type: ignore[index]
    assert abs(cause.culprit["to"] - truth["culprit"]["to"]) < 6  # type: ignore[index]
    assert cause.saving.low <= truth["saving"] <= cause.saving.high  # type: ignore[operator]


def test_interference_is_checked_only_where_there_is_a_heat_map(tmp_path: Path) -> None:
    trace = make("healthy", seed=303).run.trace()

    with_map, without = (of_heat_maps(trace, tmp_path, heat=heat) for heat in (True, False))

    assert not with_map.causes
    assert "interference" not in {missing.code for missing in with_map.not_checked}
    assert "interference" in {missing.code for missing in without.not_checked}


def test_ranks_that_write_more_of_a_shared_file_are_named(tmp_path: Path) -> None:
    builder, ranks, heavy = Builder(12), 12, 5
    file = builder.file("/scratch/run/all.dat", stripes(0, 8, 8))
    for step in range(5):
        scripts = {
            rank: session(file, transfer(file, "write", (step * 12 + rank) * 512 * MiB,
                                         (400 if rank == heavy else 40) * MiB, 4 * MiB))
            for rank in range(ranks)
        }  # fmt: skip
        builder.step(scripts, 2.0)

    found = of_heat_maps(run(builder.program(), Machine(), seed=1).trace(), tmp_path)

    assert found.causes[0].code == "data-imbalance"
    assert found.causes[0].culprit == {"ranks": [heavy]}
