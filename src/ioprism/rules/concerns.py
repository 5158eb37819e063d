"""Which calls each finding is about: what `inspect` lists, the picture lights and rules count."""

from __future__ import annotations

from ioprism.model.schema import OPERATIONS
from ioprism.model.usage import DIRECTIONS
from ioprism.records import dataclass

METADATA = ("open", "close", "seek", "stat", "metadata")


@dataclass(frozen=True, slots=True)
class CallKind:
    """The kind of calls that a rule is about, of the files and ranks that it finds."""

    operations: tuple[str, ...] = OPERATIONS
    small: bool = False  # only those below the limit `small_bytes`
    misaligned: bool = False  # only those that do not begin at a multiple of `alignment`
    backward: bool = False  # only those that begin before the end of the one before
    repeated: bool = False  # only those that begin where an earlier one began
    collective: bool | None = None  # only those that are, or are not, where the trace tells
    whole_job: bool = False  # the finding is about the job as such: no call stands out


_WHOLE_JOB = CallKind(whole_job=True)
# Rules that are not about all calls of their direction.
KINDS = {
    "metadata-heavy": CallKind(METADATA),
    "tiny-files": CallKind((*METADATA, *DIRECTIONS)),
    "many-seeks": CallKind(("seek",)),
    "sync-storm": CallKind(("sync",)),
    "misaligned-file": CallKind(DIRECTIONS, misaligned=True),
    "misaligned-memory": CallKind(DIRECTIONS),
    "collective-overhead": CallKind(DIRECTIONS, collective=True),
    "read-after-write": CallKind(("read",)),
    # Of bytes that are written twice, the first writes were in vain: no single call tells.
    "redundant-reads": CallKind(("read",), repeated=True),
    "hdf5-independent-access": CallKind(DIRECTIONS, collective=False),
    "pnetcdf-independent-access": CallKind(DIRECTIONS, collective=False),
    **{f"random-{way}s": CallKind((way,), backward=True) for way in DIRECTIONS},
    **{f"independent-{way}s": CallKind((way,), collective=False) for way in DIRECTIONS},
    **{f"collective-{way}s": CallKind((way,), collective=True) for way in DIRECTIONS},
    **{
        f"{library}small-{way}s{shared}": CallKind((way,), small=True)
        for way in DIRECTIONS
        for library, shared in (("", ""), ("", "-shared"), ("hdf5-", ""), ("pnetcdf-", ""))
    },
    **dict.fromkeys(
        ("single-process", "incomplete-data", "many-phases", "file-system-weather",
         "small-total-data", "periodic-io"),
        _WHOLE_JOB,
    ),
}  # fmt: skip


def concerned_calls(code: str, direction: str | None) -> CallKind:
    """Return the calls that a rule is about.

    Args:
        code: of the rule.
        direction: read or write, where the rule judges one of them.
    """
    return KINDS.get(code, CallKind((direction,)) if direction else CallKind())
