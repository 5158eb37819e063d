"""What to tell I/O middleware so that it writes as a better configuration does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ioprism.model.samples import WritePattern

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Hint:
    """Settings of one middleware."""

    middleware: str
    where: str  # where the settings go
    settings: Mapping[str, str]


def hints(now: WritePattern, better: WritePattern) -> tuple[Hint, ...]:
    """Return settings that turn one configuration into the other.

    Fewer writers are aggregators: other processes send them their data. More writers than now
    cannot be had from middleware.
    """
    listed: list[Hint] = []
    stripes = better.stripe_count if better.stripe_count != now.stripe_count else None
    if better.files < now.files:
        listed += [_mpi_io(better), _adios(better)]
    if stripes is not None:
        command = {"lfs setstripe": f"-c {stripes} FOLDER"}
        listed.append(Hint("Lustre", "before the files are created", command))
    return tuple(listed)


def _mpi_io(better: WritePattern) -> Hint:
    settings = {
        "romio_cb_write": "enable",
        "cb_nodes": str(better.files),
        "cb_config_list": f"*:{better.cores_per_node}",
        "cb_buffer_size": str(min(64 * MIB, max(MIB, better.burst_bytes))),
    }
    if better.stripe_count is not None:
        settings |= {"striping_factor": str(better.stripe_count)}
    return Hint("MPI-IO", "MPI_Info of MPI_File_open, or the file that ROMIO_HINTS names", settings)


def _adios(better: WritePattern) -> Hint:
    settings = {
        "AggregationType": "TwoLevelShm",
        "NumAggregators": str(better.files),
        "NumSubFiles": str(better.files),
    }
    return Hint("ADIOS2", "parameters of the engine BP5", settings)
