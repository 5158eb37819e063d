"""A page that shows how far predictions are from measurements."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator
from html import escape

from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.version import __version__
from ioprism.write_time.evaluation import Evaluation, SampleSet, Variability
from ioprism.write_time.model import CLOSE, FAIR
from ioprism.write_time.terminal import LEAK_NOTE, title, underestimation_text
from ioprism.write_time.training_data import LEAKING

WIDTH, HEIGHT, LEFT, BOTTOM = 860, 260, 56, 30
LIMIT = 0.5  # errors beyond are drawn at the edge
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; background: #fff; margin: 2rem auto;
  max-width: 920px; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid #d8dee6; }
th:first-child, td:first-child { text-align: left; }
th { color: #5b6875; font-weight: 500; }
svg { width: 100%; height: auto; }
.band { fill: #eef4fb; } .axis { stroke: #8a97a5; } .zero { stroke: #1c2733; }
.dot { fill: #1f6feb; fill-opacity: .55; } .label { font-size: 12px; fill: #5b6875; }
.caution { border-left: 4px solid #c77700; padding-left: .8rem; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe6ee; background: #12181f; } th, td { border-color: #2c3743; }
  .band { fill: #1b2633; } .zero { stroke: #dfe6ee; } .dot { fill: #6cb0ff; }
  .label, th { fill: #9aa7b4; color: #9aa7b4; }
}
"""


def page(evaluation: Evaluation) -> str:
    """Return the whole page; it loads nothing and runs nothing."""
    heading = f"Write time: predicted against measured, {printable(evaluation.model.system.title)}"
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(heading)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(heading)}</h1>",
            f"<p>Model: {escape(title(evaluation.model.fit.kind))}, trained on "
            f"{evaluation.model.facts.samples} samples of up to "
            f"{evaluation.model.facts.scales[-1][0]} nodes.</p>",
            *_caution(evaluation),
            *_scores(evaluation),
            *(part for sample_set in evaluation.sets for part in _figure(sample_set)),
            *_variability(evaluation.variability),
            f"<p>Made by ioprism {escape(__version__)}.</p></body></html>\n",
        ]
    )


def _caution(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.model.facts.validation == LEAKING:
        yield f'<p class="caution">{escape(LEAK_NOTE)}</p>'


def _scores(evaluation: Evaluation) -> Iterator[str]:
    kinds = [fit.kind for fit in evaluation.model.beside]
    level = f"in {evaluation.model.calibration.level:.0%} interval"
    yield "<table><thead><tr>"
    for column in ("set", "samples", "within 20 %", "within 30 %", level, *kinds):
        yield f'<th scope="col">{escape(column)}</th>'
    yield "</tr></thead><tbody>"
    for sample_set in evaluation.sets:
        shares = (sample_set.within(CLOSE), sample_set.within(FAIR), sample_set.coverage)
        yield f"<tr><td>{escape(sample_set.name)}</td><td>{len(sample_set.measured)}</td>"
        yield from (f"<td>{_percent(share)}</td>" for share in shares)
        for kind in kinds:
            within = sample_set.within_beside(kind)
            yield f"<td>{_percent(within[0])} / {_percent(within[1])}</td>"
        yield "</tr>"
    yield "</tbody></table><p>Other models: within 20 % / within 30 %.</p>"


def _figure(sample_set: SampleSet) -> Iterator[str]:
    if not len(sample_set.measured):
        return
    caption = f"Relative errors of the set {sample_set.name}, shortest writes left"
    yield f"<h2>{escape(caption)}</h2>"
    if text := underestimation_text(sample_set.underestimated):
        yield f"<p>{escape(text)}.</p>"
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">'
    top, bottom = _height(FAIR), _height(-FAIR)
    yield f'<rect class="band" x="{LEFT}" y="{top:.1f}" width="{WIDTH - LEFT}" '
    yield f'height="{bottom - top:.1f}"/>'
    for level in (LIMIT, FAIR, CLOSE, 0.0, -CLOSE, -FAIR, -LIMIT):
        yield from _level(level)
    for number, error in enumerate(sample_set.errors):
        across = LEFT + (number + 0.5) * (WIDTH - LEFT) / len(sample_set.errors)
        yield f'<circle class="dot" cx="{across:.1f}" cy="{_height(float(error)):.1f}" r="2.5"/>'
    shortest, longest = (format_seconds(float(t)) for t in sample_set.measured[[0, -1]])
    yield f'<text class="label" x="{LEFT}" y="{HEIGHT - 8}">{escape(shortest)}</text>'
    yield f'<text class="label" text-anchor="end" x="{WIDTH}" y="{HEIGHT - 8}">'
    yield f"{escape(longest)}</text></svg>"


def _variability(variability: Variability) -> Iterator[str]:
    """Draw the cumulative distribution of slowest over fastest run."""
    points = variability.distribution(points=200)
    if not points:
        return
    caption = "How much the same write varies: slowest over fastest run, share of patterns up to it"
    widest = max(points[-1][0], 1.1)
    top, height = 10, HEIGHT - BOTTOM - 20
    yield f"<h2>{escape(caption)}</h2>"
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">'
    for share in (0.0, 0.5, 0.9, 1.0):
        level = top + (1.0 - share) * height
        yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{level:.1f}" y2="{level:.1f}"'
        yield ' stroke-width="0.6"/>'
        yield f'<text class="label" x="6" y="{level + 4:.1f}">{share:.0%}</text>'
    for ratio, share in points:
        across = LEFT + (ratio - 1.0) / (widest - 1.0) * (WIDTH - LEFT - 5)
        level = top + (1.0 - share) * height
        yield f'<circle class="dot" cx="{across:.1f}" cy="{level:.1f}" r="2"/>'
    yield f'<text class="label" x="{LEFT}" y="{HEIGHT - 8}">1</text>'
    yield f'<text class="label" text-anchor="end" x="{WIDTH}" y="{HEIGHT - 8}">'
    yield f"{widest:.2f}</text></svg>"


def _level(level: float) -> Iterator[str]:
    height = _height(level)
    kind = "zero" if level == 0 else "axis"
    yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH}" y1="{height:.1f}" y2="{height:.1f}"'
    yield ' stroke-width="0.6"/>'
    yield f'<text class="label" x="6" y="{height + 4:.1f}">{level:+.0%}</text>'


def _height(error: float) -> float:
    shown = max(-LIMIT, min(LIMIT, error if math.isfinite(error) else LIMIT))
    return 10 + (LIMIT - shown) / (2 * LIMIT) * (HEIGHT - BOTTOM - 20)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
