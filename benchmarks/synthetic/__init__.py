"""Traces made from a description, with the truth attached.

Describe a `Workload`, `synthesise` it, and compare what an analysis says of `.trace` with
`.truth`. The same description and seed give the same trace.
"""

from benchmarks.synthetic.build import SyntheticTrace, synthesise
from benchmarks.synthetic.truth import Access, Repetition, Truth
from benchmarks.synthetic.workload import (
    Burst,
    MetadataStorm,
    Requests,
    Straggler,
    Striping,
    Workload,
    checkpointing_job,
)

__all__ = [
    "Access",
    "Burst",
    "MetadataStorm",
    "Repetition",
    "Requests",
    "Straggler",
    "Striping",
    "SyntheticTrace",
    "Truth",
    "Workload",
    "checkpointing_job",
    "synthesise",
]
