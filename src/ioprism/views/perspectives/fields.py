"""The fields of a view's record: what rules and metrics may speak of, with units and meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ioprism.model.schema import OPERATIONS
from ioprism.views.calls.call_class import (
    READ,
    SIZE_NAMES,
    SMALL_BINS,
    WRITE,
    Codes,
    operation_of,
    random_of,
    size_bin_of,
)

Unit = Literal["s", "B", ""]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Field:
    """A number that every record has."""

    name: str
    unit: Unit
    meaning: str


def _is(*operations: str) -> Callable[[Codes], Flags]:
    wanted = [OPERATIONS.index(name) for name in operations]
    return lambda classes: np.isin(operation_of(classes), wanted)


def _small(operation: int) -> Callable[[Codes], Flags]:
    return lambda c: (operation_of(c) == operation) & (size_bin_of(c) < SMALL_BINS)


def _data(*, random: bool) -> Callable[[Codes], Flags]:
    return lambda c: (operation_of(c) <= WRITE) & (random_of(c) == random)


def _bin(number: int) -> Callable[[Codes], Flags]:
    return lambda c: (operation_of(c) <= WRITE) & (size_bin_of(c) == number)


# Groups of calls; each has a time, a count and, where bytes are moved, a size.
MOVING: Mapping[str, tuple[str, Callable[[Codes], Flags]]] = {
    "": ("all calls", lambda c: np.ones(len(c), bool)),
    "read_": ("reads", _is("read")),
    "write_": ("writes", _is("write")),
    "data_": ("reads and writes", _is("read", "write")),
    "small_read_": ("reads below 1 MiB", _small(READ)),
    "small_write_": ("writes below 1 MiB", _small(WRITE)),
    "sequential_": ("reads and writes that follow the last one, or keep its stride",
                    _data(random=False)),
    "random_": ("reads and writes that jump around in their file", _data(random=True)),
}  # fmt: skip
CALLING: Mapping[str, tuple[str, Callable[[Codes], Flags]]] = {
    "metadata_": ("calls that move no data", lambda c: operation_of(c) > WRITE),
    "open_": ("opens", _is("open")),
    "close_": ("closes", _is("close")),
    "seek_": ("seeks", _is("seek")),
    "stat_": ("stats", _is("stat")),
    "sync_": ("syncs and flushes", _is("sync")),
    "other_metadata_": ("other metadata calls: rename, mkdir, …", _is("metadata", "other")),
}
BINS = tuple(
    (f"count_{name}", number)
    for number, name in enumerate(
        ("below_4k", "4k_16k", "16k_64k", "64k_256k", "256k_1m", "1m_4m", "4m_16m", "16m_64m",
         "64m_and_more")
    )
)  # fmt: skip


def _summed() -> dict[str, tuple[str, Callable[[Codes], Flags], Field]]:
    """Field -> column of the main view, classes to add up, and its description."""
    fields = {}
    for prefix, (what, wanted) in {**MOVING, **CALLING}.items():
        measures: list[tuple[str, str, Unit, str]] = [
            ("time", "nanoseconds", "s", "seconds in"),
            ("count", "count", "", "number of"),
        ]
        if prefix in MOVING:
            measures.append(("size", "bytes", "B", "bytes moved by"))
        for measure, column, unit, words in measures:
            name = f"{prefix}{measure}"
            fields[name] = (column, wanted, Field(name, unit, f"{words} {what}"))
    for name, number in BINS:
        meaning = f"number of reads and writes of {SIZE_NAMES[number]}"
        fields[name] = ("count", _bin(number), Field(name, "", meaning))
    return fields


SUMMED = _summed()
OTHERS = (
    Field("slowest_call", "s", "the longest single call"),
    Field("slowest_process_time", "s", "seconds in calls of the process that has most of them"),
    Field("first_open_time", "s", "seconds in opens during the first bucket a file is opened in"),
    Field("reread_size", "B", "bytes read beyond what is in the file, at least"),
    Field("shared_time", "s", "seconds on files that several processes use in the same bucket"),
    Field("sharers", "", "most processes that use one file in one bucket"),
    Field("files", "", "number of files"),
    Field("processes", "", "number of processes"),
    Field("periods", "", "number of time buckets with calls"),
    Field("applications", "", "number of programs"),
    Field("hosts", "", "number of nodes"),
    Field("time_share", "", "share of the view's time, from 0 to 1, as used for the severity"),
    Field("work_share", "", "share of the view's work: operations, bytes, or what the metric says"),
    Field("count_share", "", "share of the view's operations"),
    Field("size_share", "", "share of the view's bytes"),
    Field("job_share", "", "share of the job's I/O time"),
    Field("severity", "", "degrees, from 0 to 90"),
    Field("excess_time", "s", "seconds in excess of the record's share of the work"),
    Field("job_processes", "", "number of processes of the job that do I/O"),
    Field("job_files", "", "number of files of the job"),
)
FIELDS: Mapping[str, Field] = {
    field.name: field for field in (*(entry[2] for entry in SUMMED.values()), *OTHERS)
}
