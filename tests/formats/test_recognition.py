"""Every sample is recognised by its own reader and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioprism.formats.registry import Unavailable, readers
from tests.conftest import ROOT, SHARED_DATA

DATA = ROOT / "tests/data"
SAMPLES = {
    "darshan": sorted(DATA.glob("darshan/*.darshan")),
    "dftracer": [DATA / "dftracer", *sorted(DATA.glob("dftracer/*.pfw*"))],
    "recorder": sorted(p for p in DATA.glob("recorder/*") if p.is_dir()),
    "recorder-text": sorted(DATA.glob("recorder/*/_text")),
    "strace": [DATA / "strace/randread_np2.strace"],
    "otf2": [DATA / "otf2", DATA / "otf2/traces.otf2"],
}
SHARED = {
    "darshan": "darshan/*/*.darshan",
    "dftracer": "dftracer/*/*.pfw*",
    "recorder-parquet": "wisio/recorder-parquet",
    "chrome": "recorder/*/*/_chrome/*.json",
    "tmio": "tmio/*.js*",
    "gekkofs": "tmio/gekkofs/*",
}
OWN = [(name, path) for name, paths in SAMPLES.items() for path in paths]
OTHERS = [
    pytest.param(name, path, marks=pytest.mark.corpus)
    for name, pattern in SHARED.items()
    for path in sorted(SHARED_DATA.glob(pattern))
]
NO_TRACES = sorted(
    path
    for folder in ("servers", "write_time", "counters", "ceilings")
    for path in DATA.glob(f"{folder}/*")
)


def recognising(path: Path) -> list[str]:
    every = [reader for reader in readers() if not isinstance(reader, Unavailable)]
    return [reader.name for reader in every if reader.recognises(path)]


@pytest.mark.parametrize(("name", "path"), [*OWN, *OTHERS])
def test_a_sample_is_recognised_by_its_own_reader_alone(name: str, path: Path) -> None:
    assert recognising(path) == [name]


@pytest.mark.parametrize("path", NO_TRACES, ids=lambda p: p.name)
def test_what_is_no_trace_is_recognised_by_none(path: Path) -> None:
    assert recognising(path) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"[", b"{", b"[" * 100_000, b"\x1f\x8b", b"\x1f\x8b" + b"\0" * 50, b"PAR1",
     b"start,end,", b"RECORDER", b"\x03BOTF2", "\ud800".encode("utf-16", "surrogatepass")],
)  # fmt: skip
def test_recognition_never_raises(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)

    assert set(recognising(path)) <= {"otf2"}


def test_folders_and_missing_files_are_no_reason_to_raise(tmp_path: Path) -> None:
    assert recognising(tmp_path) == []
    assert recognising(tmp_path / "none") == []
