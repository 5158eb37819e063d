"""Read Chrome and Perfetto JSON: trace events, and the calls, files and bytes they mean."""

from __future__ import annotations

import json
import math
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.calls import (
    BYTES_OF_NAME,
    Call,
    Row,
    RowPartition,
    TraceSpan,
    classify,
    plausible,
)
from ioprism.formats.reading import Budget
from ioprism.formats.recorder.meaning import meaning
from ioprism.formats.recorder.signatures import Signature
from ioprism.formats.text import head, open_text
from ioprism.model.schema import OPERATIONS, PROCESSES, file_table
from ioprism.model.trace import LAYERS, Completeness, Job, Trace, Warn
from ioprism.units import format_counted

MICRO = 1e-6
_PATHS = ("file", "path", "fname", "filename", "file_name")
_SIZES = ("bytes", "ret", "size", "count", "length")
_DEEPEST = 1000  # calls inside each other in one thread
_BYTES_HELD = 10  # that an object takes for each character of its text; an estimate
APPLICATION = Call("application", "other")


TextObject = tuple[Mapping[str, Any], int]  # of a JSON text, and its characters there


@dataclass(slots=True)
class Events:
    """Turns trace events into rows; numbers processes in the order they come up."""

    budget: Budget
    own: bool = False  # whether ioprism wrote them: then threads are rows of its process table
    processes: dict[tuple[str, str], int] = field(default_factory=dict)  # pid, tid
    facts: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of pids
    damaged: int = 0
    _open: dict[tuple[str, str], list[TextObject]] = field(default_factory=dict)

    @property
    def unfinished_count(self) -> int:
        """How many events began and never ended."""
        return sum(map(len, self._open.values()))

    def rows(self, event: TextObject) -> Iterator[Row]:
        """Yield the call that an event ends; most events yield one, some none."""
        read, size = event
        phase = read.get("ph")
        if phase == "X":
            yield from self._call(read, read, read.get("dur", 0))
        elif phase == "B":
            stack = self._open.setdefault(_thread(read), [])
            if len(stack) < _DEEPEST:
                self._hold(size)
                stack.append(event)
        elif phase == "E":
            stack = self._open.get(_thread(read), [])
            if stack:
                begun, held = stack.pop()
                self.budget.give_back(_BYTES_HELD * held)
                duration = _float(read.get("ts"), 0.0) - _float(begun.get("ts"), 0.0)
                arguments = {**_arguments(begun), **_arguments(read)}
                yield from self._call(begun, {**read, **begun, "args": arguments}, duration)
            else:
                self.damaged += 1
        elif phase == "M" and read.get("name") == "process_name":
            name = _arguments(read).get("name")
            if isinstance(name, str):
                self._hold(size)
                self.names[str(read.get("pid"))] = name
        elif phase == "M" and self.own and read.get("name") == "thread_name":
            facts = _arguments(read).get("ioprism")
            if isinstance(facts, dict):
                self._hold(size)
                self.facts[_thread(read)] = facts
                self._number(read)

    def _hold(self, size: int) -> None:
        self.budget.take(_BYTES_HELD * size, "events that have not ended, and names of processes")

    def _call(
        self, begun: Mapping[str, Any], read: Mapping[str, Any], duration: object
    ) -> Iterator[Row]:
        start, length = _float(begun.get("ts"), math.nan), _float(duration, math.nan)
        name = read.get("name")
        if not (math.isfinite(start) and length >= 0 and math.isfinite(length)) or not isinstance(
            name, str
        ):
            self.damaged += 1
            return
        process = self._number(read)
        call, function, path, offset, size = _understood(name, read)
        codes = call.layer_code, call.operation_code
        span = start * MICRO, (start + length) * MICRO
        how = call.collective, call.nonblocking
        yield Row(*span, process, path, *codes, function, offset, size, *how)

    def _number(self, read: Mapping[str, Any]) -> int:
        """The row of the process table."""
        thread = _thread(read)
        if thread not in self.processes:
            self.budget.take(BYTES_OF_NAME + sum(map(len, thread)), "the numbers of processes")
        if self.own and _is_number(thread[1]):
            return self.processes.setdefault(thread, int(thread[1]))
        return self.processes.setdefault(thread, len(self.processes))


def _thread(read: Mapping[str, Any]) -> tuple[str, str]:
    return str(read.get("pid")), str(read.get("tid"))


