"""What `ioprism write-time` shows a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.console import Console

from ioprism.model.samples import WritePattern
from ioprism.reports.to_terminal import error_plot, facts, heading, name, table
from ioprism.units import format_bytes, format_count, format_counted, format_rate, format_seconds
from ioprism.write_time import limits
from ioprism.write_time.estimate import Estimate, PhaseEstimate, StagePart
from ioprism.write_time.evaluation import Evaluation, Underestimation
from ioprism.write_time.fitting import BOOSTING, KINDS, STAGES, LinearFit
from ioprism.write_time.loads import SYMBOLS, loads_of
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.sampling import SamplingProgress
from ioprism.write_time.stage_model import StageFit
from ioprism.write_time.steps import SamplingPlan
from ioprism.write_time.training_data import LEAKING, TrainingFacts
from ioprism.write_time.tuning import Alternative, CheckpointAdvice, Tuning

TITLES = {name: kind.title for name, kind in KINDS.items()} | {
    BOOSTING: "gradient boosting",
    STAGES: "stages of the write path",
}
RATE_IS = {"given": "as given", "measured": "as measured so far", "assumed": "a guess: set --rate"}
STAGE_COLUMNS = ("stage", "load", "per second")
FEATURE_COLUMNS = ("feature", "coefficient", "unit", "stage")
LEAK_NOTE = (
    "validated on samples of the test scales, as in the paper of 2019: the scores of these scales "
    "are too optimistic"
)


def show_model(model: WriteTimeModel, console: Console) -> None:
    """Print what was learned, and from what."""
    trained = model.facts
    heading(console, f"Write-time model of {model.system.title}")
    rows = [
        ("model", TITLES[model.fit.kind]),
        ("samples", f"{format_count(trained.samples)} converged, {trained.held_out} to validate"),
        ("left out", _left_out(trained)),
        ("scales", ", ".join(f"{nodes}" for nodes, _ in trained.scales) + " nodes"),
    ]
    if isinstance(model.fit, LinearFit):
        rows += [
            ("trained on", ", ".join(map(str, model.fit.scales)) + " nodes"),
            ("lambda", f"{model.fit.penalty:.4g}"),
            ("intercept", f"{model.fit.intercept:.4g} s"),
        ]
    if trained.validation == LEAKING:
        rows.append(("caution", LEAK_NOTE))
    facts(console, [(label, name(value)) for label, value in rows])
    if isinstance(model.fit, StageFit):
        exponent = model.fit.shape.exponent
        heading(console, f"Stages that matter, overlapping with exponent {exponent:g}")
        table(console, STAGE_COLUMNS, learned_rows(model))
    elif isinstance(model.fit, LinearFit):
        heading(console, "Features that matter")
        table(console, FEATURE_COLUMNS, learned_rows(model))
    heading(console, "On validation samples")
    table(
        console,
        ("", "within 20%", "within 30%", "mean error", "error at larger scales"),
        [
            (
                TITLES[kind],
                *map(_percent, (s.within_20, s.within_30, s.mean_error, s.forward_error)),
            )
            for kind, s in model.scores.items()
        ],
    )


def learned_rows(model: WriteTimeModel) -> list[tuple[str, ...]]:
    """Return what a model learned: stages and how fast they are, or features and coefficients."""
    fit = model.fit
    if isinstance(fit, StageFit):
        loads = loads_of(model.system, model.facts.access)
        tied = {kept: loads[left_out].stage for left_out, kept in fit.tied}
        named = [f"{load.stage} or {tied[n]}" if n in tied else load.stage
                 for n, load in enumerate(loads)]  # fmt: skip
        return [
            (name, load.name, f"{1 / cost:.4g}")
            for name, load, cost in zip(named, loads, fit.costs, strict=True)
            if cost
        ]
    if isinstance(fit, LinearFit):
        units = {"": "", "MB": "s/MB"}
        return [
            (f.name, f"{value:.4g}", units.get(f.unit, f"s/({f.unit})"), f.stage)
            for f, value in zip(model.features, fit.coefficients.tolist(), strict=True)
            if value
        ]
    return []


def show_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print the shares of good predictions for every set, and a plot of errors by time."""
    title, access = evaluation.model.system.title, evaluation.model.facts.access
    heading(console, f"Predicted against measured: {title}, {access}")
    if evaluation.model.facts.validation == LEAKING:
        facts(console, [("caution", LEAK_NOTE)])
    level = f"in {evaluation.model.calibration.level:.0%} interval"
    table(
        console,
        ("samples", "number", "within 20%", "within 30%", level),
        [(s.name, f"{len(s.measured):,}", *map(_percent, s.shares_close)) for s in evaluation.sets],
    )
    heading(console, "Other models: within 20%")
    kinds = [fit.kind for fit in evaluation.model.beside]
    table(
        console,
        ("samples", *kinds),
        [
            (s.name, *(_percent(s.within_beside(kind)[0]) for kind in kinds))
            for s in evaluation.sets
        ],
    )
    ratios = evaluation.variability
    if len(ratios.ratios):
        heading(console, "Slowest over fastest run of the same write")
        shares = (0.1, 0.5, 0.9, 0.99)
        facts(console, [(f"{share:.0%} of patterns", f"up to {ratios.quantile(share):.2f}")
                        for share in shares])  # fmt: skip
    for sample_set in evaluation.sets:
        if text := underestimation_text(sample_set.underestimated):
            console.print(f"\n  {sample_set.name}: {text}")
    for sample_set in evaluation.sets:
        if len(sample_set.measured) and sample_set.name != "training scales":
            heading(console, f"Errors of the set {sample_set.name}, shortest writes left")
            for line in error_plot(sample_set.errors):
                console.print(f"  {line}")


