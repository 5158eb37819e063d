"""The checks that every job is put to: one module with its codes, one TOML per code.

A check looks at the observed rows and proposes changes. Its words, advice and what it needs are
in the TOML of its code. Order: checks with peers in the log come before models of cost; where two
explain the same calls equally well, the earlier one is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ioprism.diagnosis.checks import (
    interference,
    libraries,
    loader,
    overheads,
    redundancy,
    requests,
    slow_files,
    slow_parts,
    uneven_load,
)
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Proposal

Check = Callable[[Observed], Iterable[Proposal]]

CHECKS: tuple[Check, ...] = (
    loader.check,
    interference.check,
    slow_parts.check,
    slow_files.check,
    uneven_load.check,
    libraries.check,
    overheads.check,
    redundancy.check,
    requests.check,
    uneven_load.check_computation,
)