def _float(value: object, default: float) -> float:
    """A number, bare or as a string."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return default
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _arguments(read: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = read.get("args")
    return arguments if isinstance(arguments, dict) else {}


Understood = tuple[Call, str | None, str | None, int | None, int | None]


def _understood(name: str, read: Mapping[str, Any]) -> Understood:
    """The call, its function's name, path, offset and bytes."""
    arguments = _arguments(read)
    listed = arguments.get("args")
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        recorded = meaning(Signature(name, tuple(listed)))  # as Recorder's converter writes it
        offset = None if recorded.offset is None else recorded.offset.base
        return recorded.call, name, recorded.path, offset, recorded.bytes
    call = _own_call(str(read.get("cat", "")), arguments) or _call(name, str(read.get("cat", "")))
    function = None if arguments.get("unnamed") is True else name
    path = next((p for key in _PATHS if isinstance(p := arguments.get(key), str)), None)
    size = next((s for key in _SIZES if (s := plausible(arguments.get(key))) is not None), None)
    moves = call.operation in ("read", "write")
    return call, function, path, plausible(arguments.get("offset")), size if moves else None


def _own_call(categories: str, arguments: Mapping[str, Any]) -> Call | None:
    """What ioprism itself wrote: layer and operation as categories."""
    layer, _, operation = categories.partition(",")
    if layer not in LAYERS or operation not in OPERATIONS:
        return None
    flags = [arguments.get(key) for key in ("collective", "nonblocking")]
    collective, nonblocking = (flag if isinstance(flag, bool) else None for flag in flags)
    return Call(layer, operation, collective=collective, nonblocking=nonblocking)


def _call(name: str, category: str) -> Call:
    known = classify(name)
    if category.lower() in ("posix", "stdio"):
        return Call(category.lower(), known.operation)
    return known if known.layer != "other" else APPLICATION


CHUNK = 2**18  # bytes per read
LONGEST_OBJECT = 16 * 2**20  # characters
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_HEAD = 2**16  # bytes in which the array must begin


@dataclass(slots=True)
class Damage:
    """What could not be read."""

    cut: bool = False  # the text ends inside the array
    objects: int = 0  # items of the array that are not objects


