"""Read JSON, JSON lines and msgpack files without trusting them."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError
from ioprism.model.trace import Completeness
from ioprism.units import format_counted

HEAD = 64 * 1024
END = object()  # after the last object


def head(source: Path) -> bytes:
    """Return the beginning of a file, empty if it cannot be read."""
    try:
        with source.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def json_document(source: Path) -> Any:  # noqa: ANN401 - any JSON
    """Return the one JSON value of a file.

    Raises:
        BrokenTraceError: it is not JSON.
    """
    try:
        return json.loads(source.read_bytes())
    except (ValueError, RecursionError) as error:
        raise broken(source, f"it is not valid JSON ({_short(error)})") from error


def json_lines(source: Path, completeness: Completeness) -> Iterator[Any]:
    """Yield the JSON value of each line; a line that is damaged is left out with a warning."""
    damaged: list[int] = []
    number = 0
    with source.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                damaged.append(number)
    if damaged == [number]:
        completeness.warn(f"{source.name}: the last line is cut off and left out")
    elif damaged:
        completeness.warn(
            f"{source.name}: {format_counted(len(damaged), 'line')} left out as not JSON, "
            f"the first is line {damaged[0]}"
        )


def msgpack_objects(source: Path, completeness: Completeness) -> Iterator[Any]:
    """Yield the objects of a msgpack file; a damaged rest is left out with a warning."""
    import msgpack

    size = source.stat().st_size
    with source.open("rb") as file:
        unpacker = msgpack.Unpacker(
            file, use_list=False, strict_map_key=False, max_buffer_size=max(size, 1)
        )
        try:
            while (value := _next(unpacker)) is not END:
                yield value
        except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError) as error:
            completeness.warn(
                f"{source.name}: damaged after {unpacker.tell()} of {size} bytes "
                f"({_short(error)}); the rest is left out"
            )
            return
        if unpacker.tell() < size:
            completeness.warn(
                f"{source.name}: cut off after {unpacker.tell()} of {size} bytes; "
                "the last flush is left out"
            )


def _next(unpacker: Iterator[Any]) -> Any:  # noqa: ANN401 - any msgpack object
    """Unpack one object without the garbage collector, which looks at each list again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return next(unpacker, END)
    finally:
        if collecting:
            gc.enable()


def broken(source: Path, why: str) -> BrokenTraceError:
    """Return the error for a file of a known format that cannot be read."""
    return BrokenTraceError(f"{why}.\nHint: was the file copied completely?", source=source)


def _short(error: BaseException) -> str:
    return str(error).partition("\n")[0][:120] or type(error).__name__
