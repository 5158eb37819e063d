"""`ioprism servers` answers with text or one JSON document, and fails with one message."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from benchmarks.simulated_servers import SimulationSettings, simulate, write_simulation
from ioprism.cli import main
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "servers"
SUBCOMMANDS = ("ingest", "jobs", "report", "validate")


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["servers", *map(str, args)])


def answer(*args: object) -> Any:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated machine with faults, its raw files and its store."""
    place = tmp_path_factory.mktemp("machine")
    simulation = simulate(SimulationSettings(servers=15, seed=3, faults=True))
    write_simulation(simulation, place / "raw")
    raw = (place / "raw/counters", place / "raw/jobs.sacct")
    taken = run("ingest", *raw, "--store", place / "store")
    assert taken.exit_code == 0, taken.output
    return place


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    result = run(command, "--help")

    assert result.exit_code == 0
    assert f"Example: ioprism servers {command}" in result.output


def test_ingest_tells_what_it_read_and_what_it_knew(tmp_path: Path) -> None:
    raw = DATA / "A_aligned.counters.csv"

    first = answer("ingest", raw, "--store", tmp_path / "store")
    second = answer("ingest", raw, "--store", tmp_path / "store")

    assert first["files"][0]["records"] == 27
    assert [said["files"][0]["known"] for said in (first, second)] == [False, True]


def test_jobs_print_the_promised_keys(tmp_path: Path) -> None:
    run("ingest", DATA / "A_aligned.counters.csv", "--store", tmp_path / "store")

    said = answer("jobs", "--store", tmp_path / "store", "--jobs", DATA / "A_aligned.jobs.csv",
                  "--min-runtime", 0)  # fmt: skip

    job = said["jobs"][0]
    assert said.keys() >= {"ioprism", "schema", "source", "jobs"}
    assert job.keys() >= {"job", "start", "end", "servers", "coverage", "opens", "closes"}
    assert job["write"]["bytes"] == 12_058_627
    assert job["write"].keys() >= {"operations", "max_bandwidth", "max_operation_rate"}
    block = job["write"]["by_threshold"]["1048576"]
    assert block == {
        "intensity": 0.25,
        "burstiness": pytest.approx(0.537883, abs=1e-6),
        "parallel_intensity": 0.25,
        "has_io": True,
    }


def test_jobs_of_lustre_job_stats_need_no_job_list(tmp_path: Path) -> None:
    simulation = simulate(SimulationSettings(servers=7, days=1.0))
    write_simulation(simulation, tmp_path / "raw", format_name="job_stats")
    run("ingest", tmp_path / "raw/counters", "--store", tmp_path / "store")
    truth = json.loads((tmp_path / "raw/truth.json").read_text())["jobs"]

    alone = answer("jobs", "--store", tmp_path / "store", "--min-runtime", 0)
    listed = answer("jobs", "--store", tmp_path / "store", "--jobs", tmp_path / "raw/jobs.sacct")

    assert {job["job"] for job in alone["jobs"]} <= truth.keys()
    assert len(alone["jobs"]) > 3
    assert not any("shared" in job["flags"] for job in alone["jobs"])
    for job in [*alone["jobs"], *listed["jobs"]]:
        for direction in ("read", "write"):
            assert (job[direction]["bytes"] or 0) <= truth[job["job"]][f"{direction}_bytes"]


def test_the_report_prints_table_two_in_form(machine: Path) -> None:
    said = answer("report", "--store", machine / "store")
    shown = run("report", "--store", machine / "store")

    rows = {(row["measure"], row["threshold"]): row for row in said["eighty_percent"]}
    assert rows.keys() == {
        (measure, threshold)
        for measure in ("intensity", "burstiness", "parallel_intensity")
        for threshold in (0, 131_072, 1_048_576)
    }
    for (measure, threshold), row in rows.items():
        assert all(0 <= row[direction] <= 1 for direction in ("read", "write"))
        if measure == "intensity" and threshold:  # a higher threshold leaves less activity
            assert row["write"] <= rows[measure, 0]["write"]
    assert 0.2 <= said["machine"]["write"]["top_20_share"] <= 1
    assert shown.exit_code == 0
    assert "80 % of jobs stay at or below" in shown.output
    assert "Flagged jobs" in shown.output


def test_the_three_parts_of_the_bytes_add_up_to_the_servers_total(machine: Path) -> None:
    said = answer("report", "--store", machine / "store")

    for direction in ("read", "write"):
        totals = said["machine"][direction]
        parts = [totals[part] for part in ("attributed", "shared", "unattributed")]
        assert sum(parts) == pytest.approx(totals["bytes"])
        of_servers = sum(server[direction]["bytes"] for server in said["servers"])
        assert of_servers == pytest.approx(totals["bytes"])
    assert said["machine"]["attribution"]["jobs"]["exclusive"] == said["machine"]["jobs"]


