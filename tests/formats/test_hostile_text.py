"""Text that is made to be slow or odd is read at once, or refused with one message."""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ioprism import TraceError
from ioprism.formats.beside_trace import read_ceiling, read_layout
from ioprism.formats.darshan import dxt
from ioprism.formats.dftracer import lines
from ioprism.formats.reading import Budget
from ioprism.formats.registry import read_trace
from ioprism.formats.signals.monitors import read_described_text
from ioprism.formats.strace.reader import StraceReader
from ioprism.formats.strace.replay import CallLines
from ioprism.model.counters import ReadingOptions, Tally
from ioprism.servers.formats.lustre import LustreReader, PrometheusReader
from ioprism.servers.formats.records import read_server_map
from ioprism.servers.formats.schedulers import LoadLevelerReader
from ioprism.write_time.run_files import read_runs
from tests.conftest import TEST_DATA

MANY = 100_000
SOON = 20.0  # seconds; looking at every blank again for each of the others takes minutes
GAP = "x" + " " * MANY + "y"
HUGE = "1" + "0" * 400
IOR = (
    '{"tests":[{"Parameters":{"filePerProc":1,"blockSize":1,"segmentCount":1},'
    '"Options":{"tasks":1,"clients per node":1},"Results":[{"access":"write","totalTime":%s}]}]}'
)
RATE = '{"tests":[{"Results":[{"access":"read","bwMiB":%s}]}]}'
JOB = "job_stats:\n- job_id: %s\n  snapshot_time: 9\n  open: { samples: 1, unit: reqs }\n"


def _lustre_job(path: Path) -> object:
    tables = list(LustreReader().read(path, ReadingOptions(), Tally()))
    return pl.concat(tables)["job"].item()


def _lustre_rows(path: Path) -> object:
    tally = Tally()
    tables = list(LustreReader().read(path, ReadingOptions(), tally))
    return sum(table.height for table in tables)


def _prometheus_rows(path: Path) -> object:
    tally = Tally()
    tables = list(PrometheusReader().read(path, ReadingOptions(), tally))
    return sum(table.height for table in tables), sum(tally.left_out.values())


def _owner(path: Path) -> object:
    return LoadLevelerReader().read(path, ReadingOptions(), Tally())["user"].to_list()


def _damaged_lines(path: Path) -> object:
    calls = CallLines(Budget(path))
    return [*calls.read([path.read_text()]), calls.damaged]


UNFINISHED = "".join(
    [f"{10 + n} 1.0 read(3, <unfinished ...>\n" for n in range(20_000)]
    + [f"{10**6 + n} 1.0 +++ exited with 0 +++\n" for n in range(20_000)]
)
FOLDER = f'1 1.0 chdir("/{"a" * 900_000}") = 0 <0.1>\n'  # longer than any can be


def _files(path: Path) -> object:
    trace = StraceReader().read(path)
    trace.events()
    return [name for name in trace.files["path"] if len(name) < 100]


def _answer(read: Callable[[Path], object], path: Path) -> object:
    try:
        return read(path)
    except TraceError as error:
        return str(error).partition("\n")[0].removeprefix(f"{path}: ")[:20]


