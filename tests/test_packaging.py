"""What is shipped is whole: extras say what is missing, the recipes agree, completion works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from fsspec.registry import _registry  # type: ignore[import-untyped]

from ioprism import MissingPackageError, client
from ioprism.cli import main
from ioprism.version import __version__
from tests.conftest import ROOT, TEST_DATA

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
# By extra: a module that it brings, and a command that needs it.
EXTRAS: dict[str, tuple[str, str]] = {
    "boosting": ("sklearn.ensemble", "write-time train --store runs.db --model boosting -o m.json"),
    "dask": ("distributed", f"bottlenecks {LOG} --workers 1"),
    "figures": ("matplotlib", f"report {LOG} --figure sizes -o sizes.svg"),
    "mcp": ("mcp.server", "mcp ."),
    "otf2": ("otf2", f"characterise {TEST_DATA / 'otf2/traces.otf2'}"),
    "outliers": ("sklearn.cluster", f"period {LOG} --method dft --outliers dbscan"),
    "remote": ("s3fs", "characterise s3://bucket/run.store"),
    "server": ("zmq", "watch --zmq ipc://socket"),
    "tokio": ("h5py", "servers ingest series.hdf5 --store machine.store"),
    "wavelets": ("pywt", f"period {LOG} --hybrid --wavelet db4"),
    "yaml": ("yaml", "rules check rules.yaml"),
}


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands read."""
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text("slow: {condition: time > 1 s}")
    Path("series.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\x00" * 100)
    heading = "nodes,cores_per_node,burst_bytes,stripe_bytes,stripe_count,node_list,seconds"
    runs = [
        f"p{nodes},{nodes},16,{2**30},{2**20},4,0-{nodes - 1},{nodes + 0.01 * repetition}"
        for nodes in (8, 16, 32, 64, 128)
        for repetition in range(4)
    ]
    Path("runs.csv").write_text("\n".join([f"pattern,{heading}", *runs]))
    assert invoked("write-time import runs.csv --system titan --store runs.db").exit_code == 0


def invoked(command: str) -> Result:
    return CliRunner().invoke(main, command.split())


def test_every_extra_is_tried_and_documented() -> None:
    extras = set(PROJECT["optional-dependencies"]) - {"dev"}
    page = (ROOT / "docs/how-to/install.md").read_text("utf-8")

    # `record` brings a tracer, which is looked for rather than imported; commands need no pandas.
    assert extras - {"docs", "pandas", "record"} == set(EXTRAS)
    for name in extras:
        assert f"| `{name}` |" in page


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_a_missing_extra_is_one_message_that_says_what_to_install(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, command = EXTRAS[extra]
    monkeypatch.setitem(sys.modules, module, None)
    # What another test loaded through it is not at hand either.
    monkeypatch.delitem(_registry, "s3", raising=False)

    done = invoked(command)

    assert done.exit_code == 1
    assert done.stderr.endswith(f"not installed.\nHint: pip install 'ioprism[{extra}]'\n")


def test_sending_without_zeromq_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)

    with pytest.raises(MissingPackageError, match=r"pip install 'ioprism\[server\]'"):
        client.Reporter("ipc://socket", job="climate")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_completion(shell: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", "from ioprism.cli import main; main(prog_name='ioprism')"],
        env={**os.environ, "_IOPRISM_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert "_IOPRISM_COMPLETE" in told.stdout or "requires bash" in told.stderr.lower()


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("CITATION.cff", rf"^version: {__version__}$"),
        ("packaging/conda/meta.yaml", rf'set version = "{__version__}"'),
        ("CHANGELOG.md", rf"^## {__version__}$"),
    ],
)
def test_recipes_name_this_version(path: str, version: str) -> None:
    assert re.search(version, (ROOT / path).read_text("utf-8"), re.MULTILINE)


OTHER_NAMES = {"isal": "python-isal", "msgpack": "msgpack-python"}


def floors(requirements: list[str], other_names: dict[str, str]) -> dict[str, str]:
    """Each package and the version it needs at least."""
    pairs = (re.split(r"[<>=,]+", needed.replace(" ", ""))[:2] for needed in requirements)
    return {other_names.get(name, name): version for name, version in pairs}


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    text = (ROOT / "packaging/conda/meta.yaml").read_text("utf-8")
    recipe = yaml.safe_load(re.sub(r"{%.*?%}|{{ version }}", "", text))
    python = [f"python{PROJECT['requires-python']}"]

    assert floors(recipe["requirements"]["run"], {}) == floors(
        [*PROJECT["dependencies"], *python], OTHER_NAMES
    )
    assert recipe["build"]["entry_points"] == [
        f"{name} = {place}" for name, place in PROJECT["scripts"].items()
    ]
    assert recipe["about"]["license"] == PROJECT["license"]


def test_the_spack_recipe_needs_what_the_package_needs() -> None:
    text = (ROOT / "packaging/spack/package.py").read_text("utf-8")
    needs = re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):\d*",.*?(?:when="\+(\w+)")?\)\n', text)
    extras = PROJECT["optional-dependencies"]
    variants = re.findall(r'variant\("(\w+)"', text)

    for variant in ["", *variants]:
        found = {name: version for name, version, extra in needs if extra == variant}
        needed = floors(extras[variant] if variant else PROJECT["dependencies"], {})
        assert {name: version.removesuffix(".0") for name, version in needed.items()} == found


def test_the_container_installs_extras_that_exist() -> None:
    text = (ROOT / "Containerfile").read_text("utf-8")
    named = re.findall(r"/source\[([\w,]+)\]", text)

    assert set(",".join(named).split(",")) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize(
    "path",
    [
        "CITATION.cff",
        ".pre-commit-config.yaml",
        ".github/workflows/ci.yml",
        *(f".github/ISSUE_TEMPLATE/{p.name}" for p in (ROOT / ".github").rglob("*/*-*.yml")),
    ],
)
def test_files_for_other_programs_are_well_formed(path: str) -> None:
    assert isinstance(yaml.safe_load((ROOT / path).read_text("utf-8")), dict)


def test_the_package_ships_what_it_reads() -> None:
    package = files("ioprism")

    for folder in ("schemas", "reports/to_html/assets", "diagnosis/rules/advice"):
        assert any(package.joinpath(folder).iterdir())
