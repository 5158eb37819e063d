"""Whether requests split pages or cross the stripes of their file, as far as counters show.

Darshan counts requests that begin off the block size that the file system reports. Where the
layout of a file is known, what can cost is to split a page or to cross from one stripe to the
next, which an aligned request inside a stripe never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ioprism.model.usage import Striping, Usage

PAGE = 4096  # bytes, of Linux on most processors


def by_stripes(usage: Usage, striping: Mapping[int, Striping]) -> Usage:
    """Return the columns with requests of striped files judged by their stripes."""
    if usage.misaligned is None or usage.alignment is None or not striping:
        return usage
    sizes = {file: layout.size for file, layout in striping.items() if layout.size > 0}
    entries = zip(usage.file, usage.misaligned, usage.operations, usage.bytes, strict=True)
    told = [
        count if file not in sizes else _crossing(usage, place, (made, moved), sizes[file])
        for place, (file, count, made, moved) in enumerate(entries)
    ]
    return replace(usage, misaligned=told)


def _crossing(usage: Usage, place: int, whole: tuple[int, int], stripe: int) -> int:
    """Estimate how many requests of an entry split a page or cross a border of stripes.

    Requests that fill stripes, or that stripes hold a whole number of, cross none unless they
    begin off the block. Others cross as often as they reach the next border. Requests that are
    not whole pages begin or end inside one.

    Args:
        usage: all entries.
        place: of the entry.
        whole: its requests and bytes.
        stripe: bytes of a stripe of its file.
    """
    off = (usage.misaligned or ())[place]
    block = (usage.alignment or ())[place]
    if not off and block > 0 and block % stripe == 0:
        return 0
    requests, moved = whole
    fitting = crossing = 0.0
    for sizes, counts in usage.common_sizes:
        size, count = sizes[place], min(counts[place], requests)
        if size <= 0:
            continue
        requests, moved = requests - count, moved - count * size
        if size % PAGE:
            crossing += count if off else 0  # begins or ends inside a page
        elif size % stripe == 0 or stripe % size == 0:
            fitting += count
        else:
            crossing += count * min(1.0, size / stripe)
    crossing += min(requests, max(0, moved) / stripe)
    others = whole[0] - fitting
    beside = min(fitting, max(0.0, off - others))  # fitting ones that begin off the block
    mean = whole[1] / max(1, whole[0])
    if block % stripe == 0 or stripe % block == 0:
        crossing += beside * min(1.0, mean / stripe)
    return min(whole[0], round(crossing))
