"""How many components of every stage a write uses, and what the busiest of each has to carry.

Sizes are in MB, counts are files. A storage server's load leaves out that of its busiest target: a
server is at least as fast as one of its targets, so it only matters through the others.

Equal components differ, and the more of them carry the same load, the slower the slowest is. Writes
of few nodes hardly show it, so the spread is not fitted: it is what equal components of real
machines differ by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.errors import AnalysisError
from ioprism.model.samples import MEGABYTE, WritePattern
from ioprism.write_time import limits
from ioprism.write_time.system import FloatArray, IntArray, SharedStage, Storage, System

LARGEST_BURST = 10**13  # bytes; more would overflow when all files of a machine are added up
# The paper's letters for the stages whose components nodes share.
SYMBOLS = {
    "n": "nodes",
    "m": "cores per node",
    "K": "burst size in MB",
    "s_b": "nodes behind the busiest bridge node",
    "n_b": "bridge nodes in use",
    "s_l": "nodes behind the busiest link",
    "n_l": "links in use",
    "s_io": "nodes behind the busiest I/O node",
    "n_io": "I/O nodes in use",
    "s_r": "nodes behind the busiest I/O router",
    "n_r": "I/O routers in use",
    "p_sub": "subblocks in the last block of a file",
    "n_d": "NSDs of a file",
    "n_s": "NSD servers of a file",
    "n_nsd": "NSDs of all files",
    "n_nsds": "NSD servers of all files",
    "n_ost": "OSTs in use",
    "n_oss": "OSSes in use",
    "s_ost": "MB on the busiest OST",
    "s_oss": "MB on the busiest OSS",
    "w": "processes per target of a shared file",
}
STAGE_LETTERS = {"bridge": "b", "link": "l", "io_node": "io", "router": "r"}
Values = dict[str, FloatArray]


def parameters(patterns: Sequence[WritePattern], *, system: System) -> dict[str, FloatArray]:
    """Return every parameter the features are made of, one value for each pattern.

    Sizes are in MB. Patterns whose nodes are not known are taken as the first nodes in a row.

    Raises:
        AnalysisError: a pattern names nodes that the system does not have.
    """
    values = {
        "n": _array([p.nodes for p in patterns]),
        "m": _array([p.cores_per_node for p in patterns]),
        "K": _array([p.burst_bytes for p in patterns]) / MEGABYTE,
    }
    node_lists = [nodes_of(pattern, system) for pattern in patterns]
    for name, stage in system.stages.items():
        values |= _sharing(stage, node_lists, STAGE_LETTERS[name])
    targets = np.ones(len(patterns))
    if system.filesystem == "gpfs":
        values |= _gpfs_parameters(patterns, system.storage)
        targets = values["n_d"]
    if system.filesystem == "lustre":
        values |= _lustre_parameters(patterns, system.storage)
        targets = values["n_ost"]
    shared = np.array([p.shared for p in patterns], dtype=bool)
    values["w"] = np.where(shared, values["m"] * values["n"] / targets, 1.0)
    return values


def check_pattern(pattern: WritePattern, system: System) -> None:
    """Refuse a pattern that the system cannot run.

    Raises:
        AnalysisError: it needs more nodes or cores than there are, or contradicts itself.
    """
    if pattern.nodes < 1 or pattern.cores_per_node < 1 or pattern.burst_bytes < 1:
        raise AnalysisError(
            "nodes, cores and burst size must be positive.\nHint: for example 64 nodes, 16, 512MB."
        )
    if pattern.burst_bytes > LARGEST_BURST:
        raise AnalysisError(
            f"a burst of {pattern.burst_bytes} bytes is more than the {LARGEST_BURST} that "
            "are supported.\nHint: check the unit; sizes are in bytes unless given as 512MB."
        )
    if pattern.cores_per_node > system.cores_per_node:
        raise AnalysisError(
            f"{pattern.cores_per_node} cores per node are more than the {system.cores_per_node} "
            f"of {system.title}.\nHint: use at most {system.cores_per_node}."
        )
    nodes_of(pattern, system)


def _array(values: Sequence[float]) -> FloatArray:
    return np.array(values, dtype=np.float64)


def nodes_of(pattern: WritePattern, system: System) -> IntArray:
    """Return the numbers of a pattern's nodes: the first in a row where they are not known.

    Raises:
        AnalysisError: the system does not have them.
    """
    if pattern.nodes > system.nodes:
        raise AnalysisError(
            f"{pattern.nodes} nodes are more than the {system.nodes} of {system.title}.\n"
            "Hint: check the system's description with `ioprism write-time system show`."
        )
    if pattern.node_list is None:
        return np.arange(pattern.nodes, dtype=np.int64)
    nodes = np.array(pattern.node_list, dtype=np.int64)
    if len(nodes) != pattern.nodes:
        raise AnalysisError(
            f"the node list names {len(nodes)} nodes, but the pattern has {pattern.nodes}.\n"
            "Hint: the list must name every node once."
        )
    if nodes.max() >= system.nodes:
        raise AnalysisError(
            f"node {nodes.max()} is unknown: {system.title} has the nodes 0 to {system.nodes - 1}."
            "\nHint: number the nodes as in the system's description."
        )
    return nodes


def _sharing(
    stage: SharedStage, node_lists: Sequence[IntArray], letter: str
) -> dict[str, FloatArray]:
    """Count the components in use, and the nodes that share the busiest one."""
    largest, used = [], []
    for nodes in node_lists:
        components = stage.component_of[nodes]
        if components.min() < 0:
            raise AnalysisError(
                f"node {nodes[components < 0][0]} has no component at the stage {stage.name}.\n"
                "Hint: complete the groups of this stage in the system's description."
            )
        sharing = np.bincount(components)
        largest.append(int(sharing.max()))
        used.append(int(np.count_nonzero(sharing)))
    return {f"s_{letter}": _array(largest), f"n_{letter}": _array(used)}


def _gpfs_parameters(patterns: Sequence[WritePattern], storage: Storage) -> dict[str, FloatArray]:
    bursts = np.array([p.file_bytes for p in patterns], dtype=np.int64)
    files = _array([p.files for p in patterns])
    subblock = storage.block_bytes // storage.subblocks
    rest = bursts % storage.block_bytes
    targets = np.minimum(-(-bursts // storage.block_bytes), storage.targets).astype(np.float64)
    servers = np.minimum(targets, storage.servers)
    return {
        "p_sub": (-(-rest // subblock)).astype(np.float64),
        "n_d": targets,
        "n_s": servers,
        "n_nsd": _in_use(targets, files, storage.targets, storage.distinct_targets),
        "n_nsds": _in_use(servers, files, storage.servers, storage.distinct_targets),
    }


def _in_use(per_file: FloatArray, files: FloatArray, total: int, distinct: bool) -> FloatArray:
    """Components that all files use: summed as in the paper, or the distinct ones expected."""
    expected: FloatArray = total * (1.0 - (1.0 - per_file / total) ** files)
    return expected if distinct else files * per_file


def _lustre_parameters(patterns: Sequence[WritePattern], storage: Storage) -> dict[str, FloatArray]:
    """Targets and servers in use, and the MB on the busiest of each."""
    used, busiest = [], []
    for pattern in patterns:
        stripe, width = _layout(pattern, storage)
        per_file = min(-(-pattern.file_bytes // stripe), width)
        used.append(min(pattern.files + per_file - 1, storage.targets))
        busiest.append([load.max() for load in storage_bytes(pattern, storage)])
    n_ost = _array(used)
    s_ost, s_oss = np.array(busiest, dtype=np.float64).reshape(-1, 2).T / MEGABYTE
    return {
        "n_ost": n_ost,
        "n_oss": np.minimum(n_ost, storage.servers),
        "s_ost": s_ost,
        "s_oss": s_oss,
    }


def _layout(pattern: WritePattern, storage: Storage) -> tuple[int, int]:
    """A file's stripe size, and how many targets it may use."""
    width = min(pattern.stripe_count or storage.stripe_count, storage.targets)
    return pattern.stripe_bytes or storage.block_bytes, width


