"""Read the times that people's tools write: local, with a zone, or seconds since 1970."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ioprism.errors import UsageError
from ioprism.model.counters import EARLIEST, LATEST, SECOND

SECONDS = re.compile(r"-?\d{1,12}(?:\.\d+)?")


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name.

    Raises:
        UsageError: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"no time zone is called {name!r}.\nHint: write for example Europe/Berlin or UTC."
        ) from error


def epoch_us(text: str, zone: ZoneInfo) -> int | None:
    """Return microseconds since 1970, or None if the text is not a time.

    Local times that the end of summer time makes twice mean the first of the two.
    """
    text = text.strip()
    if SECONDS.fullmatch(text):
        moment_us = round(float(text) * SECOND) if "." in text else int(text) * SECOND
    else:
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
            moment_us = round(aware.timestamp() * SECOND)
        except (ValueError, OverflowError, OSError):
            return None
    return moment_us if EARLIEST <= moment_us <= LATEST else None
