"""Change what lies inside a log's compressed regions and pack it again."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from ioprism.formats.darshan.log import pieces, read_log
from ioprism.formats.darshan.meaning import MODULE_NAMES

HEADER = 1328


def repack(source: Path, target: Path, change: Callable[[bytes], bytes]) -> None:
    """Write a log (of the newest header) again with every region's content changed."""
    log = read_log(source)
    header = bytearray(source.read_bytes()[:HEADER])
    body = b""
    slots = {"names": 32} | {name: 48 + 16 * number for number, name in enumerate(MODULE_NAMES)}
    for region in (log.job, log.names, *log.modules.values()):
        content = b"".join(pieces(log, region, lambda _: None))
        packed = change(content)
        packed = packed if log.compression == "none" else zlib.compress(packed)
        if region.name in slots:
            struct.pack_into("<QQ", header, slots[region.name], HEADER + len(body), len(packed))
        body += packed
    target.write_bytes(header + body)
