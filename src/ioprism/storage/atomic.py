"""Write a file or folder so that it is there whole or not at all, and the old one until then.

Everything is written beside its target, forced to storage, and then takes the target's place in
one step. Whatever fails before that step leaves the target as it was. What a killed run left
beside a target is removed by the next write to it.

Only what ioprism made is ever replaced: a folder has to carry the marker of its kind. Links,
devices and pipes are refused, so that nothing is written where the target only points to.
Where several processes may write to one store, a lock (`held_alone`) lets one at a time.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import hashlib
import os
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ioprism.errors import OutputError
from ioprism.text import address_of, is_text, printable

NEW, OLD = ".new", ".old"
LONGEST_NAME = 120  # bytes of a target's name that fit into the name of its temporary file
FORGOTTEN = 86400.0  # seconds after which what another machine left beside a target is removed
AT_FDCWD = -100
EXCHANGE = 2  # renameat2: both names swap what they name, in one step
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LEAST_FREE = 2**16  # bytes, below which a disk is full
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_PRIVATE, _SHARED = 0o600, 0o666
WRITERS = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def atomic_write(target: Path, *, replace: bool = False, private: bool = False) -> Iterator[Path]:
    """Yield an empty file beside `target` to write to; it takes `target`'s place at the end.

    Args:
        target: the file to write.
        replace: whether a file of this name may be replaced.
        private: whether only its owner may read it.

    Raises:
        OutputError: the target exists and is not to be replaced, or is not a plain file.
    """
    refuse_unless_file(target, replace=replace)
    beside = _prepare(target)
    try:
        with _naming_target(target):
            mode = _PRIVATE if private else _SHARED
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode))
        if replace and not private:
            with suppress(FileNotFoundError):
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
        with _full_named(target):
            yield beside
            sync(beside)
        refuse_unless_file(target, replace=replace)  # it may have appeared in the meantime
        beside.replace(target)
        sync(target.parent)
    finally:
        _remove(beside)


def atomic_write_text(
    target: Path, text: str, *, replace: bool = False, private: bool = False
) -> None:
    """Write a text as `atomic_write` does."""
    with atomic_write(target, replace=replace, private=private) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(target: Path, *, marker: str, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `target` to fill; it takes `target`'s place at the end.

    Args:
        target: the folder to write.
        marker: the name of the file that every folder of this kind holds.
        replace: whether a folder of this kind may be replaced.

    Raises:
        OutputError: the target exists and is not to be replaced, or ioprism did not make it.
    """
    refuse_unless_ours(target, marker=marker, replace=replace)
    beside = _prepare(target)
    try:
        with _naming_target(target):
            beside.mkdir()
        with _full_named(target):
            yield beside
        take_place(beside, target, marker=marker, replace=replace)
    finally:
        _remove(beside)


def take_place(beside: Path, target: Path, *, marker: str, replace: bool = False) -> None:
    """Let a folder that is complete become `target`; the old one is then gone, or back.

    Raises:
        OutputError: the target exists and is not to be replaced, or ioprism did not make it.
    """
    _sync_tree(beside)
    refuse_unless_ours(target, marker=marker, replace=replace)
    _put_in_place(beside, target)
    sync(target.parent)


