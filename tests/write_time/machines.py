"""Machines and samples built by formula, for the write-time tests."""

from __future__ import annotations

import numpy as np

from benchmarks.simulated_machines import machine, measure
from ioprism.model.samples import MEGABYTE
from ioprism.write_time import Sample, System, WritePattern, load_system
from ioprism.write_time.loads import parameters
from ioprism.write_time.system import parse_system

PLAIN = """
name = "plain"
filesystem = "plain"
nodes = 4096
cores_per_node = 16
"""
SCALES = (1, 2, 4, 8, 16, 32, 64, 128)


def plain_system(extra: str = "") -> System:
    return parse_system(PLAIN + extra, source="plain.toml")


def titan_samples(
    scales: tuple[int, ...] = SCALES, *, each: int = 40, noise: float = 0.03, seed: int = 1
) -> list[Sample]:
    """Writes whose time is 2 s + m·K / 2 GB/s + s_r·m·K / 3 GB/s + s_ost / 300 MB/s."""
    chance = np.random.default_rng(seed)
    patterns = [_titan_pattern(nodes, chance) for nodes in scales for _ in range(each)]
    values = parameters(patterns, system=load_system("titan"))
    load = values["m"] * values["K"]
    seconds = 2 + load / 2000 + values["s_r"] * load / 3000 + values["s_ost"] / 300
    return [
        Sample(pattern, tuple(float(s) * chance.lognormal(0, noise, size=3)))
        for pattern, s in zip(patterns, seconds, strict=True)
    ]


def machine_samples(
    name: str,
    *,
    seed: int = 5,
    scales: tuple[int, ...] = SCALES,
    each: int = 60,
    noise: float = 1.0,
    drift: float = 0.0,
) -> list[Sample]:
    """Samples of a simulated machine, whose truth is not made of the model's features."""
    which = machine(name, seed=seed, noise=noise, drift=drift)
    return measure(which, training=each, test=each, scales=scales)


def _titan_pattern(nodes: int, chance: np.random.Generator) -> WritePattern:
    block = nodes * int(chance.choice([1, 2, 8]))
    members = np.sort(chance.choice(block, size=nodes, replace=False))
    return WritePattern(
        nodes=nodes,
        cores_per_node=int(chance.integers(1, 17)),
        burst_bytes=MEGABYTE * int(chance.integers(700, 5000)),
        stripe_count=int(chance.integers(1, 65)),
        node_list=tuple(int(m) for m in int(chance.integers(0, 9000)) + members),
    )
