"""Read call signatures: which function, with which arguments, in which thread."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ioprism.model.trace import Warn

USER_FUNCTION = 255  # its name is the second argument
LONGEST_KEY = 2**24
SPARSE = 16  # numbers that one signature may take up on average; a sound table has no gaps
LEAST_NUMBERS = 65536  # that any table may use
_ENTRY = struct.Struct("<iiiI")  # number, rank, length, count
_EARLY_ENTRY = struct.Struct("<ii")  # number, length: as version 2.3 writes it
_NARROW = struct.Struct("<QBBBi")  # thread, function, depth, arguments, length
_WIDE = struct.Struct("<QiBBi")


class Signature(NamedTuple):
    """A call as often as it was made with the same arguments."""

    function: str
    arguments: tuple[str, ...]
    depth: int = 0
    thread: int = 0


def read_signatures(
    data: bytes, functions: tuple[str, ...], *, wide: bool, warn: Warn
) -> dict[int, Signature]:
    """Return the signatures by their number; a damaged table yields those before the damage."""
    for entry in (_ENTRY, _EARLY_ENTRY):
        keys, whole = _keys(data, entry)
        if whole:
            break
    else:
        keys, _ = _keys(data, _ENTRY)
        warn("a table of call signatures is damaged; calls are missing")
    head = _WIDE if wide else _NARROW
    found = {}
    damaged = 0
    highest = SPARSE * len(keys) + LEAST_NUMBERS  # tables are as long as the highest number
    for number, key in keys:
        signature = _signature(key, functions, head)
        if signature is None or not 0 <= number < highest:
            damaged += 1
        else:
            found[number] = signature
    if damaged:
        warn(f"{damaged} call signatures are damaged and left out")
    return found


def _keys(data: bytes, entry: struct.Struct) -> tuple[list[tuple[int, bytes]], bool]:
    """Cut the table into keys; also say whether it was cut to its very end."""
    if len(data) < 4:
        return [], False
    (count,) = struct.unpack_from("<i", data)
    keys: list[tuple[int, bytes]] = []
    at, place, size = 4, len(entry.format) - 3, entry.size
    for _ in range(count):
        if at + size > len(data):
            return keys, False
        fields = entry.unpack_from(data, at)
        length = fields[2] if place else fields[1]
        at += size
        if not 0 <= length <= min(LONGEST_KEY, len(data) - at):
            return keys, False
        keys.append((fields[0], data[at : at + length]))
        at += length
    return keys, at == len(data)


def _signature(key: bytes, functions: tuple[str, ...], head: struct.Struct) -> Signature | None:
    if len(key) < head.size:
        return None
    thread, function, depth, _, length = head.unpack_from(key)
    text = key[head.size : head.size + max(0, length)]
    arguments = tuple(text.decode("utf-8", "backslashreplace").split(" ")[:-1])
    name = _name(function, arguments, functions)
    return None if name is None else Signature(name, arguments, depth, thread)


def _name(number: int, arguments: tuple[str, ...], functions: tuple[str, ...]) -> str | None:
    if 0 <= number < len(functions) and number != USER_FUNCTION:
        return functions[number]
    if number == USER_FUNCTION and len(arguments) > 1:
        return arguments[1]
    return None
