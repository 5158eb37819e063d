"""What the job uses: conditions that advice can ask for."""

from __future__ import annotations

from ioprism.analyses.diagnosis.result import Cause
from ioprism.model.trace import Trace
from ioprism.rules.circumstances import HDF5_NAMES, MPI_LIBRARIES

_MODULES = {
    "hdf5": ("H5F", "H5D", "HDF5"), "pnetcdf": ("PNETCDF_FILE", "PNETCDF_VAR", "PNETCDF"),
    "mpiio": ("MPI-IO",), "stdio": ("STDIO",),
}  # fmt: skip
_MANY_FILES = 10  # for each file that a rank would need
_AGAIN = 2  # readings of each rank
_TINY = 4096  # bytes: libraries keep their metadata in such pieces
_REOPENED = 4  # metadata calls for a file: open and close, and once more


def circumstances(cause: Cause, trace: Trace) -> set[str]:
    """Name libraries, MPI, file system and language, as far as the trace tells."""
    found = {name for name, modules in _MODULES.items() if _used(trace, modules)}
    ranks = trace.job.ranks or 1
    found.add("parallel" if ranks > 1 else "serial")
    path = str(cause.culprit.get("file", ""))
    if path.endswith(HDF5_NAMES):
        found.add("hdf5")
    if _on_lustre(trace):
        found.add("lustre")
    if trace.files["targets"].drop_nulls().len():
        found.add("layout")
    program = (trace.job.executable or "").lower()
    if "python" in program or ".py" in program:
        found.add("python")
    told = " ".join([program, *trace.job.metadata.values()]).lower()
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


def _used(trace: Trace, modules: tuple[str, ...]) -> bool:
    return any(name in trace.counters and trace.counters[name].height > 0 for name in modules)


def _on_lustre(trace: Trace) -> bool:
    return "LUSTRE" in trace.counters or any(m.filesystem == "lustre" for m in trace.job.mounts)
