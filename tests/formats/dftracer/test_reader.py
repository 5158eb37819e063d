"""DFTracer traces add up to what a slow parser finds, in every version, whole or damaged."""

from __future__ import annotations

import gzip
import json
import pickle
import time
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from ioprism import BrokenTraceError, Trace, characterise, read
from ioprism.formats.dftracer import calls, events, lines, reader, survey
from ioprism.formats.dftracer.calls import Aggregate, Aggregates, CallColumns
from ioprism.formats.dftracer.reader import DftracerReader
from ioprism.formats.reading import Budget
from ioprism.units import format_counted
from tests.conftest import ROOT
from tests.formats.dftracer.slow_parser import slow_totals

DATA = ROOT / "tests/data/dftracer"
WITH_CALLS = sorted(path for path in DATA.glob("*.pfw*") if "agg" not in path.name)


def check_against_slow_parser(trace: Trace, path: Path) -> None:
    expected = slow_totals(path)
    posix = trace.events().filter(pl.col("layer") == "posix")
    calls = dict(posix.group_by(pl.col("function").cast(pl.String)).len().iter_rows())
    moved = dict(
        posix.group_by(pl.col("operation").cast(pl.String)).agg(pl.sum("bytes")).iter_rows()
    )
    named = posix.join(trace.files.select("file", "path"), on="file")

    assert calls == dict(expected.calls)
    assert moved.get("read", 0) == expected.bytes["read"]
    assert moved.get("write", 0) == expected.bytes["write"]
    assert (posix["end"] - posix["start"]).sum() == pytest.approx(expected.seconds)
    assert dict(named.group_by("path").len().iter_rows()) == dict(expected.paths)


@pytest.mark.parametrize("path", WITH_CALLS, ids=lambda p: p.name)
def test_totals_are_those_of_a_slow_parser(path: Path) -> None:
    check_against_slow_parser(read(path), path)


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name", ["small/test.pfw", "dlio/trace-3-of-8.pfw", "example/test-trace.pfw.gz"]
)
def test_totals_of_public_traces_are_those_of_a_slow_parser(shared_data: Path, name: str) -> None:
    path = shared_data / "dftracer" / name

    check_against_slow_parser(read(path), path)


