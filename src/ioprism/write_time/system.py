"""Which way a burst takes through a machine: its stages, and which node uses which component."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from statistics import NormalDist, fmean, pstdev
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.errors import AnalysisError, UsageError
from ioprism.model.samples import parse_node_list
from ioprism.text import printable

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# The stages between node and storage whose components nodes share, by file system.
SHARED_STAGES: Mapping[str, tuple[str, ...]] = {
    "gpfs": ("bridge", "link", "io_node"),
    "lustre": ("router",),
    "plain": (),
}
MAPS = ("block", "list", "closest")


@dataclass(frozen=True, slots=True)
class SharedStage:
    """Components that nodes share on the way to storage, and which node uses which."""

    name: str
    count: int
    component_of: IntArray = field(repr=False)  # by node number; -1 where the map has a hole


@dataclass(frozen=True, slots=True)
class Storage:
    """Where bursts end: targets behind servers, and how a file is cut over them."""

    targets: int = 1  # NSDs or OSTs
    servers: int = 1  # NSD servers or OSSes; target j belongs to server j modulo servers
    block_bytes: int = 1_000_000  # GPFS block, or Lustre's default stripe size
    subblocks: int = 1  # per GPFS block
    stripe_count: int = 1  # Lustre's default
    distinct_targets: bool = False  # count targets in use as expected distinct ones


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """When a pattern's mean time is known well enough, and which samples count."""

    confidence: float = 0.9
    relative_error: float = 0.1
    minimum_runs: int = 3
    maximum_runs: int = 9  # the paper's limit
    minimum_seconds: float = 0.0  # samples with a smaller mean are left out

    def relative_half_width(self, times: Sequence[float]) -> float:
        """Half the width of the mean's confidence interval, as a share of the mean.

        By the central limit theorem: z * (population deviation / sqrt(runs - 1)) / mean; infinite
        while there is only one run.
        """
        if len(times) < 2:
            return math.inf
        z = NormalDist().inv_cdf((1.0 + self.confidence) / 2.0)
        return z * (pstdev(times) / math.sqrt(len(times) - 1)) / fmean(times)

    def is_converged(self, times: Sequence[float]) -> bool:
        """Whether there are enough runs, and their mean is known to the asked precision."""
        enough = len(times) >= self.minimum_runs
        return enough and self.relative_half_width(times) <= self.relative_error

    def is_finished(self, times: Sequence[float]) -> bool:
        """Whether to stop repeating: converged, or tried as often as allowed."""
        return len(times) >= self.maximum_runs or self.is_converged(times)


@dataclass(frozen=True, slots=True)
class System:
    """A machine as the write-time model sees it."""

    name: str
    title: str
    filesystem: str
    nodes: int
    cores_per_node: int
    stages: Mapping[str, SharedStage]
    storage: Storage
    sampling: SamplingRule
    hostname: str | None  # regular expression whose group 1 is the node number
    text: str = field(repr=False)  # the TOML it was read from, kept with stores and models


def bundled_systems() -> tuple[str, ...]:
    """Name the descriptions that come with ioprism."""
    folder = resources.files("ioprism.write_time") / "systems"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir()))


