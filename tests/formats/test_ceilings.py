"""Benchmarks tell what the machine can do; jobs are compared with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ioprism import BrokenTraceError
from ioprism.cli import main
from ioprism.formats.beside_trace import read_ceiling
from tests.conftest import ROOT

DATA = ROOT / "tests/data"
MIB = 2**20
IOR_TEXT = """
tasks               : 8
access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)
write     984.58     986.85     0.003900    65536      1024.00    0.012400   0.259400   0.058400
read      4556.22    4558.97    0.000400    65536      1024.00    0.016000   0.056200   0.028400
Max Write: 1049.13 MiB/sec (1100.09 MB/sec)
Max Read:  4556.22 MiB/sec (4777.54 MB/sec)
"""
MDTEST_TEXT = """
-- started at 11/15/2026 20:09:08 --
mdtest-4.1.0+dev was launched with 4 total task(s) on 1 node(s)
SUMMARY rate (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation               29474.712      29474.712      29474.712          0.000
   File stat                  136542.221     136542.221     136542.221          0.000
   File removal                35124.000      35124.000      35124.000          0.000
"""


def test_ior_json_gives_the_best_of_its_repetitions() -> None:
    found = read_ceiling(DATA / "ceilings/ior.json")

    assert (found.tool, found.processes, found.request_size) == ("IOR", 4, MIB)
    assert found.bandwidth["write"] == pytest.approx(1049.1334 * MIB)
    assert found.bandwidth["read"] == pytest.approx(4556.2210 * MIB)
    assert found.operations["write"] == pytest.approx(1051.4634)


def test_fio_jobs_of_one_group_add_up() -> None:
    jobs = json.loads((DATA / "ceilings/fio.json").read_text())["jobs"]
    found = read_ceiling(DATA / "ceilings/fio.json")

    assert found.tool == "fio"
    assert found.processes == len(jobs)
    assert found.bandwidth["write"] == pytest.approx(sum(job["write"]["bw_bytes"] for job in jobs))


def test_ior_and_mdtest_text_are_understood(tmp_path: Path) -> None:
    ior, mdtest = tmp_path / "ior.txt", tmp_path / "mdtest.txt"
    ior.write_text(IOR_TEXT)
    mdtest.write_text(MDTEST_TEXT)

    assert read_ceiling(ior).bandwidth["write"] == pytest.approx(1049.13 * MIB)
    assert read_ceiling(ior).operations["read"] == pytest.approx(4558.97)
    assert read_ceiling(ior).processes == 8
    assert read_ceiling(mdtest).operations == {"metadata": pytest.approx(136542.221)}


@pytest.mark.parametrize("text", ["", "{}", '{"jobs": [1]}', "[" * 100_000, '{"tests": [{}]}'])
def test_what_is_no_result_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)

    with pytest.raises(BrokenTraceError, match="not a benchmark result"):
        read_ceiling(path)


def test_a_job_is_shown_beside_the_ceiling() -> None:
    trace = str(DATA / "darshan/a_ckpt_fpp_period5s.darshan")
    options = ["--ceiling", str(DATA / "ceilings/ior.json")]
    said = json.loads(CliRunner().invoke(main, ["characterise", trace, *options, "--json"]).stdout)
    text = CliRunner().invoke(main, ["characterise", trace, *options]).stdout
    write = said["by_operation"]["write"]
    relation = said["ceilings"][0]["relations"][0]

    assert relation["operation"] == "write"
    assert relation["job"] == pytest.approx(write["bytes"] * 4 / write["time"])
    assert relation["share"] == pytest.approx(relation["job"] / relation["ceiling"])
    assert "Compared with IOR, 4 tasks, requests of 1.00 MiB" in text
