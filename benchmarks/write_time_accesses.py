"""How well models of shared files and of reads predict larger scales, on simulated machines.

Two systems, two seeds each; models learn from at most 128 nodes. Printed: shares of samples
predicted within 20 % and 30 %, and how many measurements lie in the 90 % interval.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.simulated_machines import TRAINING, machine, measure
from ioprism.model.samples import ACCESSES
from ioprism.write_time.evaluation import evaluate_samples
from ioprism.write_time.training import train_model

SEEDS = (1601, 1602)  # made after the features were fixed
TEST = (200, 256, 400, 512)


def main(seeds: Sequence[int] = SEEDS, accesses: Sequence[str] = ACCESSES) -> None:
    """Print a line for every machine, access and set."""
    for name in ("cetus", "titan"):
        for seed in seeds:
            for access in accesses:
                which = machine(name, seed=seed)
                samples = measure(
                    which, training=80, test=100, scales=(*TRAINING, *TEST), access=access
                )
                model = train_model(samples, system=which.system)
                sets = evaluate_samples(samples, model=model, system=which.system).sets
                scores = "; ".join(
                    f"{one.name} ({len(one.measured)}) {one.within(0.2):.0%}, "
                    f"{one.within(0.3):.0%}, {one.coverage:.0%}"
                    for one in sets
                    if len(one.measured)
                )
                print(f"{name} {seed} {access} [{model.fit.kind}]: {scores}", flush=True)


if __name__ == "__main__":
    main()
