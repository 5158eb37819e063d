"""Names from traces cannot steer the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioprism.text import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/scratch/a b.h5", "/scratch/a b.h5"),
        ("größe", "größe"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\x7f", "a\\x0ab\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b2J", "\\x9b2J"),
    ],
)
def test_control_characters_are_shown_as_escapes(name: str, shown: str) -> None:
    assert printable(name) == shown


@given(st.text())
def test_no_control_or_format_character_survives(name: str) -> None:
    kinds = {unicodedata.category(character) for character in printable(name)}

    assert not kinds & {"Cc", "Cf", "Cs"}
