"""Nothing that a user reads contains an unfilled placeholder or a leftover of Python."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import ioprism
from ioprism.cli import main
from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.registry import RULES

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
SAMPLES = [
    *sorted((DATA / "darshan").glob("*.darshan")),
    DATA / "dftracer" / "v2.2.0-md1-plain.pfw",
    DATA / "recorder" / "master-ckpt",
]
TABLES = [
    ["rules"],
    ["rules", "--thresholds"],
    ["rules", "check", "--fields"],
    ["formats"],
    ["bottlenecks", "--list-views"],
    ["write-time", "system", "list"],
    ["write-time", "system", "show", "titan", "--features"],
]
QUESTIONS = ["insights", "diagnose", "characterise", "bottlenecks", "phases", "period"]

# `{field}` is how the rule language's own messages write its syntax.
_PLACEHOLDER = re.compile(
    r"\{(?!field\b)[a-z_][a-z0-9_.]*(?:[:!][^{}\s]*)?\}"
    r"|%[sd]\b|\bNone\b|\bnan\b|\bNaN\b|\bundefined\b|\[object Object\]"
)
_RAISED = {"warn", "Unknown", "Verdict", "NotChecked"}


def placeholders(text: str) -> list[str]:
    """What should have been filled in, or not shown at all."""
    return _PLACEHOLDER.findall(text)


@pytest.mark.parametrize(
    "text", ["is {past} again", "{share:percent} of", "took %s", "after None s", "nan B/s"]
)
def test_a_text_that_was_not_filled_in_is_noticed(text: str) -> None:
    assert placeholders(text)


def test_help_of_every_command_is_filled_in() -> None:
    helps = dict(_helps(main, "ioprism"))

    assert len(helps) > 30
    assert {name: placeholders(text) for name, text in helps.items() if placeholders(text)} == {}


@pytest.mark.parametrize("command", TABLES, ids=" ".join)
def test_lists_of_what_ioprism_knows_are_filled_in(command: list[str]) -> None:
    shown = CliRunner().invoke(main, command)

    assert shown.exit_code == 0 and shown.output
    assert placeholders(shown.output) == []


def test_questions_and_advice_of_every_rule_are_filled_in() -> None:
    texts = [wording.question(rule.advice, rule.direction) for rule in RULES]
    texts += [line for rule in RULES for line in wording.advice_lines(rule.advice, rule.direction)]

    assert len(texts) > 100
    assert [text for text in texts if placeholders(text)] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_summary_and_page_of_every_sample_are_filled_in(sample: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(main, ["report", str(sample), "-o", str(page), "-q"])

    assert shown.exit_code == 0
    assert placeholders(shown.output) == []
    assert [text for text in _visible(page.read_text(encoding="utf-8")) if placeholders(text)] == []


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("sample", [SAMPLES[3], SAMPLES[-2]], ids=lambda path: path.name)
def test_answers_about_a_sample_are_filled_in(sample: Path, question: str) -> None:
    more = ["--all"] if question == "insights" else []
    shown = CliRunner().invoke(main, [question, str(sample), "-q", *more])

    assert shown.exit_code == 0
    assert placeholders(shown.output) == []


def test_results_and_traces_print_no_leftovers() -> None:
    trace = ioprism.read(SAMPLES[0])
    results = [trace, ioprism.characterise(trace), ioprism.insights(trace), ioprism.phases(trace)]

    assert [repr(result) for result in results if placeholders(repr(result))] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_documentation_is_filled_in(path: Path) -> None:
    prose = re.sub(
        r"```.*?```|`[^`]*`|^    .*$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE
    )

    assert placeholders(prose) == []


def test_every_message_with_a_field_in_braces_is_an_f_string() -> None:
    forgotten = [
        f"{path.relative_to(ROOT)}:{text.lineno}"
        for path in SOURCES
        for text in _messages(ast.parse(path.read_text(encoding="utf-8")))
        if placeholders(str(text.value))
    ]

    assert forgotten == []


def _helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=name)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield from _helps(inner, f"{name} {part}")


def _visible(page: str) -> Iterator[str]:
    """The text of a page, and all that its script draws from the embedded data."""
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        yield from _strings(json.loads(data))
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    yield re.sub(r"<[^>]*>", " ", bare)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _messages(tree: ast.Module) -> Iterator[ast.Constant]:
    """The plain texts of raised errors and of warnings, without those inside f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _plain_texts(node.exc)
        elif isinstance(node, ast.Call) and _called(node) in _RAISED:
            yield from _plain_texts(node)


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _plain_texts(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    for inner in ast.iter_child_nodes(node):
        yield from _plain_texts(inner)