@contextmanager
def _naming_target(target: Path) -> Iterator[None]:
    """Let errors name the file that was asked for, not the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error


@contextmanager
def _full_named(target: Path) -> Iterator[None]:
    """Name the file in the error when a write finds no room; libraries only say that."""
    try:
        yield
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        said = [one for one in FULL if os.strerror(one) in str(error)]
        if number is None and shutil.disk_usage(target.parent).free < LEAST_FREE:
            said.append(errno.ENOSPC)  # a library that hides why it could not write
        if number in FULL or (number is None and said):
            code = number or said[0]
            raise OSError(code, os.strerror(code), str(target)) from error
        raise


@contextmanager
def scratch_file(target: Path) -> Iterator[Path]:
    """Yield a name beside `target` that nothing has; what has it at the end is removed."""
    beside = _prepare(target)
    try:
        yield beside
    finally:
        _remove(beside)


def refuse_unless_file(target: Path, *, replace: bool) -> None:
    """Check that a file may be written under this name.

    Raises:
        OutputError: it may not, and why.
    """
    _refuse(target, replace=replace)


def refuse_unless_ours(target: Path, *, marker: str, replace: bool) -> None:
    """Check that a folder may be written under this name.

    Raises:
        OutputError: it may not, and why.
    """
    refuse_unless_text(target)
    _refuse(target, replace=replace, marker=marker)


def _refuse(target: Path, *, replace: bool, marker: str | None = None) -> None:
    """Say why nothing is written under this name; a folder, if there is a marker."""
    shown = printable(str(target))
    if (address := address_of(target)) is not None:
        raise OutputError(
            f"{printable(address)}: results are written to this machine's file systems only.\n"
            "Hint: write it here, and copy it there."
        )
    try:
        kind = os.lstat(target).st_mode
    except FileNotFoundError:
        return
    if marker is None and stat.S_ISDIR(kind):
        raise OutputError(
            f"{shown} is a folder, but a file is to be written.\n"
            "Hint: give the name of a file in it."
        )
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        what = "a symbolic link" if stat.S_ISLNK(kind) else "a device or pipe"
        raise OutputError(
            f"{shown} is {what}; nothing is written to it.\nHint: give the name of a plain file."
        )
    if not replace:
        raise OutputError(
            f"{shown} already exists and is left as it is.\n"
            "Hint: choose another name, or use --force to replace it."
        )
    if marker is not None and not (stat.S_ISDIR(kind) and (target / marker).is_file()):
        raise OutputError(
            f"{shown} was not made by ioprism (it has no {marker}), so it is not "
            "replaced.\nHint: choose another name."
        )


def refuse_unless_text(target: Path) -> None:
    """Check that tables may be written under this name.

    Raises:
        OutputError: the name is not UTF-8, which the library that writes them needs.
    """
    if not is_text(target):
        raise OutputError(
            f"{printable(str(target))}: tables are written only where the name is UTF-8.\n"
            "Hint: choose another name."
        )


def _prepare(target: Path) -> Path:
    """Make the folder above, remove leftovers, and return the name to write under."""
    target.parent.mkdir(parents=True, exist_ok=True)
    stem = _stem(target)
    for left in target.parent.glob(f"{glob.escape(stem)}.*-*-*"):
        _tidy(left, target)
    return target.with_name(f"{stem}.{_here()}-{os.getpid()}-{secrets.token_hex(4)}{NEW}")


def _stem(target: Path) -> str:
    name = target.name
    if len(name.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=12)
        name = digest.hexdigest()
    return f".{name}"


def _here() -> str:
    """Name the machine and the process namespace: only there does a process number mean ours."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    name = f"{socket.gethostname()} {namespace}".encode("utf-8", "surrogateescape")
    return hashlib.blake2b(name, digest_size=4).hexdigest()


def _tidy(left: Path, target: Path) -> None:
    """Remove what a dead run left; what it had moved away goes back if nothing replaced it."""
    host, _, rest = left.name.rpartition(".")[0].rpartition(".")[2].partition("-")
    if left.suffix not in (NEW, OLD) or not _is_abandoned(left, host, rest.partition("-")[0]):
        return
    if left.suffix == OLD and not os.path.lexists(target):
        left.rename(target)
    else:
        _remove(left)


def _is_abandoned(left: Path, host: str, process: str) -> bool:
    try:
        if host != _here():
            return time.time() - os.lstat(left).st_mtime > FORGOTTEN
        os.kill(int(process), 0)
    except (ProcessLookupError, FileNotFoundError):
        return True
    except (PermissionError, ValueError, OverflowError):
        return False
    return False


def _put_in_place(beside: Path, target: Path) -> None:
    if not target.exists():
        beside.rename(target)
    elif _swap(beside, target):
        _remove(beside)
    else:
        _replaced_in_two_steps(beside, target)


def _swap(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the file system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if swap(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _replaced_in_two_steps(beside: Path, target: Path) -> None:
    """The old folder comes back if the new one cannot take its place."""
    old = beside.with_suffix(OLD)
    target.rename(old)
    try:
        beside.rename(target)
    except BaseException:
        old.rename(target)
        raise
    _remove(old)


def sync(path: Path) -> None:
    """Force a file or folder to storage."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        for name in files:
            sync(Path(place, name))
        sync(Path(place))


def _remove(path: Path) -> None:
    """Remove without following links; what cannot be removed is left to the next write."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


# A link is not followed, and nothing is emptied: the name may be another user's file.
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def held_alone(path: Path, *, otherwise: str) -> Iterator[None]:
    """Hold a lock while writing.

    Only those who may write to the folder may open the file: a process that can open it, even
    for reading, can hold the lock and keep the writers out.

    Args:
        path: the file that stands for the lock, made if it is not there.
        otherwise: what to say if another process holds it.

    Raises:
        OutputError: another process holds the lock, or something else has its name.
    """
    folder = path.parent.stat().st_mode
    writers = 0 if folder & stat.S_ISVTX else folder & WRITERS
    mode = _PRIVATE | writers | writers << 1  # who may write there may open it both ways
    file = os.open(path, LOCK_FLAGS, mode)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OutputError(
                f"{printable(str(path))} is not a plain file.\nHint: remove it; it is a lock."
            )
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != mode:
            os.fchmod(file, mode)  # made by an older version, or under a mask
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise OutputError(otherwise) from None
    except BaseException:
        os.close(file)
        raise
    try:
        yield
    finally:
        os.close(file)
