"""What the job uses: conditions that advice can ask for."""

from __future__ import annotations

from ioprism.analyses.diagnosis.result import Cause
from ioprism.model.trace import Job
from ioprism.model.usage import FileFacts
from ioprism.records import dataclass
from ioprism.rules.circumstances import HDF5_NAMES, MPI_LIBRARIES

_MODULES = {
    "hdf5": ("H5F", "H5D", "HDF5"), "pnetcdf": ("PNETCDF_FILE", "PNETCDF_VAR", "PNETCDF"),
    "mpiio": ("MPI-IO",), "stdio": ("STDIO",),
}  # fmt: skip
_AGAIN = 2  # readings of each rank
_TINY = 4096  # bytes: libraries keep their metadata in such pieces
_REOPENED = 4  # metadata calls for a file: open and close, and once more


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What is known of a job beside its causes."""

    job: Job
    files: FileFacts
    modules: frozenset[str]  # of counters that its log holds
    nodes: int = 1


def circumstances(cause: Cause, around: Surroundings) -> set[str]:
    """Name libraries, MPI, file system and language, as far as the trace tells."""
    job = around.job
    found = {name for name, modules in _MODULES.items() if not around.modules.isdisjoint(modules)}
    ranks = job.ranks or 1
    found.add("parallel" if ranks > 1 else "serial")
    path = str(cause.culprit.get("file", ""))
    if path.endswith(HDF5_NAMES):
        found.add("hdf5")
    if "LUSTRE" in around.modules or any(m.filesystem == "lustre" for m in job.mounts):
        found.add("lustre")
    if around.files.striping:
        found.add("layout")
    program = (job.executable or "").lower()
    if "python" in program or ".py" in program:
        found.add("python")
    told = " ".join([program, *job.metadata.values()]).lower()
    found |= {name for name, words in MPI_LIBRARIES.items() if any(word in told for word in words)}
    if float(cause.facts.get("calls_per_file", 0)) > _REOPENED:
        found.add("reopened")
    if float(cause.facts.get("copies", 0)) > _AGAIN * float(cause.facts.get("readers", 0) or ranks):
        found.add("again")
    if cause.facts.get("direction"):
        found.add(f"{cause.facts['direction']}s")
    if 0 < float(cause.facts.get("bytes_per_request", 0)) <= _TINY:
        found.add("tiny")
    if "directory" in cause.culprit:
        found.add("many-files")
    return found
