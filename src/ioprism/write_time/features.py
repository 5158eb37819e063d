"""What of a write pattern may decide its time: load, skew and resources at every stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.errors import UsageError
from ioprism.model.samples import WritePattern
from ioprism.write_time import limits
from ioprism.write_time.loads import parameters
from ioprism.write_time.system import FloatArray, System

VARIANTS = ("full", "paper")


@dataclass(frozen=True, slots=True)
class Feature:
    """A quotient of products of parameters; sizes count in MB, so coefficients are s/MB."""

    stage: str
    numerator: tuple[str, ...] = ()
    denominator: tuple[str, ...] = ()
    kind: str = "individual"  # or cross-stage, interference

    @property
    def name(self) -> str:
        """The formula, such as ``s_b*m*K`` or ``1/(m*n)``."""
        over = "*".join(self.numerator) or "1"
        if self.kind == "cross-stage":
            over = _group_factors(self.numerator)
        return f"{over}/({'*'.join(self.denominator)})" if self.denominator else over

    @property
    def unit(self) -> str:
        """``MB`` for each size in the product, nothing for counts."""
        power = sum(p in SIZES for p in self.numerator) - sum(p in SIZES for p in self.denominator)
        return {0: "", 1: "MB", 2: "MB²", -1: "1/MB"}[power]

    def to_dict(self) -> dict[str, str]:
        """Return plain values."""
        return {"name": self.name, "stage": self.stage, "unit": self.unit, "kind": self.kind}


SIZES = frozenset({"K", "s_oss", "s_ost"})


def features(
    system: System, *, variant: str = "full", access: str = "write"
) -> tuple[Feature, ...]:
    """List the features of a system's file system; a shared file has locks besides.

    `paper` is exactly the published set: 41 for GPFS (``strict41``), 30 for Lustre. `full` adds
    the load of the I/O nodes to GPFS, which the published tables of results use.
    """
    if variant == "strict41":
        variant = "paper"
    if variant not in VARIANTS:
        raise UsageError(
            f"no feature set is called {variant!r}.\nHint: there are full, paper and strict41."
        )
    family = FAMILIES[system.filesystem] + (LOCKS if access.startswith("shared-") else ())
    return tuple(f for f in family if variant == "full" or f not in BEYOND_PAPER)


def feature_table(
    patterns: Sequence[WritePattern], *, system: System, chosen: Sequence[Feature]
) -> FloatArray:
    """Return one row for each pattern and one column for each feature."""
    return feature_columns(parameters(patterns, system=system), chosen=chosen)


def feature_columns(values: Mapping[str, FloatArray], *, chosen: Sequence[Feature]) -> FloatArray:
    """Return the features that follow from parameters, one column for each."""
    ones = np.ones_like(values["n"])

    def product(names: Sequence[str]) -> FloatArray:
        factors: FloatArray = np.prod([ones, *(values[name] for name in names)], axis=0)
        return factors

    return np.column_stack([product(f.numerator) / product(f.denominator) for f in chosen])


def _group_factors(factors: tuple[str, ...]) -> str:
    """Write the product of two loads with each in brackets: ``(m*K)*(s_b*m*K)``."""
    groups: list[list[str]] = [[]]
    for factor in factors:
        groups[-1].append(factor)
        if factor in SIZES:
            groups.append([])
    return "*".join(f"({'*'.join(g)})" if len(g) > 1 else g[0] for g in groups if g)


def _both(stage: str, *factors: str) -> tuple[Feature, Feature]:
    return Feature(stage, numerator=factors), Feature(stage, denominator=factors)


def _crossing(stage: str, *factors: str) -> Feature:
    return Feature(stage, numerator=factors, kind="cross-stage")


INTERFERENCE = (
    Feature("interference", ("n",), kind="interference"),
    Feature("interference", (), ("m", "n", "K"), kind="interference"),
    Feature("interference", ("n",), ("m", "n", "K"), kind="interference"),
)
NODE_LOAD = (
    *_both("metadata", "m", "n"),
    *_both("network", "m", "n", "K"),
    *_both("compute node", "m", "K"),
    *_both("compute node", "K"),
    *_both("compute node", "m"),
    *_both("compute node", "n"),
)
GPFS = (
    *NODE_LOAD,
    *_both("metadata", "s_io", "m"),
    *_both("I/O node", "n_io"),
    Feature("subblock", ("m", "n", "p_sub")),
    Feature("subblock", ("s_io", "m", "p_sub")),
    *_both("bridge node", "s_b", "m", "K"),
    *_both("bridge node", "n_b"),
    *_both("link", "s_l", "m", "K"),
    *_both("link", "n_l"),
    *_both("I/O node", "s_io", "m", "K"),
    *_both("NSD server", "n_s"),
    *_both("NSD server", "n_nsds"),
    *_both("NSD", "n_d"),
    *_both("NSD", "n_nsd"),
    _crossing("compute node, bridge node", "m", "K", "s_b", "m", "K"),
    _crossing("bridge node, link", "s_b", "m", "K", "s_l", "m", "K"),
    _crossing("link, I/O node", "s_l", "m", "K", "s_io", "m", "K"),
    _crossing("bridge node, NSD server", "s_b", "m", "K", "n_nsds"),
    *INTERFERENCE,
)
LUSTRE = (
    *NODE_LOAD,
    *_both("I/O router", "s_r", "m", "K"),
    *_both("I/O router", "n_r"),
    *_both("OSS", "s_oss"),
    *_both("OSS", "n_oss"),
    *_both("OST", "s_ost"),
    *_both("OST", "n_ost"),
    _crossing("compute node, I/O router", "m", "K", "s_r", "m", "K"),
    _crossing("I/O router, OSS", "s_r", "m", "K", "n_oss"),
    _crossing("OSS, OST", "s_oss", "s_ost"),
    *INTERFERENCE,
)
FAMILIES: Mapping[str, tuple[Feature, ...]] = {"gpfs": GPFS, "lustre": LUSTRE, "plain": NODE_LOAD}
LOCKS = (*_both("file locks", "w"), Feature("file locks", ("w", "K")))
BEYOND_PAPER = frozenset(_both("I/O node", "s_io", "m", "K"))


@dataclass(frozen=True, slots=True)
class Columns:
    """The features kept, and those left out because others say the same or nothing."""

    kept: tuple[int, ...]
    constant: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]  # the one left out, and the one that stands for it


@dataclass(frozen=True, slots=True)
class CollinearPair:
    """Two features that moved together in training: the fit cannot tell which one matters."""

    first: str
    second: str
    ratio_low: float
    ratio_high: float


def informative_columns(table: FloatArray, features: Sequence[Feature]) -> Columns:
    """Choose the columns to train on."""
    kept: list[int] = []
    constant: list[str] = []
    copies: list[tuple[str, str]] = []
    for number, feature in enumerate(features):
        column = table[:, number]
        if np.ptp(column) <= limits.SAME_LOAD * np.abs(column).max():
            constant.append(feature.name)
            continue
        same = (
            k for k in kept if np.allclose(column, table[:, k], rtol=limits.SAME_LOAD, atol=0.0)
        )
        twin = next(same, None)
        if twin is None:
            kept.append(number)
        elif feature.name != features[twin].name:
            copies.append((feature.name, features[twin].name))
    return Columns(tuple(kept), tuple(constant), tuple(copies))


def collinear_pairs(
    table: FloatArray, names: Sequence[str], *, active: Sequence[int]
) -> tuple[CollinearPair, ...]:
    """Find the loads of the fit that training hardly distinguishes from another feature."""
    positive = [number for number in range(len(names)) if (table[:, number] > 0).all()]
    logarithms = np.log(table[:, positive])
    correlations = np.corrcoef(logarithms, rowvar=False) if len(positive) > 1 else np.eye(1)
    pairs: list[CollinearPair] = []
    for row, first in enumerate(positive):
        for column, second in enumerate(positive[:row]):
            involved = first in active or second in active
            if involved and correlations[row, column] > limits.NEARLY_COLLINEAR:
                ratios = table[:, first] / table[:, second]
                low, high = float(ratios.min()), float(ratios.max())
                pairs.append(CollinearPair(names[first], names[second], low, high))
    return tuple(pairs)
