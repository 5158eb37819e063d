"""Servers with a queue: one request after the other, or all at once at a share of the speed."""

from __future__ import annotations

from heapq import heappop, heappush


class Fifo:
    """Serves requests in the order they come; their ends are known at once."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        self.free = 0.0

    def serve(self, now: float, work: float) -> float:
        """Take a request of so many seconds; return when it is done."""
        self.free = max(now, self.free) + work
        return self.free


class Sharing:
    """Serves all requests at once, each at an equal share (processor sharing).

    Progress is counted in a virtual time that passes more slowly the more there are, so that
    a request ends when the virtual time has passed by its work.
    """

    __slots__ = ("progress", "version", "waiting", "when")

    def __init__(self) -> None:
        self.progress = 0.0
        self.when = 0.0
        self.version = 0  # of the next end, which every arrival changes
        self.waiting: list[tuple[float, int, int]] = []

    def _advance(self, now: float) -> None:
        if self.waiting:
            self.progress += (now - self.when) / len(self.waiting)
        self.when = now
        self.version += 1

    def arrive(self, now: float, work: float, order: int, token: int) -> None:
        """Take a request; `token` comes back when it is done."""
        self._advance(now)
        heappush(self.waiting, (self.progress + work, order, token))

    def depart(self, now: float) -> int:
        """End the request that is done now, and return its token."""
        self._advance(now)
        return heappop(self.waiting)[2]

    def next_end(self) -> float | None:
        """When the next request is done if none comes before."""
        if not self.waiting:
            return None
        remaining = max(0.0, self.waiting[0][0] - self.progress)
        return self.when + remaining * len(self.waiting)
