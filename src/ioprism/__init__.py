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
    from ioprism import servers, write_time
    from ioprism.analyses.bottlenecks.inspection import Inspection
    from ioprism.analyses.bottlenecks.result import Bottleneck, Bottlenecks
    from ioprism.analyses.characterise import Characteristics
    from ioprism.analyses.compare import Comparison
    from ioprism.analyses.periodicity.detect import period
    from ioprism.analyses.periodicity.results import Period, Rhythm
    from ioprism.analyses.phases import Phase, Phases
    from ioprism.api import (
        analyse,
        bottlenecks,
        characterise,
        compare,
        convert,
        diagnose,
        insights,
        inspect,
        phases,
        read,
        read_jobs,
        report,
        rhythm,
    )
    from ioprism.errors import (
        AnalysisError,
        BrokenSignalError,
        BrokenTraceError,
        ExpressionError,
        IoprismError,
        MissingPackageError,
        NoSuchTraceError,
        NotEnoughDetailError,
        OutputError,
        PluginError,
        ReaderUnavailableError,
        RuleError,
        RunFailedError,
        ServiceError,
        SeveralJobsError,
        SignalTooShortError,
        SignalWarning,
        TooManyPiecesError,
        TraceError,
        UnknownFormatError,
        UsageError,
    )
    from ioprism.model.finding import Finding, Recommendation, Severity
    from ioprism.model.signal import Signal
    from ioprism.model.trace import Job, Trace
    from ioprism.pipeline.inspect import FindingInspection
    from ioprism.pipeline.report import ReportSettings
    from ioprism.reports.report import Report
    from ioprism.rules.registry import Insights
    from ioprism.settings import PhaseSettings, Thresholds

_HOME = {
    "AnalysisError": "ioprism.errors",
    "Bottleneck": "ioprism.analyses.bottlenecks.result",
    "Bottlenecks": "ioprism.analyses.bottlenecks.result",
    "BrokenSignalError": "ioprism.errors",
    "BrokenTraceError": "ioprism.errors",
    "Characteristics": "ioprism.analyses.characterise",
    "Comparison": "ioprism.analyses.compare",
    "ExpressionError": "ioprism.errors",
    "Finding": "ioprism.model.finding",
    "FindingInspection": "ioprism.pipeline.inspect",
    "Insights": "ioprism.rules.registry",
    "Inspection": "ioprism.analyses.bottlenecks.inspection",
    "IoprismError": "ioprism.errors",
    "Job": "ioprism.model.trace",
    "MissingPackageError": "ioprism.errors",
    "NoSuchTraceError": "ioprism.errors",
    "NotEnoughDetailError": "ioprism.errors",
    "OutputError": "ioprism.errors",
    "Period": "ioprism.analyses.periodicity.results",
    "Phase": "ioprism.analyses.phases",
    "PhaseSettings": "ioprism.settings",
    "Phases": "ioprism.analyses.phases",
    "PluginError": "ioprism.errors",
    "ReaderUnavailableError": "ioprism.errors",
    "Recommendation": "ioprism.model.finding",
    "Report": "ioprism.reports.report",
    "ReportSettings": "ioprism.pipeline.report",
    "Rhythm": "ioprism.analyses.periodicity.results",
    "RuleError": "ioprism.errors",
    "RunFailedError": "ioprism.errors",
    "ServiceError": "ioprism.errors",
    "SeveralJobsError": "ioprism.errors",
    "Severity": "ioprism.model.finding",
    "Signal": "ioprism.model.signal",
    "SignalTooShortError": "ioprism.errors",
    "SignalWarning": "ioprism.errors",
    "Thresholds": "ioprism.settings",
    "TooManyPiecesError": "ioprism.errors",
    "Trace": "ioprism.model.trace",
    "TraceError": "ioprism.errors",
    "UnknownFormatError": "ioprism.errors",
    "UsageError": "ioprism.errors",
    "analyse": "ioprism.api",
    "bottlenecks": "ioprism.api",
    "characterise": "ioprism.api",
    "compare": "ioprism.api",
    "convert": "ioprism.api",
    "diagnose": "ioprism.api",
    "insights": "ioprism.api",
    "inspect": "ioprism.api",
    "period": "ioprism.analyses.periodicity.detect",
    "phases": "ioprism.api",
    "read": "ioprism.api",
    "read_jobs": "ioprism.api",
    "report": "ioprism.api",
    "rhythm": "ioprism.api",
    "servers": "ioprism.servers",
    "write_time": "ioprism.write_time",
}

__all__ = [
    "AnalysisError",
    "Bottleneck",
    "Bottlenecks",
    "BrokenSignalError",
    "BrokenTraceError",
    "Characteristics",
    "Comparison",
    "ExpressionError",
    "Finding",
    "FindingInspection",
    "Insights",
    "Inspection",
    "IoprismError",
    "Job",
    "MissingPackageError",
    "NoSuchTraceError",
    "NotEnoughDetailError",
    "OutputError",
    "Period",
    "Phase",
    "PhaseSettings",
    "Phases",
    "PluginError",
    "ReaderUnavailableError",
    "Recommendation",
    "Report",
    "ReportSettings",
    "Rhythm",
    "RuleError",
    "RunFailedError",
    "ServiceError",
    "SeveralJobsError",
    "Severity",
    "Signal",
    "SignalTooShortError",
    "SignalWarning",
    "Thresholds",
    "TooManyPiecesError",
    "Trace",
    "TraceError",
    "UnknownFormatError",
    "UsageError",
    "__version__",
    "analyse",
    "bottlenecks",
    "characterise",
    "compare",
    "convert",
    "diagnose",
    "insights",
    "inspect",
    "period",
    "phases",
    "read",
    "read_jobs",
    "report",
    "rhythm",
    "servers",
    "write_time",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name not in _HOME:
        raise AttributeError(f"module 'ioprism' has no attribute {name!r}")
    home = import_module(_HOME[name])
    return home if home.__name__ == f"ioprism.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
