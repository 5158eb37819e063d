"""Solve many small Lasso problems at once, exactly, from their Gram matrices.

Each problem keeps a set of coefficients with known signs. It goes to the minimum for these
signs, drops a coefficient that becomes zero on the way, and lets in the feature that is pulled
hardest, until none is pulled harder than its penalty. Every step lowers the objective. All
problems of a batch take their steps side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MAX_STEPS = 500
TOLERANCE = 1e-9  # of the largest correlation, for the optimality conditions
RIDGE = 1e-11  # keeps the solve defined when columns are equal to the last digits


@dataclass(frozen=True, slots=True)
class Problems:
    """A batch of problems: minimise u·R·u/2 - r·u + sum(penalty·|u|), R with unit diagonal."""

    correlations: FloatArray  # R, problem x feature x feature
    targets: FloatArray  # r, problem x feature
    usable: BoolArray  # problem x feature; false where a feature is constant
    non_negative: bool = False


def solve_path(problems: Problems, penalties: FloatArray) -> FloatArray:
    """Solve for every penalty in turn, each from the solution before.

    Args:
        problems: the batch.
        penalties: step x problem x feature, largest first.

    Returns:
        Coefficients, step x problem x feature.
    """
    path = np.zeros_like(penalties)
    current = np.zeros_like(problems.targets)
    for step, penalty in enumerate(penalties):
        current = _solve(problems, penalty, current)
        path[step] = current
    return path


def _solve(problems: Problems, penalty: FloatArray, start: FloatArray) -> FloatArray:
    coefficients, signs = start.copy(), np.sign(start)
    barred = ~problems.usable
    rows = np.arange(len(start))
    part = problems
    for _ in range(MAX_STEPS):
        here = coefficients[rows], signs[rows]
        moved, kept, settled = _towards_minimum(part, penalty[rows], *here)
        # A feature that is pushed out in the step it came in cannot be told from those inside.
        pushed_out = (here[1] != 0) & (kept == 0) & (here[0] == 0)
        barred[rows] |= pushed_out
        entering = _entering(part, penalty[rows], moved, kept, barred[rows]) * settled[:, None]
        coefficients[rows], signs[rows] = moved, kept + entering
        going_on = entering.any(axis=1) | ~settled
        if not going_on.any():
            break
        rows, part = rows[going_on], _part(part, going_on)
    return coefficients


def _part(problems: Problems, wanted: BoolArray) -> Problems:
    if wanted.all():
        return problems
    return Problems(
        problems.correlations[wanted],
        problems.targets[wanted],
        problems.usable[wanted],
        problems.non_negative,
    )


def _towards_minimum(
    problems: Problems, penalty: FloatArray, current: FloatArray, signs: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Go to the minimum for these signs, or to the first coefficient that becomes zero.

    Returns:
        Coefficients, signs, and which problems reached their minimum.
    """
    target = _minimum(problems, penalty, signs)
    crossing = (signs != 0) & (target * signs <= 0)
    distance = np.where(crossing & (current != target), current - target, 1.0)
    share = np.where(crossing, current / distance, 1.0)
    step = np.clip(share.min(axis=1, keepdims=True), 0.0, 1.0)
    dropped = crossing & (share <= step)
    moved = np.where(dropped, 0.0, current + step * (target - current))
    settled = ~crossing.any(axis=1)
    moved = np.where(settled[:, None], target, moved)
    return moved, np.where(dropped, 0.0, signs), settled


def _minimum(problems: Problems, penalty: FloatArray, signs: FloatArray) -> FloatArray:
    """Solve for the coefficients with a sign; the others are zero."""
    width = max(1, int(np.count_nonzero(signs, axis=1).max()))
    chosen = np.argsort(signs == 0, axis=1, kind="stable")[:, :width]
    rows = np.arange(len(signs))[:, None]
    inside = signs[rows, chosen] != 0
    matrix = problems.correlations[rows[:, :, None], chosen[:, :, None], chosen[:, None, :]]
    matrix *= inside[:, :, None] & inside[:, None, :]
    diagonal = np.arange(width)
    matrix[:, diagonal, diagonal] = 1.0 + RIDGE
    wanted = (problems.targets - penalty * signs)[rows, chosen] * inside
    minimum = np.zeros_like(signs)
    minimum[rows, chosen] = np.linalg.solve(matrix, wanted[:, :, None])[:, :, 0]
    return minimum


def _entering(
    problems: Problems,
    penalty: FloatArray,
    current: FloatArray,
    signs: FloatArray,
    barred: BoolArray,
) -> FloatArray:
    """Return the sign of the feature that is pulled hardest beyond its penalty, if any."""
    explained = (problems.correlations @ current[:, :, None])[:, :, 0]
    pull = problems.targets - explained
    strength = pull if problems.non_negative else np.abs(pull)
    limit = TOLERANCE * np.abs(problems.targets).max(axis=1, keepdims=True)
    excess = np.where((signs != 0) | barred, -np.inf, strength - penalty - limit)
    hardest = excess.argmax(axis=1)[:, None]
    entering = np.zeros_like(signs)
    sign = np.where(np.take_along_axis(excess, hardest, axis=1) > 0, 1.0, 0.0)
    np.put_along_axis(
        entering, hardest, sign * np.sign(np.take_along_axis(pull, hardest, axis=1)), axis=1
    )
    return entering
