"""The calls of a metadata storm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ioprism.synthetic.calls import Calls
from ioprism.synthetic.truth import Integers
from ioprism.synthetic.workload import MetadataStorm, Workload


def storm_calls(
    storm: MetadataStorm,
    ranks: npt.NDArray[np.int64],
    codes: Integers,
    workload: Workload,
    rng: np.random.Generator,
) -> Iterator[Calls]:
    """Stats first, then opens with their closes, at an even pace."""
    factors = np.array([workload.factor(rank) for rank in ranks.tolist()])[:, None]
    steps = storm.stats + storm.opens
    width = storm.length * factors * 0.98 / max(1, steps)
    begin = storm.start + 0.02 * storm.length * rng.random((len(ranks), 1))
    slots = begin + width * np.arange(steps)
    for first, count, parts in (
        (0, storm.stats, (("stat", 0.0, 0.8),)),
        (storm.stats, storm.opens, (("open", 0.0, 0.6), ("close", 0.7, 0.9))),
    ):
        chosen = slots[:, first : first + count]
        file = codes[:, np.arange(count) % storm.files]
        for operation, low, high in parts:
            if count:
                start, end = chosen + low * width, chosen + high * width
                yield Calls("posix", operation, start, end, rank=ranks[:, None], file=file)
