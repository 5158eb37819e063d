"""Features equal the vectors exactly, and node lists decide skew and resources."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ioprism import AnalysisError, UsageError
from ioprism.model.samples import MEGABYTE
from ioprism.write_time import WritePattern, load_system
from ioprism.write_time.features import (
    GPFS,
    LUSTRE,
    feature_columns,
    feature_table,
    features,
)
from ioprism.write_time.loads import check_pattern, parameters
from tests.conftest import ROOT

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "tests/data/write_time/features.expected.json").read_text()
)
# Node lists whose groups on Titan's routers are as the vectors say.
TITAN_NODES = (
    (0, 1, 2, 200, 201, 202, 300, 301),
    (0,),
    None,
    (0, 200, 300),
)
# The same for Cetus: 32 nodes on each bridge of two I/O nodes, and two on a third.
CETUS_NODES = (
    tuple(range(8)),
    (0,),
    tuple(range(200)),
    (*range(32), *range(64, 96), *range(128, 160), *range(192, 224), 256, 257),
)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_lustre_features_equal_the_vectors(number: int) -> None:
    case = VECTORS["lustre"][number]
    given = case["pattern"]
    pattern = WritePattern(
        given["n"], given["m"], given["K"] * MEGABYTE, MEGABYTE, given["W"], TITAN_NODES[number]
    )

    row = feature_table([pattern], system=load_system("titan"), chosen=LUSTRE)[0]

    expected = case["individual"] | case["cross"] | case["interference"]
    expected = {name.replace("sr*", "s_r*"): value for name, value in expected.items()}
    assert {f.name: float(v) for f, v in zip(LUSTRE, row, strict=True)} == expected


def test_lustre_features_of_given_router_groups_equal_the_vector() -> None:
    """Its groups, 110 nodes on one router, cannot occur with Titan's own map of nodes."""
    case = VECTORS["lustre"][2]
    given = case["pattern"]
    pattern = WritePattern(given["n"], given["m"], given["K"] * MEGABYTE, MEGABYTE, given["W"])
    values = dict(parameters([pattern], system=load_system("titan")))
    values |= {name: np.array([float(case["params"][name])]) for name in ("n_r", "s_r")}

    row = feature_columns(values, chosen=LUSTRE)[0]

    expected = case["individual"] | case["cross"] | case["interference"]
    expected = {name.replace("sr*", "s_r*"): value for name, value in expected.items()}
    assert {f.name: float(v) for f, v in zip(LUSTRE, row, strict=True)} == expected


@pytest.mark.parametrize("number", range(4))
def test_striping_equals_the_vectors(number: int) -> None:
    case = VECTORS["lustre"][number]
    given = case["pattern"]
    pattern = WritePattern(given["n"], given["m"], given["K"] * MEGABYTE, MEGABYTE, given["W"])

    found = parameters([pattern], system=load_system("titan"))

    for name in ("n_ost", "n_oss", "s_ost", "s_oss"):
        assert found[name][0] == case["params"][name]


@pytest.mark.parametrize("number", range(4))
def test_gpfs_features_equal_the_vectors(number: int) -> None:
    case = VECTORS["gpfs"][number]
    given = case["pattern"]
    pattern = WritePattern(
        given["n"], given["m"], given["K"] * MEGABYTE, node_list=CETUS_NODES[number]
    )

    row = feature_table([pattern], system=load_system("cetus"), chosen=GPFS)[0]

    groups = ("individual34", "pdsw19_extra2", "cross4", "interference3")
    expected = {name: value for group in groups for name, value in case[group].items()}
    assert {f.name: float(v) for f, v in zip(GPFS, row, strict=True)} == expected


def test_striping_equals_an_enumeration_of_every_stripe() -> None:
    system = load_system("titan")
    chance = np.random.default_rng(5)
    for _ in range(25):
        files, burst = int(chance.integers(1, 1500)), int(chance.integers(1, 9_000_000))
        stripe, width = int(chance.integers(1000, 1_000_000)), int(chance.integers(1, 1009))
        pattern = WritePattern(files, 1, burst, stripe, width)
        load = np.zeros(1008, dtype=np.int64)
        for position in range(-(-burst // stripe)):
            size = min(stripe, burst - position * stripe)
            np.add.at(load, (np.arange(files) + position % width) % 1008, size)
        by_server = np.bincount(np.arange(1008) % 144, weights=load)

        found = parameters([pattern], system=system)

        assert found["s_ost"][0] == load.max() / MEGABYTE
        assert found["s_oss"][0] == by_server.max() / MEGABYTE


def test_the_published_sets_have_41_and_30_features() -> None:
    assert len(features(load_system("cetus"), variant="strict41")) == 41
    assert len(features(load_system("cetus"))) == 43
    assert len(features(load_system("titan"), variant="paper")) == 30


def test_units_follow_the_sizes_in_a_feature() -> None:
    units = {feature.name: feature.unit for feature in GPFS}

    assert units["s_b*m*K"] == "MB"
    assert units["1/(m*K)"] == "1/MB"
    assert units["(s_b*m*K)*(s_l*m*K)"] == "MB²"
    assert units["m*n"] == ""


def test_expected_distinct_targets_never_exceed_those_there_are() -> None:
    from ioprism.write_time.system import parse_system

    text = load_system("cetus").text.replace('"uncapped"', '"expected"')
    found = parameters([WritePattern(512, 16, 10**9)], system=parse_system(text, source="x"))

    assert 335 < found["n_nsd"][0] <= 336


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (WritePattern(2, 1, 1, node_list=(0, 99999)), "node 99999 is unknown"),
        (WritePattern(2, 1, 1, node_list=(0,)), "names 1 nodes, but the pattern has 2"),
        (WritePattern(99999, 1, 1), "more than the 18688"),
        (WritePattern(1, 17, 1), "17 cores per node are more than the 16"),
        (WritePattern(1, 1, 0), "must be positive"),
        (WritePattern(1, 1, 10**17), "check the unit"),
    ],
)
def test_patterns_the_system_cannot_run_are_refused(pattern: WritePattern, reason: str) -> None:
    with pytest.raises(AnalysisError, match=reason):
        check_pattern(pattern, load_system("titan"))


def test_an_unknown_feature_set_is_refused() -> None:
    with pytest.raises(UsageError, match="full, paper and strict41"):
        features(load_system("titan"), variant="all")
