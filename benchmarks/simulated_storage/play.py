"""Let ranks play their scripts against the machine: a discrete-event simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from benchmarks.simulated_storage.hardware import Machine
from benchmarks.simulated_storage.program import Call, Program, Script
from benchmarks.simulated_storage.storage import Costs, Placement

NOISES = 8192  # factors drawn for a run; each rank takes them in turn from its own place on
ISSUE, SEND, ARRIVE, DEPART = range(4)
METADATA = frozenset({"open", "close", "stat"})


@dataclass(slots=True)
class Recorded:
    """Columns of the calls that were made."""

    start: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    file: list[int] = field(default_factory=list)
    layer: list[str] = field(default_factory=list)
    operation: list[str] = field(default_factory=list)
    collective: list[bool | None] = field(default_factory=list)
    offset: list[int | None] = field(default_factory=list)
    bytes: list[int | None] = field(default_factory=list)

    def add(
        self,
        start: float,
        end: float,
        rank: int,
        call: Call,
        *,
        layer: str = "posix",
        collective: bool | None = None,
    ) -> None:
        """Keep one call."""
        data = call.operation == "read" or call.operation == "write"
        self.start.append(start)
        self.end.append(end)
        self.rank.append(rank)
        self.file.append(call.file)
        self.layer.append(layer)
        self.operation.append(call.operation)
        self.collective.append(collective)
        self.offset.append(call.offset if data else None)
        self.bytes.append(call.bytes if data else None)


@dataclass(slots=True)
class _Pending:
    """A call that waits for its pieces."""

    rank: int
    call: Call
    start: float
    pieces: int = 0


class Player:
    """The machine's queues and the files' state, which last over all steps."""

    def __init__(self, program: Program, machine: Machine, seed: int) -> None:
        self.machine = machine
        self.recorded = Recorded()
        systems = machine.file_systems
        self.costs = [
            Costs(system, np.random.default_rng([seed, 1, number]))
            for number, system in enumerate(systems)
        ]
        self.system_of = [machine.file_system_of(file.path) for file in program.files]
        self.places = [
            Placement(file, number, systems[self.system_of[number]].targets)
            for number, file in enumerate(program.files)
        ]
        self.links = [Fifo() for _ in range(machine.host_of(program.ranks - 1) + 1)]
        self.servers = [[Fifo() for _ in range(s.metadata_servers)] for s in systems]
        self.queues: list[list[Fifo] | list[Sharing]] = [
            [Fifo() for _ in range(s.targets)]
            if s.discipline == "fifo"
            else [Sharing() for _ in range(s.targets)]
            for s in systems
        ]
        self.server_of = [
            hash_of(file.path) % systems[self.system_of[number]].metadata_servers
            for number, file in enumerate(program.files)
        ]
        # Each rank takes its own numbers, so that a change of one rank's calls leaves the others'.
        kind = systems[0].noise
        self.noise: list[float] = kind.factors(np.random.default_rng([seed, 2]), NOISES).tolist()
        first = np.random.default_rng([seed, 3]).integers(0, NOISES, program.ranks)
        self.drawn: list[int] = first.tolist()
        self.order = 0

    def play(self, scripts: Mapping[int, Script], starts: Mapping[int, float]) -> dict[int, float]:
        """Run every rank's script from its start; return when each is done."""
        return _Scene(self, scripts, starts).run()

    def factor(self, rank: int) -> float:
        """The next factor on a service time of a rank's call."""
        self.drawn[rank] += 1
        return self.noise[self.drawn[rank] % NOISES]

    def metadata(self, call: Call, rank: int, now: float) -> float:
        """When a metadata call returns."""
        system = self.machine.file_systems[self.system_of[call.file]]
        cost = {"open": system.metadata_cost, "stat": system.stat_cost}.get(call.operation, 0.0)
        own = self.machine.call_cost * self.machine.slow_ranks.get(rank, 1.0)
        if not cost:
            return now + own
        server = self.servers[self.system_of[call.file]][self.server_of[call.file]]
        return server.serve(now, cost * self.factor(rank)) + own + self.machine.latency

    def ready(self, call: Call, rank: int, now: float) -> float:
        """When a process has handed its bytes to its node."""
        own = self.machine.call_cost + call.bytes / self.machine.copy_rate
        return now + own * self.machine.slow_ranks.get(rank, 1.0)

    def sent(self, call: Call, rank: int, now: float) -> float:
        """When the node's link has passed a call's bytes on."""
        machine = self.machine
        host = machine.host_of(rank)
        passing = call.bytes / machine.link_rate * machine.slow_hosts.get(host, 1.0)
        return self.links[host].serve(now, passing) + machine.latency


