"""A call on a stream of the C library is a request to storage only where it takes as long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.synthetic.darshan_content import log_content
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import Verdict, diagnose, read
from tests.call_tables import calls, trace_of
from tests.diagnosis.test_counters_beside_calls import of_counters

SIZE, NUMBER = 80, 16_000


def first(found: Verdict) -> str:
    return found.causes[0].code if found.causes else ""


@pytest.mark.parametrize(
    ("seconds", "expected"), [(18e-6, ""), (4e-4, "small-requests")], ids=["buffered", "unbuffered"]
)
def test_a_buffered_call_is_not_a_small_request(
    tmp_path: Path, seconds: float, expected: str
) -> None:
    trace = trace_of(calls(_lines(seconds, "stdio")))

    assert [first(found) for found in (diagnose(trace), of_counters(trace, tmp_path))] == [
        expected
    ] * 2


def test_system_calls_that_only_copy_are_still_too_many() -> None:
    found = diagnose(trace_of(calls(_lines(18e-6, "posix"))))

    assert first(found) == "small-requests"


def _lines(seconds: float, layer: str) -> Iterator[dict[str, object]]:
    """Two ranks write short lines."""
    for rank in range(2):
        for number in range(NUMBER):
            yield {
                "start": 1 + number * seconds * 1.01, "seconds": seconds, "process": rank,
                "file": rank, "layer": layer, "operation": "write", "offset": number * SIZE,
                "bytes": SIZE, "function": "fwrite" if layer == "stdio" else "write",
            }  # fmt: skip


def test_a_file_with_traced_writes_may_be_closed_as_a_stream(tmp_path: Path) -> None:
    """The close of a duplicate, as `ndarray.tofile` makes it, is only in the STDIO counters."""
    path = tmp_path / "job.darshan"
    modules = ("POSIX", "STDIO", "DXT_POSIX")
    write_log(path, log_content(trace_of(calls(_arrays())), file_alignment=4096, modules=modules))

    found = diagnose(read(path))

    assert first(found) == "metadata"
    assert found.causes[0].saving.seconds == pytest.approx(ARRAYS * 14.4e-3, rel=0.15)
    assert not [line for line in found.ledger if line.what == "untraced"]


ARRAYS = 120


def _arrays() -> Iterator[dict[str, object]]:
    """Small arrays, each in a file: an open of 8 ms, a write, and a close of 6 ms."""
    for number in range(ARRAYS):
        now = 1 + number * 15e-3 + number // 30
        yield {"start": now, "seconds": 8e-3, "file": number, "operation": "open"}
        yield {
            "start": now + 8.1e-3, "seconds": 4e-4, "file": number, "operation": "write",
            "offset": 0, "bytes": 2**10,
        }  # fmt: skip
        stream = {"file": number, "layer": "stdio"}
        yield {**stream, "start": now + 8.6e-3, "seconds": 1e-6, "operation": "open"}
        yield {**stream, "start": now + 8.7e-3, "seconds": 6e-3, "operation": "close"}
