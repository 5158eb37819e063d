"""Turn the description of a job into its trace and the truth about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.synthetic.bursts import Calls, burst_calls, file_domains
from benchmarks.synthetic.schedule import Placement, place, request_sizes, schedule
from benchmarks.synthetic.truth import Access, Integers, Repetition, Truth, counted
from benchmarks.synthetic.workload import Burst, MetadataStorm, Workload
from ioprism.model.schema import EVENTS, FILES, PROCESSES, file_table
from ioprism.model.trace import Job, MemoryPartition, Trace

PARTITION_ROWS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticTrace:
    """A trace, and what is known to be in it."""

    trace: Trace
    truth: Truth
    workload: Workload


def synthesise(workload: Workload, *, partition_rows: int = PARTITION_ROWS) -> SyntheticTrace:
    """Make the trace of a job; events are sorted by their start.

    Example:
        >>> from benchmarks.synthetic import Burst, Requests, Workload, synthesise
        >>> burst = Burst("/scratch/out", "write", Requests(count=4, size=1024))
        >>> synthesise(Workload(ranks=2, bursts=(burst,))).truth.access["posix", "write"].bytes
        8192
    """
    maker = _Maker(workload)
    for burst in workload.bursts:
        maker.add_burst(burst)
    for storm in workload.storms:
        maker.add_storm(storm)
    events = maker.events()
    pieces = [
        MemoryPartition(events.slice(first, partition_rows))
        for first in range(0, events.height, partition_rows)
    ]
    trace = Trace(
        format="synthetic",
        paths=(),
        job=_job(workload, events),
        partitions=tuple(pieces),
        load_files=partial(_files, workload, list(maker.paths)),
        load_processes=partial(_processes, workload),
    )
    return SyntheticTrace(trace, maker.truth(), workload)


@dataclass(slots=True)
class _Maker:
    """Collects calls, file names and the truth, burst by burst."""

    workload: Workload
    paths: dict[str, int] = field(default_factory=dict)
    calls: list[Calls] = field(default_factory=list)
    repetitions: list[Repetition] = field(default_factory=list)
    access: dict[tuple[str, str], Access] = field(default_factory=dict)

    def add_burst(self, burst: Burst) -> None:
        rng = np.random.default_rng([self.workload.seed, len(self.calls)])
        ranks = np.array(self.workload.ranks_of(burst))
        files = self._files_of(burst, ranks)
        plan = schedule(burst, self.workload, request_sizes(burst.requests), rng)
        alignment = self.workload.alignment
        placed = place(burst, ranks=len(ranks), alignment=alignment, rng=rng)
        made = list(burst_calls(burst, ranks, files, plan, placed, self.workload))
        self.calls.extend(made)
        self._note(burst, made, placed)

    def add_storm(self, storm: MetadataStorm) -> None:
        rng = np.random.default_rng([self.workload.seed, len(self.calls)])
        ranks = np.array(self.workload.ranks_of(storm))
        codes = np.array(
            [
                [self._file(storm.path.format(rank=rank, number=n)) for n in range(storm.files)]
                for rank in ranks
            ]
        )
        self.calls.extend(storm_calls(storm, ranks, codes, self.workload, rng))

    def _files_of(self, burst: Burst, ranks: npt.NDArray[np.int64]) -> Integers:
        """The file of every phase and rank; phases and ranks that share one are broadcast."""
        phases = range(burst.repetitions) if burst.per_phase else [0]
        sharers = ranks.tolist() if burst.per_rank else [0]
        codes = [
            [self._file(burst.path.format(phase=phase, rank=rank)) for rank in sharers]
            for phase in phases
        ]
        return np.array(codes, np.int64)

    def _file(self, path: str) -> int:
        return self.paths.setdefault(path, len(self.paths))

    def _note(self, burst: Burst, made: list[Calls], placed: Placement) -> None:
        workload = self.workload
        measure = partial(counted, alignment=workload.alignment, small_below=workload.small_below)
        sequences = placed.sequences(per_phase=burst.per_phase)
        phases = sequences.shape[-1] // len(placed.sizes)
        sizes = np.tile(placed.sizes, phases)
        asked = measure(sequences, sizes, random=placed.random)
        moved = asked
        if burst.collective:
            offsets, lengths = file_domains(burst, placed)
            if not burst.per_phase:
                offsets = offsets.transpose(1, 0, 2).reshape(burst.aggregators, -1)
                lengths = np.tile(lengths, phases)
            moved = measure(offsets, lengths, random=0)
        layers = (
            {"mpiio": asked, "posix": moved} if burst.layer == "mpiio" else {burst.layer: asked}
        )
        for layer, access in layers.items():
            key = (layer, burst.direction)
            self.access[key] = self.access.get(key, Access()) + access
        data = [calls for calls in made if calls.operation == burst.direction]
        starts = np.min([calls.start.min(axis=(1, 2)) for calls in data], axis=0)
        ends = np.max([calls.end.max(axis=(1, 2)) for calls in data], axis=0)
        self.repetitions.append(
            Repetition(burst, tuple(starts.tolist()), tuple(ends.tolist()), asked.bytes)
        )

    def events(self) -> pl.DataFrame:
        frames = [calls.events() for calls in self.calls] or [EVENTS.empty()]
        return pl.concat(frames).sort("start", maintain_order=True)

    def truth(self) -> Truth:
        operations: Counter[tuple[str, str]] = Counter()
        for calls in self.calls:
            operations[calls.layer, calls.operation] += calls.count
        return Truth(
            tuple(self.repetitions),
            dict(self.access),
            dict(operations),
            tuple(straggler.rank for straggler in self.workload.stragglers),
            operations.total(),
        )


def _job(workload: Workload, events: pl.DataFrame) -> Job:
    last = events.select(pl.col("end").max()).item() or 0.0
    runtime = workload.runtime if workload.runtime is not None else float(last)
    return Job(
        ranks=workload.ranks,
        start_time=workload.start_time,
        end_time=workload.start_time + runtime,
        runtime=runtime,
        executable=workload.executable,
        user=1000,
        job_id=workload.job_id,
        mounts=workload.mounts,
        metadata=workload.metadata,
    )


def _files(workload: Workload, paths: list[str]) -> pl.DataFrame:
    table = file_table(paths, workload.mounts)
    striping = workload.striping
    if striping is None:
        return table
    first = pl.col("file").cast(pl.Int64) * striping.count
    targets = pl.concat_list((first + i) % striping.targets for i in range(striping.count))
    on_lustre = pl.col("filesystem") == "lustre"
    striped = table.with_columns(
        stripe_size=pl.when(on_lustre).then(striping.size),
        stripe_count=pl.when(on_lustre).then(striping.count),
        targets=pl.when(on_lustre).then(targets),
    )
    return FILES.conform(striped)


def _processes(workload: Workload) -> pl.DataFrame:
    per_host = -(-workload.ranks // workload.hosts)
    program = workload.executable.split(" ")[0].rsplit("/", 1)[-1]
    rank = pl.int_range(workload.ranks, dtype=pl.Int64)
    table = pl.select(
        process=rank,
        rank=rank,
        application=pl.lit(program),
        host=pl.format("node{}", (rank // per_host + 1).cast(pl.String).str.zfill(4)),
        pid=10_000 + rank,
    )
    return PROCESSES.conform(table)


def storm_calls(
    storm: MetadataStorm,
    ranks: npt.NDArray[np.int64],
    codes: Integers,
    workload: Workload,
    rng: np.random.Generator,
) -> Iterator[Calls]:
    """Stats first, then opens with their closes, at an even pace."""
    factors = np.array([workload.factor(rank) for rank in ranks.tolist()])[:, None]
    steps = storm.stats + storm.opens
    width = storm.length * factors * 0.98 / max(1, steps)
    begin = storm.start + 0.02 * storm.length * rng.random((len(ranks), 1))
    slots = begin + width * np.arange(steps)
    for first, count, parts in (
        (0, storm.stats, (("stat", 0.0, 0.8),)),
        (storm.stats, storm.opens, (("open", 0.0, 0.6), ("close", 0.7, 0.9))),
    ):
        chosen = slots[:, first : first + count]
        file = codes[:, np.arange(count) % storm.files]
        for operation, low, high in parts:
            if count:
                start, end = chosen + low * width, chosen + high * width
                yield Calls("posix", operation, start, end, rank=ranks[:, None], file=file)
