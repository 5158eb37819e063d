"""The description of a job: who reads and writes what, when, and how badly; and a ready one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ioprism.errors import UsageError
from ioprism.model.trace import Mount

Direction = Literal["read", "write"]
DataLayer = Literal["posix", "stdio", "mpiio"]


@dataclass(frozen=True, slots=True)
class Requests:
    """What one rank asks for in one phase of a burst. Shares are from 0 to 1."""

    count: int
    size: int  # bytes
    small: float = 0.0  # share of requests that are only `small_size` long
    small_size: int = 512  # bytes
    random: float = 0.0  # share of requests that swap places by chance
    misaligned: float | None = None  # share off the alignment; None: one behind the other


@dataclass(frozen=True, slots=True)
class Burst:
    """Ranks read or write, once or again and again."""

    path: str  # `{rank}` makes a file per process, `{phase}` a new file each time
    direction: Direction
    requests: Requests
    start: float = 0.0  # seconds
    length: float = 1.0  # seconds that a rank of normal speed is busy
    period: float | None = None  # seconds from one phase's start to the next
    repetitions: int = 1
    gap_jitter: float = 0.0  # standard deviation of the gaps, as a share of the mean gap
    length_jitter: float = 0.0  # the same for the lengths
    layer: DataLayer = "posix"
    collective: bool = False  # MPI-IO: all ranks call together, aggregators do the I/O
    aggregators: int = 1
    interleaved: bool = False  # in a shared file, ranks alternate instead of a block each
    ranks: tuple[int, ...] = ()  # empty: all
    seeks: bool = False  # a seek before every request
    sync: bool = False  # a sync at the end of every phase

    @property
    def per_rank(self) -> bool:
        """Whether every rank has its own file."""
        return "{rank" in self.path

    @property
    def per_phase(self) -> bool:
        """Whether every phase has its own file."""
        return "{phase" in self.path


@dataclass(frozen=True, slots=True)
class MetadataStorm:
    """Ranks open and look up many files at once."""

    path: str  # `{number}` counts the files, `{rank}` gives every rank its own
    start: float = 0.0  # seconds
    length: float = 1.0  # seconds
    opens: int = 0  # per rank, each followed by a close
    stats: int = 0  # per rank
    files: int = 1  # distinct files
    ranks: tuple[int, ...] = ()  # empty: all


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank whose every call takes longer."""

    rank: int
    factor: float = 3.0


@dataclass(frozen=True, slots=True)
class Striping:
    """How files lie on a parallel file system."""

    size: int = 2**20  # bytes
    count: int = 4  # targets a file is striped over
    targets: int = 16  # targets of the system


