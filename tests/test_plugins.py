"""Every example of a plug-in is installed as a package, and does what its page says."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ioprism import PluginError, plugins
from ioprism.cli import main
from ioprism.diagnosis.rules.registry import all_rules
from ioprism.diagnosis.wording import texts
from ioprism.servers import raw_files
from tests.conftest import ROOT, TEST_DATA

EXAMPLES = ROOT / "docs/examples/plugins"
LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
LIKE_READERS = {"ioprism.counter_readers", "ioprism.job_readers"}  # the same as readers
HEADER = "start,end,rank,file,operation,bytes,offset\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All example packages, as pip installs them, in a folder that Python looks in."""
    target = tmp_path_factory.mktemp("installed")
    copies = tmp_path_factory.mktemp("sources") / "plugins"
    shutil.copytree(EXAMPLES, copies)  # building writes beside the source
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--disable-pip-version-check", "--target", str(target),
         *map(str, copies.iterdir())],
        check=True, timeout=120,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(target)
        forget_plugins()
        yield
    forget_plugins()


def forget_plugins() -> None:
    """What is installed is looked up once in a process."""
    plugins.any_declared.cache_clear()
    plugins.declared.cache_clear()
    all_rules.cache_clear()
    texts.cache_clear()


def answer(*arguments: object) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def document(*arguments: object) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(answer(*arguments, "--json"))
    return loaded


def test_there_is_an_example_for_every_group() -> None:
    declared = set()
    for project in EXAMPLES.glob("*/pyproject.toml"):
        declared |= set(tomllib.loads(project.read_text("utf-8"))["project"]["entry-points"])

    assert declared == set(plugins.GROUPS) - LIKE_READERS


def test_every_group_and_example_is_explained() -> None:
    page = (ROOT / "docs/how-to/add-a-plug-in.md").read_text("utf-8")

    for group in plugins.GROUPS:
        assert f"`{group}`" in page
    for example in EXAMPLES.iterdir():
        assert f"examples/plugins/{example.name}" in page


@pytest.mark.usefixtures("installed")
def test_a_reader_brings_a_format(tmp_path: Path) -> None:
    log = tmp_path / "disk_lat.1.log"
    log.write_text("2, 1500000, 1, 4096, 0, 0\n5, 2000000, 0, 8192, 4096, 0\n", "utf-8")

    found = document("characterise", log)

    assert found["source"]["format"] == "fio"
    assert found["by_operation"]["write"] == {"operations": 1, "bytes": 4096, "time": 0.0015}
    assert found["by_operation"]["read"]["bytes"] == 8192


@pytest.mark.usefixtures("installed")
def test_a_view_is_a_perspective_on_bottlenecks() -> None:
    found = document("bottlenecks", LOG, "--views", "step", "--method", "slope")

    assert found["views"][0]["view"] == ["step"]
    assert {record["record"]["step"] for record in found["bottlenecks"]} <= set(range(12))


def table(path: Path, rows: list[str]) -> Path:
    path.write_text(HEADER + "\n".join(rows) + "\n", "utf-8")
    return path


@pytest.mark.usefixtures("installed")
def test_a_cause_is_diagnosed_with_words_of_its_own(tmp_path: Path) -> None:
    data = [f"{t},{t + 0.4},{r},/scratch/state,write,4194304,{t * 4194304}"
            for t in range(20) for r in (0, 1)]  # fmt: skip
    messages = [f"{t + 0.4},{t + 0.9},{r},/scratch/run.log,write,80,{t * 80}"
                for t in range(20) for r in (0, 1)]  # fmt: skip
    trace = table(tmp_path / "run.csv", [*data, *messages])

    causes = {one["code"]: one for one in document("diagnose", trace)["causes"]}

    assert causes["chatter"]["culprit"] == {"file": "/scratch/run.log"}
    assert causes["chatter"]["saving"]["seconds"] == pytest.approx(10.0, rel=0.2)
    assert causes["chatter"]["title"] == "40 messages are written to log files"
    assert "/scratch/run.log" in causes["chatter"]["advice"][0]["text"]


@pytest.mark.usefixtures("installed")
def test_a_rule_is_listed_judged_and_advises(tmp_path: Path) -> None:
    rows = [f"{t},{t + 0.5},0,/home/me/data,write,1048576,{t * 1048576}" for t in range(9)]
    trace = table(tmp_path / "run.csv", rows)

    found = document("insights", trace)["findings"][0]

    assert "example-data-in-home" in answer("rules")
    assert found["code"] == "example-data-in-home"
    assert found["title"] == "100% of the bytes (9.00 MiB) are in home directories"
    assert found["seconds_at_stake"] == pytest.approx(4.5)


@pytest.mark.usefixtures("installed")
def test_a_report_is_written_when_the_name_ends_so(tmp_path: Path) -> None:
    answer("report", LOG, "-o", tmp_path / "ticket.md")

    assert (tmp_path / "ticket.md").read_text("utf-8").startswith("# I/O of ./iob ckpt")


def send_bursts(address: Path) -> None:
    """A burst of a second every ten seconds, as TMIO tells them."""
    while not address.exists():
        time.sleep(0.01)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        for start in range(0, 120, 10):
            burst = {"b_rank_avr": [100.0], "t_rank_s": [start], "t_rank_e": [start + 1.0]}
            sender.sendto(json.dumps({"bandwidth": burst}).encode(), str(address))


@pytest.mark.usefixtures("installed")
def test_a_transport_brings_live_messages(tmp_path: Path) -> None:
    address = tmp_path / "socket"
    sender = threading.Thread(target=send_bursts, args=[address])
    sender.start()

    said = answer("watch", "--source", f"datagram://{address}", "--json-lines",
                  "--exit-when-idle", 0.5)  # fmt: skip

    sender.join()
    last = json.loads(said.splitlines()[-1])
    assert last["period"]["seconds"] == pytest.approx(10.0, rel=0.05)
    assert not address.exists()


class FluxReader:
    name = "flux"
    title = "what `flux jobs` prints"

    def recognises(self, source: Path) -> bool:
        return source.read_bytes().startswith(b"JOBID")


@pytest.mark.parametrize("find", [raw_files.find_counter_reader, raw_files.find_job_reader])
def test_counters_and_job_lists_have_readers_of_plug_ins_too(
    find: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(raw_files, "declared", lambda group: [group])
    monkeypatch.setattr(raw_files, "load", lambda _: FluxReader)
    listed = tmp_path / "listed.txt"
    listed.write_text("JOBID USER\nf1 me\n", "utf-8")

    assert isinstance(find(listed), FluxReader)


def test_a_plug_in_that_cannot_be_loaded_is_named_with_its_package() -> None:
    with pytest.raises(PluginError, match=r"'broken' \(ioprism.rules\) of no_such_module.*\nHint"):
        plugins.load(EntryPoint("broken", "no_such_module:RULES", "ioprism.rules"))
