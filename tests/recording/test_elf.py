"""How programs are linked is read from their headers; everything else is no program."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from ioprism.recording.command import Linkage, read_linkage

LOADED, DYNAMIC, INTERPRETER = 1, 2, 3


def elf(libraries: list[str], *, interpreter: bool) -> bytes:
    """A 64-bit little-endian ELF file with the headers that matter, and nothing to run."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in libraries)
    kinds = [LOADED, DYNAMIC, *([INTERPRETER] if interpreter else [])]
    strings = 64 + 56 * len(kinds)
    dynamic = strings + len(names)
    offsets = [names.index(name.encode()) for name in libraries]
    entries = [*((1, offset) for offset in offsets), (5, strings), (0, 0)]
    table = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    places = {LOADED: (0, dynamic), DYNAMIC: (dynamic, len(table)), INTERPRETER: (0, 1)}
    segments = b"".join(
        struct.pack("<IIQQQQQQ", kind, 0, place, place, place, size, size, 0)
        for kind in kinds
        for place, size in (places[kind],)
    )
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 2, 62, 1, 0, 64, 0)
    return head + struct.pack("<IHHHHHH", 0, 64, 56, len(kinds), 0, 0, 0) + segments + names + table


def linkage(tmp_path: Path, content: bytes) -> Linkage | None:
    path = tmp_path / "program"
    path.write_bytes(content)
    return read_linkage(path)


def test_libraries_of_a_dynamic_program_are_listed(tmp_path: Path) -> None:
    found = linkage(tmp_path, elf(["libmpi.so.40", "libc.so.6"], interpreter=True))

    assert found == Linkage(static=False, needed=("libmpi.so.40", "libc.so.6"))
    assert found.uses_mpi


def test_a_program_without_a_loader_is_static(tmp_path: Path) -> None:
    assert linkage(tmp_path, elf([], interpreter=False)) == Linkage(static=True, needed=())


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\x7fELF", elf(["a"], interpreter=True)[:90]]
)
def test_what_is_no_program_has_no_linkage(tmp_path: Path, content: bytes) -> None:
    assert linkage(tmp_path, content) is None


def test_the_python_that_runs_this_is_dynamic() -> None:
    found = read_linkage(Path(sys.executable).resolve())

    assert found is not None
    assert not found.static
