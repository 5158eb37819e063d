"""Every number of a finding has a unit and a name, the same in terminal, page and script."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

import pytest

import ioprism
from ioprism import Thresholds
from ioprism.model.result import QUANTITIES, Kind, in_words, label, quantity
from tests.conftest import ROOT, TEST_DATA

UNITS = ROOT / "frontend" / "src" / "shared" / "units.ts"
LOGS = ["c_rank0_all_io", "g_straggler_rank2", "n_hdf5_collective_write"]


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("bytes", 3 * 2**20, "3.00 MiB"),
        ("small_bytes", 2**20, "1.00 MiB"),
        ("slowest", 1.5, "1.50 s"),
        ("share", 0.5, "50%"),
        ("share", 0.052, "5.2%"),
        ("share", 0.999, "99.9%"),
        ("io_share", 0.0, "0%"),
        ("factor", 2.04, "2.0"),
        ("ranks", 12345, "12,345"),
        ("rank", 12345, "12345"),
        ("my_own_share", 0.5, "50%"),
        ("my_own_size", 1024.0, "1.00 KiB"),
        ("file", "/scratch/\x1b[31m", "/scratch/\\x1b[31m"),
        ("middle", None, "–"),
    ],
)
def test_a_number_is_shown_with_its_unit(key: str, value: object, shown: str) -> None:
    assert quantity(key, value) == shown


def test_a_number_is_called_what_it_is() -> None:
    assert (label("bytes"), label("bytes_per_rank")) == ("moved", "bytes per rank")


def test_every_threshold_has_the_unit_that_its_declaration_names() -> None:
    assert {limit.name for limit in fields(Thresholds)} <= set(QUANTITIES)
    assert {QUANTITIES[name].kind for name in ("small_bytes", "alignment")} == {"bytes"}


@pytest.mark.parametrize("log", LOGS)
def test_every_number_of_a_finding_is_in_the_table(log: str) -> None:
    found = ioprism.insights(ioprism.read(TEST_DATA / "darshan" / f"{log}.darshan"))
    numbers = {key for finding in found.findings for key in (*finding.evidence, *finding.threshold)}

    assert numbers and numbers - set(QUANTITIES) == set()


def test_the_page_shows_every_kind_of_column() -> None:
    declared = re.search(r"export type Kind = (.*);", UNITS.read_text(encoding="utf-8"))

    assert declared is not None
    assert set(get_args(Kind)) - {"ratio"} <= set(re.findall(r'"(\w+)"', declared[1]))


def test_a_whole_number_of_no_known_kind_has_no_digits_behind_the_point() -> None:
    assert (in_words("number", 3.0), in_words("number", 0.12345)) == ("3", "0.123")
