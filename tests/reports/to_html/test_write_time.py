"""The pages of write times are complete, and cannot be broken by names."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from ioprism.reports.to_terminal import error_plot
from ioprism.write_time import TrainingSettings, load_system
from ioprism.write_time.evaluation import evaluate_samples
from ioprism.write_time.page import page, tuning_page
from ioprism.write_time.steps import tune
from ioprism.write_time.system import parse_system
from ioprism.write_time.terminal import group_alternatives
from ioprism.write_time.training import train_model
from ioprism.write_time.tuning import TuningLimits
from tests.reports.to_html.opening import opened
from tests.write_time.machines import SCALES, titan_samples

FAST = TrainingSettings(kind="stages")


EVIL = "<script>alert(1)</script>\\u202E"


def test_the_page_shows_every_model_and_set_and_names_are_text(
    screen: Page, tmp_path: Path
) -> None:
    text = load_system("titan").text.replace('title = "Titan', f'title = "{EVIL}')
    system = parse_system(text, source="x")
    samples = titan_samples((*SCALES, 256, 512), each=15)
    model = train_model(samples, system=system, settings=FAST)
    found = evaluate_samples(samples, model=model, system=system)
    path = tmp_path / "page.html"
    path.write_text(page(found), encoding="utf-8")
    shown = opened(screen, path, link="#set=medium&models=m0,m1")

    assert "<script>alert(1)</script>" in shown.inner_text("#verdict")
    assert "\u202e" not in path.read_text(encoding="utf-8")
    sets = [one.name for one in found.sets if len(one.measured)]
    assert shown.locator("#controls option").count() == len(sets)
    assert shown.locator(".model input:checked").count() == 2
    assert shown.locator("#charts canvas").count() == 6
    assert f"{len(found.sets[1].measured)}" in shown.inner_text("#story")
    shown.click("#tab-sheet-1")
    assert "nodes behind the busiest I/O router" in shown.inner_text(".symbols")
    assert sum(share for _, share in found.convergence[:1]) > 0
    assert sum(found.sets[0].stages.values()) == pytest.approx(1.0)


def test_the_page_of_tune_ranks_configurations(screen: Page, tmp_path: Path) -> None:
    model = train_model(titan_samples(SCALES, each=15), system=load_system("titan"), settings=FAST)
    limits = TuningLimits(cores=(1, 16), nodes=(8, 32))
    tuning = tune(model, nodes=32, cores=16, burst=10**9, limits=limits)
    path = tmp_path / "tune.html"
    path.write_text(tuning_page(tuning, model), encoding="utf-8")
    shown = opened(screen, path)

    assert shown.inner_text("#verdict").startswith("32 nodes x 16 cores x 954 MiB takes")
    assert shown.locator("#tab-panel tbody tr").count() == len(group_alternatives(tuning.choices))


def test_errors_are_plotted_by_level_and_order() -> None:
    import numpy as np

    lines = error_plot(np.array([0.0, 0.21, -0.19, 9.0]))

    assert lines[0] == " +50% │   ·"
    assert lines[3] == " +20% │ ·"
    assert lines[5].startswith("  +0% ┼·───")
    assert lines[7] == " -20% │  ·"
