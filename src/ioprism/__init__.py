"""ioprism explains the I/O of HPC jobs.

>>> import ioprism
>>> trace = ioprism.read(ioprism.sample_log())
>>> ioprism.characterise(trace).total.bytes
12263124864

Importing the package is cheap: what a name needs is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ioprism.version import __version__

if TYPE_CHECKING:
    from ioprism import servers, site, write_time
    from ioprism.api import (
        analyse,
        anonymise,
        bottlenecks,
        characterise,
        compare,
        convert,
        diagnose,
        figure,
        insights,
        inspect,
        phases,
        read,
        read_jobs,
        report,
        sample_log,
        schedule,
    )
    from ioprism.blocks import RecordedBlock, record
    from ioprism.bottleneck_search.find import Inspection
    from ioprism.bottleneck_search.result import Bottleneck, Bottlenecks
    from ioprism.characteristics.totals import Characteristics
    from ioprism.comparison.changes import Comparison
    from ioprism.diagnosis.rules.registry import Insights
    from ioprism.engine.base import Engine, LocalEngine, View
    from ioprism.engine.dask import DaskEngine
    from ioprism.errors import (
        AnalysisError,
        BrokenSignalError,
        BrokenTraceError,
        EndingError,
        ExpressionError,
        FigureUnavailableError,
        IoprismError,
        MissingPackageError,
        NoSuchTraceError,
        NotEnoughDetailError,
        NotEnoughMemoryError,
        OutputError,
        OverBudgetError,
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
    from ioprism.inspection import FindingInspection
    from ioprism.model.arrays import Signal, StepFunction
    from ioprism.model.schema import EVENTS, FILES, PROCESSES, file_table
    from ioprism.model.trace import Completeness, Job, MemoryPartition, Mount, Partition, Trace
    from ioprism.model.verdict import (
        CallGroup,
        Cause,
        Contrast,
        Finding,
        LedgerLine,
        Possible,
        Recommendation,
        Saving,
        Severity,
        StallTime,
        Subject,
        Verdict,
    )
    from ioprism.periodicity.of_job import period
    from ioprism.periodicity.results import Period, Periodicity
    from ioprism.phase_detection.find import Phase, Phases
    from ioprism.report_steps import ReportSettings
    from ioprism.reports.figures import StaticFigure
    from ioprism.reports.report import Report
    from ioprism.scheduling.result import Schedule
    from ioprism.settings import PhaseSettings, Thresholds

# Where a name is declared; errors are in `errors`, functions named like commands in `api`.
_HOMES = {
    "blocks": "RecordedBlock record",
    "bottleneck_search.find": "Inspection",
    "bottleneck_search.result": "Bottleneck Bottlenecks",
    "characteristics.totals": "Characteristics",
    "comparison.changes": "Comparison",
    "periodicity.of_job": "period",
    "periodicity.results": "Period Periodicity",
    "phase_detection.find": "Phase Phases",
    "scheduling.result": "Schedule",
    "engine.base": "Engine LocalEngine View",
    "engine.dask": "DaskEngine",
    "model.schema": "EVENTS FILES PROCESSES file_table",
    "model.arrays": "Signal StepFunction",
    "model.trace": "Completeness Job MemoryPartition Mount Partition Trace",
    "model.verdict": "CallGroup Cause Contrast Finding LedgerLine Possible Recommendation Saving "
    "Severity StallTime Subject Verdict",
    "inspection": "FindingInspection",
    "report_steps": "ReportSettings",
    "reports.figures": "StaticFigure",
    "reports.report": "Report",
    "diagnosis.rules.registry": "Insights",
    "settings": "PhaseSettings Thresholds",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "EVENTS",
    "FILES",
    "PROCESSES",
    "AnalysisError",
    "Bottleneck",
    "Bottlenecks",
    "BrokenSignalError",
    "BrokenTraceError",
    "CallGroup",
    "Cause",
    "Characteristics",
    "Comparison",
    "Completeness",
    "Contrast",
    "DaskEngine",
    "EndingError",
    "Engine",
    "ExpressionError",
    "FigureUnavailableError",
    "Finding",
    "FindingInspection",
    "Insights",
    "Inspection",
    "IoprismError",
    "Job",
    "LedgerLine",
    "LocalEngine",
    "MemoryPartition",
    "MissingPackageError",
    "Mount",
    "NoSuchTraceError",
    "NotEnoughDetailError",
    "NotEnoughMemoryError",
    "OutputError",
    "OverBudgetError",
    "Partition",
    "Period",
    "Periodicity",
    "Phase",
    "PhaseSettings",
    "Phases",
    "PluginError",
    "Possible",
    "ReaderUnavailableError",
    "Recommendation",
    "RecordedBlock",
    "Report",
    "ReportSettings",
    "RuleError",
    "RunFailedError",
    "Saving",
    "Schedule",
    "ServiceError",
    "SeveralJobsError",
    "Severity",
    "Signal",
    "SignalTooShortError",
    "SignalWarning",
    "StallTime",
    "StaticFigure",
    "StepFunction",
    "Subject",
    "Thresholds",
    "TooManyPiecesError",
    "Trace",
    "TraceError",
    "UnknownFormatError",
    "UsageError",
    "Verdict",
    "View",
    "__version__",
    "analyse",
    "anonymise",
    "bottlenecks",
    "characterise",
    "compare",
    "convert",
    "diagnose",
    "figure",
    "file_table",
    "insights",
    "inspect",
    "period",
    "phases",
    "read",
    "read_jobs",
    "record",
    "report",
    "sample_log",
    "schedule",
    "servers",
    "site",
    "write_time",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name not in __all__:
        raise AttributeError(f"module 'ioprism' has no attribute {name!r}")
    if name in ("servers", "site", "write_time"):
        return import_module(f"ioprism.{name}")
    home = "errors" if name.endswith(("Error", "Warning")) else _HOME.get(name, "api")
    return getattr(import_module(f"ioprism.{home}"), name)


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython has no types
    """Add the magic `%%ioprism`: `%load_ext ioprism`."""
    from ioprism.blocks import cell_magic

    shell.register_magic_function(cell_magic(shell), "cell", "ioprism")


def __dir__() -> list[str]:
    return sorted(__all__)
