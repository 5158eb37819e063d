"""Rows and phases made by hand, as checks see them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.observed import LibraryCalls, Observed
from ioprism.diagnosis.rows import WRITE, CallRows, IoPhases, single_calls
from ioprism.diagnosis.targets import Files

MIB = 2**20
Numbers = Sequence[float] | npt.NDArray[np.float64]


def writes(start: Numbers, end: Numbers, rank: Sequence[int] | npt.NDArray[np.int64]) -> CallRows:
    """Writes of a MiB to one file."""
    count = len(start)
    zeros = np.zeros(count, np.int64)
    return single_calls(
        np.asarray(start, np.float64), np.asarray(end, np.float64), np.asarray(rank, np.int64),
        zeros, np.full(count, WRITE, np.int64), zeros, np.full(count, MIB, np.int64),
    ).sort()  # fmt: skip


def rounds(start: npt.NDArray[np.float64], seconds: float) -> CallRows:
    """One write of each rank in each round: `start` is rank by round."""
    ranks, count = start.shape
    begin = np.ascontiguousarray(start, np.float64).ravel()
    return writes(begin, begin + seconds, np.repeat(np.arange(ranks), count))


def no_library() -> LibraryCalls:
    """No call of MPI-IO or another library."""
    nothing, none, no = np.empty(0), np.empty(0, np.int64), np.empty(0, np.bool_)
    return LibraryCalls(nothing, nothing, none, none, none, no, no, no)


def observed(
    rows: CallRows, phases: Sequence[tuple[float, float]], stall: Sequence[float], *, runtime: float
) -> Observed:
    """A job with these rows, phases and seconds of stall."""
    ranks = int(rows.rank.max()) + 1
    known = IoPhases(*(np.array(times, np.float64) for times in zip(*phases, strict=True)))
    return Observed(
        runtime=runtime,
        ranks=ranks,
        rank_numbers=np.arange(ranks),
        host_of=np.full(ranks, -1, np.int64),
        hosts=(),
        rows=rows,
        phases=known,
        phase=known.find(rows.start),
        stall=np.array(stall, np.float64),
        library=np.zeros(len(phases)),
        files=Files(lambda _: "/scratch/out", lambda _: None, {}, np.zeros(1, np.int64)),
        limits=Limits(),
        basis="phases",
        detail=frozenset({"calls", "offsets", "times"}),
    )
