"""Read TOKIO time series (HDF5): what pytokio archives of LMT, collectd or ES.

Each column is a server or target, each row the bytes of one interval; adding them up gives a
counter that starts from 0 with the file. Negative zero marks an interval nobody measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ioprism.errors import BrokenTraceError, ReaderUnavailableError
from ioprism.formats.budget import Budget
from ioprism.model.counters import COUNTERS, SECOND, TARGET, ReadingOptions, Tally
from ioprism.servers.counter_formats.counter_rows import checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"\x89HDF\r\n\x1a\n"
CELLS_AT_ONCE = 4_000_000
LARGEST_COUNT = 2.0**62
# Group -> data set -> counter; rates are bytes per second and become bytes of their interval.
DATA = {
    "readbytes": "br", "writebytes": "bw", "readrates": "br", "writerates": "bw",
    "reads": "rdc", "writes": "wc", "opens": "oc", "closes": "cc",
}  # fmt: skip
GROUPS = ("datatargets", "mdtargets")
FALLBACK = ("dataservers", "mdservers")


class TokioReader:
    """Reads TOKIO time series of version 1."""

    name = "tokio"
    title = "TOKIO time series: HDF5 (needs h5py)"

    def recognises(self, source: Path) -> bool:
        """Whether it is HDF5; reading it tells whether it is TOKIO's. Never raises."""
        try:
            with source.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples.

        Raises:
            ReaderUnavailableError: the package h5py is not installed.
            BrokenTraceError: it is HDF5, but no time series.
        """
        h5py = _h5py(source)
        try:
            with h5py.File(source, "r") as file:
                groups = [name for name in GROUPS if name in file] or [
                    name for name in FALLBACK if name in file
                ]
                if not groups:
                    raise _broken(source, "it has none of the groups of a TOKIO time series")
                budget = Budget(source)
                for group in groups:
                    inner = _inside(file, group, h5py)
                    _check_group(inner, source, budget, h5py)
                    yield from _group_samples(inner, source, tally)
        except (OSError, LookupError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            raise _broken(source, str(error)) from error


def _h5py(source: Path) -> Any:  # noqa: ANN401 - an optional module
    try:
        h5py = import_module("h5py")
    except ImportError as error:
        raise ReaderUnavailableError(
            source, reader="tokio", missing="h5py", install="'ioprism[tokio]'"
        ) from error
    return h5py


def _inside(group: Any, name: str, h5py: Any) -> Any:  # noqa: ANN401
    """Return a member of a group; links may lead to other files, and are not followed."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link")
    return group[name]


def _check_group(group: Any, source: Path, budget: Budget, h5py: Any) -> None:  # noqa: ANN401
    """Refuse data that lie in other files, or are larger than the file can hold.

    Raises:
        BrokenTraceError: a data set is not plain numbers of this file.
        OverBudgetError: it needs more memory than a file of this size may take.
    """
    for name in ("timestamps", *DATA):
        if name not in group:
            continue
        data = _inside(group, name, h5py)
        if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "iuf":
            raise _broken(source, f"{name} are not numbers")
        if data.external or data.is_virtual:
            raise _broken(source, f"{name} are stored in another file")
        chunk = math.prod(data.chunks or ()) * data.dtype.itemsize
        budget.take(data.size * data.dtype.itemsize + chunk, name)
        if "columns" in data.attrs:
            titles = data.attrs.get_id("columns")
            # Names of variable length may all be the same long one, which is in the file once.
            width = source.stat().st_size if titles.dtype.kind == "O" else titles.dtype.itemsize
            budget.take(math.prod(titles.shape) * width, "the names of columns")


def _group_samples(group: Any, source: Path, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ANN401
    if "timestamps" not in group:
        raise _broken(source, f"the group {group.name} has no timestamps")
    starts = np.asarray(group["timestamps"][:], dtype=np.int64)
    present = [name for name in DATA if name in group]
    if any(group[name].shape[0] != len(starts) for name in present):
        raise _broken(source, f"the data of {group.name} do not fit its timestamps")
    if len(starts) < 2 or not present:
        return
    step = int(np.median(np.diff(starts)))
    if step <= 0 or np.any(np.diff(starts) <= 0):
        raise _broken(source, f"the timestamps of {group.name} do not increase")
    columns = [_text(name) for name in group[present[0]].attrs["columns"]]
    at_once = max(1, CELLS_AT_ONCE // len(starts))
    for first in range(0, len(columns), at_once):
        chosen = slice(first, min(first + at_once, len(columns)))
        yield from _columns(group, present, columns, chosen, starts, step, tally)


def _columns(
    group: Any,  # noqa: ANN401
    present: list[str],
    columns: list[str],
    chosen: slice,
    starts: NDArray[np.int64],
    step: int,
    tally: Tally,
) -> Iterator[pl.DataFrame]:
    blocks = {
        DATA[name]: np.asarray(group[name][:, chosen], dtype=np.float64)
        * (step if name.endswith("rates") else 1)
        for name in present
    }
    for number, server in enumerate(columns[chosen]):
        amounts = {counter: block[:, number] for counter, block in blocks.items()}
        yield checked(_counter_table(server, amounts, starts, step), tally)


def _counter_table(
    server: str, amounts: dict[str, NDArray[np.float64]], starts: NDArray[np.int64], step: int
) -> pl.DataFrame:
    """Add intervals up; a sample is taken at the end of each interval that was measured."""
    missing = np.zeros(len(starts), dtype=bool)
    for amount in amounts.values():
        missing |= ~np.isfinite(amount) | np.signbit(amount)
    ends = np.concatenate([starts[:1], starts[~missing] + step])
    sums = {
        counter: np.concatenate([[0.0], np.cumsum(amount[~missing])])
        for counter, amount in amounts.items()
    }
    counted = {
        name: np.rint(np.minimum(total, LARGEST_COUNT)).astype(np.int64)
        for name, total in sums.items()
    }
    table = pl.DataFrame({"time_us": ends * SECOND, **counted}).with_columns(
        server=pl.lit(server),
        part=pl.lit(""),
        source=pl.lit(TARGET),
        since_us=pl.lit(int(starts[0]) * SECOND, dtype=pl.Int64),
    )
    return COUNTERS.conform(table)


def _text(name: Any) -> str:  # noqa: ANN401 - bytes or str, as the file was written
    return name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name)


def _broken(source: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"this TOKIO time series cannot be read: {why}.\n"
        "Hint: version 1 of the format is read; older .h5lmt files are not.",
        source=source,
    )