def header(path: Path) -> dict[str, Any]:
    """Return what stands before the array, as far as it is JSON; empty if nothing does."""
    text = head(path, _HEAD)
    match = _BEGIN.search(text)
    if match is None or not text.lstrip().startswith("{"):
        return {}
    try:
        read = json.loads(text[: match.start()].rstrip().rstrip(",") + "}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def objects(path: Path, damage: Damage) -> Iterator[TextObject]:
    """Yield the objects of the array of trace events."""
    decoder = json.JSONDecoder()
    decode = getincrementaldecoder("utf-8")("replace").decode  # chunks may end inside a character
    with open_text(path) as file:
        text, at, more = _array(decode(file.read(_HEAD)))
        while True:
            at += len(_BETWEEN.match(text, at)[0])  # type: ignore[index] # it matches anything
            if text.startswith("]", at):
                return
            try:
                read, stop = decoder.raw_decode(text, at)
                # A number at the end of the text may go on in the next chunk.
                whole = stop < len(text) or isinstance(read, dict)
            except (ValueError, RecursionError) as error:
                whole, read, stop = False, error, at
            if whole:
                size, at = stop - at, stop
                if isinstance(read, dict):
                    yield read, size
                else:
                    damage.objects += 1
                continue
            chunk = file.read(CHUNK) if more else b""
            if not chunk or len(text) - at > LONGEST_OBJECT or isinstance(read, RecursionError):
                damage.cut = True
                return
            text, at = text[at:] + decode(chunk), 0


def _array(text: str) -> tuple[str, int, bool]:
    """Where the array's first object may stand."""
    match = _BEGIN.search(text)
    if match is not None:
        return text, match.end(), True
    stripped = text.lstrip()
    if stripped.startswith("["):
        return text, text.index("[") + 1, True
    return "", 0, False


HEAD = 4096
OURS = "ioprism"  # key of `otherData` under which ioprism keeps what events cannot say
_ARRAY = re.compile(r'\s*(?:\{[^\[]*?"traceEvents"\s*:\s*\[|\[)\s*(?:\{|\])', re.DOTALL)
_EVENT = re.compile(r'"ph"\s*:\s*"[A-Za-z]"')


class ChromeReader:
    """Reads the JSON that chrome://tracing and Perfetto open, plain or compressed."""

    name = "chrome"
    title = "Chrome/Perfetto trace events (.json, .json.gz)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "threads", "files", "layers"})

    def recognises(self, source: Path) -> bool:
        """Whether the JSON begins with trace events. Never raises."""
        if not source.is_file():
            return False
        text = head(source, 2**16)
        if '"otherData"' in text[:HEAD] and f'"{OURS}"' in text[:HEAD]:
            return True
        match = _ARRAY.match(text[:HEAD])
        return match is not None and _EVENT.search(text[:HEAD]) is not None and _is_array(text)

    def read(self, source: Path) -> Trace:
        """Go through the events once to learn files and processes."""
        own = _own(source)
        span, events = TraceSpan(Budget(source)), Events(Budget(source), own=bool(own))
        for event in objects(source, Damage()):
            for row in events.rows(event):
                span.see(row)
        if span.first is None or span.last is None:
            raise BrokenTraceError(
                "the trace events cannot be read: no event in it has a start and an end.\n"
                "Hint: export the trace again.",
                source=source,
            )
        known = _known_processes(events)
        ranks = dict(known.select("process", "rank").iter_rows())
        origin = 0.0 if own else span.first
        return Trace(
            format=self.name,
            paths=(source,),
            job=_job(own, span.last - origin, known["rank"].n_unique()),
            partitions=(RowPartition(ChromeFile(source, bool(own)), origin, span.paths, ranks),),
            load_files=lambda: file_table(list(span.paths)),
            load_processes=partial(PROCESSES.conform, known),
            completeness=_completeness(own),
        )


def _is_array(text: str) -> bool:
    """Whether a comma or a bracket follows the first object; other formats have lines."""
    begin = text.find("{", text.find("["))
    try:
        _, stop = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return False
    return text[stop:].lstrip()[:1] in (",", "]", "")


@dataclass(frozen=True, slots=True)
class ChromeFile:
    """The events of one file."""

    path: Path
    own: bool  # whether ioprism wrote it

    def rows(self, warn: Warn) -> Iterator[Row]:
        """Yield the calls."""
        damage, events = Damage(), Events(Budget(self.path), own=self.own)
        for event in objects(self.path, damage):
            yield from events.rows(event)
        name = self.path.name
        if damage.cut:
            warn(f"{name}: the JSON is cut short or damaged; the events after that are missing")
        if damage.objects + events.damaged:
            damaged = format_counted(damage.objects + events.damaged, "damaged event")
            warn(f"{name}: {damaged} left out")
        if events.unfinished_count:
            warn(f"{name}: {format_counted(events.unfinished_count, 'unfinished event')} left out")


def _own(source: Path) -> Mapping[str, Any]:
    """What ioprism wrote beside the events; empty for other programs' traces."""
    other = header(source).get("otherData")
    ours = other.get(OURS) if isinstance(other, dict) else None
    return ours if isinstance(ours, dict) else {}


def _completeness(own: Mapping[str, Any]) -> Completeness:
    completeness = Completeness()
    warnings = own.get("warnings")
    for message in warnings if isinstance(warnings, list) else ():
        completeness.warn(str(message))
    return completeness


def _job(own: Mapping[str, Any], last: float, ranks: int) -> Job:
    facts = own.get("job")
    facts = facts if isinstance(facts, dict) else {}

    def number(key: str) -> float | None:
        value = facts.get(key)
        if not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
            return None
        return float(value)

    program = facts.get("executable")
    return Job(
        ranks=max(0, plausible(facts.get("ranks")) or 0) or ranks,
        start_time=number("start_time"),
        end_time=number("end_time"),
        runtime=number("runtime") or last,
        executable=program if isinstance(program, str) else None,
    )


def _known_processes(events: Events) -> pl.DataFrame:
    """The process table; ranks are the events' pids in ioprism's files, else counted."""
    pids = dict.fromkeys(pid for pid, _ in events.processes)
    numbers = {pid: number for number, pid in enumerate(pids)}
    rows = []
    for (pid, tid), row in sorted(events.processes.items(), key=lambda item: item[1]):
        facts = _facts(events.facts.get((pid, tid), {})) if events.own else {}
        rank = int(pid) if events.own and _is_number(pid) else numbers[pid]
        program = None if events.own else events.names.get(pid)
        known = {"pid": _whole(pid), "tid": _whole(tid)} if not events.own else {}
        rows.append({"process": row, "rank": rank, "application": program, **known, **facts})
    schema = {name: PROCESSES.schema[name] for name in PROCESSES.names}
    return pl.DataFrame(rows, schema=schema, strict=False).unique("process", maintain_order=True)


def _facts(facts: Mapping[str, Any]) -> dict[str, str | int | None]:
    """What ioprism wrote about a process, if it is of the right kind."""
    words = {key: facts.get(key) for key in ("application", "host")}
    numbers = {key: facts.get(key) for key in ("pid", "tid")}
    return {
        **{key: value if isinstance(value, str) else None for key, value in words.items()},
        **{key: plausible(value) for key, value in numbers.items()},
    }


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


def _whole(text: str) -> int | None:
    return int(text) if _is_number(text) else None
