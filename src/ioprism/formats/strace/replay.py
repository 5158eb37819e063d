"""Follow processes and their open files through a program's system calls.

Descriptors are followed from open to close, through dup, fork and threads, so that every
read and write gets its file and its offset whether or not strace wrote paths (-y, -yy).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ioprism.formats.calls import BYTES_OF_NAME, LOCK_COMMANDS, Call, Row, classify
from ioprism.formats.reading import Budget
from ioprism.model.trace import LARGEST_PLAUSIBLE

BYTES_OF_DESCRIPTOR = 100  # that an open file takes in the table of a process
LONGEST_PATH = 4096  # bytes; the kernel takes no longer ones (PATH_MAX)
_HEAD = re.compile(
    r"(?:\[pid +(\d{1,18})\] |(\d{1,18}) +)?"
    r"(?:(\d{1,12}\.\d{1,9})|(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)) +"
)
_START = re.compile(
    r"(?:\[pid +\d+\] |\d{1,18} +)?(?:\d{9,12}\.\d{1,9}|\d\d:\d\d:\d\d(?:\.\d{1,9})?) +"
    r"(?:[a-z_][a-z0-9_]*\(|<\.\.\. [a-z]|\+\+\+ |--- )"
)
_CALL = re.compile(r"([a-z_][a-z0-9_]*)\(")
_RESUMED = re.compile(r"<\.\.\. ([a-z_][a-z0-9_]*) resumed>")
_RESULT = re.compile(r"\s*= (\?|-?\d{1,19}|0x[0-9a-f]{1,16})(?:<([^<>]*(?:<[^<>]*>[^<>]*)*)>)?")
_DURATION = re.compile(r"<(\d{1,12}(?:\.\d{1,9})?)>$")
_ENDED = re.compile(r"\+\+\+ (?:exited with \d|killed by SIG|superseded by execve)")
_UNFINISHED = "<unfinished ...>"
_DETACHED = "<detached ...>"
NO_PID = 0


class SystemCall(NamedTuple):
    """One call, both halves together."""

    pid: int
    start: float  # seconds, on strace's own clock
    duration: float | None
    name: str
    arguments: str
    result: int | None
    target: str | None  # the path behind the file descriptor it returned


def looks_like_strace(head: str) -> bool:
    """Whether a text begins as strace writes it."""
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    matching = sum(_START.match(line) is not None for line in lines)
    return matching > 0 and matching * 2 > len(lines)


def has_date(head: str) -> bool:
    """Whether the times count from 1970, rather than from midnight."""
    heads = (_HEAD.match(line) for line in head.splitlines())
    return any(match is not None and match[3] is not None for match in heads)


class CallLines:
    """CallLines out of lines; counts other lines, and halves of calls."""

    def __init__(self, budget: Budget) -> None:
        self.damaged = 0
        self.running: set[int] = set()  # that made calls and have not ended
        self._budget = budget
        self._waiting: dict[int, dict[str, tuple[float, str]]] = {}  # by process and call

    @property
    def unfinished_count(self) -> int:
        """How many calls never returned."""
        return sum(map(len, self._waiting.values()))

    def read(self, lines: Iterable[str]) -> Iterator[SystemCall]:
        """Yield calls in the order in which they returned."""
        for line in lines:
            head = _HEAD.match(line)
            if head is None:
                self.damaged += bool(line.strip())
                continue
            pid = int(head[1] or head[2] or NO_PID)
            text = line[head.end() :].rstrip()
            if text.startswith(("+++", "---")):
                if _ENDED.match(text):
                    self.running.discard(pid)
                if text.startswith("+++ exited"):  # what it waited for will not come
                    for _, begun in self._waiting.pop(pid, {}).values():
                        self._budget.give_back(BYTES_OF_NAME + len(begun))
                continue
            self.running.add(pid)
            call = self._call(pid, _seconds(head), text)
            if call is not None:
                yield call

    def _call(self, pid: int, start: float, text: str) -> SystemCall | None:
        resumed = _RESUMED.match(text)
        if resumed:
            known = self._waiting.get(pid, {}).pop(resumed[1], None)
            if known is None:
                self.damaged += 1
                return None
            self._budget.give_back(BYTES_OF_NAME + len(known[1]))
            if text.endswith(_DETACHED):  # strace -p was stopped while the call waited
                return None
            return self._finish(pid, known[0], resumed[1], known[1] + text[resumed.end() :])
        opened = _CALL.match(text)
        if opened is None:
            self.damaged += 1
            return None
        rest = text[opened.end() :]
        if rest.endswith(_DETACHED):
            return None
        if rest.endswith(_UNFINISHED):
            begun = rest[: -len(_UNFINISHED)].rstrip()
            self._budget.take(BYTES_OF_NAME + len(begun), "calls that have not returned")
            self._waiting.setdefault(pid, {})[opened[1]] = (start, begun)
            return None
        return self._finish(pid, start, opened[1], rest)

    def _finish(self, pid: int, start: float, name: str, rest: str) -> SystemCall | None:
        """Take arguments and result apart: the result stands behind the last bracket."""
        cut = rest.rfind(") ")
        while cut >= 0:  # 0: a call without arguments, such as vfork()
            result = _RESULT.match(rest, cut + 2)
            if result:
                break
            cut = rest.rfind(") ", 0, cut)
        else:
            self.damaged += 1
            return None
        duration = _DURATION.search(rest)
        value = None if result[1] == "?" else _number(result[1])
        seconds = float(duration[1]) if duration else None
        return SystemCall(pid, start, seconds, name, rest[:cut], value, result[2])


def _number(text: str) -> int:
    return int(text, 16 if text.startswith("0x") else 10)  # a damaged line may begin with zeros


def _seconds(head: re.Match[str]) -> float:
    if head[3] is not None:
        return float(head[3])
    return 3600.0 * int(head[4]) + 60.0 * int(head[5]) + float(head[6])


_DESCRIPTOR = re.compile(r"(AT_FDCWD|-?\d{1,9})(?:<([^<>]*(?:<[^<>]*>[^<>]*)*)>)?")
# It matches where the last quote is missing, too: looking again from each other takes the square.
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)("?)')
_DEVICE = re.compile(r"<(?:char|block) \d+:\d+>$")
_NOT_FILE = re.compile(r"(?:[A-Za-z][\w-]*):\[|anon_inode|/dev/null$|socket:|pipe:")
_LOCKING = re.compile(rf", ({'|'.join(LOCK_COMMANDS)})(?:64)?,")
_SHOWN = re.compile(r"(\d{1,9})<([^<>]*(?:<[^<>]*>[^<>]*)*)>")
_WITHIN_KERNEL = {"copy_file_range", "sendfile", "sendfile64", "splice"}
_PARENTS = {"clone", "clone3", "fork", "vfork"}
_COPIES = {"dup", "dup2", "dup3"}
_PAIRS = {"pipe", "pipe2", "socketpair"}
_MAKE_NO_FILE = {"socket", "accept", "accept4", "eventfd", "eventfd2", "epoll_create",
                 "epoll_create1", "timerfd_create", "signalfd", "signalfd4", "inotify_init",
                 "inotify_init1", "pidfd_open", "userfaultfd", "io_uring_setup",
                 "perf_event_open"}  # fmt: skip
_ON_SOCKETS = {"bind", "listen", "connect", "getsockname", "getpeername", "getsockopt",
               "setsockopt", "shutdown", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
               "recvmmsg"}  # fmt: skip
_PIPES = re.compile(r"\[(\d{1,9})(?:<[^<>]*>)?, (\d{1,9})")
_STREAMS = {0: "<STDIN>", 1: "<STDOUT>", 2: "<STDERR>"}
_SIZED_TAIL = {"preadv2", "pwritev2"}  # flags stand behind the offset


@dataclass(slots=True)
class OpenFile:
    """An open file description: descriptors that were copied share it."""

    path: str | None  # None: a socket, a pipe or anything else but a file
    position: int | None = 0  # None: not known


@dataclass(slots=True)
class Process:
    """A process or thread."""

    row: int
    tid: int
    pid: int  # of its first thread
    program: str | None = None
    folder: str | None = None
    called: bool = False  # whether a call of it was seen
    files: dict[int, OpenFile] = field(default_factory=dict)


class Replay:
    """The state of all processes while the calls are read."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.processes: dict[int, Process] = {}
        self.untimed = 0

    def events(self, calls: Iterable[SystemCall]) -> Iterator[Row]:
        """Yield the calls that concern files."""
        for call in calls:
            process = self._process(call.pid)
            process.called = True
            self._follow(process, call)
            if call.name in _WITHIN_KERNEL and len(ends := [*_SHOWN.finditer(call.arguments)]) > 1:
                yield from self._copy(process, call, ends)
                continue
            kind = classify(call.name)
            if kind.layer != "posix" or kind.operation == "other":
                continue
            event = self._event(process, call, kind)
            if event is not None:
                yield event

    def _process(self, pid: int) -> Process:
        if pid not in self.processes:
            self.processes[pid] = Process(len(self.processes), pid, pid)
        return self.processes[pid]

    def _follow(self, process: Process, call: SystemCall) -> None:
        """Keep track of programs, children, folders and copied descriptors."""
        result = call.result
        if call.name in _PARENTS and result is not None and result > 0:
            self._begin(process, result, call.arguments)
        elif call.name == "execve" and result == 0:
            process.program = posixpath.basename(_text(call.arguments)) or None
        elif call.name == "chdir" and result == 0:
            process.folder = _absolute_path(process.folder, _text(call.arguments))
        elif call.name in _COPIES or (call.name == "fcntl" and "F_DUPFD" in call.arguments):
            source = _descriptor(call.arguments)
            if source is not None and source in process.files and result is not None:
                process.files[result] = process.files[source]
        else:
            self._follow_other_than_files(process, call)

    def _follow_other_than_files(self, process: Process, call: SystemCall) -> None:
        """Note descriptors of pipes, sockets and events: reading from them is not file I/O."""
        if call.name in _PAIRS and (ends := _PIPES.search(call.arguments)):
            for end in ends.groups():
                process.files[int(end)] = OpenFile(None)
        elif call.name in _MAKE_NO_FILE and call.result is not None and call.result >= 0:
            process.files[call.result] = OpenFile(None)
        elif call.name in _ON_SOCKETS and (number := _descriptor(call.arguments)) is not None:
            process.files[number] = OpenFile(None)

    def _begin(self, parent: Process, pid: int, arguments: str) -> None:
        """A child begins with its parent's files; a thread shares them."""
        thread = "CLONE_THREAD" in arguments
        child = self._process(pid)
        child.pid = parent.pid if thread else pid
        child.program = child.program or parent.program
        child.folder = child.folder or parent.folder
        own = child.files
        if "CLONE_FILES" in arguments:
            child.files = parent.files
        else:
            self._budget.take(BYTES_OF_DESCRIPTOR * len(parent.files), "the files of processes")
            child.files = dict(parent.files)
        child.files.update(own)

    def _event(self, process: Process, call: SystemCall, kind: Call) -> Row | None:
        self.untimed += call.duration is None
        end = call.start + (call.duration or 0.0)
        if kind.operation == "open":
            path, offset, size = self._open(process, call), None, None
        elif kind.operation in ("read", "write", "seek", "close"):
            event = self._on_file(process, call, kind)
            if event is None:
                return None
            path, offset, size = event
        else:
            path, offset, size = self._path(process, call), None, None
            if (path is None and _is_number(call.arguments)) or call.name == "munmap":
                return None
        codes = kind.layer_code, kind.operation_code
        name = call.name if call.name != "fcntl" else _fcntl_name(call.arguments)
        return Row(call.start, end, process.row, path, *codes, name, offset, size)

    def _copy(self, process: Process, call: SystemCall, ends: list[re.Match[str]]) -> Iterator[Row]:
        """Yield a read and a write that take half of the time each; pipes and sockets are none."""
        source, target = reversed(ends[:2]) if call.name.startswith("sendfile") else ends[:2]
        self.untimed += call.duration is None
        half, moved = (call.duration or 0.0) / 2, max(0, call.result or 0)
        for number, (end, name) in enumerate(((source, "read"), (target, "write"))):
            opened, kind = self._file(process, int(end[1]), end[0]), classify(name)
            if opened.path is None:
                continue
            offset = opened.position
            opened.position = None if offset is None else offset + moved
            start = call.start + number * half
            codes = kind.layer_code, kind.operation_code
            where = process.row, opened.path
            yield Row(start, start + half, *where, *codes, call.name, offset, moved)

    def _open(self, process: Process, call: SystemCall) -> str | None:
        path = self._path(process, call)
        if call.result is not None and call.result >= 0:
            shown = _target_path(call.target)
            path = shown if shown is not None else path
            if path is not None and len(path) > LONGEST_PATH:  # a small packed file holds many
                self._budget.take(len(path), "the files of processes")
            appends = "O_APPEND" in call.arguments
            process.files[call.result] = OpenFile(path, None if appends else 0)
        return path

    def _on_file(
        self, process: Process, call: SystemCall, kind: Call
    ) -> tuple[str | None, int | None, int | None] | None:
        """The path, offset and bytes of a call on a descriptor; None if it is not a file."""
        number = _descriptor(call.arguments)
        if number is None:
            return None
        opened = self._file(process, number, call.arguments)
        if kind.operation == "close":
            process.files.pop(number, None)
        if opened.path is None:
            return None
        if kind.operation == "seek":
            opened.position = call.result if (call.result or 0) >= 0 else opened.position
        if kind.operation in ("seek", "close"):
            return opened.path, None, None
        moved = None if call.result is None else max(0, call.result)
        if moved is not None and moved > LARGEST_PLAUSIBLE:
            moved = None
        if kind.positional:
            return opened.path, _last_number(call), moved
        offset = opened.position
        if offset is not None:
            opened.position = None if moved is None else offset + moved
        return opened.path, offset, moved

    def _file(self, process: Process, number: int, arguments: str) -> OpenFile:
        known = process.files.get(number)
        if known is not None:
            return known
        match = _DESCRIPTOR.match(arguments)
        shown = match[2] if match else None
        unnamed = _STREAMS.get(number, f"<descriptor {number}>")
        path = unnamed if shown is None else _target_path(shown)
        process.files[number] = OpenFile(path, None)
        return process.files[number]

    def _path(self, process: Process, call: SystemCall) -> str | None:
        """The path that the arguments name, made absolute where the folder is known."""
        descriptor = _DESCRIPTOR.match(call.arguments)
        quoted = _closed(_QUOTED.search(call.arguments))
        if descriptor is None:
            return quoted and _absolute_path(process.folder, _decode_escapes(quoted[1]))
        if call.name in ("mmap", "mmap2"):
            return self._mapped_file(process, call.arguments)
        folder = _target_path(descriptor[2]) if descriptor[2] else None
        if folder is None:
            is_cwd = descriptor[1] == "AT_FDCWD"
            opened = None if is_cwd else process.files.get(int(descriptor[1]))
            folder = process.folder if is_cwd else (opened.path if opened else None)
        if quoted is None or not call.name.endswith(("at", "at2")):
            return folder
        return _absolute_path(folder, _decode_escapes(quoted[1]))

    def _mapped_file(self, process: Process, arguments: str) -> str | None:
        parts = arguments.rsplit(", ", 2)
        number = _descriptor(parts[1]) if len(parts) == 3 else None
        if number is None or number < 0:
            return None
        return self._file(process, number, parts[1]).path


