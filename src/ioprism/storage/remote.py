"""Read files of object storage as if they were here: `s3://bucket/run42.store`.

Any address that fsspec knows will do. A file is copied when it is read, and gone afterwards, so
that workers fetch only what they work on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ioprism.errors import MissingPackageError, TraceError
from ioprism.text import address_of


def exists(path: Path) -> bool:
    """Whether there is something, here or there.

    Raises:
        TraceError: the storage cannot be reached.
        MissingPackageError: a package is missing that knows the storage.
    """
    address = address_of(path)
    if address is None:
        return path.exists()
    with _failures_said(path):
        return bool(_storage(address).exists(address))


def is_file(path: Path) -> bool:
    """Whether there is a file, here or there; errors as `exists`."""
    address = address_of(path)
    if address is None:
        return path.is_file()
    with _failures_said(path):
        return bool(_storage(address).isfile(address))


@contextmanager
def at_hand(path: Path) -> Iterator[Path]:
    """Yield the file's path on this machine; what was copied is gone afterwards.

    Raises:
        TraceError: the file cannot be copied.
    """
    address = address_of(path)
    if address is None:
        yield path
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="ioprism-") as folder:
        copy = Path(folder) / path.name
        with _failures_said(path):
            _storage(address).get_file(address, str(copy))
        yield copy


def _storage(address: str) -> Any:  # noqa: ANN401 - of an optional package
    try:
        import fsspec  # type: ignore[import-untyped]

        return fsspec.core.url_to_fs(address)[0]
    except ImportError as error:
        package = error.name or getattr(error.__cause__, "name", None) or str(error)
        install = "'ioprism[remote]'" if package == "s3fs" else package
        raise MissingPackageError(needed_by=address, package=package, install=install) from None
    except ValueError as error:
        raise TraceError(f"this address cannot be used ({error}).", source=Path(address)) from error


@contextmanager
def _failures_said(path: Path) -> Iterator[None]:
    """Turn what storage packages raise, which is of any kind, into one message."""
    try:
        yield
    except (TraceError, MissingPackageError):
        raise
    except Exception as error:
        raise TraceError(
            f"the storage does not return it ({type(error).__name__}: {error}).\n"
            "Hint: check the address and the credentials its package looks for.",
            source=path,
        ) from error
