"""A log's counters in plain Python, for answers that must not wait for a table library.

Gives what `reader` gives, except single calls: columns are lists, read when asked for.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import add
from pathlib import Path
from typing import Any

from ioprism.formats.darshan.job import name_table, read_job
from ioprism.formats.darshan.log import Log, Region, at_most, is_log, notes, read_log, whole
from ioprism.formats.darshan.meaning import MODULES, Module
from ioprism.formats.darshan.records import (
    DXT_LAYERS,
    FIXED,
    HEATMAP_LAYERS,
    NOT_FILES,
    PLAIN_COUNTS,
    WITHOUT_FILES,
    Layout,
)
from ioprism.formats.darshan.variable import UNUSED, heat_records, lustre_components, native_words
from ioprism.formats.plausibility import LATEST
from ioprism.model.pseudonyms import chosen_pseudonyms
from ioprism.model.sizes import LARGEST_PLAUSIBLE, MOST_RANKS, SIZE_BINS
from ioprism.model.trace import Completeness, Job, Warn
from ioprism.model.usage import (
    EVERYONE,
    NAMELESS,
    NO_DATA,
    FileFacts,
    HeatMap,
    Striping,
    is_data,
)
from ioprism.units import format_counted

MODULE_BYTES = 4 * 2**30
AT_ONCE = 256 * 2**10  # bytes

Columns = list["array[int]"]


class Records:
    """The records of one module; a column is a list, or None where this version lacks it."""

    def __init__(self, columns: Columns, layout: Layout, rows: dict[int, int]) -> None:
        self._columns = columns  # one for each word of a record
        self._layout = layout
        self._rows = rows
        after = 2 + layout.has_parent
        names = (*layout.counters, *layout.times)
        self._place = {name: after + number for number, name in enumerate(names)}
        self._times = frozenset(layout.times)

    def sound(self, module: str) -> bool:
        """Whether all files have names, and no number contradicts another or is none."""
        if module != WITHOUT_FILES and NAMELESS in self.files:
            return False
        if not all(math.isfinite(sum(self.column(name) or ())) for name in self._times):
            return False
        counts = (self.column(n) for n in self._layout.counters if n.endswith(PLAIN_COUNTS))
        if any(any(c) and not -1 <= min(c) <= max(c) <= LARGEST_PLAUSIBLE for c in counts if c):
            return False
        return module not in MODULES or self._adds_up(MODULES[module])

    def _adds_up(self, module: Module) -> bool:
        """Whether each call is in the histogram of sizes."""
        if not module.sizes_add_up:
            return True
        for direction, calls in module.calls.items():
            bins = (module.size_counter(direction, size.counter) for size in SIZE_BINS)
            if self._sums(map(module.named, calls)) != self._sums(bins):
                return False
        return True

    def _sums(self, names: Iterable[str]) -> list[int]:
        total = [0] * len(self.ranks)
        for name in names:
            if any(values := self.column(name) or ()):
                total = list(map(add, total, values))
        return total

    def column(self, name: str) -> list[Any] | None:
        """Return one value per record."""
        place = self._place.get(name)
        if place is None:
            return None
        words, is_time = self._columns[place], name in self._times
        packed = words.tobytes()
        if packed == bytes(len(packed)):  # most counters of most logs
            return [0.0 if is_time else 0] * len(words)
        return (array("d", packed) if is_time else words).tolist()

    @cached_property
    def files(self) -> list[int]:
        """The row of each record's file."""
        return self._lookup(0)

    @property
    def parents(self) -> list[int] | None:
        """For data sets, the row of each record's file."""
        return self._lookup(2) if self._layout.has_parent else None

    def _lookup(self, place: int) -> list[int]:
        return [self._rows.get(identifier, NAMELESS) for identifier in self._columns[place]]

    @property
    def ranks(self) -> list[int]:
        """The rank of each record; -1 for all together."""
        return self._columns[1].tolist()