def underestimation_text(split: Underestimation) -> str:
    """Say how many predictions are too low, and which; nothing where there are none."""
    if not split.too_low:
        return ""
    text = f"{split.too_low:,} of {split.samples:,} writes take over 25% longer than predicted"
    if split.parameter is None:
        return text
    sign = "≥" if split.at_least else "<"
    inside, outside = (f"{low:,} of {count:,}" for low, count in (split.inside, split.outside))
    return f"{text}: {inside} with {split.parameter} {sign} {split.threshold:.4g}, {outside} others"


def show_estimate(estimate: Estimate, console: Console) -> None:
    """Print the time, its interval and what makes it."""
    heading(console, configuration_text(estimate.pattern))
    facts(
        console,
        [
            ("predicted", format_seconds(estimate.seconds)),
            (f"{estimate.level:.0%} interval", _range(estimate.low, estimate.high)),
            ("on a noisy system", _range(*estimate.noisy)),
            ("rate", format_rate(estimate.pattern.total_bytes / estimate.seconds)),
        ],
    )
    heading(console, "Where the time goes")
    rows = [
        (*stage_names(p), format_seconds(p.seconds), f"{p.seconds / estimate.seconds:.0%}")
        for p in estimate.stages
    ]
    table(console, ("stage", "load", "time", "share"), rows)
    console.print()
    facts(console, symbols_of(load for part in estimate.stages for load in part.loads))
    if len(estimate.leading) > 1:
        console.print(f"\n  A tie: {' and '.join(estimate.leading)} cannot be distinguished here.")
    if estimate.may_lead:
        console.print(
            f"\n  The samples do not exclude that {' or '.join(estimate.may_lead)} takes most."
        )


def stage_names(part: StagePart) -> tuple[str, str]:
    """Name a stage with those that carried the same in all samples, and what it carries."""
    return " or ".join((part.stage, *part.same_as)), ", ".join(part.loads)


def symbols_of(formulas: Iterable[str]) -> list[tuple[str, str]]:
    """Return the symbols of formulas such as `s_r*m*K`, and what they mean."""
    used = set(re.findall(r"[A-Za-z_]+", " ".join(formulas)))
    return [(symbol, meaning) for symbol, meaning in SYMBOLS.items() if symbol in used]


def show_phases(phases: Sequence[PhaseEstimate], console: Console) -> None:
    """Print measured and predicted times of a trace's write phases."""
    heading(console, "Write phases, measured and predicted")
    rows = [
        (
            format_seconds(c.start),
            f"{c.estimate.pattern.nodes} x {c.estimate.pattern.cores_per_node}",
            format_bytes(c.estimate.pattern.burst_bytes),
            format_seconds(c.duration),
            format_seconds(c.estimate.seconds),
            _range(c.estimate.low, c.estimate.high),
            f"{c.ratio:.2f}",
        )
        for c in phases
    ]
    columns = ("start", "nodes", "burst", "measured", "predicted", "interval", "ratio")
    table(console, columns, rows)


def show_tuning(tuning: Tuning, console: Console, *, most: int) -> None:
    """Print better configurations first, at most `most` of them, then how often to write."""
    show_estimate(tuning.now, console)
    heading(console, "Configurations that write the same bytes, fastest first")
    columns = ("nodes", "cores", "burst", "predicted", "interval", "speedup", "clear", "stripes")
    alternatives = _alternative_rows(tuning.choices)[:most]
    width = len(columns) if any(row[-1] for row in alternatives) else len(columns) - 1
    table(console, columns[:width], [row[:width] for row in alternatives])
    if any(choice.data_moves for choice in tuning.choices):
        console.print("\n  Sending data to fewer writers takes time that is not in these numbers.")
    best = tuning.choices[0] if tuning.choices else None
    if best is not None and best.hints and best.speedup >= 1.0 + limits.SAME:
        heading(console, "How to configure the first of them")
        for hint in best.hints:
            console.print(f"  {hint.middleware} ({hint.where}): {hint.listed}")
    rows = advice_rows(tuning.advice)
    if len(rows) > 1:
        heading(console, "How often to write")
        facts(console, rows)


