"""Parse and format bytes, seconds and rates: the only place that does."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable
from datetime import UTC, datetime

from ioprism.errors import UsageError

_DECIMAL = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGTPE]?)(I?)B?\s*", re.IGNORECASE)
LARGEST = 2**63 - 1  # bytes that libraries can count
HOUR, DAY = 3600.0, 86_400.0  # seconds


def parse_bytes(text: str) -> int:
    """Read a size such as ``512MB`` (decimal), ``4MiB`` (binary) or plain ``4096``.

    Raises:
        UsageError: the text is not a size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a size.\nHint: write for example 4096, 512MB or 4MiB.")
    number, prefix, binary = match.groups()
    scale = (_BINARY if binary else _DECIMAL)[prefix.upper()]
    size = round(float(number) * scale)
    if size > LARGEST:
        raise UsageError(f"{text!r} is more than any machine has.\nHint: check its unit.")
    return size


def format_bytes(size: float | None) -> str:
    """Show a size in binary units with three significant digits: ``1.50 MiB``."""
    if size is None:
        return "unknown"
    if abs(size) < 1024:
        return f"{size:.0f} B"
    for prefix in "KMGTPE":
        size /= 1024
        if abs(size) < 1023.5 or prefix == "E":
            return f"{_three_digits(size)} {prefix}iB"
    raise AssertionError("unreachable: the loop returns at the last prefix")


def format_rate(bytes_per_second: float | None) -> str:
    """Show a rate in binary units: ``1.50 MiB/s``."""
    return (
        "unknown"
        if bytes_per_second is None or not math.isfinite(bytes_per_second)
        else f"{format_bytes(bytes_per_second)}/s"
    )


def format_seconds(seconds: float | None) -> str:
    """Show a duration: ``250 µs``, ``1.50 s``, ``2 min 05 s``, ``3 h 20 min``."""
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    if seconds < 0:
        return f"-{format_seconds(-seconds)}"
    if seconds == 0:
        return "0 s"
    for scale, unit in ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")):
        if seconds < 999.5 * scale and (unit != "s" or seconds < 60):
            return f"{_three_digits(seconds / scale)} {unit}"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_moment(seconds: float | None) -> str:
    """Show a point in time, given in seconds since 1970: ``2026-11-17 15:35 UTC``."""
    try:
        return datetime.fromtimestamp(seconds or math.nan, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def format_count(number: float | None) -> str:
    """Show a count with thousands separated: ``1,234,567``."""
    return "unknown" if number is None else f"{number:,.0f}"


def format_counted(number: int, noun: str, plural: str | None = None) -> str:
    """Show how many there are of something: ``1 host``, ``1,234 hosts``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_amount(value: float, unit: str) -> str:
    """Show a number by its unit: s, B, B/s, share; anything else is a count."""
    if unit == "share":
        return f"{value:.0%}"
    forms = {"B": format_bytes, "B/s": format_rate, "s": format_seconds}
    return forms.get(unit, format_count)(value)


def format_number(value: float) -> str:
    """Show a number with as many digits as tell small ones apart: 1,234, 5.68, 0.012, <0.001."""
    if 0 < value < 0.001:
        return "<0.001"
    return f"{value:,.0f}" if value >= 100 or not value else f"{value:.{2 if value < 1 else 3}g}"


def column_unit(sizes: Iterable[float | None]) -> tuple[str, int]:
    """Return one unit for a column of sizes, that of their median, and its number of bytes."""
    known = [size for size in sizes if size]
    middle = statistics.median(known) if known else 1
    prefix = next((one for one in "EPTGMK" if middle >= _BINARY[one]), "")
    return f"{prefix}iB" if prefix else "B", _BINARY[prefix]


def _three_digits(value: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{min(digits, 2)}f}"
