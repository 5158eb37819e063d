"""The texts of findings: titles and recommendations, from files that need no Python."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.rule import PAST
from ioprism.diagnosis.wording import HDF5_NAMES, MPI_LIBRARIES, fill, fitting_advice
from ioprism.model.result import quantity
from ioprism.model.trace import MIB
from ioprism.model.usage import OF_PROGRAMS
from ioprism.model.verdict import Recommendation
from ioprism.text import printable
from ioprism.units import format_bytes

FOLDER = Path(__file__).parent / "advice"
SNIPPETS = FOLDER / "snippets"
# What the list of rules says where findings have values of their log.
USUAL = {"request_size": "1 MiB", "mean_request": "less"}

_ONE_OF_MANY = re.compile(r"(?<![\d.,])1 ([a-z]+[a-rt-z])s\b")  # "1 files", but not "1 class"
_OPPOSITE = {"read": "write", "write": "read"}


@cache
def texts(name: str) -> Mapping[str, Any]:
    """Return the texts of one advice file."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def question(name: str, direction: str | None) -> str:
    """Return what a rule asks."""
    return fill(str(texts(name)["question"]), _direction_words(direction))


def advice_lines(name: str, direction: str | None) -> list[str]:
    """Return the first line of everything a rule may recommend, each once."""
    entries = texts(name).get("recommendation", ())
    usual = {**USUAL, **_direction_words(direction)}
    fitting = (entry for entry in entries if entry.get("direction", direction) == direction)
    filled = (fill(entry["text"], usual) for entry in fitting)
    return list(dict.fromkeys(text.partition("\n")[0] for text in filled))


def title(
    name: str, numbers: Mapping[str, float], *, direction: str | None, words: Mapping[str, str]
) -> str:
    """Return a finding's sentence with its numbers in it."""
    shown = {key: quantity(key, value) for key, value in numbers.items()}
    said = fill(str(texts(name)["title"]), {**_direction_words(direction), **shown, **words})
    return _ONE_OF_MANY.sub(r"1 \1", said)


def _direction_words(direction: str | None) -> dict[str, str]:
    """The words for a direction and for the other one; empty where a rule has no direction."""
    opposite = _OPPOSITE.get(direction or "", "")
    return {
        "direction": direction or "",
        "past": PAST.get(direction or "", ""),
        "opposite": opposite,
        "opposite_past": PAST.get(opposite, ""),
    }


def recommendations(
    name: str, evidence: Evidence, files: Sequence[int], *, direction: str | None
) -> tuple[Recommendation, ...]:
    """Return what fits the job: no advice for a file system or an interface it does not use."""
    chosen = [
        entry
        for entry in fitting_advice(texts(name), circumstances(evidence, files))
        if entry.get("direction", direction) == direction
    ]
    if not chosen:
        return ()
    filled = {**log_values(evidence, files, direction), **_direction_words(direction)}
    return tuple(
        Recommendation(fill(entry["text"], filled), _snippet(entry, filled)) for entry in chosen
    )


def _snippet(entry: Mapping[str, Any], values: Mapping[str, str]) -> str | None:
    if "snippet" not in entry:
        return None
    file = SNIPPETS / fill(entry["snippet"], values)
    return fill(file.read_text(encoding="utf-8").rstrip(), values)


LOOKED_AT = 20  # files; the worst come first
GPFS = {"gpfs", "mmfs"}
FEW_OPENS = 100  # of all ranks: opening fewer files than this is not worth changing
USUAL_STRIPE = MIB  # bytes, Lustre's default
MOST_REQUEST = 64 * MIB  # bytes: more than a buffer should hold
LEAST_BUFFER = 16 * MIB
RANKS_PER_NODE = 32  # where the trace does not tell the nodes


def circumstances(evidence: Evidence, files: Sequence[int]) -> set[str]:
    """Name what the job and the files concerned are: conditions that advice can ask for."""
    facts = {"parallel" if evidence.ranks > 1 else "serial", evidence.format}
    facts |= {layer for layer, usage in evidence.usages.items() if any(usage.opens)}
    facts |= {layer for layer, usage in evidence.usages.items() if any(usage.operations)}
    if facts & {"dfs", "daos"}:
        facts.add("daos")
    mpiio = evidence.usages.get("mpiio")
    if mpiio is not None and any(any(m.collective or ()) for m in mpiio.moves.values()):
        facts.add("collective")
    if _uses_all_targets(evidence):
        facts.add("all-targets")
    if sum(sum(usage.opens) for usage in evidence.usages.values()) < FEW_OPENS:
        facts.add("few-opens")
    if "python" in (evidence.job.executable or "").lower():
        facts.add("python")
    return facts | set(_of_library(evidence)) | set(_of_files(evidence, files[:LOOKED_AT], facts))


