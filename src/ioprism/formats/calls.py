"""What kind of call is it? From a function's name to its interface and its operation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ioprism.model.layers import LAYERS
from ioprism.model.schema import OPERATIONS


@dataclass(frozen=True, slots=True)
class Call:
    """What a function belongs to and does."""

    layer: str
    operation: str
    collective: bool | None = None
    nonblocking: bool | None = None
    positional: bool = False  # carries its own offset and leaves the file pointer alone

    layer_code: int = field(init=False, default=0)  # number in `schema.LAYERS`
    operation_code: int = field(init=False, default=0)  # number in `schema.OPERATIONS`

    def __post_init__(self) -> None:
        """Look the numbers up once: rows are made of them."""
        object.__setattr__(self, "layer_code", LAYERS.index(self.layer))
        object.__setattr__(self, "operation_code", OPERATIONS.index(self.operation))


def _each(operation: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), operation)


POSIX: Mapping[str, str] = {
    **_each("read", "read pread readv preadv preadv2 process_vm_readv sendfile"),
    **_each("write", "write pwrite writev pwritev pwritev2"),
    **_each("open", "open openat openat2 creat open_by_handle_at mkstemp mkostemp mkstemps"),
    **_each("close", "close close_range"),
    **_each("seek", "lseek llseek _llseek"),
    **_each("stat", "stat fstat lstat fstatat newfstatat xstat fxstat lxstat fxstatat statx "
            "statfs fstatfs statvfs fstatvfs"),
    **_each("sync", "fsync fdatasync sync syncfs msync sync_file_range"),
    **_each("metadata", "access faccessat faccessat2 chdir fchdir getcwd chmod fchmod fchmodat "
            "chown fchown lchown fchownat link linkat symlink symlinkat readlink readlinkat "
            "mkdir mkdirat rmdir unlink unlinkat remove rename renameat renameat2 truncate "
            "ftruncate fallocate posix_fallocate fadvise64 fadvise posix_fadvise mknod mknodat "
            "mkfifo utime utimes utimensat futimens umask dup dup2 dup3 fcntl flock ioctl mmap "
            "munmap opendir fdopendir readdir readdir_r closedir rewinddir seekdir telldir "
            "scandir getdents chroot realpath setxattr getxattr lsetxattr lgetxattr "
            "fsetxattr fgetxattr listxattr llistxattr flistxattr removexattr copy_file_range "
            "splice readahead ftok nftw ftw lockf mount umount"),
}  # fmt: skip
STDIO: Mapping[str, str] = {
    **_each("read", "fread fread_unlocked fgets fgetc getc getline getdelim fscanf vfscanf fgetws"),
    **_each("write", "fwrite fwrite_unlocked fputs fputc putc puts putchar printf vprintf fprintf "
            "vfprintf fputws"),
    **_each("open", "fopen fdopen freopen tmpfile popen"),
    **_each("close", "fclose pclose"),
    **_each("seek", "fseek fseeko rewind fsetpos"),
    # fflush hands data to the system; it does not force them to storage.
    **_each("metadata", "fflush ftell ftello fgetpos fileno setvbuf setbuf feof ferror clearerr "
            "ungetc"),
}  # fmt: skip
_PROCESS = _each("other", "fork vfork clone clone3 wait wait3 wait4 waitpid waitid exit exit_group "
                 "execve execv execvp execvpe execl execlp pipe pipe2")  # fmt: skip
_POSITIONAL = frozenset(["pread", "preadv", "preadv2", "pwrite", "pwritev", "pwritev2"])
_MPIIO = re.compile(
    r"MPI_File_(?P<i>i)?(?P<what>read|write)(?P<at>_at)?(?P<how>_all|_ordered|_shared)?(?:_(?:begin|end))?$"
)
_MPIIO_OTHER = {"open": "open", "close": "close", "seek": "seek", "seek_shared": "seek",
                "sync": "sync", "get_size": "stat"}  # fmt: skip
_COLLECTIVE_FILE_CALLS = {"open", "close", "sync", "set_view", "set_size", "preallocate"}
_PREFIXES = (("H5", "hdf5"), ("ncmpi_", "pnetcdf"), ("nc_", "netcdf"), ("nc4_", "netcdf"),
             ("dfs_", "dfs"), ("daos_", "daos"))  # fmt: skip
_PUT = r"put_(?:var|vara|var1|vars|varm|varn)"
_GET = r"get_(?:var|vara|var1|vars|varm|varn)"
_DATA = tuple(
    (operation, re.compile(pattern, re.IGNORECASE))
    for operation, pattern in (
        ("read", rf"H5[DA]read|_i?{_GET}|_read"),
        ("write", rf"H5[DA]write|_[ib]?{_PUT}|_write"),
        ("open", r"H5[A-Z](?:open|create)|_open|_create"),
        ("close", r"H5[A-Z]close|_close"),
        ("sync", r"H5[A-Z]flush|_sync|_flush"),
        ("stat", r"get_filesize|_stat$|_get_size"),
    )
)


@lru_cache(maxsize=4096)
def classify(name: str) -> Call:
    """Return what a function does; what is unknown is of the layer `other`."""
    plain = _plain(name)
    for layer, known in (("posix", POSIX), ("stdio", STDIO), ("posix", _PROCESS)):
        if plain in known:
            return Call(layer, known[plain], positional=plain in _POSITIONAL)
    if name.startswith("MPI_File_"):
        return _mpiio(name)
    for prefix, layer in _PREFIXES:
        if name.startswith(prefix):
            return Call(layer, _data_operation(name))
    return Call("other", "other")


def _plain(name: str) -> str:
    """Take away what the C library adds: `__xstat64` is `xstat`."""
    bare = name.lstrip("_") if name.startswith("__") else name
    for suffix in ("64_time64", "_time64", "64", "_chk"):
        if bare.endswith(suffix) and len(bare) > len(suffix) and bare not in POSIX:
            bare = bare[: -len(suffix)]
    return bare


def _mpiio(name: str) -> Call:
    match = _MPIIO.match(name)
    if match is None:
        what = name.removeprefix("MPI_File_")
        collective = True if what in _COLLECTIVE_FILE_CALLS else None
        return Call("mpiio", _MPIIO_OTHER.get(what, "metadata"), collective=collective)
    return Call(
        "mpiio",
        match["what"],
        collective=match["how"] in ("_all", "_ordered"),
        nonblocking=match["i"] is not None or name.endswith(("_begin", "_end")),
        positional=match["at"] is not None,
    )


def _data_operation(name: str) -> str:
    return next((what for what, pattern in _DATA if pattern.search(name)), "metadata")