def hash_of(path: str) -> int:
    """A number for a path's directory that is the same in every run of Python."""
    return sum(ord(letter) * (place + 1) for place, letter in enumerate(path.rsplit("/", 1)[0]))


class _Scene:
    """One step: an event queue of calls to issue and send, arrivals at targets, ends of service."""

    def __init__(
        self, player: Player, scripts: Mapping[int, Script], starts: Mapping[int, float]
    ) -> None:
        self.player = player
        self.left: dict[int, Iterator[Call]] = {r: iter(s) for r, s in scripts.items()}
        self.done = dict(starts)
        self.events: list[tuple[float, int, int, int, int]] = []
        self.pending: dict[int, _Pending] = {}
        for rank in sorted(self.left):
            self._push(starts[rank], ISSUE, rank, 0)

    def _push(self, time: float, kind: int, first: int, second: int) -> None:
        self.player.order += 1
        heappush(self.events, (time, self.player.order, kind, first, second))

    def run(self) -> dict[int, float]:
        while self.events:
            now, _, kind, first, second = heappop(self.events)
            if kind == ISSUE:
                self._issue(now, first)
            elif kind == SEND:
                one = self.pending[first]
                self._push(self.player.sent(one.call, one.rank, now), ARRIVE, first, 0)
            elif kind == ARRIVE:
                self._arrive(now, first)
            else:
                self._depart(now, first, second)
        return self.done

    def _issue(self, now: float, rank: int) -> None:
        self.done[rank] = now
        call = next(self.left[rank], None)
        if call is None:
            return
        if call.operation == "compute":
            self._push(now + call.seconds, ISSUE, rank, 0)
        elif call.operation in METADATA:
            end = self.player.metadata(call, rank, now)
            self._finish(_Pending(rank, call, now), end)
        else:
            self.player.order += 1
            token = self.player.order
            self.pending[token] = _Pending(rank, call, now)
            self._push(self.player.ready(call, rank, now), SEND, token, 0)

    def _arrive(self, now: float, token: int) -> None:
        player, pending = self.player, self.pending[token]
        call, rank = pending.call, pending.rank
        system = player.system_of[call.file]
        costs, queues = player.costs[system], player.queues[system]
        noise = player.factor(rank)
        latest = now
        for target, work in costs.pieces(call, rank, player.places[call.file]).items():
            queue = queues[target]
            seconds = work * noise * costs.slowness(target, now)
            if isinstance(queue, Fifo):
                latest = max(latest, queue.serve(now, seconds))
            else:
                pending.pieces += 1
                player.order += 1
                queue.arrive(now, seconds, player.order, token)
                self._expect(system, target, queue)
        if not pending.pieces:
            self._finish(self.pending.pop(token), latest)

    def _expect(self, system: int, target: int, queue: Sharing) -> None:
        end = queue.next_end()
        if end is not None:
            place = system << 32 | target
            self._push(end, DEPART, place, queue.version)

    def _depart(self, now: float, place: int, version: int) -> None:
        system, target = place >> 32, place & 0xFFFFFFFF
        queue = self.player.queues[system][target]
        if not isinstance(queue, Sharing) or queue.version != version:
            return  # an arrival has changed when the next one ends
        token = queue.depart(now)
        self._expect(system, target, queue)
        pending = self.pending[token]
        pending.pieces -= 1
        if not pending.pieces:
            self._finish(self.pending.pop(token), now)

    def _finish(self, pending: _Pending, end: float) -> None:
        self.player.recorded.add(pending.start, end, pending.rank, pending.call)
        self._push(end, ISSUE, pending.rank, 0)


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
