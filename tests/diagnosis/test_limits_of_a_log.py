"""What a log cannot tell is said, and what programs load at their start is no data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.simulated_storage.cases import make, write_case
from ioprism import EVENTS, FILES, MemoryPartition, Trace, Verdict, diagnose, file_table, read


def needs(found: Verdict, code: str) -> list[str]:
    return [missing.needs for missing in found.not_checked if missing.code == code]


def test_targets_that_every_call_touches_cannot_be_compared() -> None:
    whole = make("slow-target-shared", seed=41).run.trace()
    fine = whole.files.with_columns(stripe_size=pl.lit(4096, pl.Int64))

    apart, together = diagnose(whole), diagnose(replace(whole, load_files=lambda: fine))

    assert apart.causes[0].code == "slow-target"
    assert not needs(apart, "slow-target")
    assert "all of these touch the same ones" in needs(together, "slow-target")[0]
    assert all(cause.code != "slow-target" for cause in together.causes)


def test_counters_of_one_shared_file_tell_no_target_from_another(tmp_path: Path) -> None:
    write_case(tmp_path, "case", make("slow-target-shared", seed=41), counters_only=True)

    found = diagnose(read(tmp_path / "case.darshan"))

    assert "all of these touch the same ones" in needs(found, "slow-target")[0]


@pytest.mark.parametrize(
    ("name", "codes"),
    [("/usr/lib/python3/site-packages/m{}.py", []), ("/data/objects/{:05d}", ["metadata"])],
)
def test_opens_of_a_program_are_no_metadata_load(name: str, codes: list[str]) -> None:
    found = diagnose(_looked_up_by_one(name))

    assert [cause.code for cause in found.causes] == codes


def _looked_up_by_one(name: str, *, count: int = 2000, seconds: float = 1e-3) -> Trace:
    """A sound workflow whose first process looks many files up before anything else."""
    whole = make("workflow-healthy", seed=42).run.trace()
    events = whole.events()
    first = np.arange(count) * seconds
    known = whole.files.height
    looked_up = EVENTS.conform(
        pl.DataFrame(
            {
                "start": first, "end": first + 0.95 * seconds, "rank": [0] * count,
                "process": [0] * count, "file": known + np.arange(count), "layer": "posix",
                "operation": "open", "function": "open",
            }
        )
    )  # fmt: skip
    later = events.with_columns(pl.col("start", "end") + count * seconds)
    runtime = (whole.job.runtime or 0.0) + count * seconds
    paths = [*whole.files["path"].to_list(), *(name.format(i) for i in range(count))]
    files = FILES.conform(file_table(paths, []))
    return replace(
        whole, job=replace(whole.job, runtime=runtime), load_files=lambda: files,
        partitions=(MemoryPartition(pl.concat([looked_up, later])),),
    )  # fmt: skip


def test_what_programs_load_is_said_where_it_is_most_of_the_time() -> None:
    found = diagnose(_looked_up_by_one("/usr/lib/python3/site-packages/m{}.py"))
    data = diagnose(_looked_up_by_one("/data/objects/{:05d}"))

    lines, others = ({line.what: line.seconds for line in one.ledger} for one in (found, data))
    assert lines["programs"] > 0
    assert "programs" not in others
    assert sum(lines.values()) == pytest.approx(found.io_stall.seconds)
