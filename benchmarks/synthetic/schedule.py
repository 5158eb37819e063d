"""When the calls of a burst happen, and where in its file each goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.synthetic.workload import Burst, Requests, Workload

Floats = npt.NDArray[np.float64]

# How a rank spends its part of a phase, as shares of its busy time.
DATA = (0.01, 0.97)
SYNC = 0.972
CLOSE = 0.99
LONGEST_METADATA_CALL = 0.002  # seconds
SKEW = 0.02  # ranks start within this share of a phase
PACE = (0.9, 0.98)  # shares of the phase that ranks of normal speed need

# How a request spends its slot: seek, MPI-IO call, and the POSIX call inside it.
SEEK = (0.0, 0.04)
OUTER = (0.05, 0.97)
INNER = (0.06, 0.96)
UNEVENNESS = 0.3  # of the slots
COST_PER_CALL = 0.3  # of a mean request's time, whatever its size


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Times in seconds; axes are phases, ranks and requests."""

    begin: Floats  # phases, ranks: the rank starts
    busy: Floats  # phases, ranks: how long it takes
    slots: Floats  # phases, ranks (or 1), requests: each request's slot begins
    widths: Floats  # the same: how long the slot is

    def within(self, part: tuple[float, float]) -> tuple[Floats, Floats]:
        """Start and end of a part of every slot."""
        return self.slots + part[0] * self.widths, self.slots + part[1] * self.widths

    def call(self, share: float) -> tuple[Floats, Floats]:
        """Start and end of a short call at a share of each rank's busy time."""
        start = self.begin + share * self.busy
        return start, start + np.minimum(0.008 * self.busy, LONGEST_METADATA_CALL)


def phase_times(burst: Burst, *, slowest: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Start and normal length of each phase.

    Phases last as long as their slowest rank; what remains of the period is the gap.
    """
    lengths = burst.length * _jittered(burst.length_jitter, burst.repetitions, rng)
    gap = (burst.period or 0.0) - slowest * burst.length
    gaps = gap * _jittered(burst.gap_jitter, burst.repetitions, rng)
    steps = slowest * lengths + gaps
    return burst.start + np.cumsum(steps) - steps, lengths


def _jittered(deviation: float, count: int, rng: np.random.Generator) -> Floats:
    return np.maximum(0.05, 1.0 + deviation * rng.standard_normal(count))


def schedule(
    burst: Burst, workload: Workload, sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> Schedule:
    """Lay out a burst: every rank keeps its own pace, unless all wait for each other."""
    factors = np.array([workload.factor(rank) for rank in workload.ranks_of(burst)])
    if burst.collective:
        factors = np.full_like(factors, factors[aggregators(burst, len(factors))].max())
    starts, lengths = phase_times(burst, slowest=float(factors.max()), rng=rng)
    shape = (len(starts), len(factors))
    paces = rng.uniform(*PACE, (shape[0], 1) if burst.collective else shape)
    skew = rng.uniform(0.0, SKEW, shape) * lengths[:, None]
    busy = lengths[:, None] * factors * paces
    begin = starts[:, None] + skew
    if burst.collective:
        begin = np.broadcast_to(starts[:, None] + SKEW * lengths[:, None], shape)
        return Schedule(begin, busy, *_slots(begin[:, :1], busy[:, :1], sizes, rng))
    return Schedule(begin, busy, *_slots(begin, busy, sizes, rng))


def aggregators(burst: Burst, ranks: int) -> npt.NDArray[np.int64]:
    """Which of the ranks do the I/O of collective calls: evenly spread."""
    return np.arange(burst.aggregators) * ranks // burst.aggregators


def _slots(
    begin: Floats, busy: Floats, sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    cost = COST_PER_CALL + sizes / sizes.mean()
    widths = rng.uniform(1 - UNEVENNESS, 1 + UNEVENNESS, (*begin.shape, len(sizes)))
    widths *= cost
    widths *= (busy * (DATA[1] - DATA[0]) / widths.sum(axis=-1))[..., None]
    slots = np.cumsum(widths, axis=-1)
    slots -= widths
    slots += (begin + DATA[0] * busy)[..., None]
    return slots, widths


Integers = npt.NDArray[np.int64]
NUDGE = 1e-9  # keeps 0.1 * 30 from counting as a bit less than 3


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Bytes; the axes are phases, ranks and requests."""

    offsets: Integers
    sizes: Integers  # requests: the same for all ranks and phases
    random: int  # requests that were placed by chance

    def sequences(self, *, per_phase: bool) -> Integers:
        """The offsets with the requests of one rank in one file along the last axis."""
        if per_phase:
            return self.offsets
        ranks = self.offsets.shape[1]
        return self.offsets.transpose(1, 0, 2).reshape(ranks, -1)


def evenly(share: float, count: int) -> npt.NDArray[np.bool_]:
    """Mark a share of things, spread evenly; the number is rounded down."""
    steps = np.floor(share * np.arange(count + 1) + NUDGE)
    return np.asarray(np.diff(steps) > 0, np.bool_)


def request_sizes(requests: Requests) -> Integers:
    """The size of each request of a rank, in order."""
    small = evenly(requests.small, requests.count)
    return np.where(small, requests.small_size, requests.size).astype(np.int64)


def place(burst: Burst, *, ranks: int, alignment: int, rng: np.random.Generator) -> Placement:
    """Place all requests; each phase goes on in the file where the last one stopped."""
    requests = burst.requests
    sizes = request_sizes(requests)
    room = _room(requests, sizes, alignment)
    before = np.cumsum(room) - room
    sharers = 1 if burst.per_rank else ranks
    who = np.zeros(ranks, np.int64) if burst.per_rank else np.arange(ranks)
    phase = np.arange(burst.repetitions) * (0 if burst.per_phase else sharers * room.sum())
    if burst.interleaved or burst.collective:
        inside = sharers * before + who[:, None] * room
    else:
        inside = before + who[:, None] * room.sum()
    offsets = phase[:, None, None] + inside[None]
    swapped = _swap(offsets, evenly(requests.random, requests.count), rng)
    _shift(offsets, evenly(requests.misaligned or 0.0, requests.count), alignment, rng)
    return Placement(offsets, sizes, swapped)


def _room(requests: Requests, sizes: Integers, alignment: int) -> Integers:
    """The bytes that each request has to itself, with room to be shifted if need be."""
    if requests.misaligned is None:
        return sizes
    spare = 1 if requests.misaligned > 0 else 0
    return (-(-sizes // alignment) + spare) * alignment


def _swap(offsets: Integers, chosen: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
    """Let the chosen requests of each rank and phase change places with each other."""
    if not chosen.any():
        return 0
    offsets[..., chosen] = rng.permuted(offsets[..., chosen], axis=-1)
    return offsets[..., chosen].size


def _shift(
    offsets: Integers, chosen: npt.NDArray[np.bool_], alignment: int, rng: np.random.Generator
) -> None:
    shape = (*offsets.shape[:2], int(chosen.sum()))
    offsets[..., chosen] += rng.integers(1, alignment, shape)
