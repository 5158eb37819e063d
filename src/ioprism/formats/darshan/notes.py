"""What a log's header alone says is missing from it."""

from __future__ import annotations

from collections.abc import Iterator

from ioprism.formats.darshan.log import Log, Region, uncovered
from ioprism.formats.darshan.records import DXT_LAYERS, DXT_VERSIONS, FIXED

READ = {*FIXED, *DXT_LAYERS, "LUSTRE", "HEATMAP"}


def notes(log: Log) -> Iterator[str]:
    """Yield a warning for everything that is partial, unknown or cut off."""
    for region in log.modules.values():
        yield from _about(region, log.path.name)
    if log.compression != "none" and (amount := uncovered(log)):
        yield (
            f"{log.path.name}: the header and the file disagree about {amount} bytes; "
            "the log is cut short or damaged, and records may be missing"
        )


def _about(region: Region, name: str) -> Iterator[str]:
    if region.partial and region.name != "NULL":  # merging logs sets that bit for no reason
        yield (
            f"{name}: the {region.name} data are partial: Darshan ran out of memory for "
            "records while the job ran"
        )
    if region.length and region.name not in READ:
        yield f"{name}: the {region.name} module is not read"
    if region.length and region.version not in DXT_VERSIONS.get(region.name, [region.version]):
        yield f"{name}: {region.name} has the unknown version {region.version} and is not read"
