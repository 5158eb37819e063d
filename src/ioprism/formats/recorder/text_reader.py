"""The text that Recorder's own converter writes, one file per rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.recorder.back_references import STREAMS, Record, resolved
from ioprism.formats.recorder.events import Vocabulary, events, vocabulary
from ioprism.formats.recorder.layout import Layout
from ioprism.formats.recorder.reader import process_table
from ioprism.formats.recorder.signatures import Signature
from ioprism.formats.recorder.streams import Stream
from ioprism.formats.text import head, lines
from ioprism.model.files import file_table
from ioprism.model.trace import Completeness, Job, Trace, Warn
from ioprism.units import format_counted

HEAD = 4096
LOOKED_AT = 8  # files of a folder that show what it is
_LINE = re.compile(
    r"(\d{1,12}\.\d{6,7}) (\d{1,12}\.\d{6,7}) (?:(-?\d{1,10}) )?([A-Za-z_]\w*) "
    r"(?:\d{1,4} (?:\d{1,20} )?)?\((.*)\)\s*$"
)
_NUMBERED = re.compile(r"\d{1,7}\.txt")


class RecorderTextReader:
    """Reads `N.txt`, or a folder of them, as recorder2text writes them."""

    name = "recorder-text"
    title = "Recorder's text (recorder2text: a folder of N.txt)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "files", "collective", "layers"})

    def recognises(self, source: Path) -> bool:
        """Whether the lines are Recorder's. Never raises."""
        try:
            # The first file may be the one that is truncated.
            starts = (head(file, HEAD).partition("\n")[0] for file in _files(source)[:LOOKED_AT])
            return any(_LINE.match(start) is not None for start in starts)
        except OSError:
            return False

    def read(self, source: Path) -> Trace:
        """Read all calls once to learn files; events are read again when asked for."""
        paths: dict[str, int] = {}
        ranks = []
        last = 0.0
        files = _files(source)
        for file in files:
            stream, signatures = read_text(file, lambda _: None)
            rank = int(file.stem) if len(files) > 1 else 0
            ranks.append(TextRank(file, rank, vocabulary(signatures, paths)))
            last = max(last, float(stream.end.max(initial=0.0)))
        if not paths and not last:
            raise BrokenTraceError(
                "no call can be read from it.\nHint: convert the Recorder trace again.",
                source=source,
            )
        count = max(own.rank for own in ranks) + 1
        completeness = Completeness()
        if count > len(ranks):
            first = next(n for n, own in enumerate(ranks) if own.rank != n)
            completeness.warn(
                f"{count - len(ranks)} of {count} ranks have no file (rank {first} is the first); "
                "their calls are missing"
            )
        return Trace(
            format=self.name,
            paths=(source,),
            job=Job(ranks=count, runtime=last),
            partitions=(TextPartition(source, tuple(ranks)),),
            load_files=lambda: file_table(list(paths)),
            load_processes=partial(process_table, count),
            completeness=completeness,
        )


def _files(source: Path) -> list[Path]:
    """The text of each rank, in order of rank."""
    if source.is_file():
        return [source]
    every = [path for path in source.iterdir() if path.is_file()]
    numbered = [path for path in every if _NUMBERED.fullmatch(path.name)]
    return sorted(numbered, key=lambda p: int(p.stem)) if len(numbered) == len(every) else []


def read_text(path: Path, warn: Warn) -> tuple[Stream, dict[int, Signature]]:
    """Return one rank's calls."""
    numbers: dict[Signature, int] = {}
    opened = dict(STREAMS)
    rows = []
    damaged = 0
    for line in lines(path, warn):
        match = _LINE.match(line)
        if match is None:
            damaged += bool(line.strip())
            continue
        signature = _signature(match, opened)
        number = numbers.setdefault(signature, len(numbers))
        rows.append((number, float(match[1]), float(match[2])))
    if damaged:
        warn(f"{path.name}: {format_counted(damaged, 'damaged line')} left out")
    table = np.array(rows, np.float64).reshape(-1, 3)
    stream = Stream(table[:, 0].astype(np.int64), table[:, 1], table[:, 2])
    return stream, {number: signature for signature, number in numbers.items()}


def _signature(match: re.Match[str], opened: dict[str, str]) -> Signature:
    arguments = tuple(match[5].strip(" ").split(" "))
    if match[3] is None:
        return Signature(match[4], arguments)
    return resolved(Record(0, 0, int(match[3]), match[4], arguments), opened)


@dataclass(frozen=True, slots=True, eq=False)
class TextRank:
    """One rank's file."""

    path: Path
    rank: int
    words: Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class TextPartition:
    """The calls of all ranks."""

    source: Path
    ranks: tuple[TextRank, ...]

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield one rank's events after the other."""
        layout = Layout(self.source, "text", len(self.ranks), 0.0, 1e-7, ())
        for own in self.ranks:
            stream, _ = read_text(own.path, warn)
            if len(stream):
                yield events(stream, own.words, own.rank, 0.0, layout, warn).lazy()
