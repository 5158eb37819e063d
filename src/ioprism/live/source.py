"""Where the messages of running jobs come from: one protocol, whatever the transport.

A new transport is one class with these methods, and one entry point of the group
`ioprism.transports` that names the scheme of its addresses (`kafka`, for example) and a function
from an address to the source; `ioprism watch --source kafka://...` then opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ioprism.errors import UsageError
from ioprism.plugins import declared, load
from ioprism.text import printable

if TYPE_CHECKING:
    from ioprism.live.intake import Intake
    from ioprism.live.state import Journal

GROUP = "ioprism.transports"


class Source(Protocol):
    """Hands what has arrived to the intake, and never waits for more."""

    address: str

    def read(self, intake: Intake, journal: Journal | None) -> bool:
        """Take what has arrived; return whether there may be more.

        What could not be read again after a restart is also written to the journal.
        """
        ...

    def waits_on(self) -> Any:  # noqa: ANN401 - a number, or a socket of ZeroMQ
        """A descriptor or ZeroMQ socket to sleep on; None if the source has to be polled."""
        ...

    def note_empty(self) -> None:
        """Nothing had arrived until now: the service has slept on the descriptor."""
        ...

    def state(self) -> dict[str, Any]:
        """How far it was read; empty if a restart cannot resume there."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume where a saved state stopped."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


Opener = Callable[[str], Source]


def open_source(address: str, built_in: Mapping[str, Opener]) -> Source:
    """Open a source by the scheme of its address.

    Args:
        address: such as `tcp://127.0.0.1:5555` or `file:///scratch/me/run.jsonl`.
        built_in: what opens the addresses of each scheme that needs no plug-in.

    Raises:
        UsageError: no transport has this scheme.
    """
    scheme = address.partition("://")[0]
    openers = {one.name: one for one in declared(GROUP)}
    if scheme in built_in:
        return built_in[scheme](address)
    if scheme in openers:
        opened: Source = load(openers[scheme])(address)
        return opened
    known = ", ".join(f"{name}://" for name in sorted({*built_in, *openers}))
    raise UsageError(
        f"no transport opens {printable(address)}.\nHint: addresses begin with {known}."
    )
