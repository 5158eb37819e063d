"""An assistant asks over standard input and output, and gets the commands' JSON, page by page."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters

from ioprism import UsageError
from ioprism.cli import main
from ioprism.mcp import FEWEST, MOST_CHARACTERS, TOOLS, Answers, Folders, page
from tests.conftest import TEST_DATA
from tests.test_schemas import schema

TRACE = "recorder/gotcha-ckpt"


def asked(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[list[str], list[Any]]:
    """Names of all tools, and the answers to some calls, from a server of its own."""
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "ioprism", "mcp", str(folder)]
    )

    async def talk() -> tuple[list[str], list[Any]]:
        async with Client(program) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, [await client.call_tool(name, given) for name, given in calls]

    with ThreadPoolExecutor(1) as alone:  # the browser's tests leave a loop in this thread
        return alone.submit(asyncio.run, talk()).result()


def test_every_tool_answers_with_the_json_of_its_command() -> None:
    paths = {"paths": [TRACE]}
    other = {"before": TRACE, "after": "recorder/master-ckpt"}
    calls = [(name, paths) for name in TOOLS if name not in ("inspect", "compare")]
    names, answers = asked(
        TEST_DATA, *calls, ("compare", other), ("inspect", {**paths, "identifier": "more-writes"})
    )

    assert sorted(names) == sorted(TOOLS)
    for (name, _), answer in zip([*calls, ("compare", 0), ("inspect", 0)], answers, strict=True):
        text = answer.content[0].text
        assert not answer.is_error, text
        assert len(text) <= MOST_CHARACTERS
        Draft202012Validator(schema(name)).validate(
            {key: value for key, value in json.loads(text).items() if key != "page"}
        )


def test_bottlenecks_are_sought_where_the_command_seeks_them() -> None:
    answer = json.loads(Answers(Folders.of([TEST_DATA])).bottlenecks([TRACE]))
    command = CliRunner().invoke(main, ["bottlenecks", str(TEST_DATA / TRACE), "--json"])

    assert answer["settings"]["views"] == json.loads(command.stdout)["settings"]["views"]


def test_what_goes_wrong_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    (tmp_path / "bad.darshan").write_bytes(b"no log")
    shutil.copy(TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan", tmp_path / "good.darshan")
    _, answers = asked(
        tmp_path,
        ("characterise", {"paths": ["/etc/passwd"]}),
        ("characterise", {"paths": ["bad.darshan"]}),
        ("characterise", {"paths": ["good.darshan"]}),
    )

    outside, bad, good = answers
    assert outside.is_error
    assert "not in the folders that are served" in outside.content[0].text
    assert bad.is_error
    assert "bad.darshan" in bad.content[0].text
    assert "Traceback" not in bad.content[0].text
    assert json.loads(good.content[0].text)["job"]["ranks"] == 4


@pytest.mark.parametrize(
    "name",
    ["../secret", "link", "folder", "/etc/passwd", "nothing", "table.toml", "tables", "a.otf2"],
)
def test_paths_that_lead_out_of_the_folders_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("x")
    served = tmp_path / "served"
    (served / "folder").mkdir(parents=True)
    (served / "link").symlink_to(tmp_path / "secret")
    (served / "folder/link").symlink_to(tmp_path / "secret")
    description = f'[table]\npath = "{tmp_path}/secret"\n[columns]\nstart = "a"\n'
    (served / "tables").mkdir()
    for place in ("table.toml", "tables/table.toml"):
        (served / place).write_text(description)
    (served / "a.otf2").write_text("x")
    (served / "a").mkdir()
    (served / "a/0.evt").symlink_to(tmp_path / "secret")

    with pytest.raises(UsageError):
        Folders.of([served]).allowed_path(name)


def test_paths_in_the_folders_are_found_by_either_name(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("x")
    (tmp_path / "inner").symlink_to(tmp_path / "trace")
    folders = Folders.of([tmp_path])

    (tmp_path / "table.toml").write_text('[table]\npath = "trace"\n[columns]\nstart = "a"\n')

    assert folders.allowed_path("table.toml") == (tmp_path / "table.toml").resolve()
    assert folders.allowed_path("trace") == folders.allowed_path(str(tmp_path / "trace"))
    assert folders.allowed_path("inner") == (tmp_path / "trace").resolve()


def test_pages_together_hold_every_item_once() -> None:
    body = {"items": [{"number": n, "pair": [0, 1]} for n in range(50)], "few": [1, 2]}
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        told = json.loads(page(body, offset=offset, limit=20))
        seen += [item["number"] for item in told["items"]]
        assert told["few"] == [1, 2]
        assert told["page"]["cut"] == {"$.items": 50}
        offset = told["page"]["next_offset"]

    assert seen == list(range(50))


def test_long_answers_get_shorter_pages() -> None:
    told = page({"items": ["x" * 5_000] * 200}, limit=200)

    assert len(told) <= MOST_CHARACTERS
    assert len(json.loads(told)["items"]) >= FEWEST


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)

    done = CliRunner().invoke(main, ["mcp"])

    assert done.exit_code == 1
    assert "pip install 'ioprism[mcp]'" in done.output


@pytest.mark.parametrize("name", ["a\0b", "\0"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a path"):
        Folders.of([tmp_path]).allowed_path(name)
