"""The kinds of write-time models, and how each of them is fitted and chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ioprism.write_time.gram import Objective


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to fit: the objective, the penalties tried, and how one is chosen."""

    name: str
    title: str
    objective: Objective
    penalties: tuple[float, ...]  # largest first
    relative_penalties: bool  # as shares of the smallest that leaves only the intercept
    every_subset: bool = True  # search the training sets, or take all scales
    looks_ahead: bool = True  # penalties are also judged by predicting larger scales


# Five to a decade from 10 down, so that the paper's 0.01 is among them.
PAPER_PENALTIES = tuple(10.0 ** (1 - step / 5) for step in range(20))
SHARES = tuple(float(share) for share in np.geomspace(1.0, 1e-5, 20))

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "relative-lasso",
            "Lasso on relative errors",
            Objective(),
            SHARES,
            relative_penalties=True,
        ),
        Kind(
            "lasso",
            "plain Lasso, as in the paper",
            Objective(relative=False, scaled=False),
            PAPER_PENALTIES,
            relative_penalties=False,
            looks_ahead=False,
        ),
        Kind(
            "non-negative",
            "Lasso on relative errors, no negative coefficients",
            Objective(non_negative=True),
            SHARES,
            relative_penalties=True,
        ),
        Kind(
            "lasso-base",
            "plain Lasso on all scales (Lasso-base)",
            Objective(relative=False, scaled=False),
            PAPER_PENALTIES,
            relative_penalties=False,
            every_subset=False,
            looks_ahead=False,
        ),
        Kind(
            "linear-best",
            "linear regression on the best training set (Linear-best)",
            Objective(relative=False),
            (0.0,),
            relative_penalties=True,
            looks_ahead=False,
        ),
        Kind(
            "linear",
            "linear regression on all scales",
            Objective(relative=False),
            (0.0,),
            relative_penalties=True,
            every_subset=False,
            looks_ahead=False,
        ),
    )
}
BOOSTING = "boosting"
STAGES = "stages"
BLEND = "blend"