def bundled_system(name: str) -> System:
    """Load a description that comes with ioprism.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in bundled_systems():
        raise UsageError(
            f"no system is called {name!r} (there are {', '.join(bundled_systems())}).\n"
            "Hint: give the path of a description; `ioprism write-time system init` drafts one."
        )
    folder = resources.files("ioprism.write_time") / "systems"
    return parse_system((folder / f"{name}.toml").read_text("utf-8"), source=f"{name}.toml")


def parse_system(text: str, *, source: str) -> System:
    """Read a description in TOML.

    Raises:
        AnalysisError: it is not TOML, or lacks or contradicts something; `source` is named.
    """
    try:
        raw = tomllib.loads(text)
        return _system(raw, text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = f"not TOML: {error}"
    except KeyError as error:
        reason = f"the key {error.args[0]} is missing"
    except (TypeError, ValueError, UsageError) as error:
        reason = str(error).partition("\n")[0]
    raise AnalysisError(
        f"{printable(source)}: this description of a system cannot be used: {printable(reason)}.\n"
        "Hint: `ioprism write-time system show cetus` prints a complete one."
    )


def _system(raw: Mapping[str, Any], text: str) -> System:
    filesystem = raw["filesystem"]
    if filesystem not in SHARED_STAGES:
        raise ValueError(f"filesystem is {filesystem!r}, not one of {', '.join(SHARED_STAGES)}")
    nodes = _count(raw, "nodes")
    stages = _table(raw, "stages")
    return System(
        name=str(raw["name"]),
        title=str(raw.get("title", raw["name"])),
        filesystem=filesystem,
        nodes=nodes,
        cores_per_node=_count(raw, "cores_per_node"),
        stages={name: _stage(name, stages, nodes) for name in SHARED_STAGES[filesystem]},
        storage=_storage(_table(raw, "storage")),
        sampling=_sampling(_table(raw, "sampling")),
        hostname=raw.get("hostname"),
        text=text,
    )


def _table(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = raw.get(key, {})
    if not isinstance(table, Mapping):
        raise ValueError(f"{key} is not a table")
    return table


def _count(raw: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = raw[key] if default is None else raw.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**12:
        raise ValueError(f"{key} is {value!r}, not a positive whole number")
    return value


def _stage(name: str, stages: Mapping[str, Any], nodes: int) -> SharedStage:
    if name not in stages:
        raise KeyError(f"stages.{name}")
    raw = _table(stages, name)
    kind = raw.get("map", "block")
    if kind not in MAPS:
        raise ValueError(f"stages.{name}.map is {kind!r}, not one of {', '.join(MAPS)}")
    if kind == "list":
        return _listed_stage(name, raw["groups"], nodes)
    count = _count(raw, "count")
    numbers = np.arange(nodes, dtype=np.int64)
    if kind == "block":
        component_of = numbers // _count(raw, "nodes_per_component", math.ceil(nodes / count))
    else:
        component_of = _closest(numbers, count, raw.get("positions"))
    if component_of.max() >= count:
        raise ValueError(f"stages.{name}: {count} components do not reach all {nodes} nodes")
    return SharedStage(name, count, component_of)


def _closest(numbers: IntArray, count: int, positions: object) -> IntArray:
    """Map every node to the component nearest to it; components are spread evenly by default."""
    if positions is None:
        return numbers * count // len(numbers)
    places = np.asarray(positions, dtype=np.float64)
    if places.shape != (count,) or not np.isfinite(places).all():
        raise ValueError(f"positions must be {count} numbers, one for each component")
    order = np.argsort(places, kind="stable")
    middles = (places[order][1:] + places[order][:-1]) / 2
    return order[np.searchsorted(middles, numbers, side="right")].astype(np.int64)


def _listed_stage(name: str, groups: object, nodes: int) -> SharedStage:
    if not isinstance(groups, list) or not groups:
        raise ValueError(f"stages.{name}.groups must list the nodes of every component")
    component_of = np.full(nodes, -1, dtype=np.int64)
    for number, group in enumerate(groups):
        members = np.array(parse_node_list(str(group)))
        if members.max() >= nodes or (component_of[members] >= 0).any():
            raise ValueError(f"stages.{name}.groups[{number}] names unknown or repeated nodes")
        component_of[members] = number
    return SharedStage(name, len(groups), component_of)


def _storage(raw: Mapping[str, Any]) -> Storage:
    resources_counted = raw.get("resources", "uncapped")
    if resources_counted not in ("uncapped", "expected"):
        raise ValueError("storage.resources is neither 'uncapped' nor 'expected'")
    names = ("targets", "servers", "block_bytes", "subblocks", "stripe_count")
    counts = {name: _count(raw, name, getattr(Storage(), name)) for name in names}
    return Storage(**counts, distinct_targets=resources_counted == "expected")


def _sampling(raw: Mapping[str, Any]) -> SamplingRule:
    usual = SamplingRule()
    values: dict[str, Any] = {
        name: _count(raw, name, default)
        if isinstance(default, int)
        else float(raw.get(name, default))
        for name, default in asdict(usual).items()
    }
    rule = SamplingRule(**values)
    if not (0 < rule.confidence < 1 and rule.relative_error > 0 and rule.minimum_runs >= 2):
        raise ValueError("sampling: confidence must be between 0 and 1, with at least 2 runs")
    return rule
