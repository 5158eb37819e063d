"""Record a block of a Python program from inside it.

strace is attached to the process where that is permitted: it sees the calls of all libraries and
child processes. Elsewhere the files that Python itself opens are timed, and audit hooks and the
kernel's counters tell what was missed. DFTracer's API is not used: version 2.2 can be started once
in a process, misses relative paths, and writes nothing more once the process has forked.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ioprism.errors import UsageError
from ioprism.model.trace import MIB
from ioprism.recording.command import last_words
from ioprism.recording.tracer import BASE, find_strace
from ioprism.units import format_bytes, format_counted

SET_PTRACER, ANY_PROCESS = 0x59616D61, ctypes.c_ulong(-1)  # of prctl(2): who may trace us
Result = TypeVar("Result")
OPEN = io.open  # before anybody replaces it
NOTEBOOK = "IPython.core.interactiveshell"
COUNTERS = Path("/proc/self/io")


def block_tracer(name: str) -> AttachedStrace | InterpreterCalls:
    """Return a tracer that is called auto, strace or python.

    Raises:
        UsageError: it has another name, or is not installed.
    """
    if name not in ("auto", "strace", "python"):
        raise UsageError(
            f"{name} cannot record a block.\nHint: choose auto, strace or python; "
            "`ioprism record -- python3 SCRIPT` has more tracers."
        )
    strace = find_strace() if name != "python" else None
    if name == "strace" and strace is None:
        raise UsageError("strace is not installed.\nHint: use tracer='python'.")
    return InterpreterCalls() if strace is None else AttachedStrace(strace.where, strace.version)


@contextmanager
def trace_block(file: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """Record what happens inside; yield the tracer's version, and what it missed at the end.

    Raises:
        UsageError: the tracer cannot be used.
    """
    tracer, missed = block_tracer(name), list[str]()
    file.write_text("".join(_first_lines()), "utf-8")
    try:
        tracer.start(file)
    except UsageError:
        if name != "auto":
            raise
        tracer = InterpreterCalls()
        tracer.start(file)
    try:
        Path("/proc/self").stat()  # times in a trace count from its first call on a file
        yield tracer.version, missed
    finally:
        missed += tracer.stop()
        _write_ends(file)


def _first_lines() -> Iterator[str]:
    """Yield what strace would have written before the block: the program, and its threads."""
    head = f"{os.getpid()} {time.time():.6f}"
    yield f'{head} execve("{_escape(sys.executable)}", [], NULL) = 0 <0.000000>\n'
    yield from (f"{head} {_clone_line(thread)}" for thread in _threads() - {os.getpid()})


def _threads() -> set[int]:
    return {int(thread.name) for thread in Path("/proc/self/task").iterdir()}


def _clone_line(thread: int) -> str:
    return f"clone(flags=CLONE_FILES|CLONE_THREAD) = {thread} <0.000000>\n"


def _write_ends(file: Path) -> None:
    """Let threads, and processes that are gone, end with the block; others are still running."""
    with file.open("rb") as trace:
        seen = {int(line.partition(b" ")[0]) for line in trace}
    threads = _threads()
    with file.open("a", encoding="utf-8") as end:
        for number in seen:
            if number in threads or not Path(f"/proc/{number}").exists():
                end.write(f"{number} {time.time():.6f} +++ exited with 0 +++\n")


class AttachedStrace:
    """strace, attached to all threads of this process."""

    def __init__(self, path: str, version: str) -> None:
        self.path, self.version = path, version
        self._strace: subprocess.Popen[bytes] | None = None

    def start(self, file: Path) -> None:
        """Attach it, and wait until it follows every thread.

        Raises:
            UsageError: it cannot be attached.
        """
        # Refused where nothing restricts tracing.
        ctypes.CDLL(None).prctl(SET_PTRACER, ANY_PROCESS, 0, 0, 0)
        words = [self.path, *BASE, "-A", "-o", str(file), "-p", str(os.getpid())]
        strace = subprocess.Popen(  # noqa: S603 - our own command line
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the program
        )
        said = strace.stderr.readline().decode("utf-8", "replace") if strace.stderr else ""
        self._strace = strace
        # What it says about child processes is not needed, and must not fill the pipe.
        self._rest = threading.Thread(target=strace.communicate, daemon=True)
        self._rest.start()
        if " attached" not in said:
            raise UsageError(
                f"strace cannot be attached to this process: {last_words(said)}.\n"
                "Hint: use tracer='python'."
            )

    def stop(self) -> tuple[str, ...]:
        """Detach it, and return what was missed: nothing."""
        if self._strace is not None:
            self._strace.send_signal(signal.SIGINT)
            self._rest.join()
        return ()


class InterpreterCalls:
    """Times the files that Python opens, and the functions of `os` on files."""

    def __init__(self) -> None:
        self.version = f"Python {platform.python_version()}"
        self._restore: list[tuple[Any, str, Any]] = []
        self._bytes_moved = Counter[str]()  # bytes in the trace
        self._before: Mapping[str, int] = {}
        self._threads = _threads()

    def start(self, file: Path) -> None:
        """Put timed functions in the place of Python's own."""
        self._out = file.open("a", encoding="utf-8")
        self._before = _kernel_counters()
        self._unseen = _watch_unseen()
        self._replace(builtins, "open", self._open)
        self._replace(io, "open", self._open)
        if NOTEBOOK in sys.modules:  # whose cells have an `open` of their own
            self._replace(sys.modules[NOTEBOOK], "io_open", self._open)
        for name, describe in OS_CALLS.items():
            self._replace(os, name, self._time_calls(getattr(os, name), *describe))

    def stop(self) -> tuple[str, ...]:
        """Put Python's own functions back, and return what was missed."""
        for module, name, original in reversed(self._restore):
            setattr(module, name, original)
        self._out.close()
        missed = [f"{format_counted(n, *EVENTS[event])}" for event, n in self._unseen.items()]
        _UNSEEN.remove(self._unseen)
        for direction, counter in (("read", "rchar"), ("write", "wchar")):
            whole = _kernel_counters().get(counter, 0) - self._before.get(counter, 0)
            rest = whole - self._bytes_moved[direction]
            if rest > max(NOTICEABLE * whole, MIB):
                missed.append(
                    f"{format_bytes(rest)} of the {format_bytes(whole)} that the process "
                    f"{'wrote' if direction == 'write' else 'read'} (by libraries in C, or through "
                    "pipes and sockets)"
                )
        return tuple(missed)

    def _replace(self, module: Any, name: str, function: Any) -> None:  # noqa: ANN401
        if hasattr(module, name):
            self._restore.append((module, name, getattr(module, name)))
            setattr(module, name, function)

    def _time_calls(self, function: Callable[..., Any], call: str, form: str) -> Callable[..., Any]:
        def timed(*words: Any, **options: Any) -> Any:  # noqa: ANN401 - as the function
            if self._out.closed:  # kept by somebody after the block
                return function(*words, **options)
            arguments = _arguments(form, words)
            with self.timing(call, arguments) as note:
                value = function(*words, **options)
                note(len(value) if isinstance(value, bytes | list) else value)
            return value

        return timed

    def _open(
        self,
        file: Any,  # noqa: ANN401 - as Python's own
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Callable[[str, int], int] | None = None,
    ) -> Any:  # noqa: ANN401
        """Open a file as Python does, upon a timed one; what it refuses, Python's own refuses."""
        binary, plain = "b" in mode, mode.replace("b", "").replace("t", "")
        if self._out.closed or (binary and "t" in mode) or (not binary and buffering == 0):
            return OPEN(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw: Any = _TimedFile(self, file, plain, closefd=closefd, opener=opener)
        try:
            if buffering == 0:
                return raw
            size = buffering if buffering > 1 else raw.block_size
            kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
            buffer: Any = (io.BufferedReader if plain == "r" else kind)(raw, size)
            if binary:
                return buffer
            lines = buffering == 1 or (buffering < 0 and raw.isatty())
            text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=lines)
            text.mode = mode  # type: ignore[misc]
        except BaseException:
            raw.close()
            raise
        return text

    @contextmanager
    def timing(self, call: str, arguments: str) -> Iterator[Callable[[object], None]]:
        """Write a call that is made inside; its result is -1 if it raised."""
        result = -1
        path = ""

        def note(value: object) -> None:
            nonlocal result, path
            result = value if isinstance(value, int) else 0
            path = f"<{_path_of(result)}>" if call == "openat" else ""

        begin, clock = time.time(), time.perf_counter()
        try:
            yield note
        finally:
            self._write(begin, call, arguments, result, time.perf_counter() - clock, path)

    def _write(
        self, begin: float, call: str, arguments: str, result: int, took: float = 0, path: str = ""
    ) -> None:
        if not self._out.closed:
            thread = threading.get_native_id()
            if thread not in self._threads:
                self._threads.add(thread)
                self._out.write(f"{os.getpid()} {begin:.6f} {_clone_line(thread)}")
            head = f"{thread} {begin:.6f} {call}({arguments})"
            self._out.write(f"{head} = {result}{path} <{took:.6f}>\n")
        if call in MOVED and result > 0:
            self._bytes_moved.update(dict.fromkeys(MOVED[call], result))