def _uses_all_targets(evidence: Evidence) -> bool:
    """Whether some file is striped over every storage target."""
    layouts = evidence.files.striping.values()
    widest = max((len(set(layout.targets)) for layout in layouts), default=0)
    return 0 < (evidence.files.system_targets or 0) <= widest


def _of_library(evidence: Evidence) -> Iterator[str]:
    """The MPI library, where the trace names it; ROMIO's hints are the most common."""
    told = " ".join([evidence.job.executable or "", *evidence.job.metadata.values()]).lower()
    loaded = [path.lower() for path in evidence.files.paths.values() if ".so" in path]
    for name, words in MPI_LIBRARIES.items():
        if any(word in text for word in words for text in (told, *loaded)):
            yield name


def _of_files(evidence: Evidence, files: Sequence[int], used: set[str]) -> Iterator[str]:
    kinds = {(evidence.files.filesystem(file) or "").lower() for file in files}
    if any(file in evidence.files.striping for file in files) or "lustre" in kinds:
        yield "lustre"
    if kinds & GPFS:
        yield "gpfs"
    names = [evidence.files.path(file) or "" for file in files]
    if "pnetcdf" not in used and any(name.endswith(HDF5_NAMES) for name in names):
        yield "hdf5"
    loaded = sum(re.search(OF_PROGRAMS, name) is not None for name in names)
    if 2 * loaded > len(names):
        yield "start-up"  # these are not read through a parallel interface
    if not evidence.shared_files.isdisjoint(files):
        yield "shared"


def log_values(
    evidence: Evidence, files: Sequence[int], direction: str | None
) -> Mapping[str, str]:
    """Return what advice fills in: values of this log, and usual ones where it does not tell."""
    shown = files[:LOOKED_AT]
    layouts = [evidence.files.striping[file] for file in shown if file in evidence.files.striping]
    stripe = max((layout.size for layout in layouts if layout.size > 0), default=USUAL_STRIPE)
    targets = {t for layout in evidence.files.striping.values() for t in layout.targets}
    widest = max((len(layout.targets) for layout in layouts), default=0)
    nodes = len(set(evidence.hosts.values()))
    aggregators = nodes or max(1, evidence.ranks // RANKS_PER_NODE, min(widest, evidence.ranks))
    more = len(targets) if len(targets) > widest else -1
    request = min(MOST_REQUEST, max(MIB, stripe))
    used = {target for layout in layouts for target in layout.targets}
    return {
        "cb_nodes": str(aggregators),
        "cb_nodes_why": "the nodes of the job" if nodes else "one per node: check their number",
        "cb_buffer_size": str(max(stripe, LEAST_BUFFER // stripe * stripe)),
        "stripe_bytes": str(stripe),
        "stripe_size": f"{stripe // MIB}M" if stripe % MIB == 0 else str(stripe),
        "stripe_count": str(more),
        "stripe_count_words": "all targets" if more < 0 else f"{more} targets",
        "request_bytes": str(request),
        "request_size": format_bytes(request),
        "mean_request": _mean_request(evidence, set(shown), direction),
        "directory": _directory(evidence, shown),
        "other_targets": ",".join(map(str, sorted(targets - used)[:8])) or "0,1,2,3",
    }


def _mean_request(evidence: Evidence, files: set[int], direction: str | None) -> str:
    size = calls = 0
    for layer in evidence.request_layers:
        usage = evidence.usages[layer]
        places = [place for place, file in enumerate(usage.file) if file in files]
        ways = [direction] if direction in usage.moves else list(usage.moves)
        for moves in (usage.moves[way] for way in ways if way):
            size += sum(moves.bytes[place] for place in places)
            calls += sum(moves.operations[place] for place in places)
    return format_bytes(size / calls) if calls else "less"


def _directory(evidence: Evidence, files: Sequence[int]) -> str:
    """The folder of the worst file, safe to paste into a shell."""
    path = next((evidence.files.path(file) for file in files), None) or ""
    folder = path.rpartition("/")[0]
    return shlex.quote(printable(folder)) if folder.startswith("/") else "/path/to/output"
