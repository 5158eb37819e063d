"""The file pointer replayed for many calls at once is the one replayed call by call."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ioprism.formats.calls import UNKNOWN, FilePointers

calls = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["set", "lose", "move", "nothing"]),
    st.integers(0, 1000),
)


def one_by_one(history: list[tuple[int, str, int]]) -> list[int]:
    at: dict[int, int | None] = {}
    positions = []
    for key, what, amount in history:
        before = at.get(key)
        positions.append(UNKNOWN if before is None or what == "nothing" else before)
        if what == "set":
            at[key] = amount
        elif what == "lose":
            at[key] = None
        elif what == "move" and before is not None:
            at[key] = before + amount
    return positions


@given(st.lists(calls), st.integers(0, 20))
def test_the_pointer_is_the_same_call_by_call_and_in_any_batches(
    history: list[tuple[int, str, int]], cut: int
) -> None:
    pointers = FilePointers()
    found: list[int] = []
    for part in (history[:cut], history[cut:]):
        key = np.array([k for k, _, _ in part], np.int64)
        sets = np.array([w in ("set", "lose") for _, w, _ in part], np.bool_)
        moves = np.array([w == "move" for _, w, _ in part], np.bool_)
        amount = np.array([UNKNOWN if w == "lose" else a for _, w, a in part], np.int64)
        found += pointers.replay(key, sets=sets, moves=moves, amount=amount).tolist()

    assert found == one_by_one(history)