def _descriptor(arguments: str) -> int | None:
    match = _DESCRIPTOR.match(arguments)
    return None if match is None or match[1] == "AT_FDCWD" else int(match[1])


def _fcntl_name(arguments: str) -> str:
    """The name of the call, with its command if that is a lock."""
    descriptor = _DESCRIPTOR.match(arguments)
    command = _LOCKING.match(arguments, descriptor.end()) if descriptor else None
    return f"fcntl {command[1]}" if command else "fcntl"


def _is_number(arguments: str) -> bool:
    return _DESCRIPTOR.match(arguments) is not None or arguments.startswith(("NULL", "0x"))


def _target_path(target: str | None) -> str | None:
    """The path that strace wrote behind a descriptor; None if it is not a file."""
    if target is None:
        return None
    path = _DEVICE.sub("", target)
    return None if _NOT_FILE.match(path) else _decode_escapes(path)


def _closed(quoted: re.Match[str] | None) -> re.Match[str] | None:
    return quoted if quoted is not None and quoted[2] else None


def _text(arguments: str) -> str:
    quoted = _closed(_QUOTED.match(arguments))
    return "" if quoted is None else _decode_escapes(quoted[1])


def _decode_escapes(text: str) -> str:
    """Undo strace's escapes."""
    if "\\" not in text:
        return text
    raw = text.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    return raw.encode("latin-1", "backslashreplace").decode("utf-8", "backslashreplace")


def _absolute_path(folder: str | None, path: str) -> str:
    """Join a path to its folder; one that no process can be in is not repeated in every path."""
    if folder is None or len(folder) > LONGEST_PATH:
        return path
    return posixpath.join(folder, path) if path else folder


def _last_number(call: SystemCall) -> int | None:
    parts = call.arguments.rsplit(", ", 2)
    text = parts[-2] if call.name in _SIZED_TAIL and len(parts) > 2 else parts[-1]
    return int(text) if text.isdecimal() and len(text) < 19 else None
