"""How much of the false-alarm level may each look at a running job use?

Up to seven phases each one more says much that is new, and an answer is wanted soon. After that
one more says little: what is seen until there are a quarter more counts as one look, so that jobs
whose phases jitter are still heard. The chance of steps without a clock needs no such shares: it is
that of all moments until now.
"""

from __future__ import annotations

import math

MIN_PHASES = 4  # three periods; fewer are not announced
FIRST_SHARES = (0.3, 0.2, 0.2, 0.2)  # of the false-alarm level, for four to seven phases
GROWTH = 1.25  # of the number of phases, until it is another look
NEVER = 1e-12


def look_at(phases: int) -> int:
    """Which look so many phases are for; 0 if there are too few for any."""
    early = phases - MIN_PHASES + 1
    if early <= len(FIRST_SHARES):
        return max(0, early)
    growth = phases / (MIN_PHASES + len(FIRST_SHARES))
    return len(FIRST_SHARES) + 1 + math.floor(math.log(growth) / math.log(GROWTH) + 1e-9)


def share_of_look(look: int) -> float:
    """The share of the false-alarm level that the k-th look may use; all looks make 1."""
    if look < 1:
        return NEVER
    if look <= len(FIRST_SHARES):
        return FIRST_SHARES[look - 1]
    later = look - len(FIRST_SHARES)
    return (1.0 - sum(FIRST_SHARES)) / (later * (later + 1))