def test_the_report_answers_what_administrators_ask(machine: Path) -> None:
    said = answer("report", "--store", machine / "store", "--timezone", "Europe/Berlin")

    assert (
        "dominated" in said["machine"]["dominance"]["sentence"]
        or "balanced" in (said["machine"]["dominance"]["sentence"])
    )
    assert [len(day) for day in said["profile"]["write"]] == [24] * 7
    assert said["profile"]["timezone"] == "Europe/Berlin"
    assert {month["month"] for month in said["trend"]["months"]} == {"2026-01"}
    assert 0 <= said["machine"]["write"]["small_requests"]["share"] <= 1
    assert said["interference"] == []  # no two jobs used a server at the same time
    for contact in said["contacts"]:
        assert 0 < contact["hours_at_stake"] <= contact["job_hours"]


def test_a_job_with_nearly_all_counters_has_no_gap(machine: Path) -> None:
    said = answer("jobs", "--store", machine / "store", "--min-runtime", 600)

    nearly = [job for job in said["jobs"] if 0.95 <= job["coverage"] < 1]
    assert len(nearly) > 3
    assert not any("gap" in job["flags"] for job in nearly)


def test_warnings_of_ingest_name_the_file_with_its_folder(tmp_path: Path) -> None:
    raw = tmp_path / "monday" / "counters.csv"
    raw.parent.mkdir()
    raw.write_text((DATA / "A_aligned.counters.csv").read_text() + "broken\n")

    said = answer("ingest", raw, "--store", tmp_path / "store")
    shown = run("ingest", raw, "--store", tmp_path / "store2")

    assert any(warning.startswith(str(raw)) for warning in said["source"]["warnings"])
    assert str(raw) in shown.output.replace("\n", "")


def test_a_benchmark_notes_what_it_moved_and_finds_it_in_the_counters(tmp_path: Path) -> None:
    record, store = tmp_path / "record.json", tmp_path / "store"
    done = answer("validate", "--run", tmp_path / "check", "--record", record, "--bytes", "4MiB",
                  "--phases", 2, "--pause", 0)  # fmt: skip
    assert [phase["bytes"] for phase in done["phases"]] == [4 * 2**20] * 4
    assert not done["compared"]
    assert not list((tmp_path / "check").iterdir())

    noted = json.loads(record.read_text())
    for number, phase in enumerate(noted["phases"]):  # as if there had been pauses
        phase |= {"start": 1e9 + 600 * number, "end": 1e9 + 600 * number + 30}
    record.write_text(json.dumps(noted))
    lines = ["server,t,br,bw,rdc,wc,oc,cc"]
    for step in range(-5, 40):
        moved = [sum(phase["bytes"] for phase in noted["phases"]
                     if phase["direction"] == direction and phase["end"] <= 1e9 + 60 * step)
                 for direction in ("read", "write")]  # fmt: skip
        background = 1000 * (step + 5)
        lines.append(f"ost0,{1e9 + 60 * step},{moved[0] + background},{moved[1]},0,0,0,0")
    raw = tmp_path / "counters.csv"
    raw.write_text("\n".join([*lines, ""]))
    run("ingest", raw, "--store", store)
    compared = answer("validate", "--record", record, "--store", store)

    assert [found["ratio"] for found in compared["findings"]] == pytest.approx([1] * 4, rel=1e-3)
    noted["phases"][0]["bytes"] *= 2
    record.write_text(json.dumps(noted))
    assert run("validate", "--record", record, "--store", store).exit_code == 1
    assert "not the record" in run("validate", "--record", raw, "--store", store).output


FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from ioprism.__main__ import main
sys.argv = ["ioprism", *sys.argv[1:]]
main()
"""


def test_a_disk_without_room_is_one_message_and_the_run_can_be_repeated(
    machine: Path, tmp_path: Path
) -> None:
    arguments = ("servers", "ingest", str(machine / "raw/counters"), "--store", str(tmp_path / "s"))
    full = subprocess.run(
        # Without -B the limit would cut the compiled modules that Python writes.
        [sys.executable, "-B", "-c", FULL_DISK, *arguments],
        capture_output=True,
        text=True,
    )

    assert full.returncode == 1
    assert full.stderr.count("Error: ") == 1
    assert "cannot be written" in full.stderr
    assert "Traceback" not in full.stderr
    assert run(*arguments[1:]).exit_code == 0


@pytest.mark.parametrize("damage", [b"", b"no Parquet", None])
@pytest.mark.parametrize("command", ["jobs", "report"])
def test_a_damaged_table_is_one_message_that_names_it(
    machine: Path, tmp_path: Path, command: str, damage: bytes | None
) -> None:
    store = tmp_path / "store"
    shutil.copytree(machine / "store", store)
    table = max(store.rglob("counters.parquet"))
    table.write_bytes(table.read_bytes()[:1000] if damage is None else damage)

    for more in ((), ("--interval", 120)):
        result = run(command, "--store", store, *more)

        assert result.exit_code == 1
        assert str(table) in result.output.replace("\n", "")
        assert "the store is damaged" in result.output.replace("\n", " ")


def test_the_job_table_can_be_exported(machine: Path, tmp_path: Path) -> None:
    for name in ("jobs.csv", "jobs.parquet"):
        done = run("jobs", "--store", machine / "store", "--export", tmp_path / name)
        assert done.exit_code == 0
        assert f"wrote {tmp_path / name}\n" in done.stderr
    table = pl.read_parquet(tmp_path / "jobs.parquet")

    assert table.height == pl.read_csv(tmp_path / "jobs.csv").height > 10
    again = run("jobs", "--store", machine / "store", "--export", tmp_path / "jobs.csv")
    assert (again.exit_code, "already exists" in again.output) == (1, True)
    wrong = run("jobs", "--store", machine / "store", "--export", tmp_path / "jobs.xls")
    assert wrong.exit_code == 2


def test_options_change_the_method(machine: Path) -> None:
    plain = answer("jobs", "--store", machine / "store")
    method = ("--grid", "native", "--thresholds", "1MiB", "--window", "full", "--reset", "drop")
    native = answer("jobs", "--store", machine / "store", *method, "--interval", 60)

    assert plain["settings"]["interval"] == 120
    assert native["settings"] == {
        "interval": 60, "thresholds": [2**20], "grid": "native", "window": "full",
        "reset": "drop", "shared": "split", "min_runtime": 3600,
    }  # fmt: skip
    assert [job["job"] for job in plain["jobs"]] == [job["job"] for job in native["jobs"]]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ingest", "nothing", "--store", "s"), 1, "no such file or folder"),
        (("ingest", __file__, "--store", "s"), 1, "Hint: `ioprism servers ingest --help` lists"),
        (("jobs", "--store", "nothing"), 1, "not a store of server counters"),
        (("jobs", "--store", "nothing", "--grid", "odd"), 2, "is not one of"),
        (("validate",), 2, "nothing to check"),
        (("ingest", "x", "--store", "s", "--time", "1e300"), 2, "is not a time"),
    ],
)
def test_what_cannot_be_done_is_one_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    result = run(*arguments)

    assert (result.exit_code, message in result.output) == (code, True), result.output
    assert "Traceback" not in result.output


def test_bad_settings_are_one_message(machine: Path, tmp_path: Path) -> None:
    store = ("--store", machine / "store")
    for arguments, code, message in [
        (("jobs", *store, "--thresholds", "many"), 2, "is not a size"),
        (("jobs", *store, "--min-runtime", 1e9), 1, "left out: shorter than"),
        (("jobs", *store, "--jobs", DATA / "A_aligned.counters.csv"), 1, "no reader recognises"),
        (("jobs", *store, "--server-map", DATA / "A_aligned.jobs.csv"), 1, "not a map from nodes"),
        (("report", *store, "--peak-read", "x", "-o", tmp_path / "x.html"), 2, "is not a size"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, message in result.output) == (code, True), result.output


@pytest.mark.parametrize(
    ("heading", "message"),
    [
        ("server,t", "no column of counters (br, bw, rdc, wc, oc, cc)"),
        ("time,server,bw", "the table has no column t."),
        ("job_id,start,servers", "the table has no column end."),
        ("a,b", "no reader recognises this file"),
    ],
)
def test_a_message_names_the_column_that_a_table_lacks(
    heading: str, message: str, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(f"{heading}\n1,2,3\n")
    result = run("ingest", table, "--store", tmp_path / "store")

    assert result.exit_code == 1
    assert message in " ".join(result.output.split())


def test_a_store_without_jobs_asks_for_them(tmp_path: Path) -> None:
    run("ingest", DATA / "A_aligned.counters.csv", "--store", tmp_path / "store")

    result = run("jobs", "--store", tmp_path / "store")

    assert result.exit_code == 1
    assert "--jobs FILE" in result.output
