"""The causes of a verdict, with the findings on their calls folded below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.model.verdict import SERIOUS, Finding, Severity
from ioprism.reports.to_terminal import heading
from ioprism.reports.to_terminal.diagnose import span
from ioprism.text import printable
from ioprism.units import format_seconds

if TYPE_CHECKING:  # it loads table libraries
    from ioprism.model.verdict import Cause, Verdict

STYLES = {
    Severity.HIGH: "bold red",
    Severity.WARN: "yellow",
    Severity.INFO: "cyan",
    Severity.OK: "green",
}
MOST_ADVICE = 2  # of each cause; `diagnose` has all


def headline(finding: Finding) -> Text:
    """Return a finding in a line: its level, what was seen, and the time that it costs.

    Symptoms have no time of their own: their cause says what it costs them all together.
    """
    stake = finding.seconds_at_stake
    about = "about " if finding.evidence.get("estimated") else ""
    costs = stake and finding.severity in SERIOUS and finding.cause is None
    time = f"  ({about}{format_seconds(stake)} at stake)" if costs else ""
    return Text.assemble(
        (finding.severity.value.upper().ljust(5), STYLES[finding.severity]),
        printable(finding.title),
        (time, "bold"),
        (f"  [{finding.code}]", "dim"),
        overflow="fold",
    )


def show_causes(
    verdict: Verdict | None,
    findings: Iterable[Finding],
    console: Console,
    *,
    details: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """Print each cause, what it explains and what to do; return the findings that are left.

    Args:
        verdict: the verdict, if there is one.
        findings: all of them; each names its cause.
        console: where to print.
        details: prints more of a finding that is folded below its cause.
    """
    left = list(findings)
    for number, cause in enumerate(verdict.causes if verdict is not None else (), start=1):
        symptoms = [finding for finding in left if finding.cause == cause.code]
        left = [finding for finding in left if finding.cause != cause.code]
        _show_cause(cause, number, symptoms, console, details)
    return left


def _show_cause(
    cause: Cause,
    number: int,
    symptoms: list[Finding],
    console: Console,
    details: Callable[[Finding], None] | None,
) -> None:
    heading(console, f"{number}. {printable(cause.title)}")
    saving = f"saves {format_seconds(cause.saving.seconds)} ({span(cause)})"
    line = f"{saving}, {cause.saving.share:.0%} of the run"
    console.print(Padding(Text.assemble(line, (f"  [{cause.code}]", "dim")), (0, 0, 0, 3)))
    for finding in symptoms:
        console.print(Padding(headline(finding), (0, 0, 0, 5)))
        if details is not None:
            details(finding)
    for advice in cause.advice[:MOST_ADVICE]:
        text = Text.assemble(("→ ", "bold"), printable(advice.text))
        console.print(Padding(text, (0, 0, 0, 3)))
