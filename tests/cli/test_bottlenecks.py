"""`bottlenecks`, `inspect` and `rules check` keep the contract and fail with one message."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ioprism.cli import main
from ioprism.cli.bottlenecks import OF_BOTTLENECKS, bottlenecks, inspect
from ioprism.cli.diagnose import check
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOG = DATA / "g_straggler_rank2.darshan"


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def said() -> dict[str, object]:
    result = run("bottlenecks", LOG, "--json", "--method", "slope", "--threshold", "20")
    assert result.exit_code == 0, result.output
    document: dict[str, object] = json.loads(result.stdout)
    return document


def test_the_json_has_the_promised_keys(said: dict[str, object]) -> None:
    assert said.keys() >= {"ioprism", "schema", "source", "totals", "views", "bottlenecks",
                           "unexplained"}  # fmt: skip
    views, found = said["views"], said["bottlenecks"]
    assert isinstance(views, list)
    assert isinstance(found, list)
    assert len(views) == 15
    assert views[0].keys() >= {"view", "records", "bottlenecks"}
    assert found
    assert found[0].keys() >= {
        "id", "view", "record", "severity", "label", "time", "time_share", "operations",
        "operations_share", "bytes", "reasons",
    }  # fmt: skip


def test_bottlenecks_are_sorted_by_severity_then_time(said: dict[str, object]) -> None:
    found = said["bottlenecks"]
    assert isinstance(found, list)
    order = [(-bottleneck["severity"], -bottleneck["time"]) for bottleneck in found]

    assert order == sorted(order)


@pytest.mark.parametrize(
    ("method", "metric"), [("excess", "operations"), ("excess", "bytes"), ("slope", "bytes")]
)
def test_the_straggler_is_named(method: str, metric: str) -> None:
    args = ("--views", "rank", "--metric", metric, "--method", method, "--threshold", "30")
    result = run("bottlenecks", LOG, *args, "--json")
    found = json.loads(result.stdout)["bottlenecks"]

    assert found[0]["record"] == {"rank": 2}


def test_one_list_over_all_views_is_sorted_by_the_seconds_above_peers() -> None:
    told = json.loads(run("bottlenecks", LOG, "--json", "--floor", "0").stdout)
    found = told["bottlenecks"]
    seconds = [bottleneck["excess_seconds"] for bottleneck in found]

    assert [view["view"] for view in told["views"]] == [
        ["application"], ["directory"], ["file"], ["process"], ["time"],
    ]  # fmt: skip
    assert found[0].keys() >= {
        "id", "view", "record", "severity", "label", "time", "time_share", "operations",
        "operations_share", "bytes", "reasons", "views", "excess_seconds",
    }  # fmt: skip
    assert "rank 2" in found[0]["record"]["process"]
    assert seconds == sorted(seconds, reverse=True)


def test_a_person_sees_each_bottleneck_in_one_sentence() -> None:
    result = run("bottlenecks", LOG)

    assert result.exit_code == 0
    for words in ("time in I/O", "request sizes", "What costs more than its peers", "rank 2"):
        assert words in " ".join(result.output.split())


def test_a_person_sees_characteristics_a_tree_and_coverage() -> None:
    result = run("bottlenecks", LOG, "--method", "slope", "--top", "1", "--threshold", "30")

    assert result.exit_code == 0
    for words in ("time in I/O", "request sizes", "process: ", "of I/O time", "explained"):
        assert words in result.output


@pytest.mark.parametrize("combine", ["drill", "cross"])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_inspect_takes_a_bottleneck_apart(combine: str, as_json: list[str]) -> None:
    options = ["--threshold", "20", "--combine", combine]
    listed = json.loads(run("bottlenecks", LOG, "--json", "--top", "0", *options).stdout)
    for bottleneck in listed["bottlenecks"][:: max(1, len(listed["bottlenecks"]) // 4)]:
        result = run("inspect", LOG, bottleneck["id"], *options, *as_json)
        assert result.exit_code == 0, result.output
        if as_json:
            told = json.loads(result.stdout)
            assert told["bottleneck"]["record"] == bottleneck["record"]
            for part in told["parts"].values():
                times = [record["time"] for record in part]
                assert times == sorted(times, reverse=True)
                assert sum(times) <= told["bottleneck"]["fields"]["time"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("log", "code", "operations"),
    [
        ("e_mpiio_collective", "small-writes", {"write"}),
        ("e_mpiio_collective", "collective-reads", {"read"}),
        ("g_straggler_rank2", "stragglers", {"read", "write"}),
        ("hostile-xss", "random-writes", {"write"}),
    ],
)
def test_inspect_takes_a_finding_apart(log: str, code: str, operations: set[str]) -> None:
    path = DATA / f"{log}.darshan"
    listed = json.loads(run("insights", path, "--json").stdout)["findings"]
    (finding,) = [finding for finding in listed if finding["code"] == code]

    told = json.loads(run("inspect", path, code, "--json").stdout)

    assert told["finding"] == finding
    assert {call["operation"] for call in told["calls"]} <= operations
    assert told["calls"]
    times = [call["seconds"] for call in told["calls"]]
    assert times == sorted(times, reverse=True)
    named = {row["rank"] for row in finding["details"] if "rank" in row}
    if named:
        assert {call["process"].split()[1] for call in told["calls"]} <= {str(n) for n in named}
    if "small" in finding["evidence"]:
        count = sum(part["operations"] for part in told["parts"]["process"])
        assert count == finding["evidence"]["small"]


def test_help_says_that_findings_can_be_inspected_too() -> None:
    assert "behind one finding or bottleneck" in run("--help").output


def test_options_of_bottlenecks_are_refused_for_findings_if_given_not_if_set_for_all(
    tmp_path: Path,
) -> None:
    shared = {option.name for option in bottlenecks.params} & {o.name for o in inspect.params}
    general = {"paths", "one_job", "each", "format_name", "as_json", "quiet", "kind", "scheduler",
               "cluster", "workers", "memory_limit", "index", "clock_offsets",
               "anonymise"}  # fmt: skip
    args = ["inspect", str(LOG), "stragglers"]
    once = CliRunner().invoke(main, args, env={"IOPRISM_STAGES": str(tmp_path)})

    assert shared - general == OF_BOTTLENECKS
    assert once.exit_code == 0, once.output
    assert run(*args, "--stages", tmp_path).exit_code == 2


@pytest.mark.parametrize("log", ["a_ckpt_fpp_period5s", "l_killed_job_merged", "hostile-xss"])
def test_every_finding_can_be_inspected(log: str) -> None:
    path = DATA / f"{log}.darshan"
    for finding in json.loads(run("insights", path, "--json").stdout)["findings"]:
        result = run("inspect", path, finding["code"])
        assert result.exit_code == 0, result.output
        assert finding["code"] in result.stdout
        assert all((c.isprintable() and c.isascii()) or c in "\n█µ…°→×–" for c in result.stdout)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_all_of_them_can_be_exported(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"out.{ending}"
    result = run("bottlenecks", LOG, "--export", target, "--top", "1", "--json")
    table = pl.read_csv(target) if ending == "csv" else pl.read_parquet(target)

    assert table.height == json.loads(result.stdout)["found"] > 0
    assert result.stderr.endswith(f"wrote {target}\n")
    assert {"id", "view", "severity", "small_write_time"} <= set(table.columns)


@pytest.mark.parametrize(("level", "code"), [("critical", 0), ("very high", 3), ("trivial", 3)])
def test_fail_on_is_for_a_projects_own_checks(level: str, code: int) -> None:
    assert run("bottlenecks", LOG, "--views", "rank", "--fail-on", level).exit_code == code


@pytest.mark.parametrize("log", ["hostile-xss", "rich-markup-path"])
@pytest.mark.parametrize("as_json", [True, False])
def test_hostile_names_reach_neither_terminal_nor_json_unescaped(log: str, as_json: bool) -> None:
    args = ["--threshold", "0", "--floor", "0", *(["--json"] if as_json else [])]
    result = run("bottlenecks", DATA / f"{log}.darshan", *args)

    assert result.exit_code == 0
    assert all((c.isprintable() and c.isascii()) or c in "\n█µ…°→├└│─·" for c in result.stdout)


def test_a_log_with_counters_only_is_answered_without_times() -> None:
    result = run("bottlenecks", DATA / "l_killed_job_merged.darshan", "--json")
    told = json.loads(result.stdout)

    assert result.exit_code == 0
    assert [view["view"] for view in told["views"]][2:] == [["file"], ["process"]]
    assert any("counters only" in warning for warning in told["source"]["warnings"])


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["bottlenecks", "nowhere"], 1, "no such file or folder"),
        (["bottlenecks", LOG, "--views", "moon"], 2, "there is no view 'moon'"),
        (["bottlenecks", LOG, "--metric", "spead"], 2, "--metric: column 1: unknown"),
        (["bottlenecks", LOG, "--metric", "__import__('os')"], 2, "column 12"),
        (["bottlenecks", LOG, "--metric", "size/0"], 2, "Hint: metrics are operations, bytes"),
        (["bottlenecks", LOG, "--metric", "size * 0"], 2, "Hint: metrics are operations, bytes"),
        (["bottlenecks", LOG, "--metric", "5"], 2, "no metric '5'"),
        (["bottlenecks", LOG, "--threshold", "99"], 2, "threshold cannot be 99"),
        (["bottlenecks", LOG, "--rules", "nowhere.toml"], 1, "no such rule file"),
        (["bottlenecks", LOG, "--layer", "moon"], 2, "unknown layer 'moon'"),
        (["bottlenecks", LOG, "--export", "x.doc"], 2, ".csv or .parquet"),
        (["bottlenecks", LOG, "--engine", "local", "--workers", "2"], 2, "are for --engine dask"),
        (["bottlenecks", LOG, "--memory-limit", "3"], 2, "not enough to work with"),
        (["bottlenecks", LOG, "--memory-limit", "much"], 2, "is not a size"),
        (["bottlenecks", DATA / "l_killed_job_merged.darshan", "--views", "time"], 1,
         "this needs a per-call trace"),
        (["inspect", LOG, "XX99"], 2, "unknown bottleneck 'XX99'"),
        (["inspect", LOG, "tiny-files"], 1, "does not have the finding 'tiny-files'"),
        (["inspect", LOG, "target-imbalance"], 1, "this needs stripe layouts"),
        (["inspect", LOG, "\x1b[31m"], 2, "unknown bottleneck"),
        (["inspect", LOG, "stragglers", "--layer", "posix", "--time-bucket", "2"], 2,
         "--time-bucket, --layer would change nothing: 'stragglers' is a finding"),
        (["inspect", LOG, "stragglers", "--rules", __file__], 2, "--rules would change nothing"),
        (["inspect", LOG, "stragglers", "--servers", DATA], 1, "not a store of server counters"),
        (["inspect", LOG, "XX99", "--thresholds", __file__], 2,
         "--thresholds would change nothing: 'XX99' is not the code of a finding"),
    ],
)  # fmt: skip
def test_failures_are_one_message_and_a_code(args: list[object], code: int, message: str) -> None:
    result = run(*args)

    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    assert result.stdout == ""


def test_a_rule_file_is_checked_without_a_trace(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("[a]\ncondition='time > 1 s'\n[[a.reasons]]\nmessage='{time}'")
    bad.write_text("[a]\ncondition='tine > 1 s'\n[[a.reasons]]\nmessage='{time}'")
    fields = CliRunner().invoke(check, ["--fields"])

    assert "1 rule valid" in CliRunner().invoke(check, [str(good)]).output
    assert CliRunner().invoke(check, [str(bad)]).exit_code == 1
    assert "small_read_time" in fields.output
