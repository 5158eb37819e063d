"""Records of variable length, in plain Python: stripe layouts and heat maps.

Each generator yields None where a record is damaged, and then ends.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from ioprism.formats.darshan.records import LUSTRE_COMPONENT

MAX_STRIPES = 65_536
MAX_BINS = 2**20
UNUSED = -1  # stripe size of a component that holds no data yet
_NATIVE = "<" if sys.byteorder == "little" else ">"


class HeatRecord(NamedTuple):
    """Bytes that one rank moved through one interface, per time bin."""

    id: int
    rank: int
    width: float  # seconds
    write: array[int]
    read: array[int]


def lustre_components(data: bytes, order: str, version: int) -> Iterator[dict[str, object] | None]:
    """Yield every layout component: one per file in version 1, several in version 2."""
    return {1: _version_1, 2: _version_2}[version](data, order)


def _version_1(data: bytes, order: str) -> Iterator[dict[str, object] | None]:
    """One component per file: id, rank, targets of the system, and the layout itself."""
    head = struct.Struct(f"{order}Qq5q")
    position = 0
    while position + head.size <= len(data):
        identifier, rank, system_targets, _, _, stripe_size, stripe_count = head.unpack_from(
            data, position
        )
        position += head.size
        end = position + 8 * stripe_count
        if not 0 <= stripe_count <= MAX_STRIPES or end > len(data) or not -1 <= rank < 2**31:
            yield None
            return
        yield {
            "id": identifier,
            "rank": rank,
            "component": 0,
            "system_targets": system_targets,
            "stripe_size": stripe_size,
            "stripe_count": stripe_count,
            "targets": list(struct.unpack_from(f"{order}{stripe_count}q", data, position)),
        }
        position = end


def _version_2(data: bytes, order: str) -> Iterator[dict[str, object] | None]:
    """Several components per file: their counters, then the targets of all of them."""
    head = struct.Struct(f"{order}Q3q")
    component = struct.Struct(f"{order}{len(LUSTRE_COMPONENT)}q16s")
    position = 0
    while position + head.size <= len(data):
        identifier, rank, components, stripes = head.unpack_from(data, position)
        position += head.size
        targets_at = position + component.size * components
        end = targets_at + 8 * stripes
        sane = 0 <= components <= MAX_STRIPES and 0 <= stripes <= MAX_STRIPES
        if not sane or not -1 <= rank < 2**31 or end > len(data):
            yield None
            return
        targets = struct.unpack_from(f"{order}{stripes}q", data, targets_at)
        taken = 0
        for number in range(components):
            *values, pool = component.unpack_from(data, position + component.size * number)
            counters = dict(zip(LUSTRE_COMPONENT, values, strict=True))
            count = max(0, counters["stripe_count"])
            yield {
                "id": identifier,
                "rank": rank,
                "component": number,
                **counters,
                "pool": pool.split(b"\0")[0].decode("utf-8", "backslashreplace"),
                "targets": list(targets[taken : taken + count]),
            }
            taken += count
        position = end


def native_words(data: bytes, order: str) -> array[int]:
    """Return signed 8-byte words in the byte order of this machine."""
    words = array("q", data)
    if order != _NATIVE:
        words.byteswap()
    return words


def heat_records(data: bytes, order: str) -> Iterator[HeatRecord | None]:
    """Yield one record per interface and rank."""
    head = struct.Struct(f"{order}Qqdq16x")  # two pointers of the writing process are junk
    position = 0
    while position + head.size <= len(data):
        identifier, rank, width, bins = head.unpack_from(data, position)
        position += head.size
        end = position + 16 * bins
        sane = 0 <= bins <= MAX_BINS and width > 0 and math.isfinite(width) and -1 <= rank < 2**31
        if not sane or end > len(data):
            yield None
            return
        both = native_words(data[position:end], order)
        yield HeatRecord(identifier, rank, width, both[:bins], both[bins:])
        position = end
    if position < len(data):
        yield None
