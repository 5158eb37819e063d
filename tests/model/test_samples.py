"""Node lists are read and written in their short form."""

from __future__ import annotations

import pytest

from ioprism import UsageError
from ioprism.model.samples import format_node_list, parse_node_list


@pytest.mark.parametrize("text", ["0", "0-63", "0-63,128", "1,3,5-6", "7,9-11,20"])
def test_a_node_list_survives_the_round_trip(text: str) -> None:
    assert format_node_list(parse_node_list(text)) == text


@pytest.mark.parametrize("text", ["", "a", "3-1", "1,,2", "-4", "1-2,2", "0-999999999999", "1-"])
def test_a_bad_node_list_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Hint"):
        parse_node_list(text)
