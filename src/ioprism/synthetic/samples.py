"""Ready-made descriptions of jobs that are worth looking at."""

from __future__ import annotations

from ioprism.synthetic.workload import (
    Burst,
    MetadataStorm,
    Requests,
    Straggler,
    Striping,
    Workload,
)

RANKS = 64
SLOW_RANK = 37


def checkpointing_job(*, seed: int = 2024) -> Workload:
    """A simulation of ten minutes with everything that commonly goes wrong.

    All ranks look up and open the same libraries at the start, read their input, and every
    45 s write a checkpoint into a shared file through independent MPI-IO in requests that are
    small and misaligned. One rank is slow, and rank 0 keeps a log.
    """
    checkpoint = Burst(
        "/scratch/climate/checkpoint_{phase:03d}.nc",
        "write",
        Requests(count=72, size=47_008),
        start=42.0,
        length=4.0,
        period=45.0,
        repetitions=12,
        gap_jitter=0.03,
        length_jitter=0.1,
        layer="mpiio",
        interleaved=True,
        sync=True,
    )
    mesh = Burst(
        "/scratch/climate/mesh.nc",
        "read",
        Requests(count=48, size=2**20, random=0.5, misaligned=0.0),
        start=6.0,
        length=9.0,
    )
    restart = Burst(
        "/scratch/climate/restart/part_{rank:04d}.bin",
        "read",
        Requests(count=24, size=4 * 2**20, misaligned=0.0),
        start=20.0,
        length=6.0,
    )
    log = Burst(
        "/home/climate/run.log",
        "write",
        Requests(count=8, size=120),
        start=3.0,
        length=0.02,
        period=6.0,
        repetitions=98,
        gap_jitter=0.05,
        layer="stdio",
        ranks=(0,),
        sync=True,
    )
    storm = MetadataStorm(
        "/home/climate/lib/module_{number:03d}.so",
        start=0.5,
        length=2.5,
        opens=120,
        stats=120,
        files=120,
    )
    return Workload(
        ranks=RANKS,
        hosts=4,
        bursts=(checkpoint, mesh, restart, log),
        storms=(storm,),
        stragglers=(Straggler(SLOW_RANK, 2.5),),
        seed=seed,
        runtime=600.0,
        executable="./climate --config ocean.toml",
        metadata={"lib_ver": "3.5.0", "h": "romio_no_indep_rw=false;cb_nodes=4"},
        striping=Striping(),
    )
