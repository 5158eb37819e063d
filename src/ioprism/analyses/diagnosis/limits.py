"""What single calls and counters alike are judged by."""

from __future__ import annotations

import math
from collections.abc import Collection

# What part of a lone call's time its target is held, where no call ever waits for another:
# anything from a quarter to all of it.
LEAST, LIKELY, MOST = 0.25, 0.7, 1.0
# Where all requests have one size: a storage target moves between these many bytes a second.
SLOW, USUAL, FAST = 150e6, 400e6, 1200e6
REQUEST = 2e-4  # seconds: what a request costs whatever its size, on usual storage

SLOWER = 1.25  # parts and phases that take less than this many times their peers' are among them
SPREAD = 0.05  # parts of a sound system differ at least so much, as logarithm of seconds
FEWEST_PEERS = 4  # parts of a kind, for their own differences to be known
FEWEST_PHASES = 4  # for some to stand out

UNEVEN = 1.5  # more than this many times the even share is uneven
HEAVY = 1.5  # ranks that move more than this many times the mean
SERIAL = 0.9  # of all bytes by one rank
MANY = 4  # ranks that share a file
COPIES = 3.0  # times that the same bytes are read: then that is what costs

LIBRARY = 2**26  # bytes: larger files are data rather than programs
MANY_FILES = 10  # that all ranks load, to be called a start
TINY = 2**16  # bytes: a file that costs more to open than to move
BLOCK = 2**20  # bytes: lock block where the layout is not known, and one request of a file system


def at_least(names: Collection[int | str], said: int) -> int:
    """How many targets there are at least: as said, else numbered from 0, as Lustre does."""
    numbers = [name for name in names if isinstance(name, int)]
    return max(said, len(names)) if said else max(len(names), max(numbers, default=-1) + 1)


def even_placement(total: float, single: float, targets: int) -> float:
    """The most that any target has to do when files, none larger than `single`, are spread."""
    if single <= 0:
        return total / targets
    return max(total / targets, single * math.ceil(total / single / targets - 1e-6))


def useful_targets(known: int, ranks: int, moved: float, stripe: int) -> int:
    """As many targets as help a shared file: one for each rank, and a stripe on each."""
    stripes = math.ceil(moved / stripe) if stripe > 0 else known
    return max(1, min(known, ranks, stripes))
