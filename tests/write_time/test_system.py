"""Descriptions map nodes to components, and broken ones are refused with the reason."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ioprism import AnalysisError, UsageError
from ioprism.write_time import load_system
from ioprism.write_time.system import SamplingRule, bundled_systems, parse_system
from tests.conftest import TEST_DATA
from tests.write_time.machines import PLAIN

LUSTRE = """
name = "little"
filesystem = "lustre"
nodes = 6
cores_per_node = 4
[stages.router]
"""


def test_both_systems_of_the_paper_come_with_the_package() -> None:
    cetus, titan = load_system("cetus"), load_system("titan")

    assert bundled_systems() == ("cetus", "titan")
    assert (cetus.nodes, cetus.stages["io_node"].count, cetus.storage.targets) == (4096, 32, 336)
    assert (titan.nodes, titan.stages["router"].count, titan.storage.servers) == (18688, 172, 144)


def test_blocks_of_nodes_share_a_component() -> None:
    found = parse_system(LUSTRE + 'count = 2\nmap = "block"\n', source="x")

    assert found.stages["router"].component_of.tolist() == [0, 0, 0, 1, 1, 1]


def test_listed_groups_share_a_component() -> None:
    found = parse_system(LUSTRE + 'map = "list"\ngroups = ["0,2,4", "1,3,5"]\n', source="x")

    assert found.stages["router"].component_of.tolist() == [0, 1, 0, 1, 0, 1]


def test_every_node_uses_the_closest_component() -> None:
    spread = parse_system(LUSTRE + 'count = 3\nmap = "closest"\n', source="x")
    placed = parse_system(LUSTRE + 'count = 2\nmap = "closest"\npositions = [5, 0]\n', source="x")

    assert spread.stages["router"].component_of.tolist() == [0, 0, 1, 1, 2, 2]
    assert placed.stages["router"].component_of.tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = ", "not TOML"),
        ("name = 'x'\nfilesystem = 'nfs'", "filesystem is 'nfs'"),
        ("name = 'x'\nfilesystem = 'plain'\nnodes = -1", "nodes is -1"),
        ("name = 'x'\nfilesystem = 'plain'\nnodes = 4", "cores_per_node is missing"),
        (LUSTRE.replace("[stages.router]", ""), "stages.router is missing"),
        (LUSTRE + "count = 2\nnodes_per_component = 1", "do not reach all 6 nodes"),
        (LUSTRE + 'map = "list"\ngroups = ["0-9"]', "unknown or repeated nodes"),
        (LUSTRE + 'map = "tree"', "'tree', not one of block, list, closest"),
        (LUSTRE + 'count = 2\nmap = "closest"\npositions = [1]', "must be 2 numbers"),
        (PLAIN + "[sampling]\nconfidence = 2", "confidence must be between"),
    ],
)
def test_a_broken_description_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(AnalysisError, match=reason):
        parse_system(text, source="broken.toml")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="cetus, titan"):
        load_system("frontier")


VECTORS = json.loads((TEST_DATA / "write_time/convergence.expected.json").read_text())


@pytest.mark.parametrize("case", VECTORS)
def test_the_central_limit_rule_equals_the_vectors(case: dict[str, Any]) -> None:
    rule = SamplingRule(confidence=case["confidence"])

    width = rule.relative_half_width(case["times"])

    assert width == pytest.approx(case["rel_halfwidth"], rel=1e-14)
    assert rule.is_converged(case["times"]) is case["converged"]


def test_one_run_never_converges() -> None:
    assert SamplingRule().relative_half_width([3.0]) == math.inf
    assert not SamplingRule().is_converged([3.0, 3.0])


def test_nine_runs_are_enough_even_if_they_differ() -> None:
    assert SamplingRule().is_finished([1.0, 9.0] * 5)
    assert not SamplingRule().is_finished([1.0, 9.0] * 4)
