"""Families of streams with a known period, or without any, drawn by a seed."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.period_families import disturbed, noise, random_bursts, random_programs, trains
from benchmarks.period_families.streams import Family, Stream, draw, rectangles

__all__ = ["NOT_PERIODIC", "PERIODIC", "Family", "Stream", "draw", "rectangles"]

NOT_PERIODIC: Mapping[str, Family] = {
    **noise.FAMILIES, **random_bursts.FAMILIES, **random_programs.FAMILIES
}  # fmt: skip
PERIODIC: Mapping[str, Family] = {**trains.FAMILIES, **disturbed.FAMILIES}
