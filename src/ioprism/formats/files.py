"""What may be read: files, not pipes; and all files of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from ioprism.errors import BrokenTraceError, NoSuchTraceError


def check_readable(source: Path) -> None:
    """Refuse what would keep us waiting for ever, or what we are not allowed to read.

    Raises:
        BrokenTraceError: it is neither file nor folder, or closed to us.
    """
    folder = source.is_dir()
    if not folder and source.exists() and not source.is_file():
        raise BrokenTraceError(
            "this is a pipe, socket or device, and it would be read more than once.\n"
            "Hint: write it to a file, and name that.",
            source=source,
        )
    if source.exists() and not os.access(source, os.R_OK | os.X_OK if folder else os.R_OK):
        raise BrokenTraceError(
            "permission denied.\nHint: ask its owner to let you read it.", source=source
        )


def check_file(source: Path) -> None:
    """Refuse anything but a file that can be read again.

    Raises:
        NoSuchTraceError: the path does not exist.
        BrokenTraceError: it is a folder, a pipe or a device, or closed to us.
    """
    if not source.exists():
        raise NoSuchTraceError(source)
    if source.is_dir():
        raise BrokenTraceError(
            "this is a folder, but a file is needed.\nHint: name a file in it.", source=source
        )
    check_readable(source)


def files_below(folder: Path) -> list[Path]:
    """Every file in a folder and its folders, sorted.

    A folder that is closed to us is listed itself, so that opening it gives the reason.
    """
    files: list[Path] = []
    walk = os.walk(folder, onerror=lambda error: files.append(Path(error.filename)))
    for place, _, names in walk:
        files += (path for name in names if (path := Path(place, name)).is_file())
    return sorted(files)
