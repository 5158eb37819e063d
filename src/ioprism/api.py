"""The library's front door: the commands' names as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from ioprism.bottleneck_search.result import BottleneckChoices, Bottlenecks
from ioprism.characteristics.totals import Characteristics
from ioprism.characteristics.totals import characterise as _characterise
from ioprism.conversion import convert as _convert
from ioprism.diagnosis.evidence import evidence_of_trace
from ioprism.diagnosis.steps import DiagnosisOptions, judge_job
from ioprism.diagnosis.steps import diagnose as _diagnose
from ioprism.engine.base import Engine, LocalEngine, in_memory
from ioprism.formats.beside_trace import read_ceiling, read_layout, read_workload
from ioprism.formats.reading import Reading
from ioprism.formats.registry import Grouping, read_trace, read_traces
from ioprism.model.pseudonyms import Pseudonyms, anonymise_trace, read_key
from ioprism.model.trace import Trace
from ioprism.reports.figures import COLUMN_WIDTH, StaticFigure, draw_figure, require_matplotlib
from ioprism.settings import PhaseSettings, Thresholds

if TYPE_CHECKING:
    from ioprism.bottleneck_search.find import Inspection
    from ioprism.comparison.changes import Comparison
    from ioprism.diagnosis.rules.registry import Insights
    from ioprism.diagnosis.steps import JobHistory
    from ioprism.inspection import FindingInspection
    from ioprism.model.verdict import Verdict
    from ioprism.periodicity.results import Periodicity
    from ioprism.phase_detection.find import Phases
    from ioprism.report_steps import ReportSettings
    from ioprism.reports.report import Report
    from ioprism.scheduling.result import Schedule


def read(
    *paths: str | Path,
    format: str | None = None,  # noqa: A002 - as --format
    one_job: bool = False,
    clock_offsets: Mapping[str, float] | None = None,
) -> Trace:
    """Read files and folders of any known format as one trace.

    Args:
        paths: of one job, such as a log or the files that a tracer wrote for its processes.
        format: of the files; recognised from their content if None.
        one_job: whether several jobs are read as one workflow.
        clock_offsets: seconds by which the clock of a host, a rank (`rank3`) or a file is ahead.

    Raises:
        SeveralJobsError: they are several jobs. `read_jobs` returns a trace of each.
    """
    grouping: Grouping = "one" if one_job else "auto"
    reading = Reading(clock_offsets=clock_offsets)
    return read_trace(*map(Path, paths), format_name=format, grouping=grouping, reading=reading)


def as_trace(trace: Trace | str | Path) -> Trace:
    """Return a trace as it is; read it, if it is a path."""
    return trace if isinstance(trace, Trace) else read(trace)


def sample_log() -> Path:
    """Return the path of the Darshan log that ioprism ships, of a simulated checkpointing job."""
    return Path(__file__).parent / "sample" / "checkpointing-job.darshan"


def read_jobs(*paths: str | Path, format: str | None = None) -> list[Trace]:  # noqa: A002
    """Read files and folders of any known format: one trace per job."""
    return read_traces(*map(Path, paths), format_name=format)


def anonymise(trace: Trace | str | Path, key_file: str | Path) -> Trace:
    """Return a trace with other names of files, hosts, programs and users.

    Args:
        trace: what `read` returns, or a path.
        key_file: at least 16 secret bytes; the same key gives the same names.
    """
    return anonymise_trace(as_trace(trace), Pseudonyms(read_key(Path(key_file))))


def characterise(trace: Trace | str | Path, *, engine: Engine | None = None) -> Characteristics:
    """Return how much I/O a job did, by whom, through which interface."""
    return _characterise(as_trace(trace), engine or LocalEngine())


def convert(
    trace: Trace | str | Path,
    target: str | Path,
    *,
    replace: bool = False,
    engine: Engine | None = None,
    counters: bool = False,
) -> list[Path]:
    """Keep a trace in another form; return the paths of what was written.

    Args:
        trace: what `read` returns, or a path.
        target: a `.csv` or `.parquet` file, a `.json` or `.json.gz` file for Perfetto, or the
            folder of a Parquet store, which is read again in milliseconds.
        replace: whether a target that exists is replaced.
        engine: whose workers write a store; by default it is written here.
        counters: whether tables hold counters, in a file for each module, even if there are events.
    """
    return _convert(
        as_trace(trace), Path(target), replace=replace, engine=engine, counters=counters
    )


def diagnose(
    trace: Trace | str | Path,
    *,
    layout: str | Path | None = None,
    ceilings: Sequence[str | Path] = (),
    site: str | Path | None = None,
    engine: Engine | None = None,
) -> Verdict:
    """Return the verdict on a job: what stalls it, and what each fix would save.

    >>> diagnose(sample_log()).causes[0].code
    'small-requests'

    Args:
        trace: what `read` returns, or a path.
        layout: a file with the storage targets of files, where the trace does not say.
        ceilings: results of benchmarks (IOR, mdtest, fio) on the same file system.
        site: a site store, to judge by what other jobs reached and by earlier runs.
        engine: where to compute; by default here.
    """
    options = DiagnosisOptions(
        layout={} if layout is None else read_layout(Path(layout)),
        ceilings=[read_ceiling(Path(path)) for path in ceilings],
        site=_history(site),
    )
    return _diagnose(as_trace(trace), options=options, engine=engine)


def _history(site: str | Path | None) -> JobHistory | None:
    if site is None:
        return None
    from ioprism.site.history import open_history

    return open_history(Path(site))


def bottlenecks(
    trace: Trace | str | Path,
    *,
    views: Sequence[str] = (),
    method: Literal["excess", "slope"] = "excess",
    metric: str = "operations",
    rules: Sequence[str | Path] = (),
    top: int | None = None,
    page: int = 1,
    engine: Engine | None = None,
    compatible: Literal["wisio"] | None = None,
    **settings: Unpack[BottleneckChoices],
) -> Bottlenecks:
    """Return the records whose share of I/O time is out of proportion, and why.

    Args:
        trace: what `read` returns, or a path.
        views: perspectives, such as application, directory, file, process, time, host.
        method: `excess` lists what costs more seconds than its peers, over all views;
            `slope` the paper's angles, for every combination of views.
        metric: operations, bytes, time, or an expression over the fields of a record.
        rules: files that change the rules or add to them.
        top: how many bottlenecks of each view to word; None: all.
        page: which page of `top` bottlenecks.
        engine: where to compute; by default here.
        compatible: count as WisIO 0.2.2 does.
        settings: threshold, percentile, floor, bucket, combine, across, layer.
    """
    from ioprism.bottleneck_search.steps import analyse

    return analyse(
        as_trace(trace),
        engine or LocalEngine(),
        rule_files=tuple(map(Path, rules)),
        top=top,
        page=page,
        compatible=compatible,
        views=tuple(views),
        method="slope" if compatible else method,
        metric=metric,
        **settings,
    )


def insights(
    trace: Trace | str | Path,
    *,
    thresholds: Thresholds | None = None,
    site: str | Path | None = None,
    engine: Engine | None = None,
) -> Insights:
    """Return what is wrong with a job's I/O, the time it costs, and what to do about it.

    Args:
        trace: what `read` returns, or a path.
        thresholds: when rules fire.
        site: a site store, as `diagnose` takes it.
        engine: where to compute; by default here.
    """
    held, engine = in_memory(as_trace(trace)), engine or LocalEngine()
    evidence = evidence_of_trace(held, engine, thresholds or Thresholds())
    return judge_job(evidence, held, engine, options=DiagnosisOptions(site=_history(site)))


def phases(
    trace: Trace | str | Path,
    *,
    layer: str | None = None,
    settings: PhaseSettings | None = None,
    engine: Engine | None = None,
) -> Phases:
    """Return when a job does I/O, with the fastest and slowest rank of each phase."""
    from ioprism.phase_detection.find import phases as find_phases

    return find_phases(as_trace(trace), engine or LocalEngine(), settings=settings, layer=layer)


def analyse(
    trace: Trace | str | Path,
    *,
    settings: ReportSettings | None = None,
    engine: Engine | None = None,
) -> Report:
    """Run every analysis that the trace has enough detail for."""
    from ioprism.report_steps import document_of
    from ioprism.reports.report import Report

    return Report(document_of(as_trace(trace), settings=settings, engine=engine))


def figure(result: Report | Periodicity, name: str, *, width: float = COLUMN_WIDTH) -> StaticFigure:
    """Draw a figure of a job for a paper; its `save` writes SVG, PNG or PDF.

    Args:
        result: of `report` or `period`.
        name: one of those that `--figure` of `ioprism report` or `ioprism period` takes.
        width: in inches; by default one column.

    Raises:
        UsageError: there is no such figure.
        MissingPackageError: matplotlib is not installed.
        FigureUnavailableError: the result lacks what the figure shows.
    """
    require_matplotlib()
    from ioprism.periodicity.results import Periodicity
    from ioprism.reports.figures.period_figures import DrawnPeriodicity

    if isinstance(result, Periodicity):
        return draw_figure("period", name, DrawnPeriodicity(result), width=width)
    return result.figure(name, width=width)


def report(
    trace: Trace | str | Path,
    *,
    settings: ReportSettings | None = None,
    engine: Engine | None = None,
) -> Report:
    """Run every analysis that the trace has enough detail for; another name of `analyse`."""
    return analyse(trace, settings=settings, engine=engine)


def inspect(
    trace: Trace | str | Path,
    identifier: str,
    *,
    thresholds: Thresholds | None = None,
    views: Sequence[str] = (),
    method: Literal["excess", "slope"] = "excess",
    metric: str = "operations",
    rules: Sequence[str | Path] = (),
    engine: Engine | None = None,
    **settings: Unpack[BottleneckChoices],
) -> Inspection | FindingInspection:
    """Return the records and calls behind one finding or bottleneck.

    Args:
        trace: what `read` returns, or a path.
        identifier: the code of a finding, or the id of a bottleneck.
        thresholds: of findings, as `insights` takes them.
        views: of bottlenecks, as `bottlenecks` takes them; so are those below.
        method: excess or slope.
        metric: operations, bytes, time, or an expression.
        rules: files that change the rules or add to them.
        engine: where to compute; by default here.
        settings: threshold, percentile, floor, bucket, combine, across, layer.
    """
    from ioprism.inspection import inspected_by_name

    return inspected_by_name(
        as_trace(trace),
        identifier,
        engine or LocalEngine(),
        thresholds=thresholds,
        rules=rules,
        views=tuple(views),
        method=method,
        metric=metric,
        **settings,
    )


def compare(
    before: Trace | str | Path | Sequence[Trace | str | Path],
    after: Trace | str | Path | Sequence[Trace | str | Path],
    *,
    engine: Engine | None = None,
) -> Comparison:
    """Return what a change did: run time, stall time, numbers side by side, and findings.

    Args:
        before: one run, or several: traces, or paths; a recording stands for all of its runs.
        after: the same after the change; repeated runs tell a change from noise.
        engine: where to compute; by default here.
    """
    from ioprism.comparison.steps import compare_sides, read_side
    from ioprism.report_steps import document_of

    sides = ([one] if isinstance(one, Trace | str | Path) else one for one in (before, after))
    return compare_sides(
        *(
            read_side(side, analyse=lambda trace: document_of(trace, engine=engine))
            for side in sides
        )
    )


def schedule(
    workload: str | Path | None = None,
    *,
    policies: Sequence[str] = ("fair-share", "fcfs", "set-10", "clairvoyant"),
    phases: Sequence[str] = ("given", "live"),
    seeds: int = 5,
    horizon: float | None = None,
) -> Schedule:
    """Simulate a machine whose jobs share the file system, under several policies.

    Args:
        workload: a TOML file that describes jobs; by default periods of three magnitudes.
        policies: what to compare.
        phases: who tells `set-10` the periods: given, live or ftio.
        seeds: how often the jobs are drawn.
        horizon: seconds to simulate; as the workload says if None.
    """
    from ioprism.scheduling.steps import ScheduleSettings, schedule_workload

    settings = ScheduleSettings(tuple(policies), tuple(phases), seeds, horizon=horizon)
    if workload is None:
        return schedule_workload(None, settings)
    path = Path(workload)
    return schedule_workload(read_workload(path), settings, source=path.name)
