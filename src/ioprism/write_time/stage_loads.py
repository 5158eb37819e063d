"""What the busiest component of every stage has to carry: the terms of the stage model.

Sizes are in MB, counts are files. A storage server's load leaves out its busiest target's: a
server is at least as fast as one of its targets, so it only matters through the others.

Equal components differ, and the more of them carry the same load, the slower the slowest is. Writes
of few nodes hardly show it, so the spread is not fitted: it is what equal components of real
machines differ by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.model.samples import WritePattern
from ioprism.write_time.parameters import (
    FloatArray,
    nodes_of,
    parameters,
    storage_bytes,
)
from ioprism.write_time.system import IntArray, Storage, System

Values = dict[str, FloatArray]

UNEVENNESS = 0.03  # standard deviation of equal components' speeds, as a share


@dataclass(frozen=True, slots=True)
class StageLoad:
    """One load, and the stage that carries it."""

    stage: str
    name: str


COMMON = (
    StageLoad("metadata", "m*n"),  # the number of files comes first: stragglers grow with it
    StageLoad("compute node", "m*K"),
    StageLoad("network", "m*n*K"),
    StageLoad("compute node", "K"),  # what one process can write alone
)
OWN = ("metadata", "compute node", "subblock")  # grow with the job, or count files
GIGABYTE = 10**9
LOADS = {
    "plain": COMMON,
    "gpfs": (
        *COMMON,
        StageLoad("metadata", "s_io*m"),
        StageLoad("subblock", "m*n*p_sub"),
        StageLoad("bridge node", "s_b*m*K"),
        StageLoad("link", "s_l*m*K"),
        StageLoad("I/O node", "s_io*m*K"),
        StageLoad("NSD server", "busiest server"),
        StageLoad("NSD", "busiest NSD"),
    ),
    "lustre": (
        *COMMON,
        StageLoad("I/O router", "s_r*m*K"),
        StageLoad("OSS", "s_oss - s_ost"),
        StageLoad("OST", "s_ost"),
    ),
}


def stage_loads(patterns: Sequence[WritePattern], *, system: System) -> FloatArray:
    """Return one row for each pattern and one column for each of the system's `LOADS`."""
    values = parameters(patterns, system=system)
    slower = _slowest_components(patterns, system)
    files, node = values["m"] * values["n"], values["m"] * values["K"]
    columns = [files, node, files * values["K"], values["K"]]
    if system.filesystem == "gpfs":
        columns += _gpfs(values, slower, files, node, system.storage)
    if system.filesystem == "lustre":
        target = values["s_ost"] * slower["target"]
        server = values["s_oss"] * slower["server"] - target
        columns += [values["s_r"] * node * slower["router"], np.maximum(server, 0.0), target]
    return np.column_stack(columns)


def whole_machine(system: System) -> FloatArray:
    """Return what the stages carry when every node writes."""
    pattern = WritePattern(system.nodes, system.cores_per_node, GIGABYTE)
    loads: FloatArray = stage_loads([pattern], system=system)[0]
    return loads


def _slowest_components(patterns: Sequence[WritePattern], system: System) -> Values:
    """How much longer every stage takes than its busiest component would if all were equal."""
    nodes = [nodes_of(pattern, system) for pattern in patterns]
    found = {
        name: [_slowest(np.bincount(stage.component_of[these])) for these in nodes]
        for name, stage in system.stages.items()
    }
    if system.filesystem == "lustre":
        on = [storage_bytes(pattern, system.storage) for pattern in patterns]
        found["target"] = [_slowest(targets) for targets, _ in on]
        found["server"] = [_slowest(servers) for _, servers in on]
    return {name: np.array(factors) for name, factors in found.items()}


def _slowest(load: IntArray) -> float:
    """Expect the time of the slowest component, relative to that of the busiest.

    Of so many components that carry at least a load, the slowest is about this many deviations
    below their mean; the load for which that takes longest counts.
    """
    falling = np.sort(load[load > 0])[::-1].astype(np.float64)
    deviations = np.sqrt(2.0 * np.log(np.arange(1, len(falling) + 1)))
    return float((falling * (1.0 + UNEVENNESS * deviations)).max() / falling[0])


def _gpfs(
    values: Values, slower: Values, files: FloatArray, node: FloatArray, storage: Storage
) -> list[FloatArray]:
    target = _busiest(values["K"], files, values["n_d"], storage.targets)
    server = _busiest(values["K"], files, values["n_s"], storage.servers)
    return [
        values["s_io"] * values["m"],
        files * values["p_sub"],
        values["s_b"] * node * slower["bridge"],
        values["s_l"] * node * slower["link"],
        values["s_io"] * node * slower["io_node"],
        np.maximum(server - target, 0.0),
        target,
    ]


def _busiest(size: FloatArray, files: FloatArray, used: FloatArray, count: int) -> FloatArray:
    """Expect the load of the busiest of `count` components, each file using `used` of them.

    Files start anywhere, so components are hit as bins by balls: beside the mean number of
    hits, the busiest has about the largest of `count` deviations.
    """
    share = used / count
    mean = files * share
    deviation = np.sqrt(2.0 * mean * (1.0 - share) * np.log(max(count, 2)))
    hits = np.minimum(np.maximum(mean + deviation, 1.0), files)
    busiest: FloatArray = hits * size / used
    return busiest
