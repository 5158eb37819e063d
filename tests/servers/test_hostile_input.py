"""Whatever bytes come, readers count damage or refuse with one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ioprism import IoprismError, servers
from ioprism.servers import COUNTERS, JOBS, ReadingOptions, Tally
from ioprism.servers.counter_formats.registry import counter_readers, job_readers

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
