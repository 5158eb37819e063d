"""ioprism explains the I/O of HPC jobs.

>>> import ioprism
>>> trace = ioprism.read("run42.darshan")           # doctest: +SKIP
>>> ioprism.characterise(trace).total.bytes         # doctest: +SKIP
1610612736

Importing the package is cheap: what a name needs is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ioprism.version import __version__

if TYPE_CHECKING:
    from ioprism.analyses.periodicity.detect import period
    from ioprism.api import (
        analyse,
        bottlenecks,
        characterise,
        convert,
        insights,
        phases,
        read,
        read_jobs,
        rhythm,
    )
    from ioprism.model.signal import Signal
    from ioprism.model.trace import Trace
    from ioprism.reports.report import Report

_HOME = {
    "Report": "ioprism.reports.report",
    "Signal": "ioprism.model.signal",
    "Trace": "ioprism.model.trace",
    "analyse": "ioprism.api",
    "bottlenecks": "ioprism.api",
    "characterise": "ioprism.api",
    "convert": "ioprism.api",
    "insights": "ioprism.api",
    "period": "ioprism.analyses.periodicity.detect",
    "phases": "ioprism.api",
    "read": "ioprism.api",
    "read_jobs": "ioprism.api",
    "rhythm": "ioprism.api",
}

__all__ = [
    "Report",
    "Signal",
    "Trace",
    "__version__",
    "analyse",
    "bottlenecks",
    "characterise",
    "convert",
    "insights",
    "period",
    "phases",
    "read",
    "read_jobs",
    "rhythm",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name not in _HOME:
        raise AttributeError(f"module 'ioprism' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
