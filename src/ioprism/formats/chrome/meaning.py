"""What a trace event means: its call, its file, its bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ioprism.formats.calls import Call, Row, classify, plausible
from ioprism.formats.recorder.meaning import meaning
from ioprism.formats.recorder.signatures import Signature
from ioprism.model.layers import LAYERS
from ioprism.model.schema import OPERATIONS

MICRO = 1e-6
_PATHS = ("file", "path", "fname", "filename", "file_name")
_SIZES = ("bytes", "ret", "size", "count", "length")
_DEEPEST = 1000  # calls inside each other in one thread
APPLICATION = Call("application", "other")


@dataclass(slots=True)
class Events:
    """Turns trace events into rows; numbers processes in the order they come up."""

    own: bool = False  # whether ioprism wrote them: then threads are rows of its process table
    processes: dict[tuple[str, str], int] = field(default_factory=dict)  # pid, tid
    facts: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of pids
    damaged: int = 0
    _open: dict[tuple[str, str], list[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def unfinished_count(self) -> int:
        """How many events began and never ended."""
        return sum(map(len, self._open.values()))

    def rows(self, read: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the call that an event ends; most events yield one, some none."""
        phase = read.get("ph")
        if phase == "X":
            yield from self._call(read, read, read.get("dur", 0))
        elif phase == "B":
            stack = self._open.setdefault(_thread(read), [])
            if len(stack) < _DEEPEST:
                stack.append(read)
        elif phase == "E":
            stack = self._open.get(_thread(read), [])
            if stack:
                begun = stack.pop()
                duration = _float(read.get("ts"), 0.0) - _float(begun.get("ts"), 0.0)
                yield from self._call(
                    begun, {**read, **begun, "args": _merge_events(begun, read)}, duration
                )
            else:
                self.damaged += 1
        elif phase == "M" and read.get("name") == "process_name":
            name = _arguments(read).get("name")
            if isinstance(name, str):
                self.names[str(read.get("pid"))] = name
        elif phase == "M" and self.own and read.get("name") == "thread_name":
            facts = _arguments(read).get("ioprism")
            if isinstance(facts, dict):
                self.facts[_thread(read)] = facts
                self._number(read)

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
        yield Row(
            start * MICRO,
            (start + length) * MICRO,
            process,
            path,
            call.layer_code,
            call.operation_code,
            function,
            offset,
            size,
            call.collective,
            call.nonblocking,
        )

    def _number(self, read: Mapping[str, Any]) -> int:
        """The row of the process table."""
        thread = _thread(read)
        if self.own and thread[1].isdecimal() and len(thread[1]) < 10:
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


def _merge_events(begun: Mapping[str, Any], ended: Mapping[str, Any]) -> dict[str, Any]:
    return {**_arguments(begun), **_arguments(ended)}


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
