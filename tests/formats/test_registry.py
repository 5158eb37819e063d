"""The right reader is found by content, and each way to fail has its own message."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioprism import (
    BrokenTraceError,
    NoSuchTraceError,
    ReaderUnavailableError,
    Trace,
    UnknownFormatError,
    UsageError,
)
from ioprism.formats import registry
from ioprism.formats.registry import (
    FACTS,
    Unavailable,
    find_reader,
    read_trace,
    read_traces,
    readers,
)
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"


def test_a_log_is_recognised_whatever_its_name(tmp_path: Path) -> None:
    renamed = tmp_path / "holiday.jpg"
    renamed.write_bytes(LOG.read_bytes())

    assert find_reader(renamed).name == "darshan"
    assert read_trace(renamed).job.ranks == 4


def test_nothing_at_the_path_is_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(
        NoSuchTraceError, match=r"nowhere: no such file.*\n?Hint: check the spelling"
    ):
        read_trace(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", r"the file is empty\.\nHint: .*record the job again"),
        (b"hello\n", r"the format is unknown\.\nHint: .*--format.*`ioprism formats`"),
        (b"\x7fELF" * 100, r"the format is unknown\.\nHint: .*--format.*`ioprism formats`"),
    ],
)
def test_unknown_content_is_explained(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "x").write_bytes(content)

    with pytest.raises(UnknownFormatError, match=what):
        read_trace(tmp_path / "x")


def test_an_unknown_format_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="there is no format 'otf9'"):
        read_trace(LOG, format_name="otf9")


def test_a_missing_package_is_named_when_its_format_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "exotic", "no_such_package_at_all:Reader")

    assert find_reader(LOG).name == "darshan"
    assert Unavailable("exotic", "no_such_package_at_all") in list(readers())
    with pytest.raises(ReaderUnavailableError, match="Hint: pip install no_such_package_at_all"):
        find_reader(LOG, format_name="exotic")


class EverythingReader:
    """A plugin that takes what nobody else knows."""

    name = "everything"
    title = "anything at all"
    tells = frozenset({"calls"})

    def recognises(self, source: Path) -> bool:
        return source.suffix == ".any"

    def read(self, source: Path) -> Trace:
        raise BrokenTraceError("nothing in it.\nHint: none.", source=source)


def test_a_plugin_is_asked_after_the_built_in_readers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plugin = EntryPoint("everything", f"{__name__}:EverythingReader", registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: EverythingReader)
    monkeypatch.setattr(registry, "declared", lambda group: [plugin])  # noqa: ARG005
    (tmp_path / "x.any").write_text("x")

    assert find_reader(tmp_path / "x.any").name == "everything"
    assert find_reader(LOG).name == "darshan"


def test_a_folder_is_searched_and_what_is_no_trace_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/log").write_bytes(LOG.read_bytes())
    (tmp_path / "notes.txt").write_text("do not forget")

    assert read_trace(tmp_path).job.ranks == 4


def test_a_damaged_log_in_a_folder_is_named_in_a_warning(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(LOG.read_bytes())
    (tmp_path / "short").write_bytes(LOG.read_bytes()[:500])
    (trace,) = read_traces(tmp_path)

    assert any("short: the header is cut short" in w for w in trace.completeness.warnings)


def test_a_folder_with_damaged_logs_only_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(LOG.read_bytes()[:500])

    with pytest.raises(BrokenTraceError, match="the header is cut short"):
        read_traces(tmp_path)


def test_an_empty_folder_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="this folder or anything in it"):
        read_traces(tmp_path)


def test_no_trace_at_all_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no trace was given"):
        read_trace()


def test_logs_of_different_jobs_are_different_traces() -> None:
    other = LOG.with_name("c_rank0_all_io.darshan")

    assert [trace.job.ranks for trace in read_traces(LOG, other)] == [4, 8]
    assert read_trace(LOG, other, grouping="one").job.ranks == 12


def test_readers_name_only_facts_that_are_explained() -> None:
    for reader in readers():
        assert isinstance(reader, Unavailable) or reader.tells <= set(FACTS)


@settings(max_examples=200, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(content=st.binary(max_size=4096))
def test_sniffing_never_raises(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "anything"
    path.write_bytes(content)

    for reader in readers():
        assert isinstance(reader, Unavailable) or reader.recognises(path) in (True, False)
