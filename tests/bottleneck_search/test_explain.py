"""Every bundled rule fires where it should and not just short of it; names stay harmless."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import ioprism
from ioprism.bottleneck_search.rule_language.explain import apply_rules
from ioprism.bottleneck_search.rule_language.load import bundled_rules
from ioprism.views.records import FIELDS
from tests.call_tables import calls, trace_of

MIB = 2**20
# For each rule, fields with which it holds, and a change with which it just does not.
CASES: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "small_reads": ({"small_read_time": 51, "time": 100}, {"small_read_time": 50}),
    "small_writes": ({"small_write_time": 51, "time": 100}, {"small_write_time": 50}),
    "excessive_metadata_access": (
        {"metadata_time": 51, "open_time": 51, "time": 100}, {"metadata_time": 50}),
    "random_operations": ({"random_time": 51, "time": 100}, {"random_time": 50}),
    "operation_imbalance": (
        {"read_count": 56, "write_count": 44, "count": 100}, {"read_count": 54}),
    "size_imbalance": ({"read_size": 0, "write_size": 12, "size": 100}, {"write_size": 10}),
    "excessive_syncs": ({"sync_time": 21, "sync_count": 3, "time": 100}, {"sync_time": 20}),
    "shared_file_contention": (
        {"shared_time": 51, "time": 100, "sharers": 4}, {"sharers": 3}),
    "tiny_files": ({"files": 100, "size": 99 * MIB}, {"size": 100 * MIB}),
    "excessive_seeks": (
        {"seek_count": 101, "data_count": 200, "seek_time": 1}, {"seek_count": 100}),
    "rereads": ({"reread_size": 2 * MIB, "read_size": 3 * MIB}, {"read_size": 4 * MIB}),
    "one_slow_call": ({"slowest_call": 51, "time": 100, "count": 9}, {"slowest_call": 50}),
    "single_call": ({"count": 1, "slowest_call": 1.0}, {"count": 2}),
    "process_imbalance": (
        {"processes": 4, "slowest_process_time": 51, "time": 100}, {"slowest_process_time": 50}),
    "first_open_cost": (
        {"first_open_time": 31, "time": 100, "open_count": 2}, {"first_open_time": 30}),
    "slow_transfers": (
        {"data_time": 60, "time": 100, "data_size": 60 * 99 * MIB, "data_count": 9},
        {"data_size": 60 * 100 * MIB}),
    "large_transfers": (
        {"data_time": 60, "time": 100, "data_size": 60 * 100 * MIB, "data_count": 9},
        {"data_size": 60 * 99 * MIB}),
}  # fmt: skip


def fires(key: str, fields: dict[str, float]) -> bool:
    record = dict.fromkeys(FIELDS, 0.0) | {"function": "call"} | fields
    return any(apply_rules(pl.DataFrame([record]), [bundled_rules()[key]]).row(0))


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(bundled_rules())


@pytest.mark.parametrize("key", CASES)
def test_a_rule_fires_and_just_does_not(key: str) -> None:
    fields, change = CASES[key]

    assert fires(key, fields)
    assert not fires(key, fields | change)


@pytest.mark.parametrize("call", ["open", "close", "seek", "stat", "sync", "other_metadata"])
def test_metadata_names_the_call_that_takes_most(call: str) -> None:
    fields: dict[str, Any] = dict.fromkeys(FIELDS, 0.0)
    fields |= {"function": "x", "time": 10.0, "metadata_time": 9.0, f"{call}_time": 6.0}
    fields |= {"stat_time": fields["stat_time"] or 3.0}
    rule = bundled_rules()["excessive_metadata_access"]
    holds = apply_rules(pl.DataFrame([fields]), [rule]).row(0)
    order = ["open", "close", "seek", "stat", "sync", "of counters", "other_metadata"]

    assert [name for name, held in zip(order, holds, strict=True) if held] == [call]


def test_counters_tell_the_time_of_all_metadata_calls_together() -> None:
    fields: dict[str, Any] = dict.fromkeys(FIELDS, 0.0)
    fields |= {"function": "x", "time": 10.0, "metadata_time": 9.0, "other_metadata_time": 9.0}
    rule = bundled_rules()["excessive_metadata_access"]
    holds = apply_rules(pl.DataFrame([fields | {"open_count": 5.0}]), [rule]).row(0)

    assert holds == (False, False, False, False, False, True, False)


def test_a_bottleneck_without_a_reason_says_so_and_is_counted(tmp_path: Any) -> None:
    none = tmp_path / "none.toml"
    none.write_text("defaults = false\n[never]\ncondition='false'\n[[never.reasons]]\nmessage='x'")
    trace = trace_of(
        calls([{"seconds": 1.0, "file": 0}, *({"seconds": 0.001, "file": 1} for _ in range(99))])
    )
    found = ioprism.bottlenecks(trace, views=("file",), rules=[none])

    assert found.found == found.unexplained == 1
    assert found.coverage == 0.0
    assert found.bottlenecks[0].reasons == ()


def test_messages_show_names_from_traces_harmlessly() -> None:
    hostile = "\x1b[31m<script>[bold]{time}\n"
    rows = [{"seconds": 1.0, "file": 0, "operation": "sync", "function": hostile}]
    rows += [{"seconds": 0.001, "file": 1} for _ in range(99)]
    found = ioprism.bottlenecks(trace_of(calls(rows), paths=[hostile, "b"]), views=("file",))
    messages = [reason.message for reason in found.bottlenecks[0].reasons]

    assert any("\\x1b[31m<script>[bold]{time}\\x0a" in message for message in messages)
    assert not any("\x1b" in message or "\n" in message for message in messages)


def test_pages_hold_all_bottlenecks_once() -> None:
    rows = [{"start": n, "seconds": 0.1 + n / 1000, "file": n} for n in range(30)]
    rows += [{"start": 40, "seconds": 1e-6, "file": 31} for _ in range(500)]
    trace = trace_of(calls(rows))
    whole = ioprism.bottlenecks(trace, views=("file",), method="slope")
    pages = [
        bottleneck.id
        for page in (1, 2, 3, 4)
        for bottleneck in ioprism.bottlenecks(
            trace, views=("file",), method="slope", top=8, page=page
        ).bottlenecks
    ]

    assert len(whole.bottlenecks) == 30
    assert sorted(pages) == sorted(b.id for b in whole.bottlenecks)


def test_a_metric_of_ones_own_compares_time_with_it() -> None:
    rows = [{"seconds": 0.3, "file": 0, "bytes": 10}, {"seconds": 0.1, "file": 1, "bytes": 30}]
    found = ioprism.bottlenecks(
        trace_of(calls(rows)), views=("file",), metric="read_size", threshold=0.0
    )

    assert found.bottlenecks[0].severity == pytest.approx(71.565, abs=0.001)
    assert found.to_frame().height == 2
    assert found.to_dict()["bottlenecks"][0]["record"] == {"file": "/scratch/run/part0/data.0"}