@dataclass(frozen=True)
class PlainLog:
    """One log: what its header, names and counters say."""

    log: Log
    job: Job
    names: Mapping[int, str]
    completeness: Completeness = field(repr=False)
    format: str = "darshan"
    _read: dict[str, Records] = field(default_factory=dict, repr=False)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where it is."""
        return (self.log.path,)

    @property
    def has_calls(self) -> bool:
        """Whether single reads and writes were traced, which are not read here."""
        return any(self.log.modules[m].length for m in DXT_LAYERS if m in self.log.modules)

    @property
    def modules(self) -> list[str]:
        """The modules that hold counters."""
        return [
            name for name, region in self.log.modules.items() if name in FIXED and region.length
        ]

    @cached_property
    def _rows(self) -> dict[int, int]:
        """Row of the name table by signed identifier."""
        return {_signed(identifier): row for row, identifier in enumerate(self.names)}

    @cached_property
    def sound(self) -> bool:
        """Whether nothing in it is damaged."""
        notes_before = len(self.completeness.warnings)
        times = (self.job.runtime, self.job.start_time, self.job.end_time)
        return (
            all(time is None or 0 <= time < LATEST for time in times)
            and all(self.records(module).sound(module) for module in self.modules)
            and self.heat_maps is not None
            and self.files is not None
            and len(self.completeness.warnings) == notes_before
        )

    def records(self, module: str) -> Records:
        """Return the records of one module, read when they are first asked for."""
        if module not in self._read:
            self._read[module] = self._records(module)
        return self._read[module]

    def _records(self, module: str) -> Records:
        region = self.log.modules[module]
        versions = FIXED[module]
        layout = versions.get(region.version)
        if layout is None:
            self.completeness.warn(
                f"{self.log.path.name}: {module} records have the unknown version "
                f"{region.version} and are not read"
            )
            layout = versions[max(versions)]
            return Records([array("q")] * layout.words, layout, self._rows)
        return Records(self._sound(region, layout.words), layout, self._rows)

    def _sound(self, region: Region, words: int) -> Columns:
        """Inflate whole records with possible ranks."""
        columns, rest = [array("q") for _ in range(words)], b""
        warn = self.completeness.warn
        # Some records after the other are taken apart, which fit into a cache.
        for piece in at_most(MODULE_BYTES, self.log, region, warn, size=AT_ONCE):
            data = rest + piece
            end = len(data) - len(data) % (8 * words)
            some, rest = native_words(data[:end], self.log.byte_order), data[end:]
            for place, column in enumerate(columns):
                column.extend(some[place::words])
        if rest:
            self._warn(f"the last {region.name} record is cut off")
        limit, ranks = self.job.ranks or MOST_RANKS, columns[1]
        if not ranks or (min(ranks) >= EVERYONE and max(ranks) < limit):
            return columns
        good = [number for number, rank in enumerate(ranks) if EVERYONE <= rank < limit]
        damaged = format_counted(len(ranks) - len(good), f"damaged {region.name} record")
        self._warn(f"{damaged} left out")
        return [array("q", map(column.__getitem__, good)) for column in columns]

    def _warn(self, message: str) -> None:
        self.completeness.warn(f"{self.log.path.name}: {message}")

    @cached_property
    def files(self) -> FileFacts:
        """Names, mounts and stripe layouts."""
        paths = {row: name for row, name in enumerate(self.names.values()) if name not in NOT_FILES}
        layouts = dict(self._layouts())
        return FileFacts(
            paths,
            frozenset(
                row for row, path in paths.items() if path.startswith(NO_DATA) and not is_data(path)
            ),
            mounts=self.job.mounts,
            striping={row: Striping(p["stripe_size"], p["targets"]) for row, p in layouts.items()},
            system_targets=max((p.get("system_targets", 0) for p in layouts.values()), default=0)
            or None,
        )

    def _layouts(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The first component of each file that holds data."""
        region = self.log.modules.get("LUSTRE")
        if region is None or not region.length or region.version not in (1, 2):
            return
        data = whole(self.log, region, self.completeness.warn, limit=MODULE_BYTES)
        seen: set[int] = set()
        for part in lustre_components(data, self.log.byte_order, region.version):
            if part is None:
                self._warn("a LUSTRE record is damaged; layouts from there on are missing")
                return
            row = self._rows.get(_signed(part["id"]), NAMELESS)
            if row not in seen and part["stripe_size"] != UNUSED:
                seen.add(row)
                yield row, part

    @cached_property
    def heat_maps(self) -> dict[str, list[HeatMap]]:
        """When each rank moved how many bytes, by layer."""
        region = self.log.modules.get("HEATMAP")
        if region is None or not region.length:
            return {}
        data = whole(self.log, region, self.completeness.warn, limit=MODULE_BYTES)
        maps: dict[str, list[HeatMap]] = {}
        for record in heat_records(data, self.log.byte_order):
            if record is None:
                self._warn("a HEATMAP record is damaged; bins from there on are missing")
                break
            layer = HEATMAP_LAYERS.get(self.names.get(record.id, ""))
            if layer is not None:
                one = HeatMap(record.rank, record.width, record.read, record.write)
                maps.setdefault(layer, []).append(one)
        return maps


def _signed(identifier: object) -> int:
    number = identifier if isinstance(identifier, int) else 0
    return number - 2**64 if number >= 2**63 else number


def counters_alone(paths: Sequence[Path], format_name: str | None) -> PlainLog | None:
    """Read the log at these paths, if it is one that holds counters and no single calls.

    None for a damaged one as well: tables tell what is wrong with it; and where names are to be
    replaced, which is done to tables.
    """
    if chosen_pseudonyms() is not None:
        return None
    if len(paths) != 1 or format_name not in (None, "darshan") or not is_log(paths[0]):
        return None
    log = read_plain(paths[0])
    return None if log.has_calls or not log.sound else log


def read_plain(source: Path) -> PlainLog:
    """Read a log's facts and names now, its counters when they are asked for.

    Raises:
        BrokenTraceError: this is no Darshan log, or its header is damaged.
    """
    completeness = Completeness()
    warn: Warn = completeness.warn
    log = read_log(source)
    job = read_job(log, warn)
    names = name_table(log, warn)
    for note in notes(log):
        warn(note)
    return PlainLog(log, job, names, completeness)
