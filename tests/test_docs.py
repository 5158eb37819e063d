"""The documentation is true and whole: pages are current, links lead somewhere, nothing public
is left out.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

import ioprism
from docs import api_page, manual
from docs.generate import PAGES, REFERENCE
from docs.key_words import MEANINGS, meaning
from docs.schemas import FOLDER, file_name
from ioprism import Thresholds, errors
from ioprism.cli import COMMANDS, main
from ioprism.diagnosis.rules.registry import RULES
from ioprism.diagnosis.sampling import MOST_CALLS
from ioprism.diagnosis.training import KINDS, kind_of
from ioprism.diagnosis.wording import FOLDER as CHECKS
from ioprism.live.metrics import Counts, Latency, exposition
from ioprism.live.sources import QUEUE
from ioprism.mcp import LONGEST_TEXT, PAGE
from ioprism.plugins import GROUPS
from ioprism.site.steps import AT_ONCE
from ioprism.views.timeline import MOST_MARKS
from tests.conftest import ROOT

PROSE = [
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / "docs").rglob("*.md")),
    *(ROOT / "benchmarks").glob("*.md"),
]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as a new process writes them: click remembers the help options it made before."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run(
        [sys.executable, "-m", "docs.generate", str(folder), str(folder / "schemas")],
        cwd=ROOT,
        check=True,
        timeout=120,
    )
    return folder


@pytest.mark.parametrize("name", [*sorted(PAGES), manual.NAME])
def test_generated_pages_are_current(name: str, generated: Path) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")

    assert written == (generated / name).read_text(encoding="utf-8"), "run `make docs`"


def test_shipped_schemas_are_current(generated: Path) -> None:
    made = {path.name: path.read_text(encoding="utf-8") for path in generated.glob("schemas/*")}

    assert made == {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")}, (
        "run `make docs`"
    )


@pytest.mark.parametrize("page", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), target


def typed(page: Path) -> Iterator[list[str]]:
    """The command lines in the blocks of a page, those of ioprism alone, as words."""
    for block in re.findall(
        r"^```\w*\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    ):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.split(r" [|>&]+ ", line.strip().removeprefix("- run: "))[0]
            if command.startswith("ioprism "):
                yield shlex.split(command, comments=True)


@pytest.mark.parametrize("page", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_options_that_a_page_shows_exist(page: Path) -> None:
    for words in typed(page):
        name, rest = words[0], words[1:]
        while rest and f"{name} {rest[0]}" in EVERY_COMMAND:
            name, rest = f"{name} {rest[0]}", rest[1:]
        known = {text for option in EVERY_COMMAND[name].params for text in option.opts}
        known |= {"--help", "-h", "--version", "--debug"}
        rest = rest[: rest.index("--")] if "--" in rest else rest  # then come paths, or a program
        assert name != "ioprism" or not rest or rest[0].startswith("-"), words
        for word in rest:
            if word.startswith("--"):
                assert word.partition("=")[0] in known, words


def test_every_error_is_drawn_in_the_tree() -> None:
    names = [
        name
        for name, thing in vars(errors).items()
        if isinstance(thing, type) and issubclass(thing, errors.IoprismError)
    ]

    assert errors.__doc__ is not None
    for name in names:
        assert name in errors.__doc__


def test_every_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    for command in COMMANDS:
        assert f"`{command}`" in readme


def test_make_targets_of_the_readme_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    for target in set(re.findall(r"`make ([a-z]+)`", readme)):
        assert f"\n{target}:" in makefile


def reference(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


EVERY_COMMAND = dict(commands(main, "ioprism"))


@pytest.mark.parametrize("module", api_page.MODULES, ids=lambda module: module.__name__)
def test_every_public_name_is_explained(module: ModuleType) -> None:
    page = reference("api.md").partition(f"## {module.__name__}\n")[2]

    for name in api_page.public_names(module):
        assert f"### {name}\n" in page
        assert (getattr(module, name).__doc__ or "").strip(), name
    for name in set(ioprism.__all__) & set(vars(errors)):
        assert f"## {name}\n" in reference("errors.md")


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_and_option_is_explained(name: str) -> None:
    page, command = reference("commands.md"), EVERY_COMMAND[name]

    assert command.help
    assert name == "ioprism" or f"## {name}\n" in page
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.opts
            assert name == "ioprism" or option.opts[-1] in page


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_json_document_has_a_schema_on_the_page(name: str) -> None:
    options = {text for option in EVERY_COMMAND[name].params for text in option.opts}
    if not options & {"--json", "--json-lines"}:
        return
    schema = file_name(name.removeprefix("ioprism "))

    assert (FOLDER / schema).is_file()
    assert f"Schema: `{schema}`" in reference("json.md")


def _codes() -> list[str]:
    return [path.stem for path in CHECKS.glob("*.toml")]


def test_every_rule_threshold_cause_metric_and_group_is_explained() -> None:
    metrics = re.findall(r"^# TYPE (\S+)", exposition(Counts(), Latency(), []), re.MULTILINE)

    assert all(f"### `{rule.code}`" in reference("rules.md") for rule in RULES)
    assert all(f"| `{one.name}` |" in reference("rules.md") for one in fields(Thresholds))
    assert all(f"## `{code}`" in reference("causes.md") for code in _codes())
    assert all(f"| `{name}` |" in reference("metrics.md") for name in metrics)
    assert all(f"| `{group}` |" in reference("settings.md") for group in GROUPS)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("how-to/watch-a-running-job.md", f"up to {QUEUE:,} messages of each sender"),
        ("explanation/live-prediction.md", f"the message {QUEUE:,} before"),
        ("explanation/diagnosis.md", f"more than {MOST_CALLS:,} calls"),
        ("how-to/read-the-report.md", f"about {MOST_MARKS / 1e6:g} million calls"),
        ("how-to/run-a-site-store.md", f"({AT_ONCE} logs)"),
        ("how-to/ask-with-an-assistant.md", f"at most {PAGE} items"),
        ("how-to/ask-with-an-assistant.md", f"at most {LONGEST_TEXT:,} characters"),
    ],
)
def test_limits_that_a_page_states_are_those_of_the_code(page: str, words: str) -> None:
    assert words in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_names_of_stages_mean_what_the_page_says() -> None:
    page = (ROOT / "docs/explanation/diagnosis.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (?:contains|is|ends) (.+) \|$", page, re.MULTILINE)

    assert {stage for stage, _ in rows} == set(KINDS)
    for stage, names in rows:
        for name in re.findall(r"`([^`]+)`", names):
            assert kind_of(name) == stage


# What only a command line, a simulation or a reader of ours sees.
INTERNAL = {"ReadingOptions", "SimulationSettings"}


def test_every_class_of_settings_is_explained() -> None:
    names = {
        node.name
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Settings", "Options"))
    }

    for name in names - INTERNAL:
        assert f".{name}`: " in reference("settings.md"), name


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_begins_with_its_title(name: str) -> None:
    """The site would name it after its file otherwise."""
    assert reference(name).startswith("# ")


def test_every_page_can_be_reached() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.(?:md|ipynb)", yaml.dump(yaml.safe_load(text)["nav"])))
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}

    assert pages <= listed


def test_keys_of_json_mean_what_stands_for_the_end_of_their_path() -> None:
    page = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8")

    assert meaning("report.by_layer.*.time") == "seconds in calls, summed over ranks"
    assert meaning("time") == "when this was observed, in seconds"
    assert not [words for words in MEANINGS.values() if f"| {words}" not in page]
