"""Resets, unmounts, gaps, jumping clocks and hostile input are noticed and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ioprism import IoprismError, NotEnoughDetailError, servers
from ioprism.model.counters import FILE_SYSTEM, NODE_TOTAL, SECOND
from ioprism.servers import COUNTERS, JOBS, ReadingOptions, Tally
from ioprism.servers.raw_files import counter_readers, job_readers
from ioprism.servers.series import sampling_interval_us
from tests.servers.sources import measured, one_job, samples

MEBI = 2**20
WORDS = st.sampled_from(
    [b"_io_s_", b"_fs_io_s_", b"_n_", b"_nn_", b"_t_", b"_tu_", b"_br_", b"0", b"-1", b"9" * 30,
     b"1e999", b"nan", b" ", b"  ", b"\n", b"\r\n", b",", b"|", b";", b'"', b"'", b"=", b":", b"{",
     b"}", b"[", b"]", b"\x00", b"\xff\xfe", b"server,t,br,bw", b"job_id,start,end,servers",
     b"JobIDRaw|NodeList|Start|End", b"obdfilter.fs-OST0000.stats=", b"job_stats:", b"- job_id: ",
     b"snapshot_time 1 secs", b"write_bytes 1 samples [bytes] 1 2 3", b"lustre_read_bytes_total{",
     b'target="x"}', b"04/05/2017 13:06:53;E;45;", b"start=1", b"exec_host=a/0+b/1", b"node[1-5]",
     b"mmpmon node 1 name n io_s OK", b"timestamp: 1/2", b"bytes read: 5"]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=60).map(b"".join) | st.lists(WORDS, max_size=60).map(b" ".join)
OPTIONS = ReadingOptions(time_us=0)


def only(table: pl.DataFrame, jobs: pl.DataFrame, **settings: Any) -> dict[str, object]:
    return measured(table, jobs, **settings).row(0, named=True)


def steady(server: str, *, steps: int = 10, growth: int = MEBI, **facts: object) -> pl.DataFrame:
    return samples(server, {120.0 * n: n * growth for n in range(steps)}, **facts)  # type: ignore[arg-type]


def test_an_unmount_is_no_traffic_but_a_restart_is() -> None:
    values = {0.0: 10 * MEBI, 120.0: 11 * MEBI, 240.0: 4 * MEBI, 360.0: 5 * MEBI}
    job = one_job(0, 360, "ion0")

    node = only(samples("ion0", values, source=NODE_TOTAL), job)
    system = only(samples("ion0", values, source=FILE_SYSTEM), job)

    assert (node["write_bytes"], system["write_bytes"]) == (2 * MEBI, 6 * MEBI)
    assert node["reset"] and system["reset"]
    assert node["coverage"] == pytest.approx(2 / 3)


def test_a_new_start_time_is_a_reset_even_if_counters_grew() -> None:
    before = samples("ost", {0.0: MEBI, 120.0: 2 * MEBI}, since=-50.0)
    after = samples("ost", {240.0: 3 * MEBI, 360.0: 4 * MEBI}, since=130.0)

    found = only(pl.concat([before, after]), one_job(0, 360, "ost"))

    assert found["write_bytes"] == 5 * MEBI
    assert found["reset"]


def test_a_sample_out_of_order_is_no_reset() -> None:
    amounts = {0.0: 100, 120.0: 101, 180.0: 99, 240.0: 102, 360.0: 103}
    values = {time: amount * MEBI for time, amount in amounts.items()}

    found = only(samples("ion0", values), one_job(0, 360, "ion0"))

    assert found["write_bytes"] == 3 * MEBI
    assert not found["reset"]


def test_lost_samples_are_flagged_and_lower_the_coverage() -> None:
    table = steady("ion0").filter(~pl.col("time_us").is_in([360 * SECOND, 480 * SECOND]))

    found = only(table, one_job(0, 960, "ion0"))

    assert found["gap"]
    assert found["coverage"] == pytest.approx(600 / 960)
    assert found["write_bytes"] == 8 * MEBI
    assert found["unknown"] == pytest.approx(360.0)
    assert found["write_intensity_0"] == 1.0


def test_windows_that_nobody_measured_do_not_count() -> None:
    values = {0.0: 0, 120.0: MEBI, 240.0: 2 * MEBI, 600.0: 2 * MEBI, 720.0: 2 * MEBI}

    found = only(samples("ion0", values), one_job(0, 720, "ion0"))

    assert found["write_intensity_0"] == pytest.approx(2 / 3)


def test_a_pause_of_more_than_a_day_belongs_to_no_job() -> None:
    values = {0.0: 0, 120.0: MEBI, 200_000.0: 500 * MEBI, 200_120.0: 501 * MEBI}

    found = only(samples("ion0", values), one_job(0, 200_120, "ion0"))

    assert found["write_bytes"] == 2 * MEBI
    assert found["gap"]


def test_several_file_systems_of_a_node_are_one_server() -> None:
    names = ("c/home", "c/scratch")
    home, scratch = (steady("ion0", part=name, source=FILE_SYSTEM) for name in names)
    total = steady("ion0", growth=5 * MEBI, source=NODE_TOTAL)
    late = scratch.with_columns(pl.col("time_us") + 30 * SECOND)

    found = only(pl.concat([home, late, total]), one_job(120, 960, "ion0"))

    assert found["servers"] == 1
    assert found["write_bytes"] == pytest.approx(14 * MEBI)
    assert found["coverage"] == 1.0


def test_servers_without_counters_are_told() -> None:
    found = only(steady("ion0"), one_job(0, 960, "ion0", "ion1"))

    assert found["missing"]
    assert found["coverage"] == pytest.approx(0.5)
    assert found["write_parallel_intensity_0"] == 0.0


def test_bytes_that_may_belong_to_a_neighbour_are_told() -> None:
    found = only(steady("ion0"), one_job(60, 900, "ion0"))

    assert found["write_boundary_bytes"] == 2 * MEBI
    assert found["write_bytes"] == 7 * MEBI


def test_jobs_at_the_same_time_on_a_server_are_shared() -> None:
    jobs = pl.concat(
        [
            one_job(0, 500, "ion0", "ion1", job="a"),
            one_job(500, 900, "ion0", job="after a"),
            one_job(100, 200, "ion1", job="inside a"),
            one_job(100, 200, "ion2", job="elsewhere"),
        ]
    )

    table = pl.concat([steady("ion0"), steady("ion1"), steady("ion2")])
    found = {row["job"]: row for row in measured(table, jobs).iter_rows(named=True)}

    assert {job: row["shared"] for job, row in found.items()} == {
        "a": True, "inside a": True, "after a": False, "elsewhere": False,
    }  # fmt: skip
    assert found["a"]["attribution"] == "split"
    assert found["elsewhere"]["attribution"] == "exclusive"


def test_counters_of_a_job_itself_are_not_disturbed_by_others() -> None:
    one = samples("ost0", {240.0: 3 * MEBI, 360.0: 5 * MEBI}, job="1", since=200.0)
    elsewhere = samples("ost1", {360.0: MEBI}, job="1:1000:node7", since=250.0)
    other = samples("ost0", {240.0: 900 * MEBI, 360.0: 990 * MEBI}, job="2", since=10.0)
    jobs = pl.concat([one_job(0, 480, job="1"), one_job(0, 480, job="2")])

    found = measured(pl.concat([one, elsewhere, other]), jobs)

    assert found["write_bytes"].to_list() == [6 * MEBI, 990 * MEBI]
    assert found["servers"].to_list() == [2, 2]
    assert not found["shared"].any()
    assert found["coverage"].to_list() == [None, None]


def test_short_jobs_and_jobs_without_servers_are_left_out_with_a_reason() -> None:
    with pytest.raises(NotEnoughDetailError, match="1 job left out: shorter than"):
        measured(steady("ion0"), one_job(0, 960, "ion0"), min_runtime=3600.0)
    with pytest.raises(NotEnoughDetailError, match="left out: no server named"):
        measured(steady("ion0"), one_job(0, 960))


def test_an_implausibly_long_job_is_left_out_before_memory_is_taken() -> None:
    with pytest.raises(NotEnoughDetailError, match="implausibly long run time"):
        measured(steady("ion0"), one_job(0, 7e9, "ion0"), interval=1.0)


def test_a_job_shorter_than_an_interval_has_no_burstiness() -> None:
    found = only(steady("ion0"), one_job(10, 70, "ion0"))

    assert found["write_intensity_0"] == 1.0
    assert found["write_burstiness_0"] is None


def test_huge_counters_lose_no_byte() -> None:
    found = only(samples("ion0", {120.0 * n: 2**62 + n for n in range(9)}), one_job(0, 960, "ion0"))

    assert found["write_bytes"] == 8


def test_the_interval_is_read_off_jittering_samples() -> None:
    table = samples("ion0", {119.93 * n: n for n in range(20) if n != 7})

    assert sampling_interval_us([table]) == 120 * SECOND
    with pytest.raises(NotEnoughDetailError, match="at least two samples"):
        sampling_interval_us([])


def test_the_answer_does_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.concat([steady("ion0", steps=400), steady("ion1", steps=400, growth=3)])
    starts = range(0, 38_000, 950)
    jobs = pl.concat([one_job(at, at + 900, "ion0", "ion1", job=f"{at}") for at in starts])

    for grid in ("job", "native"):
        whole = measured(table, jobs, grid=grid)
        with monkeypatch.context() as patch:
            patch.setattr("ioprism.servers.job_metrics.ROWS_IN_MEMORY", 50)
            assert measured(table, jobs, grid=grid).equals(whole)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TEXTS)
@example(b"")
@example(b"\n")
@example(b"\n\n_io_s_ _n_ 1\n")
@example(b"server,t,br\n")
@example(b"server,t,br,br\nion0,1,2,3\n")
@example(b'server,t,br\n"ion0,1,2\n')
def test_no_text_is_fatal(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "raw"
    path.write_bytes(text)

    for reader in counter_readers():
        if not reader.recognises(path):
            continue
        try:
            for table in reader.read(path, OPTIONS, Tally()):
                assert table.schema == COUNTERS.schema
        except IoprismError:
            continue
    for job_reader in job_readers():
        if job_reader.recognises(path):
            assert job_reader.read(path, OPTIONS, Tally()).schema == JOBS.schema


@pytest.mark.parametrize(
    "content", [b"SQLite format 3\x00", b"\x1f\x8b", b"\x1f\x8b\x08\x00garbage"]
)
def test_beginnings_of_other_formats_are_not_mistaken(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "raw"
    path.write_bytes(content)

    assert not any(reader.recognises(path) for reader in counter_readers())
    assert not any(reader.recognises(path) for reader in job_readers())


@pytest.mark.parametrize(("count", "named"), [(3, "(ion0, ion1, ion2)"), (4, "ion2 …)")])
def test_clocks_that_run_backwards_are_said_with_names(
    tmp_path: Path, count: int, named: str
) -> None:
    raw = tmp_path / "raw.csv"
    rows = [f"ion{s},{t},1,1,1,1,1,1" for s in range(count) for t in (240, 120)]
    raw.write_text("\n".join(["server,t,br,bw,rdc,wc,oc,cc", *rows, ""]))
    (outcome,) = servers.ingest(raw, store=tmp_path / "store")

    (said,) = [text for text in outcome.warnings if "backwards" in text]
    assert said.startswith(f"time goes backwards in the records of {count} servers")
    assert said.endswith(named)


@pytest.mark.parametrize(
    "heading", ["server,t,br", "#Time,Time_usec,ProducerName,read_bytes#llite.a"]
)
def test_short_rows_below_a_long_heading_are_not_filled_up(tmp_path: Path, heading: str) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(f"{heading}{',x' * 20_000}\n" + "a\n" * 100_000)
    (outcome,) = servers.ingest(path, store=tmp_path / "store")

    assert "100000 × damaged line" in " ".join(outcome.warnings)
