"""Where in its file each request of a burst goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ioprism.synthetic.workload import Burst, Requests

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
