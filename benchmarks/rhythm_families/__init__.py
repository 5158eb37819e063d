"""Families of streams with a known rhythm, or without any, drawn by a seed."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.rhythm_families import disturbed, noise, random_bursts, random_programs, trains
from benchmarks.rhythm_families.streams import Family, Stream, draw, rectangles

__all__ = ["WITHOUT_RHYTHM", "WITH_RHYTHM", "Family", "Stream", "draw", "rectangles"]

WITHOUT_RHYTHM: Mapping[str, Family] = {
    **noise.FAMILIES, **random_bursts.FAMILIES, **random_programs.FAMILIES
}  # fmt: skip
WITH_RHYTHM: Mapping[str, Family] = {**trains.FAMILIES, **disturbed.FAMILIES}