NOTICEABLE = 0.05  # of all bytes, and 1 MiB: modules and pipes are always there
MOVED = {"read": ["read"], "pread64": ["read"], "write": ["write"], "pwrite64": ["write"],
         "sendfile": ["read", "write"]}  # fmt: skip
# What Python's functions are called in a trace, and their arguments: a file to open, a path, a
# descriptor, a number; - is left out.
OS_CALLS = {
    "open": ("openat", "o"), "close": ("close", "d"), "read": ("read", "dn"),
    "write": ("write", "d"), "pread": ("pread64", "dnn"), "pwrite": ("pwrite64", "d-n"),
    "lseek": ("lseek", "dn"), "fsync": ("fsync", "d"), "fdatasync": ("fdatasync", "d"),
    "ftruncate": ("ftruncate", "dn"), "sendfile": ("sendfile", "ddnn"), "stat": ("stat", "p"),
    "lstat": ("lstat", "p"), "unlink": ("unlink", "p"), "remove": ("unlink", "p"),
    "mkdir": ("mkdir", "p"), "rmdir": ("rmdir", "p"), "rename": ("rename", "pp"),
    "replace": ("rename", "pp"),
}  # fmt: skip
# Audit events of what is not timed, in words.
EVENTS = {
    "subprocess.Popen": ("child process", "child processes"),
    "os.fork": ("forked process", "forked processes"),
    "mmap.__new__": ("mapped file", "mapped files"),
}
_UNSEEN: list[Counter[str]] = []  # of the blocks that run now


