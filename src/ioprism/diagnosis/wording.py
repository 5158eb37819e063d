"""Words for a verdict: titles and advice from the TOML of each check, and its sentence."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from posixpath import dirname
from typing import Any

from ioprism.diagnosis.limits import MAJORITY, Limits
from ioprism.diagnosis.targets import LOCAL, common_directory
from ioprism.model.result import kind_of, quantity
from ioprism.model.trace import Job, mount_of
from ioprism.model.usage import FileFacts
from ioprism.model.verdict import COUNTS, Cause, Possible, Recommendation, Verdict
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_counted, format_seconds

FOLDER = Path(__file__).parent / "checks"
MAX_NAMES = 8  # ranks or files that a title lists
BLOCK = Limits().block  # bytes: what small requests are joined to
TINY = 4096  # bytes: libraries keep their metadata in such pieces
REOPENED = 4  # metadata calls per file: open, close, and once more
HDF5_NAMES = (".h5", ".hdf5", ".he5", ".nc4")  # a .nc file may be of any netCDF library
DATABASES = (".db", ".sqlite", ".sqlite3", "-journal", "-wal")
MPI_LIBRARIES = {"ompio": ("ompio", "openmpi", "open mpi"), "cray": ("cray",)}
_MODULES = {
    "hdf5": ("H5F", "H5D", "HDF5"),
    "pnetcdf": ("PNETCDF_FILE", "PNETCDF_VAR", "PNETCDF"),
    "mpiio": ("MPI-IO",),
    "stdio": ("STDIO",),
}


@dataclass(frozen=True, slots=True, eq=False)
class JobContext:
    """What advice depends on beside the cause."""

    job: Job
    files: FileFacts
    modules: frozenset[str]  # of counters that the log holds
    nodes: int = 1
    mostly_collective: bool = False


@cache
def texts(code: str) -> Mapping[str, Any]:
    """Return the words of a check; those of plug-ins come with their facts."""
    file = FOLDER / f"{code}.toml"
    if not file.is_file():
        return {"title": code, "noun": code, "groups": [code, "peers"]}
    return tomllib.loads(file.read_text(encoding="utf-8"))


def word_verdict(verdict: Verdict, context: JobContext) -> Verdict:
    """Return the verdict with titles, advice and its sentence."""
    worded = replace(
        verdict,
        causes=tuple(_word_cause(cause, context) for cause in verdict.causes),
        possible=tuple(_word_possible(one) for one in verdict.possible),
    )
    return replace(worded, line=verdict_line(worded))


def _word_cause(cause: Cause, context: JobContext) -> Cause:
    words, filled = texts(cause.code), values(cause, context)
    advice = tuple(
        Recommendation(
            fill(entry["text"], filled), fill(entry["code"], filled) if "code" in entry else None
        )
        for entry in fitting_advice(words, conditions(cause, context))
    )
    advice += tuple(Recommendation(text, None) for text in cause.facts.get("advice", ()))
    facts = {**cause.facts, "groups": tuple(map(str, words["groups"]))}
    title = str(cause.facts.get("title") or _title(cause, words, filled))
    return replace(cause, title=title, advice=advice, facts=facts)


def fitting_advice(words: Mapping[str, Any], present: set[str]) -> list[Mapping[str, Any]]:
    """Return the recommendations whose conditions hold."""
    return [
        entry
        for entry in words.get("recommendation", ())
        if present >= set(entry.get("when", ())) and not present & set(entry.get("unless", ()))
    ]


def _title(cause: Cause, words: Mapping[str, Any], filled: Mapping[str, str]) -> str:
    variant = "_of_one" if len(cause.culprit.get("ranks", ())) == 1 else ""
    variant = "_of_files" if _target_is_unknown(cause) else variant
    return fill(words.get(f"title{variant}", words["title"]), filled)


def _target_is_unknown(cause: Cause) -> bool:
    return cause.code == "slow-target" and "target" not in cause.culprit


def _word_possible(one: Possible) -> Possible:
    culprit = dict(one.culprit)
    facts = culprit.pop("facts", {})
    words = texts(one.code)
    noun = str(words["noun"])
    if facts.get("direction"):
        noun = noun.replace("requests", f"{facts['direction']}s")
    return replace(one, title=str(facts.get("title") or noun), culprit=culprit)


def fill(text: str, filled: Mapping[str, str]) -> str:
    """Put values in the place of their names."""
    for key, value in filled.items():
        text = text.replace("{" + key + "}", value)
    return text


def verdict_line(verdict: Verdict) -> str:
    """Return the verdict in one or two sentences, the same in every command."""
    if verdict.status == "cannot-judge":
        if verdict.missing:
            return f"The job cannot be judged: {verdict.missing[0]}"
        return "No I/O was recorded, so the job cannot be judged."
    of_run = f" of its {format_seconds(verdict.runtime)} run" if verdict.runtime > 0 else ""
    first = f"I/O stalls the job for {format_seconds(verdict.io_stall.seconds)}{of_run}."
    main = next((cause for cause in verdict.causes if cause.saving.seconds > 0), None)
    if main is not None:
        saving = main.saving
        span = f"{format_seconds(saving.low)} to {format_seconds(saving.high)}"
        gain = f"a fix saves {format_seconds(saving.seconds)} ({span})"
        return f"{first} Main cause: {lower_first(printable(main.title))}; {gain}."
    where = _where_it_goes(verdict)
    if verdict.possible:
        return " ".join(filter(None, (first, where, _possible_names(verdict.possible))))
    return f"{first} {f'{where} No cause was found.' if where else _without_cause(verdict)}"


def _possible_names(possible: Sequence[Possible]) -> str:
    names = list(dict.fromkeys(printable(one.title) for one in possible))
    upper = format_seconds(max(one.upper for one in possible))
    decide = possible[0].decide.text
    if len(names) == 1:
        return f"Cannot tell whether {names[0]} cost time (at most {upper}); {decide}."
    which = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Cannot tell which of {which} limits the run (at most {upper}); {decide}."


def _where_it_goes(verdict: Verdict) -> str | None:
    """Name what takes most of the time, if it is not storage."""
    parts = {line.what: line.seconds for line in verdict.ledger}
    sentences = {
        "programs": "programs load their files: Python modules, shared libraries, settings",
        "first-reads": "these are cold-cache reads, slower than reading the same bytes again",
        "untraced": "ranks are in opens, closes and other calls that only counters show",
        "library": "ranks are inside MPI-IO or a library while nothing reaches storage: they "
        "exchange data or wait for each other or for locks",
    }
    for what, sentence in sentences.items():
        if parts.get(what, 0.0) >= MAJORITY * verdict.io_stall.seconds > 0:
            return f"For {format_seconds(parts[what])} of it {sentence}."
    return None


def _without_cause(verdict: Verdict) -> str:
    """Say that no change would help, as far as the log can tell."""
    stall = verdict.io_stall.seconds
    parts = {line.what: line.seconds for line in verdict.ledger}
    if parts.get("unexplained", 0.0) >= MAJORITY * stall > 0:
        return f"No cause was found; {format_seconds(parts['unexplained'])} of it is unexplained."
    known = "no change would save noticeable time"
    if stall < Limits().min_share * verdict.runtime or not verdict.not_checked:
        return f"N{known[1:]}."
    nouns = dict.fromkeys(str(texts(one.code)["noun"]) for one in verdict.not_checked)
    names, others = list(nouns)[:2], len(nouns) - 2
    rest = f" and {format_counted(others, 'other cause')}" if others > 0 else ""
    which = (", " if rest else " and ").join(names)
    return f"As far as the log shows, {known}; it cannot show {which}{rest}."


def lower_first(title: str) -> str:
    """Return a title in the middle of a sentence; names and acronyms keep their capital."""
    return title[:1].lower() + title[1:] if title[1:2].islower() or title[1:2] == " " else title


def conditions(cause: Cause, context: JobContext) -> set[str]:
    """Name libraries, MPI, file system and language, as far as the log shows them."""
    job, facts = context.job, cause.facts
    present = {name for name, mods in _MODULES.items() if not context.modules.isdisjoint(mods)}
    present.add("parallel" if (job.ranks or 1) > 1 else "serial")
    path = str(cause.culprit.get("file", ""))
    present |= {"hdf5"} if path.endswith(HDF5_NAMES) else set()
    present |= {"database"} if path.endswith(DATABASES) else set()
    present |= (
        {"lustre"} if "LUSTRE" in context.modules or _filesystem(path, job) == "lustre" else set()
    )
    present |= {"local"} if _filesystem(path, job) in LOCAL else set()
    present |= {"layout"} if context.files.striping else set()
    program = (job.executable or "").lower()
    if "python" in program or ".py" in program:
        present.add("python")
    said = " ".join([program, *job.metadata.values()]).lower()
    present |= {name for name, words in MPI_LIBRARIES.items() if any(w in said for w in words)}
    present |= {"mostly-collective"} if context.mostly_collective else set()
    flags = {
        "reopened": float(facts.get("calls_per_file", 0)) > REOPENED,
        "again": bool(facts.get("again")),
        "tiny": 0 < float(facts.get("bytes_per_request", 0)) <= TINY,
        "many-files": "directory" in cause.culprit,
        "own-directory": "directory" in cause.culprit and cause.code == "slow-rank",
        # A directory whose layout names targets puts all of its files on them.
        "known-targets": len(context.files.striping) == 1
        and bool(_other_targets(cause, context.files)),
        "unknown-target": _target_is_unknown(cause),
        "no-framework": "torch" not in said and "stage" not in cause.culprit,
        f"{facts.get('direction')}s": bool(facts.get("direction")),
    }
    return present | {name for name, holds in flags.items() if holds}


def _filesystem(path: str, job: Job) -> str | None:
    mount = mount_of(path, job.mounts)
    return None if mount is None else mount.filesystem


def values(cause: Cause, context: JobContext) -> dict[str, str]:
    """Return every value that the words of a cause may name, as text."""
    known: dict[str, Any] = {
        "ranks": context.job.ranks or 1,
        "nodes": context.nodes,
        **cause.facts,
        **cause.culprit,
    }
    stripe, count = _striping(context.files, str(known.get("file", "")))
    stripe = int(known.get("stripe_size") or stripe)
    where, size = known.get("directory"), float(known.get("bytes_per_request", BLOCK) or BLOCK)
    shown = {key: _format_value(key, value) for key, value in known.items()}
    plural = {
        f"plural_{key}": "" if value == 1 else "s"
        for key, value in known.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    directory = str(
        where or dirname(str(known.get("file", ""))) or _striped_directory(context.files)
    )
    return {
        "file": "a file",
        "stripe_count": str(count or 1),
        **shown,
        **plural,
        "directory": shlex.quote(printable(directory)) if directory else "OUTPUT_DIRECTORY",
        "in_directory": f", in {printable(str(where))}" if where else "",
        "other_targets": _other_targets(cause, context.files),
        "ratio": _ratio(cause),
        "by_ranks": _whose(cause),
        "calls_of": f"{known['direction']}s" if known.get("direction") else "requests",
        "stripe": format_bytes(stripe),
        "stripe_bytes": str(stripe),
        "stripe_short": f"{stripe >> 20}M" if stripe % 2**20 == 0 else f"{stripe >> 10}K",
        "where": _where(cause),
        "joined": format_count(max(2.0, BLOCK / max(1.0, size))),
    }


def _format_value(key: str, value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        named = ", ".join(printable(str(item)) for item in value[:MAX_NAMES])
        return named + (f" and {len(value) - MAX_NAMES} more" if len(value) > MAX_NAMES else "")
    if key.endswith("_seconds") and isinstance(value, int | float):
        return format_seconds(value)
    if key == "read" and isinstance(value, int | float):
        return format_bytes(value)  # findings count calls under this name
    if key in (*COUNTS, "files") and isinstance(value, int | float):
        return format_count(value)
    if kind_of(key) in ("bytes", "seconds"):
        return quantity(key, value)
    if isinstance(value, float):
        return format_count(value) if value >= 10 or value.is_integer() else f"{value:.1f}"
    return printable(str(value))


def _where(cause: Cause) -> str:
    culprit = cause.culprit
    directory = culprit.get("directory") or cause.facts.get("directory")
    if directory:
        return f" in {printable(str(directory))}"
    return f" on {printable(str(culprit['file']))}" if culprit.get("file") else ""


def _whose(cause: Cause) -> str:
    """Whose calls they are: of an application of a workflow, or of a few ranks."""
    if cause.culprit.get("application"):
        return f" by {printable(str(cause.culprit['application']))}"
    ranks = cause.culprit.get("ranks", ())
    several = "s" if len(ranks) > 1 else ""
    return f" by rank{several} {_format_value('ranks', ranks)}" if ranks else ""


def _ratio(cause: Cause) -> str:
    """How much longer the same work takes: by sessions with their syncs, or else by call."""
    if cause.facts.get("ratio"):
        return f"{cause.facts['ratio']:.1f}"
    slow, peers = cause.contrast.slow, cause.contrast.peers
    if peers is None or not slow.median_seconds or not peers.median_seconds:
        return "several"
    return f"{slow.median_seconds / peers.median_seconds:.1f}"


def _striping(files: FileFacts, path: str) -> tuple[int, int]:
    """Stripe size and count of a file, or of the files whose layout is known."""
    layouts = [one for file, one in files.striping.items() if files.paths.get(file) == path]
    layouts = layouts or list(files.striping.values())
    sizes = [one.size for one in layouts if one.size > 0]
    counts = sorted(len(one.targets) for one in layouts)
    return (sizes[0] if sizes else BLOCK), (counts[len(counts) // 2] if counts else 0)


def _striped_directory(files: FileFacts) -> str:
    """Where the files are whose layout is known."""
    paths = [files.paths[file] for file, one in files.striping.items() if one.targets]
    return common_directory(paths)


def _other_targets(cause: Cause, files: FileFacts) -> str:
    """Targets that the job used and that are not slow, as many as one of its files has."""
    slow = set(cause.culprit.get("targets", [cause.culprit.get("target")]))
    used = sorted({name for striping in files.striping.values() for name in striping.targets})
    healthy = [name for name in used if name not in slow]
    _, count = _striping(files, "")
    return ",".join(str(name) for name in healthy[: max(1, count)]) if healthy else ""
