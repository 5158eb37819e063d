"""How much work a function does, in lines of Python: the same on any machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], object]) -> int:
    """Call a function; return how many lines of Python ran in it and in all that it called."""
    lines = 0

    def count(_frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
