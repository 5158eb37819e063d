"""The page of error plots is complete, loads nothing, and cannot be broken by names."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from ioprism.reports.to_terminal.plot import error_plot
from ioprism.write_time import TrainingSettings, load_system
from ioprism.write_time.evaluation import evaluate_samples
from ioprism.write_time.page import page
from ioprism.write_time.system import parse_system
from ioprism.write_time.training import train_model
from tests.write_time.machines import SCALES, titan_samples

FAST = TrainingSettings(kind="stages")


class Tags(HTMLParser):
    """Counts tags."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name in ("src", "href", "style") for name, _ in attrs)
        assert not any(name.startswith("on") for name, _ in attrs)


def test_the_page_draws_every_sample_and_allows_no_script() -> None:
    hostile = load_system("titan").text.replace(
        'title = "Titan', 'title = "<script>alert(1)</script>\\u202E'
    )
    system = parse_system(hostile, source="x")
    samples = titan_samples((*SCALES, 256, 512), each=15)
    model = train_model(samples, system=system, settings=FAST)
    found = evaluate_samples(samples, model=model, system=system)

    text = page(found)
    tags = Tags()
    tags.feed(text)

    assert "script" not in tags.seen
    assert "\u202e" not in text
    varying = len(found.variability.distribution(points=200))
    assert tags.seen.count("circle") == sum(len(s.measured) for s in found.sets) + varying
    assert "default-src &#x27;none&#x27;" in text
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert style is not None
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in text


def test_errors_are_plotted_by_level_and_order() -> None:
    import numpy as np

    lines = error_plot(np.array([0.0, 0.21, -0.19, 9.0]))

    assert lines[0] == " +50% │   ·"
    assert lines[3] == " +20% │ ·"
    assert lines[5].startswith("  +0% ┼·───")
    assert lines[7] == " -20% │  ·"