def group_alternatives(choices: Sequence[Alternative]) -> list[list[Alternative]]:
    """Put configurations together whose stripe counts make no visible difference."""
    groups: dict[tuple[object, ...], list[Alternative]] = {}
    for choice in choices:
        pattern, speedup = choice.estimate.pattern, f"{choice.speedup:.2f}"
        key = (pattern.nodes, pattern.cores_per_node, speedup, choice.clear)
        groups.setdefault(key, []).append(choice)
    return list(groups.values())


def _alternative_rows(choices: Sequence[Alternative]) -> list[tuple[str, ...]]:
    return [
        (
            f"{first.estimate.pattern.nodes}",
            f"{first.estimate.pattern.cores_per_node}",
            format_bytes(first.estimate.pattern.burst_bytes),
            format_seconds(first.estimate.seconds),
            _range(first.estimate.low, first.estimate.high),
            f"{first.speedup:.2f}",
            "yes" if first.clear else "within error",
            stripe_counts(same),
        )
        for first, same in ((same[0], same) for same in group_alternatives(choices))
    ]


def stripe_counts(choices: Sequence[Alternative]) -> str:
    """Name the stripe counts of configurations that make no visible difference."""
    counts = sorted(choice.estimate.pattern.stripe_count or 0 for choice in choices)
    if not counts[-1]:
        return ""
    return f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def advice_rows(advice: CheckpointAdvice) -> list[tuple[str, str]]:
    """Say how often to write; the first row is what one write takes."""
    rows = [("one write", format_seconds(advice.write_seconds))]
    for author, interval in (("Young", advice.young), ("Daly", advice.daly)):
        if interval is not None:
            rows.append((f"after {author}", f"write every {format_seconds(interval)} of computing"))
    if advice.io_share is not None:
        least = format_seconds(advice.least_interval)
        rows.append(
            (f"I/O under {advice.io_share:.1%}", f"compute at least {least} between writes")
        )
    return rows


def show_plan(planned: SamplingPlan, console: Console) -> None:
    """Print what sampling will take."""
    cost, known_from = planned.cost, RATE_IS[planned.rate_known_from]
    heading(console, "What sampling will take")
    facts(
        console,
        [
            ("patterns", f"{cost.patterns:,}, {planned.added:,} of them new"),
            ("largest run", format_bytes(cost.largest_run_bytes)),
            ("bytes", f"{format_bytes(cost.fewest_bytes)} to {format_bytes(cost.most_bytes)}"),
            ("time", _range(cost.fewest_seconds, cost.most_seconds)),
            ("node-hours", f"at most {cost.node_hours:.3g}"),
            ("assuming", f"{format_rate(planned.rate)} per node ({known_from})"),
        ],
    )


def _left_out(trained: TrainingFacts) -> str:
    text = f"{trained.unconverged} unconverged, {trained.too_short} too short"
    if not trained.short_used:
        return text
    return f"{text} ({trained.short_used} of these only show what creating files costs)"


def plan_warnings(planned: SamplingPlan) -> list[str]:
    """Say which patterns will be measured for nothing."""
    cost = planned.cost
    if not cost.too_short:
        return []
    return [
        f"{cost.too_short} of {cost.patterns} patterns are expected to write for less than "
        f"{cost.shortest:g} s, too short to count: they only show what creating files costs "
        "(--skip-short leaves them out)"
    ]


def sampling_warnings(done: SamplingProgress) -> list[str]:
    """Say which patterns could not be measured, and why."""
    cannot = [
        f"{format_counted(count, 'pattern')} cannot run here: {why}"
        for why, count in done.obstacles.items()
    ]
    given_up = [
        f"{format_counted(count, 'pattern')} failed repeatedly, to be retried next session: {why}"
        for why, count in done.given_up.items()
    ]
    return cannot + given_up


def show_progress(done: SamplingProgress, console: Console) -> None:
    """Print what a sampling session did."""
    heading(console, "Sampling")
    facts(
        console,
        [
            ("runs now", format_count(done.runs)),
            ("converged", format_count(done.converged)),
            ("unconverged", format_count(done.unconverged)),
            ("still to do", format_count(done.waiting)),
            ("interrupted", f"{format_counted(done.discarded, 'earlier run')} discarded"),
            ("failed", format_counted(done.failed, "run")),
        ],
    )


def configuration_text(pattern: WritePattern) -> str:
    """Name a configuration, such as 256 nodes x 16 cores x 512 MB."""
    stripes = f", stripe count {pattern.stripe_count}" if pattern.stripe_count else ""
    nodes = "1 node" if pattern.nodes == 1 else f"{pattern.nodes} nodes"
    cores = "1 core" if pattern.cores_per_node == 1 else f"{pattern.cores_per_node} cores"
    access = "" if pattern.access == "write" else f", {pattern.access}"
    return f"{nodes} x {cores} x {format_bytes(pattern.burst_bytes)}{stripes}{access}"


def _range(low: float, high: float) -> str:
    return f"{format_seconds(low)} to {format_seconds(high)}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