def storage_bytes(pattern: WritePattern, storage: Storage) -> tuple[IntArray, IntArray]:
    """Return the bytes on every target and on every server of a Lustre file system."""
    load = _target_bytes(pattern, storage.targets, *_layout(pattern, storage))
    return load, np.bincount(np.arange(storage.targets) % storage.servers, weights=load).astype(
        np.int64
    )


def _target_bytes(pattern: WritePattern, targets: int, stripe: int, width: int) -> IntArray:
    """Bytes on every target: whole rounds of stripes, the rest of a round, the last stripe.

    File i starts at target i, as staggered starts do.
    """
    rounds, rest = divmod(-(-pattern.file_bytes // stripe), width)
    starts = np.full(targets, pattern.files // targets, dtype=np.int64)
    starts[: pattern.files % targets] += 1
    load = stripe * (rounds * _window(starts, width) + _window(starts, rest))
    missing = -pattern.file_bytes % stripe
    if missing:
        last = (rest or width) - 1
        load -= missing * np.roll(starts, last)
    return load


def _window(starts: IntArray, width: int) -> IntArray:
    """For every target, the files that start on it or on one of the `width` - 1 before it."""
    sums = np.concatenate([[0], np.cumsum(np.concatenate([starts, starts]))])
    end = np.arange(len(starts)) + len(starts) + 1
    window: IntArray = sums[end] - sums[end - width]
    return window


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
# Stages that grow with the job, or count files.
NOT_SHARED = ("metadata", "compute node", "subblock", "file locks")
LOCKS = StageLoad("file locks", "w - 1")  # processes that a target's locks are passed on to
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


def loads_of(system: System, access: str) -> tuple[StageLoad, ...]:
    """Return the loads of a kind of access: a shared file has locks besides."""
    return LOADS[system.filesystem] + ((LOCKS,) if access.startswith("shared-") else ())


def stage_loads(patterns: Sequence[WritePattern], *, system: System) -> FloatArray:
    """Return one row for each pattern, all of one access, and one column for each load."""
    values = parameters(patterns, system=system)
    node_lists = [nodes_of(pattern, system) for pattern in patterns]
    files, node = values["m"] * values["n"], values["m"] * values["K"]
    shared = {
        name: values[f"s_{STAGE_LETTERS[name]}"]
        * node
        * _array([_slowest(np.bincount(stage.component_of[nodes])) for nodes in node_lists])
        for name, stage in system.stages.items()
    }
    columns = [files, node, files * values["K"], values["K"]]
    if system.filesystem == "gpfs":
        server, target = _gpfs_storage(patterns, values, system.storage)
        created = [
            values["s_io"] * values["m"],
            _array([p.files for p in patterns]) * values["p_sub"],
        ]
        columns += [*created, *shared.values(), server, target]
    if system.filesystem == "lustre":
        on = [storage_bytes(pattern, system.storage) for pattern in patterns]
        target = values["s_ost"] * _array([_slowest(targets) for targets, _ in on])
        server = values["s_oss"] * _array([_slowest(servers) for _, servers in on]) - target
        columns += [*shared.values(), np.maximum(server, 0.0), target]
    if patterns[0].shared:
        columns.append(np.maximum(values["w"] - 1.0, 0.0))
    return np.column_stack(columns)


def whole_machine(system: System, access: str) -> FloatArray:
    """Return what the stages carry when every node writes."""
    pattern = WritePattern(system.nodes, system.cores_per_node, 1000 * MEGABYTE, access=access)
    loads: FloatArray = stage_loads([pattern], system=system)[0]
    return loads


def _slowest(load: IntArray) -> float:
    """Expect the time of the slowest component, relative to that of the busiest.

    Of k components that carry at least a load, the slowest is about sqrt(2 ln k) deviations below
    their mean; the load for which that takes longest counts.
    """
    falling = np.sort(load[load > 0])[::-1].astype(np.float64)
    deviations = np.sqrt(2.0 * np.log(np.arange(1, len(falling) + 1)))
    return float((falling * (1.0 + limits.SPEED_DEVIATION * deviations)).max() / falling[0])


def _gpfs_storage(
    patterns: Sequence[WritePattern], values: Values, storage: Storage
) -> tuple[FloatArray, FloatArray]:
    """MB on the busiest server beyond those of its busiest NSD, and on the busiest NSD."""
    files = _array([p.files for p in patterns])
    size = _array([p.file_bytes for p in patterns]) / MEGABYTE
    target = _busiest(size, files, values["n_d"], storage.targets)
    server = _busiest(size, files, values["n_s"], storage.servers)
    return np.maximum(server - target, 0.0), target


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
