"""Folders of `ioprism record` come from others, too."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ioprism import BrokenTraceError, OutputError
from ioprism.recording.steps import make_folder
from ioprism.storage.checked import cache_folder
from ioprism.storage.recordings import MARKER, read_recording, recorded_runs

RUN = {"folder": "run-1", "seconds": 1.0, "exit_code": 0, "signal": None, "started": 1e9}
SOUND = {"command": ["a"], "tracer": "strace", "runs": [RUN], "cost": None}
COST = {"per_call": 1e-6, "per_process": 0.1}


def recorded(folder: Path, content: object) -> Path:
    (folder / "run-1").mkdir()
    (folder / "loop").symlink_to("loop")
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / MARKER).write_text(text)
    return folder


def test_a_sound_list_of_runs_is_read(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {**SOUND, "cost": COST, "untraced_seconds": 2})

    assert [run.seconds for run in recorded_runs(folder).values()] == [1.0]
    recording = read_recording(folder)
    assert recording is not None and recording.cost == COST


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        [],
        {**SOUND, "cost": {"per_hour": 1}},
        {**SOUND, "cost": 5},
        {**SOUND, "untraced_seconds": "long"},
        *({**SOUND, "runs": [{**RUN, **change}]} for change in (
            {"seconds": "x"}, {"seconds": float("nan")}, {"started": -1e300}, {"folder": 5},
            {"folder": "a\0b"}, {"folder": "loop"}, {"exit_code": "0"}, {"more": 1},
            {"seconds": 10**400},
        )),
    ],
)  # fmt: skip
def test_a_changed_list_of_runs_is_one_clear_error(tmp_path: Path, content: Any) -> None:
    with pytest.raises(BrokenTraceError, match="the list of runs is damaged"):
        recorded_runs(recorded(tmp_path, content))


def test_a_run_outside_its_folder_is_none(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {**SOUND, "runs": [{**RUN, "folder": "../.."}]})

    assert recorded_runs(folder) == {}


def test_a_folder_that_only_has_a_file_of_that_name_is_not_removed(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {"artist": "somebody"})

    with pytest.raises(OutputError, match="is not a recording"):
        make_folder(folder, "a", overwrite=True)
    assert (folder / "run-1").is_dir()


def test_a_cache_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache_folder()
    os.chmod(folder, 0o777)  # noqa: PTH101

    with pytest.raises(OutputError, match="only this user can write"):
        cache_folder()
