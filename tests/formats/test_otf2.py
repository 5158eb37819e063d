"""OTF2 archives are read through their own package, and its absence is said."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from ioprism.errors import BrokenTraceError, ReaderUnavailableError
from ioprism.formats import otf2
from ioprism.formats.otf2 import Otf2Reader
from ioprism.formats.registry import read_trace
from tests.conftest import ROOT

DATA = ROOT / "tests/data/otf2"


@pytest.mark.parametrize("path", [DATA, DATA / "traces.otf2"], ids=["folder", "anchor"])
def test_the_writes_of_an_archive_are_read(path: Path) -> None:
    pytest.importorskip("otf2")
    trace = read_trace(path)
    events = trace.events()
    writes = events.filter(operation="write")

    assert events["operation"].to_list() == ["open", *["write"] * 5, "close"]
    assert writes["bytes"].to_list() == [2**20] * 5
    assert writes["offset"].to_list() == [n * 2**20 for n in range(5)]
    assert trace.files["path"].to_list() == ["/scratch/a.dat"]
    assert (events["end"] - events["start"]).sum() == pytest.approx(50e-6)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "otf2", None)

    assert Otf2Reader().recognises(DATA)
    with pytest.raises(ReaderUnavailableError, match="pip install otf2"):
        read_trace(DATA)


def test_an_archive_without_its_parts_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("otf2")
    path = tmp_path / "traces.otf2"
    path.write_bytes((DATA / "traces.otf2").read_bytes())

    with pytest.raises(BrokenTraceError):
        read_trace(path)


def test_an_archive_that_its_library_never_opens_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("otf2")
    monkeypatch.setattr(otf2, "SECONDS", 2.0)
    shutil.copytree(DATA, tmp_path / "archive")
    anchor = tmp_path / "archive/traces.otf2"
    content = anchor.read_bytes()
    anchor.write_bytes(content[:49] + bytes.fromhex("b621e15a5bab31b0") + content[49:])

    with pytest.raises(BrokenTraceError, match="no end after 2 s"):
        read_trace(tmp_path / "archive")