@pytest.mark.parametrize(
    ("text", "read", "answer"),
    [
        ("\n" * MANY, read_trace, "the format is unknow"),
        ("\n" * MANY, read_ceiling, "this is not a benchm"),
        (" " * MANY + "x", read_layout, "it does not list the"),
        (f"IOR xfer\na{' ' * MANY}\n", read_runs, "it contains no runs."),
        (JOB % GAP, _lustre_job, GAP),
        ("a" + ".exports.b" * (MANY // 2) + "=1\n", _lustre_rows, 0),
        (f'lustre_write_bytes_total{{a="{"b"}"{"9" * MANY}}} 1\n', _prometheus_rows, (0, 1)),
        (f"===== Job a =====\nOwner: {GAP}\n", _owner, []),
        (f"1 1.0 write(1, {'a) ' * MANY}", _damaged_lines, [1]),
        (UNFINISHED + '2 1.0 openat(AT_FDCWD, "/a", 0) = 3 <0.1>\n', _files, ["/a"]),
        ("1 1.0 openat(AT_FDCWD, " + '"a\\' * MANY + ") = 3 <0.1>\n", _files, []),
        (FOLDER + '1 1.0 openat(AT_FDCWD, "b", 0) = 3 <0.1>\n' * 1000, _files, ["b"]),
    ],
)
def test_blanks_are_looked_through_once(
    tmp_path: Path, text: str, read: Callable[[Path], object], answer: object
) -> None:
    path = tmp_path / "text"
    path.write_text(text)
    begun = time.monotonic()

    found = _answer(read, path)

    assert found == answer
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize(
    ("text", "read", "answer"),
    [
        (RATE % HUGE, read_ceiling, "this is not a benchm"),
        (IOR % HUGE, read_runs, "this is not a comple"),
        ('{"a":' + "[" * MANY, read_runs, "this is not a comple"),
        ("path,targets\n/a,²\n", read_layout, "it does not list the"),
        (f"path,targets\n/a,{'9' * 5000}\n", read_layout, "it does not list the"),
        (f"path,targets\n/a,1\n{'b' * 200_000},2\n", read_layout, "it is not a CSV tabl"),
        (f"node,server\n{'n' * 200_000},s\n", read_server_map, "it is not a CSV tabl"),
    ],
)
def test_numbers_and_fields_beyond_all_bounds_are_one_message(
    tmp_path: Path, text: str, read: Callable[[Path], object], answer: str
) -> None:
    path = tmp_path / "text"
    path.write_text(text, encoding="utf-8")

    assert _answer(read, path) == answer


def test_runs_behind_a_field_beyond_all_bounds_are_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "nodes,cores_per_node,burst_bytes,seconds,pattern\n"
        f"1,1,1,1,a\n1,1,1,1,{'b' * 200_000}\n1,1,1,2,c\n"
    )

    found = read_runs(path, skip_bad=True)

    assert [run.seconds for run in found.runs] == [1.0, 2.0]
    assert len(found.warnings) == 1


def test_one_quote_too_many_in_a_compressed_table_is_noticed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv.gz"
    rows = b"start,end,operation\n" + b'0,1,"read\n' + b"0,1,read\n" * 2_000_000
    path.write_bytes(gzip.compress(rows, 1))
    begun = time.monotonic()

    with pytest.raises(TraceError, match="the table cannot be read"):
        read_trace(path)

    assert time.monotonic() - begun < SOON


def test_a_group_of_a_description_that_matches_nothing_is_one_message(tmp_path: Path) -> None:
    text, description = tmp_path / "text", tmp_path / "text.toml"
    text.write_text("start end size")
    description.write_text(
        "".join(f"[{n}]\npattern = '{n}(:)?'\n" for n in ("start", "end", "bytes"))
    )

    with pytest.raises(TraceError, match=r"the pattern of \[start\] matches nothing"):
        read_described_text(text, description)


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> Callable[[], int]:
    """Count the calls of a function from now on."""
    calls, original = [0], getattr(owner, name)

    def count(*arguments: object) -> object:
        calls[0] += 1
        return original(*arguments)

    monkeypatch.setattr(owner, name, count)
    return lambda: calls[0]


def test_places_that_look_like_beginnings_of_gzip_are_not_all_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pfw.gz"
    like = lines.HEADER + b"\x4b\x4b"
    many = 2 * lines.COMPRESSED // len(like) + 1
    path.write_bytes(gzip.compress(b"[\n") + like * many)
    inflated = counted(monkeypatch, lines, "_begins_a_line")

    assert len(lines.ranges(path)) == 1
    assert 0 < inflated() <= 2 * lines.MAX_LIKENESSES < many / 100


def test_places_that_look_like_beginnings_of_a_rank_are_not_all_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray((TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan").read_bytes())
    slot = 48 + 16 * 10  # of the requests to POSIX, in the header
    offset, length = struct.unpack_from("<2Q", data, slot)
    many = 2**24
    requests = data[offset : offset + length] + b"\x78\x9c" * many
    struct.pack_into("<2Q", data, slot, len(data), len(requests))
    (tmp_path / "a.darshan").write_bytes(data + requests)
    monkeypatch.setattr(dxt, "MAX_LIKENESSES", 1000)
    inflated = counted(monkeypatch, dxt.Cutter, "_is_record")

    assert read_trace(tmp_path / "a.darshan").completeness.warnings
    assert 0 < inflated() <= len(requests) // dxt.COMPRESSED * 1000
