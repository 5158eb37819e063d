"""Large answers are indented by a faster library; the text must be the same."""

from __future__ import annotations

import json

import pytest

from ioprism.reports.to_json import LARGE, dump


@pytest.mark.parametrize("name", ["a", "é\x7f", "half a pair \ud800"])
@pytest.mark.parametrize("rows", [1, LARGE // 20])
def test_documents_of_every_size_look_the_same(name: str, rows: int) -> None:
    value = {name: [{"x": 1e-7 * n, "none": [], "empty": {}, "big": 10**30} for n in range(rows)]}

    assert dump(value) == json.dumps(value, indent=2).replace("\x7f", "\\u007f")
