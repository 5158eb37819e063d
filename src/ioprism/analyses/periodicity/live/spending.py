"""How much of the false-alarm level may each look at a running job use?"""

from __future__ import annotations

FIRST_SHARES = (0.3, 0.2, 0.2, 0.2)  # of the false-alarm level, for four to seven phases
NEVER = 1e-12


def share_of_look(look: int) -> float:
    """The share of the false-alarm level that the k-th look may use; all looks make 1.

    Most is spent on four to seven phases, when an answer is wanted and can be given; a steady
    job shows its rhythm with four.
    """
    if look < 1:
        return NEVER
    if look <= len(FIRST_SHARES):
        return FIRST_SHARES[look - 1]
    later = look - len(FIRST_SHARES)
    return (1.0 - sum(FIRST_SHARES)) / (later * (later + 1))