@dataclass(frozen=True, slots=True)
class Workload:
    """A whole job."""

    ranks: int
    bursts: tuple[Burst, ...] = ()
    storms: tuple[MetadataStorm, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    hosts: int = 1
    seed: int = 0
    runtime: float | None = None  # seconds; None: until the last call returns
    start_time: float = 1_750_000_000.0  # seconds since 1970
    executable: str = "./simulation input.toml"
    job_id: str = "4242"
    mounts: tuple[Mount, ...] = (Mount("/scratch", "lustre"), Mount("/home", "nfs"))
    metadata: Mapping[str, str] = field(default_factory=dict)
    striping: Striping | None = None  # for all files on Lustre mounts
    alignment: int = 4096  # bytes; offsets that are no multiple of it are misaligned
    small_below: int = 2**20  # bytes; shorter requests are small

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise UsageError(
                f"the workload cannot be made: {'; '.join(problems)}.\n"
                "Hint: see `benchmarks.synthetic.Workload`."
            )

    def factor(self, rank: int) -> float:
        """How many times slower than normal a rank is."""
        return next((s.factor for s in self.stragglers if s.rank == rank), 1.0)

    def ranks_of(self, part: Burst | MetadataStorm) -> tuple[int, ...]:
        """The ranks that take part."""
        return part.ranks or tuple(range(self.ranks))


def _problems(workload: Workload) -> Iterator[str]:
    if workload.ranks < 1 or not 1 <= workload.hosts <= workload.ranks:
        yield "it needs at least one rank, and no more hosts than ranks"
    named = [rank for burst in workload.bursts for rank in burst.ranks]
    named += [rank for storm in workload.storms for rank in storm.ranks]
    named += [straggler.rank for straggler in workload.stragglers]
    if any(not 0 <= rank < workload.ranks for rank in named):
        yield f"a rank is named that is not one of the {workload.ranks}"
    for burst in workload.bursts:
        yield from _burst_problems(burst, workload)


def _burst_problems(burst: Burst, workload: Workload) -> Iterator[str]:
    requests = burst.requests
    shares = (requests.small, requests.random, requests.misaligned or 0.0)
    if requests.count < 1 or requests.size < 1 or not all(0 <= share <= 1 for share in shares):
        yield f"{burst.path}: requests need a count, a size, and shares between 0 and 1"
    if burst.repetitions > 1:
        slowest = max(workload.factor(rank) for rank in workload.ranks_of(burst))
        if burst.period is None or burst.period <= burst.length * slowest:
            yield f"{burst.path}: the period must be longer than the slowest rank's phase"
    if burst.collective and (burst.layer != "mpiio" or burst.per_rank):
        yield f"{burst.path}: only MPI-IO on a shared file can be collective"
    if burst.collective and (requests.random or requests.misaligned is not None):
        yield f"{burst.path}: collective requests cannot be random or misaligned"
    if not 1 <= burst.aggregators <= len(workload.ranks_of(burst)):
        yield f"{burst.path}: there cannot be {burst.aggregators} aggregators"


RANKS = 64
SLOW_RANK = 37
CHECKPOINT = Burst(
    "/scratch/climate/checkpoint_{phase:03d}.nc", "write", Requests(count=72, size=47_008),
    start=42.0, length=4.0, length_jitter=0.1, period=45.0, gap_jitter=0.03, repetitions=12,
    layer="mpiio", interleaved=True, sync=True,
)  # fmt: skip
MESH = Burst(
    "/scratch/climate/mesh.nc",
    "read",
    Requests(count=48, size=2**20, random=0.5, misaligned=0.0),
    start=6.0,
    length=9.0,
)
RESTART = Burst(
    "/scratch/climate/restart/part_{rank:04d}.bin",
    "read",
    Requests(count=24, size=4 * 2**20, misaligned=0.0),
    start=20.0,
    length=6.0,
)
LOG = Burst(
    "/home/climate/run.log", "write", Requests(count=8, size=120),
    start=3.0, length=0.02, period=6.0, gap_jitter=0.05, repetitions=98,
    layer="stdio", ranks=(0,), sync=True,
)  # fmt: skip
STORM = MetadataStorm(
    "/home/climate/lib/module_{number:03d}.so",
    start=0.5,
    length=2.5,
    opens=120,
    stats=120,
    files=120,
)


def checkpointing_job(*, seed: int = 2024) -> Workload:
    """A simulation of ten minutes with everything that commonly goes wrong.

    All ranks look up and open the same libraries at the start, read their input, and every
    45 s write a checkpoint into a shared file through independent MPI-IO in requests that are
    small and misaligned. One rank is slow, and rank 0 keeps a log.
    """
    return Workload(
        ranks=RANKS,
        hosts=4,
        bursts=(CHECKPOINT, MESH, RESTART, LOG),
        storms=(STORM,),
        stragglers=(Straggler(SLOW_RANK, 2.5),),
        seed=seed,
        runtime=600.0,
        executable="./climate --config ocean.toml",
        metadata={"lib_ver": "3.5.0", "h": "romio_no_indep_rw=false;cb_nodes=4"},
        striping=Striping(),
    )
