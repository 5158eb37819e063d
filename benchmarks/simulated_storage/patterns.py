"""Files and scripts of common ways to do I/O, from which programs are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from benchmarks.simulated_storage.program import Asked, Call, File, Program, Script, Step

MiB = 1 << 20
Direction = Literal["read", "write"]


@dataclass(slots=True)
class Builder:
    """Collects the files and steps of a program."""

    ranks: int
    files: list[File] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def file(self, path: str, targets: Sequence[int] = (), stripe_size: int = MiB) -> int:
        """Add a file and return its number."""
        self.files.append(File(path, tuple(targets), stripe_size))
        return len(self.files) - 1

    def file_per_rank(
        self, path: str, layout: Callable[[int], Sequence[int]], stripe_size: int = MiB
    ) -> list[int]:
        """Add one file for each rank."""
        return [self.file(path.format(rank=r), layout(r), stripe_size) for r in range(self.ranks)]

    def step(
        self, scripts: Mapping[int, Script], compute: float | Sequence[float], **more: object
    ) -> None:
        """Add a step."""
        self.steps.append(replace(Step(scripts, compute), **more))  # type: ignore[arg-type]

    def program(self, **more: object) -> Program:
        """Return the program so far."""
        return replace(Program(self.ranks, self.files, self.steps), **more)  # type: ignore[arg-type]


def stripes(first: int, count: int, targets: int) -> tuple[int, ...]:
    """Targets in stripe order, from the first one on."""
    return tuple((first + place) % targets for place in range(count))


def transfer(file: int, direction: Direction, offset: int, total: int, size: int) -> list[Call]:
    """Move bytes in order, in requests of one size; the last may be shorter."""
    return [
        Call(direction, file, offset + done, min(size, total - done))
        for done in range(0, total, size)
    ]


def session(file: int, calls: Iterable[Call], *, sync: bool = False) -> list[Call]:
    """Open a file, make the calls, and close it."""
    last = [Call("sync", file)] if sync else []
    return [Call("open", file), *calls, *last, Call("close", file)]


def synced_each(calls: Iterable[Call]) -> list[Call]:
    """Force the data to storage after every write."""
    return [one for call in calls for one in (call, Call("sync", call.file))]


def reopened_each(calls: Iterable[Call]) -> list[Call]:
    """Open and close the file around every call."""
    return [one for call in calls for one in session(call.file, [call])]


@dataclass(frozen=True, slots=True)
class CollectiveWrite:
    """A collective write of interleaved pieces into one shared file, step by step."""

    file: int
    ranks: int
    hosts: int
    piece: int  # bytes that lie together
    pieces: int  # of each rank in a step
    direction: Direction = "write"

    @property
    def step_bytes(self) -> int:
        """Bytes of all ranks in a step."""
        return self.ranks * self.piece * self.pieces

    def asked(self, step: int) -> dict[int, Asked]:
        """What the ranks ask the library for."""
        base = step * self.step_bytes
        each = self.piece * self.pieces
        return {
            rank: Asked(self.direction, self.file, base + rank * self.piece, each)
            for rank in range(self.ranks)
        }

    def aggregated(
        self, step: int, aggregators: Sequence[int], buffer: int, *, sieving: bool = False
    ) -> dict[int, list[Call]]:
        """Each aggregator moves one contiguous part, buffer by buffer."""
        base, share = step * self.step_bytes, -(-self.step_bytes // len(aggregators))
        share = -(-share // buffer) * buffer
        scripts = {}
        for place, rank in enumerate(aggregators):
            total = max(0, min(share, self.step_bytes - place * share))
            calls = transfer(self.file, self.direction, base + place * share, total, buffer)
            scripts[rank] = _sieved(calls) if sieving else calls
        return scripts

    def own_pieces(self, step: int, rank: int) -> list[Call]:
        """The rank's own pieces, as they lie in the file."""
        base, stride = step * self.step_bytes, self.ranks * self.piece
        return [
            Call(self.direction, self.file, base + i * stride + rank * self.piece, self.piece)
            for i in range(self.pieces)
        ]

    def one_per_host(self) -> list[int]:
        """The first rank of each node."""
        per_host = -(-self.ranks // self.hosts)
        return list(range(0, self.ranks, per_host))


def _sieved(calls: Sequence[Call]) -> list[Call]:
    return [one for call in calls for one in (call._replace(operation="read"), call)]
