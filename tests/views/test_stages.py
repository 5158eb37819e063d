"""A stored main view is found again by content and settings, and never in place of another."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from ioprism import LocalEngine, NoSuchTraceError
from ioprism.bottleneck_search.result import Settings
from ioprism.bottleneck_search.rule_language.load import rules
from ioprism.bottleneck_search.steps import PreparedView, Source
from ioprism.views.main_view import MainView, StageStore, stage_key
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


class Forbidden:
    """An engine that must not be asked."""

    def run(self, *_: object) -> None:
        raise AssertionError("the events were read again")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / "g_straggler_rank2.darshan", tmp_path / "run.darshan"))


def look(log: Path, folder: Path, *, engine: object = None, **chosen: object) -> PreparedView:
    source = Source((log,), None, folder)
    return source.stage(Settings(**chosen), engine or LocalEngine(), like_wisio=False)  # type: ignore[arg-type]


def test_another_threshold_view_or_rule_set_starts_from_the_stored_view(
    log: Path, tmp_path: Path
) -> None:
    fresh = look(log, tmp_path / "stages")
    for chosen in ({"threshold": 20.0}, {"views": ("host", "function")}, {"metric": "bytes"}):
        again = look(log, tmp_path / "stages", engine=Forbidden(), **chosen)
        assert again.main.equals(fresh.main)
    again = look(log, tmp_path / "stages", engine=Forbidden())

    assert again.bottlenecks(rules()).to_dict() == fresh.bottlenecks(rules()).to_dict()
    assert again.trace.job == fresh.trace.job
    assert again.trace.completeness.warnings == fresh.trace.completeness.warnings


def test_another_trace_under_the_same_name_is_read_anew(log: Path, tmp_path: Path) -> None:
    before = look(log, tmp_path / "stages")
    shutil.copy(DATA / "a_ckpt_fpp_period5s.darshan", log)
    after = look(log, tmp_path / "stages")

    assert after.main["bytes"].sum() != before.main["bytes"].sum()


@pytest.mark.parametrize("change", [{"bucket": 2.0}, {"assignment": "start"}, {"after": 0.0}])
def test_other_settings_have_other_keys(log: Path, change: dict[str, object]) -> None:
    plain = stage_key([log], MainView(), format_name=None)

    assert stage_key([log], MainView(**change), format_name=None) != plain  # type: ignore[arg-type]
    assert stage_key([log], MainView(), format_name=None) == plain


def test_another_version_has_other_keys(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stage_key([log], MainView(), format_name=None)
    monkeypatch.setattr("ioprism.views.main_view.VERSION", 10**6)

    assert stage_key([log], MainView(), format_name=None) != before


def test_a_damaged_stage_is_made_again(log: Path, tmp_path: Path) -> None:
    fresh = look(log, tmp_path / "stages")
    for file in (tmp_path / "stages").rglob("main.parquet"):
        file.write_bytes(file.read_bytes()[:100])

    assert look(log, tmp_path / "stages").main.height == fresh.main.height
    assert StageStore(tmp_path / "none").load("0", paths=[log]) is None


def test_a_trace_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTraceError):
        look(tmp_path / "nowhere", tmp_path / "stages")


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"job": "x", "warnings": []}'])
def test_a_changed_stage_is_made_again(log: Path, tmp_path: Path, text: str) -> None:
    fresh = look(log, tmp_path / "stages")
    for file in (tmp_path / "stages").rglob("stage.json"):
        file.write_text(text)
    for file in (tmp_path / "stages").rglob("main.parquet"):
        pl.read_parquet(file).head(1).write_parquet(file)

    assert look(log, tmp_path / "stages").main.equals(fresh.main)
    for file in (tmp_path / "stages").rglob("main.parquet"):
        pl.read_parquet(file).head(1).write_parquet(file)
    assert look(log, tmp_path / "stages").main.equals(fresh.main)
