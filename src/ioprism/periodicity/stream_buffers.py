"""What is kept of the stream of a running job, in bounded memory?

A ring of bins holds the signal, ever coarser in the past; the requests themselves are kept as
long as they are few, so that the last answer can be that of the whole trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ioprism.errors import AnalysisError
from ioprism.model.arrays import FloatArray, Signal, median
from ioprism.periodicity.sampling import MAX_SPACING_ERROR, sample
from ioprism.views.bandwidth import steps_of_intervals

FINEST_BIN = 2.0**-10  # seconds, the width of the finest bins
BINS = 2048  # bins of a level; half of them move on when it is full
HISTORY_BINS = 2**15  # of each direction of a whole job, 0.25 MiB
MAX_LEVELS = 24  # half a year in the coarsest
MAX_SIGNAL_SAMPLES = 2 * BINS
MAX_EXACT_SAMPLES = BINS // 8  # of a metric; each of so few is known in eight bins at least
SHORTEST_REQUEST = 1e-6  # seconds; a request that takes no measurable time is given this much


@dataclass(slots=True, eq=False, kw_only=True)
class Level:
    """Bins of one width; bin ``i`` covers ``(base + i) * width`` onwards."""

    width: float
    base: int
    values: FloatArray = field(default_factory=lambda: np.zeros(BINS))

    def __post_init__(self) -> None:
        """Refuse what a damaged state may hold."""
        if len(self.values) not in (BINS, HISTORY_BINS) or not np.isfinite(self.values).all():
            raise ValueError(f"a level has {len(self.values)} bins instead of {BINS}")

    @property
    def begin(self) -> float:
        """Where the first bin begins, in seconds."""
        return self.base * self.width

    def add(self, start: FloatArray, end: FloatArray, rate: FloatArray) -> None:
        """Spread amounts over the bins by exact integration; all must lie within the level."""
        first, last = start / self.width - self.base, end / self.width - self.base
        low = max(0, math.floor(float(first.min())))
        high = min(len(self.values), math.floor(float(last.max())) + 1)
        volume = np.zeros(high - low + 2)
        carried = np.zeros(high - low + 2)
        bins = [np.clip(place.astype(np.int64), low, high) for place in (first, last)]
        # What lies within one bin is added whole: the difference of its ends is mostly rounding.
        within = bins[0] == bins[1]
        if within.any():
            whole = (rate * (end - start))[within]
            volume += np.bincount(bins[0][within] - low, whole, len(volume))
        across = ~within
        per_bin = rate[across] * self.width
        for place, bin_, sign in ((first, bins[0], 1.0), (last, bins[1], -1.0)):
            chosen, weight = bin_[across], sign * per_bin
            volume += np.bincount(chosen - low, weight * (chosen + 1 - place[across]), len(volume))
            carried += np.bincount(chosen - low + 1, weight, len(carried))
        filled = np.maximum(volume + np.cumsum(carried), 0.0)
        self.values[low:high] += filled[: high - low]


@dataclass(slots=True, eq=False, kw_only=True)
class Ring:
    """Amounts over time, coarser in the past."""

    levels: list[Level] = field(default_factory=list)
    finest: float = FINEST_BIN
    start: float = math.inf  # of the earliest amount, in seconds
    end: float = -math.inf  # of the latest amount
    total: float = 0.0  # all that was added, in bytes for a bandwidth
    too_old: float = 0.0  # what came too late to be kept

    def add(self, start: FloatArray, end: FloatArray, amount: FloatArray) -> None:
        """Spread each amount evenly from its start to its end (seconds, finite, ordered)."""
        if not len(start):
            return
        end = np.maximum(end, start + SHORTEST_REQUEST)
        rate = amount / (end - start)
        self.start = min(self.start, float(start.min()))
        self.end = max(self.end, float(end.max()))
        self.total += float(amount.sum())
        if not self.levels:
            self.levels.append(Level(width=self.finest, base=math.floor(self.start / self.finest)))
        self._make_room(0, until=math.floor(self.end / self.finest) + 1)
        self._spread(start, end, rate)

    def forget_before(self, moment: float) -> None:
        """Give the coarsest bins up that hold only what was before a moment (seconds)."""
        while len(self.levels) > 1 and self.levels[-2].begin <= moment:
            self.too_old += float(self.levels.pop().values.sum())

    def signal(self, *, start: float | None = None, shortest: float = 0.0) -> Signal:
        """Return mean rates from a moment on (seconds), in equal bins of a shortest width."""
        first_moment = self.start if start is None else max(start, self.start)
        number, low, high = self._grid(first_moment, shortest)
        width = self.finest * 2**number
        values = np.zeros(high - low)
        for depth, level in enumerate(self.levels[: number + 1]):
            shift = number - depth
            begin = max(0, (low << shift) - level.base)
            until = min(BINS, (high << shift) - level.base)
            if begin < until:
                place = (np.arange(level.base + begin, level.base + until) >> shift) - low
                values += np.bincount(place, level.values[begin:until], len(values))
        return Signal(low * width, width, values / width)

    def samples(self, *, start: float, length: float, edge: float) -> Signal:
        """Return a metric that comes in samples of a length, one of which ends at an edge.

        Bins of another width mix each sample with its neighbours. Where there are many, bins at
        least as long will do; of a few, each counts.
        """
        first, last = (
            round((moment - edge) / length) for moment in (max(start, self.start), self.end)
        )
        if last - first > MAX_EXACT_SAMPLES:
            return self.signal(start=start, shortest=length)
        fine = self.signal(start=start)
        edges = edge + length * np.arange(first, max(last, first + 1) + 1, dtype=np.float64)
        bins = fine.start + fine.interval * np.arange(len(fine.values) + 1)
        volume = np.concatenate(([0.0], np.cumsum(fine.values))) * fine.interval
        return Signal(float(edges[0]), length, np.diff(np.interp(edges, bins, volume)) / length)

    def _grid(self, start: float, shortest: float) -> tuple[int, int, int]:
        """The level that covers all from a moment on, its first bin and the one past the end."""
        if not self.levels:
            return 0, 0, 0
        number = 0
        while number < len(self.levels) - 1 and self.levels[number].begin > start:
            number += 1
        while True:
            width = self.finest * 2**number
            low, high = math.floor(start / width), math.ceil(self.end / width)
            if high - low <= MAX_SIGNAL_SAMPLES and width >= shortest:
                return number, low, max(high, low + 1)
            number += 1

    def _spread(self, start: FloatArray, end: FloatArray, rate: FloatArray) -> None:
        """Give each level the part of the amounts within its range of time."""
        number = 0
        while len(start):
            level = self.levels[number]
            begin = level.begin
            here = end > begin
            if here.all() and float(start.min()) >= begin:
                level.add(start, end, rate)
                return
            if here.any():
                level.add(np.maximum(start[here], begin), end[here], rate[here])
            older = start < begin
            start, end, rate = start[older], np.minimum(end[older], begin), rate[older]
            number += 1
            if number == MAX_LEVELS:
                self.too_old += float((rate * (end - start)).sum())
                return
            self._level(number)

    def _level(self, number: int) -> Level:
        """The level, begun where the finer one begins if it is new."""
        if number == len(self.levels):
            finer = self.levels[number - 1]
            base = ((finer.base + 1) >> 1) - BINS
            self.levels.append(Level(width=2 * finer.width, base=base))
        return self.levels[number]

    def _make_room(self, number: int, *, until: int) -> None:
        """Move the oldest bins of a level on, so that it reaches up to a bin."""
        level = self.levels[number]
        excess = until - (level.base + BINS)
        if excess <= 0:
            return
        half = BINS // 2
        shift = -(-excess // half) * half
        moved = min(shift, BINS)
        if number + 1 < MAX_LEVELS:
            self._hand_on(number, level, count=moved, shift=shift)
        else:
            self.too_old += float(level.values[:moved].sum())
        level.values[: BINS - moved] = level.values[moved:].copy()
        level.values[BINS - moved :] = 0.0
        level.base += shift

    def _hand_on(self, number: int, level: Level, *, count: int, shift: int) -> None:
        if number + 1 == len(self.levels) and not level.values[:count].any():
            return  # nothing is known of this past, so nothing needs a place
        coarser = self._level(number + 1)
        self._make_room(number + 1, until=(level.base + count + 1) >> 1)
        place = (np.arange(level.base, level.base + count) >> 1) - coarser.base
        coarser.values += np.bincount(place, level.values[:count], BINS)
        self._make_room(number + 1, until=(level.base + shift + 1) >> 1)


MAX_OBSERVED = 64  # pieces of a batch; enough to tell and cheap enough for every batch
HALVED_AFTER = 4096  # pieces, after which old ones count half


@dataclass(slots=True, eq=False)
class Grain:
    """Watches how pieces follow each other."""

    _pieces: int = 0
    _tiled: int = 0
    _length: float = 0.0
    _last_end: float = math.nan

    @property
    def seconds(self) -> float:
        """The length of a sample, or 0 for requests."""
        return self._length if 2 * self._tiled > self._pieces else 0.0

    @property
    def edge(self) -> float:
        """Where the latest sample ends, in seconds."""
        return self._last_end

    def observe(self, start: FloatArray, end: FloatArray) -> None:
        """Look at the first pieces of a batch."""
        start, end = start[:MAX_OBSERVED], end[:MAX_OBSERVED]
        before = np.concatenate(([self._last_end], end[:-1]))
        lengths = end - start
        length = median(lengths)
        off = np.maximum(np.abs(start - before), np.abs(lengths - length))
        follows = off <= MAX_SPACING_ERROR * length
        if self._pieces > HALVED_AFTER:
            self._pieces, self._tiled = self._pieces // 2, self._tiled // 2
        self._pieces += len(start)
        self._tiled += int(follows.sum())
        self._length = length
        self._last_end = float(end[-1])


MAX_REQUESTS = 2**14  # 0.4 MiB, as much as the bins of a long job; more are added up in bins
UNKNOWN, READ, WRITE = range(3)
CODES = {None: UNKNOWN, "read": READ, "write": WRITE}

Codes = npt.NDArray[np.int8]


@dataclass(slots=True, eq=False)
class RequestHistory:
    """Requests with their directions; bins over the whole job once there are too many of them.

    Requests are kept in two arrays that grow by doubling: a thousand jobs with some arrays for
    each message would leave a heap full of holes.
    """

    _count: int = 0
    # Start and end in seconds, amount in bytes.
    _numbers: FloatArray = field(default_factory=lambda: np.empty((3, 0)))
    _codes: Codes = field(default_factory=lambda: np.empty(0, np.int8))
    _bins: dict[int, Level] = field(default_factory=dict)  # by direction, all as wide and long

    @property
    def complete(self) -> bool:
        """Whether single requests are kept."""
        return not self._bins

    def add(
        self, start: FloatArray, end: FloatArray, amount: FloatArray, codes: Codes | None
    ) -> None:
        """Keep requests."""
        known = np.zeros(len(start), np.int8) if codes is None else codes
        if not self._bins:
            before, self._count = self._count, self._count + len(start)
            if self._count > len(self._codes):
                room = (1 << (self._count - 1).bit_length()) - before
                self._numbers = np.pad(self._numbers[:, :before], ((0, 0), (0, room)))
                self._codes = np.pad(self._codes[:before], (0, room))
            self._numbers[:, before : self._count] = start, end, amount
            self._codes[before : self._count] = known
            if self._count <= MAX_REQUESTS:
                return
            start, end, amount, known = self._requests()
            self._numbers, self._codes, self._count = np.empty((3, 0)), np.empty(0, np.int8), 0
        self._add_to_bins(start, np.maximum(end, start + SHORTEST_REQUEST), amount, known)

    def _requests(self) -> tuple[FloatArray, FloatArray, FloatArray, Codes]:
        start, end, amount = self._numbers[:, : self._count]
        return start, end, amount, self._codes[: self._count]

    def _add_to_bins(
        self, start: FloatArray, end: FloatArray, amount: FloatArray, codes: Codes
    ) -> None:
        first, last = float(start.min()), float(end.max())
        width = FINEST_BIN
        for level in self._bins.values():
            width, filled = level.width, np.flatnonzero(level.values)
            if len(filled):
                first = min(first, level.begin + width * int(filled[0]))
                last = max(last, level.begin + width * (int(filled[-1]) + 0.5))
        while math.floor(last / width) - math.floor(first / width) >= HISTORY_BINS:
            width *= 2.0
        base = math.floor(first / width)
        self._bins = {code: _rebin(old, width, base) for code, old in self._bins.items()}
        for code in np.unique(codes).tolist():
            chosen = codes == code
            if code not in self._bins:
                self._bins[code] = Level(width=width, base=base, values=np.zeros(HISTORY_BINS))
            rate = amount[chosen] / (end[chosen] - start[chosen])
            self._bins[code].add(start[chosen], end[chosen], rate)

    @property
    def direction(self) -> str | None:
        """The direction of all requests, if it is one."""
        kinds = set(self._bins) or set(np.unique(self._requests()[3]).tolist())
        names = [name for name, code in CODES.items() if kinds == {code}]
        return names[0] if names else None

    def signals(self, *, samples: bool = False) -> dict[str, Signal]:
        """Bandwidth of both directions, and of each where they are known; empty without any.

        Of the samples of a metric, those of zero count, too.
        """
        if self._bins:
            return self._signals_of_bins()
        if not self._count:
            return {}
        start, end, amount, codes = self._requests()
        kinds = {"both": np.ones(len(codes), bool), "read": codes == READ, "write": codes == WRITE}
        signals = {}
        for name, chosen in kinds.items():
            moving = chosen if samples else chosen & (amount > 0.0)
            if moving.any():
                try:
                    steps = steps_of_intervals(start[moving], end[moving], amount[moving])
                    signals[name] = sample(steps)
                except AnalysisError:
                    continue
        if not np.all(codes[amount > 0.0] > UNKNOWN):
            return {"both": signals["both"]} if "both" in signals else {}
        return signals

    def _signals_of_bins(self) -> dict[str, Signal]:
        moved = {code: level for code, level in self._bins.items() if level.values.any()}
        values = {"both": sum((level.values for level in moved.values()), np.zeros(HISTORY_BINS))}
        if UNKNOWN not in moved:
            values |= {
                str(name): moved[code].values for name, code in CODES.items() if code in moved
            }
        signals, level = {}, next(iter(self._bins.values()))
        for name, own in values.items():
            filled = np.flatnonzero(own)
            if len(filled):
                low, high = int(filled[0]), int(filled[-1]) + 1
                start = level.begin + level.width * low
                signals[name] = Signal(start, level.width, own[low:high] / level.width)
        return signals


def _rebin(level: Level, width: float, base: int) -> Level:
    """The same amounts in bins that are as wide, or wider by a power of two."""
    if width == level.width and base == level.base:
        return level
    filled = np.flatnonzero(level.values)
    place = (filled + level.base) // round(width / level.width) - base
    values = np.bincount(place, level.values[filled], HISTORY_BINS).astype(np.float64)
    return Level(width=width, base=base, values=values)
