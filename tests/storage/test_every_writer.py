"""Whatever is written goes through `storage.atomic`; the few exceptions are named, with reasons."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.conftest import ROOT

PACKAGE = ROOT / "src/ioprism"
WRITES = {"write_text", "write_bytes", "write_parquet", "write_csv", "sink_parquet", "sink_csv"}
GUARDS = {"atomic_write", "atomic_folder", "_writing", "_atomic_file"}
REVIEWED = {
    "write_time/burst_writer.py": "measures writes to new files, in a folder made for them",
    "write_time/launchers.py": "what IOR printed, in a folder made for one run",
    "cli/__init__.py": "the null device, after the reader of the output has left",
    "command/output.py": "the null device in place of a closed stream",
    "formats/chrome_writer.py": "opens what atomic_write has yielded",
    "recording/block.py": "a trace in the folder of a recording, which is new",
    "servers/raw_files.py": "answers of servers, in a temporary folder",
    "servers/validation.py": "moves bytes in a scratch file",
    "live/state.py": "appends; a record that is not whole is noticed",
    "storage/atomic.py": "is what the others go through",
    "storage/checked.py": "writes what atomic_write has yielded",
    "storage/store_parts.py": "within a folder that takes its place when it is complete",
    "storage/trace_store.py": "within a folder that takes its place when it is complete",
    "views/tiles.py": "in a temporary folder",
}


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _opens_for_writing(call: ast.Call) -> bool:
    if ast.unparse(call.func) == "os.open":
        return any("O_WRONLY" in ast.unparse(one) or "O_RDWR" in ast.unparse(one)
                   or "lags" in ast.unparse(one).lower() for one in call.args)  # fmt: skip
    modes = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) <= set("rwaxbt+") and set(mode) & set("wax+")
               for mode in modes)  # fmt: skip


def _unguarded(node: ast.AST, guarded: bool = False) -> Iterator[ast.Call]:
    if isinstance(node, ast.With):
        asked = [one.context_expr for one in node.items]
        guarded |= any(isinstance(one, ast.Call) and _name(one) in GUARDS for one in asked)
    if isinstance(node, ast.Call) and not guarded:
        name = _name(node)
        if name in WRITES or (name in ("open", "fdopen") and _opens_for_writing(node)):
            yield node
    for inner in ast.iter_child_nodes(node):
        yield from _unguarded(inner, guarded)


def _writers() -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "snippets" in path.parts:  # advice to read, not code of ours
            continue
        lines = [call.lineno for call in _unguarded(ast.parse(path.read_text(encoding="utf-8")))]
        if lines:
            found[str(path.relative_to(PACKAGE))] = lines
    return found


def test_nothing_is_written_past_the_one_place_that_does_it_safely() -> None:
    found = _writers()

    assert {name: lines for name, lines in found.items() if name not in REVIEWED} == {}
    assert set(REVIEWED) - set(found) == set()


def test_no_folder_is_removed_or_renamed_elsewhere() -> None:
    removing = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "rmtree(" in (text := path.read_text(encoding="utf-8")) or "os.replace(" in text
    }

    # Folders of runs that a campaign or a recording made, and what a cluster keeps.
    assert removing <= {
        "write_time/sampling.py", "engine/summaries.py", "recording/steps.py",
        "recording/run.py", "storage/atomic.py",
    }  # fmt: skip