def _watch_unseen() -> Counter[str]:
    """Count audit events from now on; a hook cannot be removed, so that there is only one."""
    if not getattr(_watch_unseen, "hooked", False):
        sys.addaudithook(_count_event)
        _watch_unseen.hooked = True  # type: ignore[attr-defined]
    counter = Counter[str]()
    _UNSEEN.append(counter)
    return counter


def _count_event(event: str, _: object) -> None:
    if _UNSEEN and event in EVENTS:
        for counter in _UNSEEN:
            counter[event] += 1


def _kernel_counters() -> dict[str, int]:
    """Return what the kernel counted of this process; nothing where it does not."""
    try:
        lines = COUNTERS.read_text("utf-8").splitlines()
    except OSError:
        return {}
    return {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}


def _arguments(form: str, words: tuple[Any, ...]) -> str:
    """Write arguments as strace does; data are left out."""
    shown = []
    for kind, word in zip(form, words, strict=False):
        if kind == "d" or (kind in "op" and isinstance(word, int)):
            shown.append(f"{int(word)}<{_path_of(word)}>")
        elif kind in "op":
            shown.append(f'"{_escape(Path(os.fsdecode(word)).absolute())}"')
        elif kind == "n":
            shown.append(str(word))
    return ", ".join((["AT_FDCWD"] if form == "o" else []) + shown)


def _path_of(descriptor: int) -> str:
    try:
        return _escape(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return ""


def _escape(path: object) -> str:
    """Write a name so that it fits into a line, within quotes and angles."""
    raw = os.fsencode(path if isinstance(path, str | bytes | os.PathLike) else str(path))
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\<>' else f"\\{byte:03o}"
        for byte in raw
    )


class _TimedFile(io.FileIO):
    """A file whose calls are written to a trace."""

    def __init__(
        self,
        calls: InterpreterCalls,
        file: Any,  # noqa: ANN401
        mode: str,
        **options: Any,  # noqa: ANN401
    ) -> None:
        self._calls = calls
        shown = (
            f"{file}"
            if isinstance(file, int)
            else f'"{_escape(Path(os.fsdecode(file)).absolute())}"'
        )
        flag = ", O_APPEND" if "a" in mode else ""
        with calls.timing("openat", f"AT_FDCWD, {shown}{flag}") as note:
            super().__init__(file, mode, **options)
            note(self.fileno())
        self._name = f"{self.fileno()}<{_path_of(self.fileno())}>"
        self.block_size = max(os.fstat(self.fileno()).st_blksize, io.DEFAULT_BUFFER_SIZE)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        return self._bytes_moved(super().read, "read", size)

    def readall(self) -> bytes:
        return self._bytes_moved(super().readall, "read")

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401
        return self._bytes_moved(super().readinto, "read", buffer)

    def write(self, data: Any) -> int:  # noqa: ANN401
        return self._bytes_moved(super().write, "write", data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._bytes_moved(super().seek, "lseek", offset, whence)

    def truncate(self, size: int | None = None) -> int:
        return self._bytes_moved(super().truncate, "ftruncate", size)

    def close(self) -> None:
        if not self.closed:
            self._bytes_moved(super().close, "close")

    def _bytes_moved(self, function: Callable[..., Result], call: str, *words: object) -> Result:
        with self._calls.timing(call, self._name) as note:
            value = function(*words)
            note(len(value) if isinstance(value, bytes) else value)
        return value
