"""Does what moves most of the bytes repeat, where smaller I/O hides it?

A line of a log after every step may be far more regular than the checkpoints between which it is
written, and is then the least likely to be chance. A period that explains few bytes is therefore
compared with that of the loudest samples alone, which together move nearly all bytes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ioprism.model.signal import Signal
from ioprism.periodicity.describe import find_phases_of, phase_volumes
from ioprism.periodicity.results import Period

LOUD = 0.95  # share of the bytes that the loudest samples move
FEW_BYTES = 0.5  # share of the bytes below which a period is compared with that of the rest


def loudest_samples(signal: Signal) -> Signal:
    """Return the signal with all samples set to zero but those that move nearly all bytes."""
    descending = np.sort(signal.values)[::-1]
    volume = np.cumsum(descending)
    least = descending[int(np.searchsorted(volume, LOUD * volume[-1]))]
    return Signal(
        signal.start, signal.interval, np.where(signal.values < least, 0.0, signal.values)
    )


def explained(signal: Signal, period: Period) -> Period:
    """Return a period with its phases, and the shares of bytes and time that it explains."""
    phases = period.phases or find_phases_of(signal, period)
    total, span = float(signal.values.sum()) * signal.interval, signal.end - signal.start
    moved = float(phase_volumes(signal, phases).sum()) / total if phases and total > 0.0 else 0.0
    held = sum(end - start for start, end in period.valid_ranges) / span
    return replace(
        period,
        phases=phases,
        bytes_share=min(1.0, max(0.0, moved)),
        time_share=min(1.0, max(0.0, held)),
    )
