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

from ioprism.version import __version__ as __version__

if TYPE_CHECKING:
    from ioprism import servers as servers
    from ioprism import site as site
    from ioprism import write_time as write_time
    from ioprism.api import analyse as analyse
    from ioprism.api import anonymise as anonymise
    from ioprism.api import bottlenecks as bottlenecks
    from ioprism.api import characterise as characterise
    from ioprism.api import compare as compare
    from ioprism.api import convert as convert
    from ioprism.api import diagnose as diagnose
    from ioprism.api import figure as figure
    from ioprism.api import insights as insights
    from ioprism.api import inspect as inspect
    from ioprism.api import phases as phases
    from ioprism.api import read as read
    from ioprism.api import read_jobs as read_jobs
    from ioprism.api import report as report
    from ioprism.api import sample_log as sample_log
    from ioprism.api import schedule as schedule
    from ioprism.blocks import RecordedBlock as RecordedBlock
    from ioprism.blocks import record as record
    from ioprism.bottleneck_search.find import Inspection as Inspection
    from ioprism.bottleneck_search.result import Bottleneck as Bottleneck
    from ioprism.bottleneck_search.result import Bottlenecks as Bottlenecks
    from ioprism.characteristics.totals import Characteristics as Characteristics
    from ioprism.comparison.changes import Comparison as Comparison
    from ioprism.diagnosis.rules.registry import Insights as Insights
    from ioprism.engine.base import Engine as Engine
    from ioprism.engine.base import LocalEngine as LocalEngine
    from ioprism.engine.base import View as View
    from ioprism.engine.dask import DaskEngine as DaskEngine
    from ioprism.errors import AnalysisError as AnalysisError
    from ioprism.errors import BrokenSignalError as BrokenSignalError
    from ioprism.errors import BrokenTraceError as BrokenTraceError
    from ioprism.errors import EndingError as EndingError
    from ioprism.errors import ExpressionError as ExpressionError
    from ioprism.errors import FigureUnavailableError as FigureUnavailableError
    from ioprism.errors import IoprismError as IoprismError
    from ioprism.errors import MissingPackageError as MissingPackageError
    from ioprism.errors import NoSuchTraceError as NoSuchTraceError
    from ioprism.errors import NotEnoughDetailError as NotEnoughDetailError
    from ioprism.errors import NotEnoughMemoryError as NotEnoughMemoryError
    from ioprism.errors import OutputError as OutputError
    from ioprism.errors import OverBudgetError as OverBudgetError
    from ioprism.errors import PluginError as PluginError
    from ioprism.errors import ReaderUnavailableError as ReaderUnavailableError
    from ioprism.errors import RuleError as RuleError
    from ioprism.errors import RunFailedError as RunFailedError
    from ioprism.errors import ServiceError as ServiceError
    from ioprism.errors import SeveralJobsError as SeveralJobsError
    from ioprism.errors import SignalTooShortError as SignalTooShortError
    from ioprism.errors import SignalWarning as SignalWarning
    from ioprism.errors import TooManyPiecesError as TooManyPiecesError
    from ioprism.errors import TraceError as TraceError
    from ioprism.errors import UnknownFormatError as UnknownFormatError
    from ioprism.errors import UsageError as UsageError
    from ioprism.inspection import FindingInspection as FindingInspection
    from ioprism.model.arrays import Signal as Signal
    from ioprism.model.arrays import StepFunction as StepFunction
    from ioprism.model.schema import EVENTS as EVENTS
    from ioprism.model.schema import FILES as FILES
    from ioprism.model.schema import PROCESSES as PROCESSES
    from ioprism.model.schema import file_table as file_table
    from ioprism.model.trace import Completeness as Completeness
    from ioprism.model.trace import Job as Job
    from ioprism.model.trace import MemoryPartition as MemoryPartition
    from ioprism.model.trace import Mount as Mount
    from ioprism.model.trace import Partition as Partition
    from ioprism.model.trace import Trace as Trace
    from ioprism.model.verdict import CallGroup as CallGroup
    from ioprism.model.verdict import Cause as Cause
    from ioprism.model.verdict import Contrast as Contrast
    from ioprism.model.verdict import Finding as Finding
    from ioprism.model.verdict import LedgerLine as LedgerLine
    from ioprism.model.verdict import Possible as Possible
    from ioprism.model.verdict import Recommendation as Recommendation
    from ioprism.model.verdict import Saving as Saving
    from ioprism.model.verdict import Severity as Severity
    from ioprism.model.verdict import StallTime as StallTime
    from ioprism.model.verdict import Subject as Subject
    from ioprism.model.verdict import Verdict as Verdict
    from ioprism.periodicity.of_job import period as period
    from ioprism.periodicity.results import Period as Period
    from ioprism.periodicity.results import Periodicity as Periodicity
    from ioprism.phase_detection.find import Phase as Phase
    from ioprism.phase_detection.find import Phases as Phases
    from ioprism.report_steps import ReportSettings as ReportSettings
    from ioprism.reports.figures import StaticFigure as StaticFigure
    from ioprism.reports.report import Report as Report
    from ioprism.scheduling.result import Schedule as Schedule
    from ioprism.settings import PhaseSettings as PhaseSettings
    from ioprism.settings import Thresholds as Thresholds

_PACKAGES = ("servers", "site", "write_time")
# Where the names above are declared.
_HOMES = {
    "api": "analyse anonymise bottlenecks characterise compare convert diagnose figure insights "
    "inspect phases read read_jobs report sample_log schedule",
    "errors": "AnalysisError BrokenSignalError BrokenTraceError EndingError ExpressionError "
    "FigureUnavailableError IoprismError MissingPackageError NoSuchTraceError "
    "NotEnoughDetailError NotEnoughMemoryError OutputError OverBudgetError PluginError "
    "ReaderUnavailableError RuleError RunFailedError ServiceError SeveralJobsError "
    "SignalTooShortError SignalWarning TooManyPiecesError TraceError UnknownFormatError UsageError",
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

_NAMES = sorted((*_HOME, "__version__", *_PACKAGES))

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name not in __all__:
        raise AttributeError(f"module 'ioprism' has no attribute {name!r}")
    if name in _PACKAGES:
        return import_module(f"ioprism.{name}")
    return getattr(import_module(f"ioprism.{_HOME[name]}"), name)


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython has no types
    """Add the magic `%%ioprism`: `%load_ext ioprism`."""
    from ioprism.blocks import cell_magic

    shell.register_magic_function(cell_magic(shell), "cell", "ioprism")


def __dir__() -> list[str]:
    return _NAMES
