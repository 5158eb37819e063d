"""OTF2 archives are read through their own package, and its absence is said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from ioprism import BrokenTraceError, read
from ioprism.formats import otf2
from ioprism.formats.reading import VARIABLE
from tests.conftest import ROOT

DATA = ROOT / "tests/data/otf2"


@pytest.mark.parametrize("path", [DATA, DATA / "traces.otf2"], ids=["folder", "anchor"])
def test_the_writes_of_an_archive_are_read(path: Path) -> None:
    pytest.importorskip("otf2")
    trace = read(path)
    events = trace.events()
    writes = events.filter(operation="write")

    assert events["operation"].to_list() == ["open", *["write"] * 5, "close"]
    assert writes["bytes"].to_list() == [2**20] * 5
    assert writes["offset"].to_list() == [n * 2**20 for n in range(5)]
    assert trace.files["path"].to_list() == ["/scratch/a.dat"]
    assert (events["end"] - events["start"]).sum() == pytest.approx(50e-6)


def test_an_archive_without_its_parts_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("otf2")
    path = tmp_path / "traces.otf2"
    path.write_bytes((DATA / "traces.otf2").read_bytes())

    with pytest.raises(BrokenTraceError):
        read(path)


def test_an_archive_that_its_library_never_opens_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("otf2")
    monkeypatch.setattr(otf2, "SECONDS", 2.0)
    monkeypatch.setenv(VARIABLE, "64GB")
    shutil.copytree(DATA, tmp_path / "archive")
    anchor = tmp_path / "archive/traces.otf2"
    content = anchor.read_bytes()
    anchor.write_bytes(content[:49] + bytes.fromhex("b621e15a5bab31b0") + content[49:])

    with pytest.raises(BrokenTraceError, match="still running after 2 s"):
        read(tmp_path / "archive")


def test_a_call_that_never_ended_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = type("IoOperationBegin", (), {"handle": "file", "matching_id": 1, "time": 5})
    archive = SimpleNamespace(timer_resolution=1, events=[(SimpleNamespace(group=None), begun())])
    library = SimpleNamespace(reader=SimpleNamespace(open=lambda _: nullcontext(archive)))
    monkeypatch.setattr(otf2, "_library", lambda _: library)
    said: list[str] = []

    assert not list(otf2.Otf2Archive(DATA / "traces.otf2").rows(said.append))
    assert said == ["traces.otf2: 1 unfinished call left out"]


def written_archive(folder: Path) -> Path:
    """Two ranks on two nodes, written by the package itself: opens, seeks, reads and writes."""
    library = pytest.importorskip("otf2")
    with library.writer.open(str(folder), timer_resolution=1_000_000) as archive:
        known = archive.definitions
        root = known.system_tree_node("machine", class_name="machine")
        paradigm = known.io_paradigm(
            identification="POSIX", name="POSIX I/O",
            io_paradigm_class=library.IoParadigmClass.SERIAL,
            io_paradigm_flags=library.IoParadigmFlag.NONE,
        )  # fmt: skip
        regions = {name: known.region(name) for name in ("open64", "lseek64", "close")}
        for rank in range(2):
            node = known.system_tree_node(f"node{rank}", class_name="node", parent=root)
            group = known.location_group(f"rank {rank}", system_tree_parent=node)
            writer = archive.event_writer(f"thread of {rank}", group=group)
            file = known.io_regular_file(f"/scratch/{rank}.dat", scope=node)
            handle = known.io_handle(file=file, name=f"{rank}.dat", io_paradigm=paradigm,
                                     io_handle_flags=library.IoHandleFlag.NONE)  # fmt: skip
            _calls(library, writer, handle, regions, start=1000 * rank)
    return folder


def _calls(library: Any, writer: Any, handle: Any, regions: Any, *, start: int) -> None:
    def inside(name: str, at: int, event: Callable[[int], None]) -> None:
        writer.enter(start + at, regions[name])
        event(start + at + 1)
        writer.leave(start + at + 5, regions[name])

    def operation(at: int, mode: str, size: int) -> None:
        blocking = library.IoOperationFlag.NONE
        mode = getattr(library.IoOperationMode, mode)
        writer.io_operation_begin(start + at, handle, mode, blocking, size, at)
        writer.io_operation_complete(start + at + 10, handle, size // 2 if at > 200 else size, at)

    inside("open64", 0, lambda at: writer.io_create_handle(
        at, handle, library.IoAccessMode.READ_WRITE, library.IoCreationFlag.CREATE,
        library.IoStatusFlag.NONE))  # fmt: skip
    for number in range(3):
        operation(100 + 20 * number, "WRITE", 4096)
    inside(
        "lseek64",
        190,
        lambda at: writer.io_seek(at, handle, 512, library.IoSeekOption.FROM_START, 512),
    )
    operation(210, "READ", 1024)
    operation(230, "READ", 1024)
    inside("close", 300, lambda at: writer.io_destroy_handle(at, handle))


def test_an_archive_of_the_package_itself_is_read_to_the_byte(tmp_path: Path) -> None:
    trace = read(written_archive(tmp_path / "archive"))
    events = trace.events().sort("rank", "start")
    moves = events.filter(pl.col("operation").is_in(["read", "write"]))

    assert trace.job.ranks == 2
    assert trace.processes["host"].to_list() == ["node0", "node1"]
    assert events["operation"].to_list() == 2 * ["open", *["write"] * 3, "seek", "read", "read",
                                                 "close"]  # fmt: skip
    assert moves["bytes"].to_list() == 2 * [4096, 4096, 4096, 512, 512]
    assert moves["offset"].to_list() == 2 * [0, 4096, 8192, 512, 1024]
    assert set(events["layer"]) == {"posix"}
    assert sorted(trace.files["path"]) == ["/scratch/0.dat", "/scratch/1.dat"]
    assert (events["end"] - events["start"]).sum() == pytest.approx(2 * (3 * 5 + 5 * 10) * 1e-6)
    assert events.filter(operation="open")["function"].to_list() == ["open64", "open64"]
