"""Follow processes and their open files through a program's system calls.

Descriptors are followed from open to close, through dup, fork and threads, so that every
read and write gets its file and its offset whether or not strace wrote paths (-y, -yy).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ioprism.formats.call_rows import Row
from ioprism.formats.calls import Call, classify
from ioprism.formats.strace.lines import SystemCall
from ioprism.model.layers import LARGEST_PLAUSIBLE

_DESCRIPTOR = re.compile(r"(AT_FDCWD|-?\d{1,9})(?:<((?:[^<>]|<[^<>]*>)*)>)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_DEVICE = re.compile(r"<(?:char|block) \d+:\d+>$")
_NOT_FILE = re.compile(r"(?:[A-Za-z][\w-]*):\[|anon_inode|/dev/null$|socket:|pipe:")
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
_SIZED_TAIL = {"preadv2", "pwritev2"}  # flags stand behind the offset


@dataclass(slots=True)
class OpenFile:
    """An open file description: descriptors that were copied share it."""

    path: str | None  # None: a socket, a pipe or something else that is no file
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

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        self.untimed = 0

    def events(self, calls: Iterable[SystemCall]) -> Iterator[Row]:
        """Yield the calls that concern files."""
        for call in calls:
            process = self._process(call.pid)
            process.called = True
            self._follow(process, call)
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
            process.folder = _joined(process.folder, _text(call.arguments))
        elif call.name in _COPIES or (call.name == "fcntl" and "F_DUPFD" in call.arguments):
            source = _descriptor(call.arguments)
            if source is not None and source in process.files and result is not None:
                process.files[result] = process.files[source]
        else:
            self._follow_other_than_files(process, call)

    def _follow_other_than_files(self, process: Process, call: SystemCall) -> None:
        """Note descriptors of pipes, sockets and events: reading from them is no file I/O."""
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
        child = self.processes.get(pid)
        if child is None:
            child = self.processes[pid] = Process(len(self.processes), pid, pid)
        child.pid = parent.pid if thread else pid
        child.program = child.program or parent.program
        child.folder = child.folder or parent.folder
        own = child.files
        child.files = parent.files if "CLONE_FILES" in arguments else dict(parent.files)
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
        return Row(call.start, end, process.row, path, *codes, call.name, offset, size)

    def _open(self, process: Process, call: SystemCall) -> str | None:
        path = self._path(process, call)
        if call.result is not None and call.result >= 0:
            shown = _shown(call.target)
            path = shown if shown is not None else path
            appends = "O_APPEND" in call.arguments
            process.files[call.result] = OpenFile(path, None if appends else 0)
        return path

    def _on_file(
        self, process: Process, call: SystemCall, kind: Call
    ) -> tuple[str | None, int | None, int | None] | None:
        """The path, offset and bytes of a call on a descriptor; None if it is no file."""
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
            return opened.path, None, None
        if kind.operation == "close":
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
        path = f"<descriptor {number}>" if shown is None else _shown(shown)
        names = {0: "<STDIN>", 1: "<STDOUT>", 2: "<STDERR>"}
        if shown is None and number in names:
            path = names[number]
        process.files[number] = OpenFile(path, None)
        return process.files[number]

    def _path(self, process: Process, call: SystemCall) -> str | None:
        """The path that the arguments name, made absolute where the folder is known."""
        descriptor = _DESCRIPTOR.match(call.arguments)
        quoted = _QUOTED.search(call.arguments)
        if descriptor is None:
            return None if quoted is None else _joined(process.folder, _decoded(quoted[1]))
        if call.name == "mmap" or call.name == "mmap2":
            return self._mapped(process, call.arguments)
        folder = _shown(descriptor[2]) if descriptor[2] else None
        if folder is None:
            is_cwd = descriptor[1] == "AT_FDCWD"
            opened = None if is_cwd else process.files.get(int(descriptor[1]))
            folder = process.folder if is_cwd else (opened.path if opened else None)
        if quoted is None or not call.name.endswith(("at", "at2")):
            return folder
        return _joined(folder, _decoded(quoted[1]))

    def _mapped(self, process: Process, arguments: str) -> str | None:
        parts = arguments.rsplit(", ", 2)
        number = _descriptor(parts[1]) if len(parts) == 3 else None
        if number is None or number < 0:
            return None
        return self._file(process, number, parts[1]).path


def _descriptor(arguments: str) -> int | None:
    match = _DESCRIPTOR.match(arguments)
    return None if match is None or match[1] == "AT_FDCWD" else int(match[1])


def _is_number(arguments: str) -> bool:
    return _DESCRIPTOR.match(arguments) is not None or arguments.startswith(("NULL", "0x"))


def _shown(target: str | None) -> str | None:
    """The path that strace wrote behind a descriptor; None for what is no file."""
    if target is None:
        return None
    path = _DEVICE.sub("", target)
    return None if _NOT_FILE.match(path) else _decoded(path)


def _text(arguments: str) -> str:
    quoted = _QUOTED.match(arguments)
    return "" if quoted is None else _decoded(quoted[1])


def _decoded(text: str) -> str:
    """Undo strace's escapes."""
    if "\\" not in text:
        return text
    raw = text.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    return raw.encode("latin-1", "backslashreplace").decode("utf-8", "backslashreplace")


def _joined(folder: str | None, path: str) -> str:
    if not path:
        return folder or ""
    return path if folder is None or path.startswith("/") else posixpath.join(folder, path)


def _last_number(call: SystemCall) -> int | None:
    parts = call.arguments.rsplit(", ", 2)
    text = parts[-2] if call.name in _SIZED_TAIL and len(parts) > 2 else parts[-1]
    return int(text) if text.isdecimal() and len(text) < 19 else None