@pytest.mark.corpus
def test_two_million_events_add_up(shared_data: Path) -> None:
    truth = json.loads((shared_data / "dftracer/TRUTH.json").read_text())["gen-large-v22"]
    trace = read(shared_data / "dftracer/gen-large-v22")
    sums = pl.concat(
        batch.group_by("operation").agg(pl.len(), pl.col("bytes").sum()).collect()
        for batch in trace.batches()
    )
    found = {op: (n, b) for op, n, b in sums.group_by("operation").sum().iter_rows()}

    assert found["read"] == (truth["reads"], truth["bytes_read"])
    assert found["write"] == (truth["writes"], truth["bytes_written"])
    assert sum(n for n, _ in found.values()) == truth["posix"]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_tasks_keep_their_order(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(events, "WORKERS", workers)

    def task(number: int) -> list[CallColumns]:
        time.sleep(0.01 * (7 - number))
        return [CallColumns(number)]

    found = events.in_order(partial(task, number) for number in range(7))
    assert [len(one.kind) for one in found] == list(range(7))


def test_a_folder_can_be_one_workflow() -> None:
    trace = read(DATA, one_job=True)

    assert trace.format == "dftracer"
    assert trace.job.ranks == 6
    assert set(trace.processes["host"]) == {"vm"}
    assert trace.processes["application"].drop_nulls().unique().to_list() == ["small.py"]
    assert (trace.events()["start"] >= 0).all()
    assert any("sums instead of calls" in warning for warning in trace.completeness.warnings)


def test_an_index_that_analysers_leave_is_no_other_trace(tmp_path: Path) -> None:
    (tmp_path / "one.pfw").write_bytes((DATA / "v2.2.0-md1-plain.pfw").read_bytes())
    for name in (".dftindex/LOG.old.17", "worker_0/sub_0/manifest.sst", "one.pfw.zindex"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\0")

    assert DftracerReader().recognises(tmp_path)
    assert read(tmp_path).format == "dftracer"


def test_nanoseconds_and_microseconds_give_seconds() -> None:
    slow, fast = (read(DATA / f"v2.2.0-{kind}.pfw") for kind in ("md1-plain", "ns"))

    assert slow.job.runtime == pytest.approx(0.1, abs=0.1)
    assert fast.job.runtime == pytest.approx(0.17, abs=0.1)


def test_a_trace_without_arguments_says_what_to_record() -> None:
    trace = read(DATA / "v2.2.0-md0.pfw.gz")
    events = trace.events()

    assert events["bytes"].null_count() == events.height
    assert any("DFTRACER_INC_METADATA=1" in warning for warning in trace.completeness.warnings)


def test_the_aggregated_mode_gives_counters() -> None:
    trace = read(DATA / "v2.2.0-agg.pfw")
    counters = trace.counters["POSIX"]

    assert trace.detail == {"counters", "heatmap"}
    assert counters["POSIX_READS"].sum() == 38
    assert counters["POSIX_BYTES_READ"].sum() == 131_869
    assert counters["POSIX_BYTES_WRITTEN"].sum() == 8_487_617
    assert trace.counters["HEATMAP"]["read"].list.sum().sum() == 131_869


def test_the_bins_of_a_long_trace_of_sums_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = Aggregates((DATA / "v2.2.0-agg.pfw",), {}, origin=0, per_second=1, warn=pytest.fail)
    many = [Aggregate(1, second, "read", 1, 1, 0.1) for second in range(50_000)]
    sums.__dict__["rows"] = many  # as if they had been read
    taken: list[int] = []
    monkeypatch.setattr(Budget, "take", lambda _, size, __: taken.append(size))

    heat = sums.heatmap()

    assert heat["read"].list.sum().item() == len(many)
    assert taken == [calls.BYTES_OF_BIN * len(many)]  # not again for each line


def test_sums_are_the_same_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    path = DATA / "v2.2.0-agg.pfw"
    whole = read(path).counters["POSIX"]
    monkeypatch.setattr(lines, "WINDOW", 2048)
    monkeypatch.setattr(calls, "LARGE_PIECE", 1024)

    assert_frame_equal(read(path).counters["POSIX"], whole)


def test_torn_sums_are_reported(tmp_path: Path) -> None:
    data = (DATA / "v2.2.0-agg.pfw").read_bytes()
    path = tmp_path / "a.pfw"
    path.write_bytes(data[:-20])
    trace = read(path)

    assert trace.counters["POSIX"]["POSIX_READS"].sum() == 38
    assert trace.completeness.warnings == ("a.pfw: 1 damaged line left out",)


def test_sums_beside_calls_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.pfw"
    sums = (DATA / "v2.2.0-agg.pfw").read_text().splitlines()
    sums = [line for line in sums if "dft_cnt" in line]
    path.write_text("\n".join([(DATA / "v2.2.0-md1-plain.pfw").read_text(), *sums, ""]))
    trace = read(path)

    assert trace.events().height == read(DATA / "v2.2.0-md1-plain.pfw").events().height
    assert f"a.pfw: {len(sums)} lines with sums" in " ".join(trace.completeness.warnings)


def event(name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "id": 1, "name": name, "cat": "POSIX", "pid": 7, "tid": 7,
        "ts": 1_700_000_000_000_000, "dur": 5, "ph": "X", "args": arguments,
    }  # fmt: skip


def metadata(name: str, text: str, value: Any) -> dict[str, Any]:
    arguments = {"name": text, "value": value}
    return {"name": name, "cat": "dftracer", "pid": 7, "tid": 7, "ph": "M", "args": arguments}


def written(path: Path, *objects: Any) -> Path:
    text = "\n".join(json.dumps(one, separators=(",", ":")) for one in objects)
    path.write_text("[\n" + text + "\n]")
    return path


def test_a_hash_may_be_used_before_it_is_defined_even_elsewhere(tmp_path: Path) -> None:
    written(
        tmp_path / "a.pfw", event("read", fhash="ab12", ret=5), metadata("FH", "/later", "ab12")
    )
    written(tmp_path / "b.pfw", event("read", fhash="ab12", ret=5))
    trace = read(tmp_path)
    named = trace.events().join(trace.files, on="file", how="left")

    assert named["path"].to_list() == ["/later", "/later"]


def test_a_hash_that_means_two_files_is_resolved_by_the_file_that_uses_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(
            tmp_path / f"{name}.pfw", metadata("FH", f"/{name}", 33084), event("read", fhash=33084)
        )
    trace = read(tmp_path)
    named = trace.events().join(trace.files, on="file", how="left")

    assert sorted(named["path"].to_list()) == ["/a", "/b"]


def test_offsets_follow_the_file_pointer(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.pfw",
        metadata("FH", "/f", "f"),
        event("open64", fhash="f", flags=0, ret=3),
        event("read", fhash="f", ret=10),
        event("pread64", fhash="f", ret=4, offset=100),
        event("read", fhash="f", ret=10),
        event("lseek64", fhash="f", ret=50, whence=0, offset=50),
        event("write", fhash="f", ret=1),
        event("open64", fhash="f", flags=0o2001, ret=4),
        event("write", fhash="f", ret=1),
    )
    events = read(path).events().filter(pl.col("operation").is_in(["read", "write"]))

    assert events["offset"].to_list() == [0, 100, 10, 50, None]


def test_application_events_are_a_layer_of_their_own(tmp_path: Path) -> None:
    step = event("train") | {"cat": "ai_framework"}
    events = read(written(tmp_path / "a.pfw", step, event("close"))).events()

    assert events["layer"].to_list() == ["application", "posix"]
    assert events["operation"].to_list() == ["other", "close"]


def test_odd_lines_are_read_and_damaged_ones_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.pfw"
    odd = json.dumps(event("read", fname='/a,"b\\c', ret=3)) + "\n"
    nested = json.dumps(event("write", extra={"ret": 9}, ret=4), separators=(",", ":")) + "\n"
    plain = json.dumps(event("read", fname="/p", ret=1), separators=(",", ":")) + "\n"
    path.write_text(plain + odd + nested + '{"name":"read","cat":"POS\n' + "nonsense\n")
    trace = read(path)
    events = trace.events()

    assert events["bytes"].to_list() == [1, 3, 4]
    assert '/a,"b\\c' in trace.files["path"].to_list()
    assert trace.completeness.warnings == ("a.pfw: 2 damaged lines left out",)


@pytest.mark.parametrize("key", ["pid", "tid"])
def test_a_call_without_a_process_is_damage_even_if_there_is_only_one(
    tmp_path: Path, key: str
) -> None:
    whole = event("read", ret=1)
    path = written(tmp_path / "a.pfw", whole, {k: v for k, v in whole.items() if k != key}, whole)
    trace = read(path)

    assert trace.events()["bytes"].to_list() == [1, 1]
    assert trace.completeness.warnings == ("a.pfw: 1 damaged line left out",)


def test_what_a_cut_file_still_holds_is_read(tmp_path: Path) -> None:
    whole = (DATA / "v2.2.0-md1-plain.pfw").read_bytes()
    path = tmp_path / "cut.pfw.gz"
    path.write_bytes(gzip.compress(whole)[:-700])
    trace = read(path)

    assert 0 < trace.events().height < 105
    assert any("cut short" in warning for warning in trace.completeness.warnings)


def test_a_bomb_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pfw.gz"
    start = json.dumps(event("read"), separators=(",", ":")).encode() + b"\n"
    path.write_bytes(gzip.compress(start + b"x" * (70 * 2**20), 9))
    trace = read(path)

    assert trace.events().height == 1
    assert any("implausibly long" in warning for warning in trace.completeness.warnings)


def test_a_trace_without_calls_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pfw", metadata("HH", "host", "1"))

    with pytest.raises(BrokenTraceError, match="no call could be read"):
        DftracerReader().read(path)


@pytest.fixture
def numbered() -> list[bytes]:
    """The lines of a real trace whose lines are numbered."""
    return (DATA / "v2.2.0-md1-plain.pfw").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("lost", [(40, 41), (30, 60), (0, 30)])
def test_lines_that_were_lost_are_noticed_by_their_numbers(
    tmp_path: Path, numbered: list[bytes], lost: tuple[int, int]
) -> None:
    gone = numbered[slice(*lost)]
    (tmp_path / "a.pfw").write_bytes(b"".join(line for line in numbered if line not in gone))
    trace = read(tmp_path / "a.pfw")
    missing = sum(line.startswith(b'{"id"') for line in gone)

    assert f"a.pfw: {format_counted(missing, 'line')} missing by number" in (
        trace.completeness.warnings
    )


def test_a_trace_that_ends_early_is_noticed(tmp_path: Path, numbered: list[bytes]) -> None:
    (tmp_path / "a.pfw").write_bytes(b"".join(numbered[:-10]))

    assert any("end mark is missing" in w for w in read(tmp_path / "a.pfw").completeness.warnings)


def test_a_whole_trace_is_said_to_be_whole() -> None:
    for path in WITH_CALLS:
        trace = read(path)
        trace.events()

        assert not [w for w in trace.completeness.warnings if "missing" in w]


def many_calls(count: int) -> bytes:
    """One file, opened once and read on and on: offsets depend on all calls before."""
    head = [metadata("FH", "/f", "f"), event("open64", fhash="f", flags=0, ret=3)]
    reads = [event("read", fhash="f", ret=10) for _ in range(count)]
    lines = (
        json.dumps(one | {"id": n}, separators=(",", ":")) for n, one in enumerate(head + reads)
    )
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PLAIN", 20_000)
    monkeypatch.setattr(lines, "COMPRESSED", 400)
    monkeypatch.setattr(reader, "PARTITION", 20_000)
    monkeypatch.setattr(survey, "SEGMENT", 10_000)


def compressed_in_members(text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(gzip.compress(b"".join(lines[n : n + 100])) for n in range(0, len(lines), 100))


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("name", ["a.pfw", "a.pfw.gz"])
def test_a_large_file_is_read_in_parts_that_any_worker_may_read(tmp_path: Path, name: str) -> None:
    text = many_calls(2000)
    path = tmp_path / name
    path.write_bytes(compressed_in_members(text) if name.endswith("gz") else text)
    trace = read(path)
    in_order = trace.events().filter(pl.col("operation") == "read")["offset"]
    alone = [
        pl.concat(pl.collect_all(list(pickle.loads(pickle.dumps(one)).batches(print))))
        for one in reversed(trace.partitions)
    ]
    anywhere = pl.concat(reversed(alone)).filter(pl.col("operation") == "read")["offset"]
    ready = [one.prepare() for one in trace.partitions]  # type: ignore[attr-defined]
    told = [
        batch.collect()
        for number, one in enumerate(ready)
        for batch in one.continue_after([other.moves for other in ready[:number]], print)
    ]
    told_of = pl.concat(told).filter(pl.col("operation") == "read")["offset"]

    assert len(trace.partitions) >= 4
    assert in_order.to_list() == list(range(0, 20_000, 10))
    assert anywhere.to_list() == in_order.to_list()
    assert told_of.to_list() == in_order.to_list()
    assert trace.completeness.whole


@pytest.mark.parametrize(("name", "functions"), [("preload.pfw.gz", 0), ("python.pfw", 2)])
def test_a_program_traced_by_the_package_is_read_to_the_byte(name: str, functions: int) -> None:
    trace = read(ROOT / "tests/data/dftracer-traced" / name)
    events = trace.events()
    posix = events.filter(layer="posix")
    moved = {
        operation: (posix.filter(operation=operation).height,
                    posix.filter(operation=operation)["bytes"].sum())
        for operation in ("read", "write")
    }  # fmt: skip

    assert moved == {"read": (10, 30_000), "write": (10, 77_824)}
    assert posix.filter(operation="sync").height == 1
    assert events.filter(layer="application").height == functions
    assert trace.processes["tid"].n_unique() == 3
    assert trace.files["path"].to_list().count("/scratch/steps.dat") == 1
    assert trace.completeness.whole


def test_all_programs_of_a_workflow_are_named(tmp_path: Path) -> None:
    for number in range(6):
        written(
            tmp_path / f"{number}.pfw",
            metadata("SH", f"simulate;--part;{number % 5}", f"c{number}"),
            event("start", cmd_hash=f"c{number}") | {"cat": "dftracer", "pid": number},
            event("end") | {"cat": "dftracer", "pid": number},
            event("close") | {"pid": number},
        )
    trace = read(tmp_path)

    assert trace.job.executable == (
        "simulate --part 0 + simulate --part 1 + simulate --part 2 + simulate --part 3 and 1 more"
    )


@pytest.mark.parametrize(("calls", "padding"), [(25_000, 3_000), (800, 99_000)])
def test_a_large_trace_of_an_unusual_form_is_read_to_the_last_call(
    tmp_path: Path, calls: int, padding: int
) -> None:
    trace = tmp_path / "a.pfw.gz"
    name = (
        '{"name":"FH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{"name":"/a","value":"f"}}\n'
    )
    call = (
        '{{"id":{0},"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":{0},"dur":1,"ph":"X",'
        '"args":{{"fhash":"f","ret":7,"count":7,"pad":"{1}"}}}}\n'
    )
    with gzip.open(trace, "wt", compresslevel=1) as file:
        file.writelines(name for _ in range(12_000))  # more than is looked at for numbers
        file.writelines(call.format(number, "x" * padding) for number in range(calls))

    answer = characterise(read(trace))

    assert answer.by_operation["read"].operations == calls
    assert read(trace).completeness.warnings == ()


def test_lines_that_a_program_wrote_again_with_spaces_are_the_same_trace(tmp_path: Path) -> None:
    source = tmp_path / "run.pfw"
    lines = [
        {"id": number, "name": "write", "cat": "POSIX", "pid": 1, "tid": 2, "ts": 10**15 + number,
         "dur": 1, "ph": "X", "args": {"fname": "/s/a: b, c", "ret": 4096, "hostname": "n1"}}
        for number in range(50)
    ]  # fmt: skip
    events = []
    for separators in ((",", ":"), (", ", ": ")):
        text = "\n".join(json.dumps(line, separators=separators) for line in lines)
        source.write_text(f"[\n{text}\n]\n")
        events.append(read(source).events())

    assert events[0].height == 50
    assert events[1].equals(events[0])


def test_spaces_in_later_lines_alone_change_nothing(tmp_path: Path) -> None:
    plain = DATA / "v2.2.0-md1-plain.pfw"
    path = tmp_path / plain.name
    lines = plain.read_text().splitlines()
    path.write_text("\n".join([*lines[:30], *(json.dumps(json.loads(x)) for x in lines[30:]), ""]))
    whole, spaced = read(plain), read(path)

    assert spaced.events().equals(whole.events())
    assert spaced.files["path"].to_list() == whole.files["path"].to_list()
    assert spaced.completeness.warnings == whole.completeness.warnings
