"""`ioprism insights`, `phases` and `rules`: one job or many, as text or JSON, with exit codes."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import ioprism
from ioprism import Thresholds
from ioprism.cli import main
from tests.conftest import TEST_DATA
from tests.formats.darshan.repacking import repack

DATA = TEST_DATA / "darshan"
STRAGGLER = DATA / "g_straggler_rank2.darshan"
RANK_0 = DATA / "c_rank0_all_io.darshan"
KEYS = {
    "code", "level", "interface", "title", "subject", "evidence", "threshold", "details",
    "recommendations", "seconds_at_stake", "aliases",
}  # fmt: skip


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def said(*args: object) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_findings_have_the_promised_keys() -> None:
    findings = said("insights", STRAGGLER)["findings"]

    assert findings
    assert all(finding.keys() >= KEYS for finding in findings)
    slow = next(f for f in findings if f["code"] == "stragglers")
    assert slow["level"] == "high"
    assert slow["subject"] == {"kind": "rank", "name": "2"}


def test_a_person_reads_the_same_with_advice() -> None:
    result = run("insights", STRAGGLER)

    assert result.exit_code == 0
    assert "HIGH The slowest rank spends 11.4 s in I/O" in result.output
    assert "[stragglers]" in result.output
    assert "→" in result.output
    assert "needs counters of the file-system servers" in " ".join(result.output.split())


def counted(folder: Path, rates: list[int]) -> Path:
    """A store with what two servers move, in MiB/s, before, while and after the straggler runs."""
    job = ioprism.read(STRAGGLER).job
    assert job.start_time is not None
    assert job.end_time is not None
    borders = [job.start_time - 900, job.start_time - 60, job.end_time + 60, job.end_time + 900]
    lines, total = ["server,t,br,bw,rdc,wc,oc,cc"], 0
    for time in range(int(borders[0]), int(borders[-1]), 5):
        stage = sum(time >= border for border in borders[1:3])
        total += rates[stage] * 5 * 2**20
        lines += [f"{server},{time},0,{total // 2},0,0,0,0" for server in ("s1", "s2")]
    raw = folder / "counters.csv"
    raw.write_text("\n".join(lines) + "\n")
    assert run("servers", "ingest", raw, "--store", folder / "store").exit_code == 0
    return folder / "store"


@pytest.mark.parametrize(("rates", "bad"), [([1000, 900, 1000], True), ([1000, 200, 100], False)])
def test_servers_tell_whether_other_jobs_were_in_the_way(
    tmp_path: Path, rates: list[int], bad: bool
) -> None:
    found = said("insights", STRAGGLER, "--servers", counted(tmp_path, rates))
    background_load = [f for f in found["findings"] if f["code"] == "file-system-weather"]

    assert "file-system-weather" not in {one["code"] for one in found["not_checked"]}
    assert bool(background_load) == bad
    if bad:
        told = background_load[0]["evidence"]
        everybody = 1 + told["own_bytes"] / told["others_bytes"]
        assert background_load[0]["level"] == "warn"
        assert told["share"] * everybody == pytest.approx(0.9, rel=0.01)


def test_a_damaged_start_does_not_end_the_others(tmp_path: Path) -> None:
    """Neither a log from the year 36812 nor its neighbours are lost."""
    job = ioprism.read(STRAGGLER).job
    assert job.start_time is not None
    assert job.end_time is not None
    start, end = (struct.pack("<q", int(moment)) for moment in (job.start_time, job.end_time))
    late = [struct.pack("<q", 2**40 + seconds) for seconds in (0, 60)]
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(STRAGGLER, logs / "sound.darshan")
    repack(STRAGGLER, logs / "late.darshan",
           lambda data: data.replace(start, late[0]).replace(end, late[1]))  # fmt: skip
    late_trace = ioprism.read(logs / "late.darshan")
    assert late_trace.job.start_time is None
    assert "start time" in " ".join(late_trace.completeness.warnings)
    document = said("insights", logs, "--servers", counted(tmp_path, [1000, 900, 1000]))

    assert len(document["jobs"]) == 2
    assert not document["failures"]


def test_servers_with_one_sample_of_each_part_leave_the_weather_unknown(tmp_path: Path) -> None:
    start = ioprism.read(STRAGGLER).job.start_time
    raw = tmp_path / "counters.csv"
    lines = [f"s{number},{start},0,5,0,0,0,0" for number in range(3)]
    raw.write_text("\n".join(["server,t,br,bw,rdc,wc,oc,cc", *lines, ""]))
    assert run("servers", "ingest", raw, "--store", tmp_path / "store").exit_code == 0
    found = said("insights", STRAGGLER, "--servers", tmp_path / "store")

    unknown = {one["code"]: one["needs"] for one in found["not_checked"]}
    assert "the store covers 0%" in unknown["file-system-weather"]


def test_inspect_shows_what_servers_and_thresholds_let_insights_find(tmp_path: Path) -> None:
    options: dict[str, Path] = {"file-system-weather": counted(tmp_path, [1000, 900, 1000])}
    options["small-total-data"] = tmp_path / "own.toml"
    options["small-total-data"].write_text("small_total = 1e15")
    for (code, value), option in zip(options.items(), ("--servers", "--thresholds"), strict=True):
        listed = said("insights", STRAGGLER, option, value)["findings"]
        (finding,) = [one for one in listed if one["code"] == code]
        told = said("inspect", STRAGGLER, code, option, value)

        assert told["finding"] == finding
        assert told["calls"]
        assert run("inspect", STRAGGLER, code).exit_code == 1


def test_a_folder_that_is_no_store_is_said_once(tmp_path: Path) -> None:
    result = run("insights", STRAGGLER, RANK_0, "--servers", tmp_path)

    assert result.exit_code == 1
    assert "not a store of server counters" in result.output


def test_all_shows_snippets() -> None:
    collective = DATA / "e_mpiio_collective.darshan"
    assert "MPI_File_iwrite_at_all" not in run("insights", collective).output
    assert "MPI_File_iwrite_at_all" in run("insights", collective, "--all").output


def test_the_lowest_level_can_be_chosen() -> None:
    levels = {f["level"] for f in said("insights", STRAGGLER, "--min-level", "warn")["findings"]}

    assert levels == {"high", "warn"}


@pytest.mark.parametrize(
    ("log", "level", "code"),
    [("c_rank0_all_io", "high", 3), ("a_ckpt_fpp_period5s", "high", 0),
     ("a_ckpt_fpp_period5s", "warn", 0)],
)  # fmt: skip
def test_a_level_can_fail_a_build(log: str, level: str, code: int) -> None:
    assert run("insights", DATA / f"{log}.darshan", "--fail-on", level).exit_code == code


def test_thresholds_come_from_a_file(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[thresholds]\nstraggler_factor = 10\n")
    codes = {f["code"] for f in said("insights", STRAGGLER, "--thresholds", own)["findings"]}

    assert "stragglers" not in codes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stragler_factor = 3", "did you mean straggler_factor?"),
        ("nonsense = 3", "ioprism rules --thresholds"),
        ("straggler_factor = 'x'", "which is not a finite number of at least 0"),
        ("straggler_factor = -1", "which is not a finite number of at least 0"),
        ("small_bytes = inf", "which is not a finite number of at least 0"),
        ("x = " + "[" * 2000, "this is not TOML"),
        ("= 3", "this is not TOML"),
        ("thresholds = 3", "thresholds is not a table"),
    ],
)
def test_a_wrong_threshold_is_wrong_usage_with_a_hint(
    text: str, message: str, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    result = run("insights", STRAGGLER, "--thresholds", own)

    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_several_logs_become_a_table_of_jobs_and_codes() -> None:
    document = said("insights", STRAGGLER, RANK_0)
    first, second = document["jobs"]

    assert "stragglers" in document["codes"]
    assert "rank-0-heavy" in [f["code"] for f in second["findings"]]
    assert first["levels"]["high"] == 3
    text = run("insights", STRAGGLER, RANK_0).output
    assert "2 jobs" in text
    assert "rank-0-heavy" in text
    assert "small-requests" in text  # what stalls the first job


@pytest.mark.parametrize("place", [0, 1])
def test_a_job_among_several_gets_the_answer_that_it_gets_alone(place: int) -> None:
    alone = said("insights", (STRAGGLER, RANK_0)[place])
    among = said("insights", STRAGGLER, RANK_0)["jobs"][place]

    assert {key: among[key] for key in among if key in alone} == {
        key: alone[key] for key in alone if key in among
    }
    assert {"verdict", "causes", "findings", "io_stall"} <= among.keys() & alone.keys()


def test_a_folder_is_judged_in_parallel_and_damage_is_told(tmp_path: Path) -> None:
    for number in range(12):
        shutil.copy(RANK_0, tmp_path / f"job{number}.darshan")
    broken = RANK_0.read_bytes()[:100]
    (tmp_path / "broken.darshan").write_bytes(broken)
    (tmp_path / "notes.txt").write_text("not a trace")
    document = said("insights", tmp_path)

    assert len(document["jobs"]) == 12
    assert len(document["failures"]) == 1
    assert "broken.darshan: the header is cut short" in str(document["failures"][0])


def test_the_logs_of_a_killed_job_are_one_job(shared_data: Path) -> None:
    folder = shared_data / "darshan/made/l_killed_job_mmap_logs"

    assert len(said("insights", folder)["source"]["paths"]) == 2


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["insights", "nowhere.darshan"], 1, "no such file or folder"),
        (["insights", __file__], 1, "the format is unknown"),
        (["insights"], 2, "Missing argument"),
        (["insights", str(STRAGGLER), "--min-level", "loud"], 2, "'loud' is not one of"),
        (["phases", str(STRAGGLER), "--layer", "hdf5"], 2, "it has posix"),
        (["phases", str(STRAGGLER), "--gap", "-1"], 2, "Invalid value for '--gap'"),
    ],
)
def test_failures_are_one_message_and_a_code(args: list[str], code: int, message: str) -> None:
    result = run(*args)

    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    result = run("insights", tmp_path)

    assert result.exit_code == 1
    assert "no reader recognises this folder" in result.stderr


@pytest.mark.parametrize("log", ["hostile-xss", "rich-markup-path"])
@pytest.mark.parametrize("form", [["--json"], ["--all"], []])
def test_hostile_names_stay_harmless(log: str, form: list[str]) -> None:
    result = run("insights", DATA / f"{log}.darshan", *form)

    assert result.exit_code == 0
    assert all(c.isprintable() or c == "\n" for c in result.output)


def test_phases_in_json_and_for_a_person() -> None:
    log = DATA / "a_ckpt_fpp_period5s.darshan"
    layer = said("phases", log)["layers"]["posix"]

    assert len(layer["phases"]) == 12
    assert layer["phases"][0].keys() >= {
        "start", "end", "ranks", "operations", "bytes", "fastest", "slowest",
    }  # fmt: skip
    assert "posix: 12 phases" in run("phases", log).output


def test_rules_are_listed_with_their_aliases_and_thresholds() -> None:
    document = said("rules")
    small = next(rule for rule in document["rules"] if rule["code"] == "small-reads")

    assert small["aliases"] == ["drishti:P05"]
    assert small["question"] == "Are many reads small?"
    assert len(document["thresholds"]) == len(Thresholds.__dataclass_fields__)
    assert all(limit["meaning"] and limit["source"] for limit in document["thresholds"])
    assert "rank-0-heavy" in run("rules").output
    assert "small_requests" in run("rules", "--thresholds").output


def test_the_library_answers_with_frozen_objects_and_tables() -> None:
    found = ioprism.insights(ioprism.read(STRAGGLER))

    assert found.to_frame().filter(code="stragglers").height == 1
    assert found.to_dict()["findings"][0].keys() >= KEYS
    assert {"code", "needs"} == found.to_dict()["not_checked"][0].keys()
