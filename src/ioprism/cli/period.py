"""``ioprism period``: does the job's I/O repeat, and how often?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, Command, FigureRequest, Number, option, page_or_figure
from ioprism.engine.base import LocalEngine
from ioprism.model.trace import Trace
from ioprism.periodicity.detect import METHODS, Options
from ioprism.periodicity.dft import OUTLIERS
from ioprism.periodicity.of_job import (
    JobPeriodicity,
    PeriodSettings,
    job_periodicity,
    other_directions,
)
from ioprism.periodicity.sampling import parse_filter
from ioprism.reports import to_json
from ioprism.reports.to_terminal.period import show_asynchronous, show_many, show_parts, show_period
from ioprism.storage.atomic import atomic_write_text
from ioprism.views.bandwidth import KEYS

MOST_PARTS = 20
CHOSEN = "Hint: leave the option out to have it chosen."


class AutoNumber(click.ParamType["float | None"]):
    """`auto`, or a number."""

    def __init__(self, number: type[int] | type[float]) -> None:
        self.number = number
        self.name = f"auto|{'N' if number is int else 'HZ'}"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        """Return None for `auto`."""
        if value is None or value == "auto":
            return None
        try:
            number = self.number(str(value))
        except ValueError:
            self.fail(f"{value!r} is neither auto nor a number.\n{CHOSEN}", param, ctx)
        if self.number is float and not 0.0 < number < math.inf:
            self.fail(f"{value!r} is not a positive number.\n{CHOSEN}", param, ctx)
        return number


@click.command(cls=Command)
@options.traces
@option(
    "--direction",
    type=click.Choice(["read", "write", "both"]),
    default="both",
    help="Direction to analyse.",
)
@option("--layer", help="Interface to analyse; by default the deepest in the trace.")
@option("--metric", help="Series to analyse, if the trace has several.")
@option("--frequency", type=AutoNumber(float), default="auto", help="Sampling frequency.")
@option("--start", type=Number(), help="Start of the time range, in seconds.")
@option("--end", type=Number(), help="End of the time range, in seconds.")
@option(
    "--method", type=click.Choice(list(METHODS)), default="auto", help="How to find the period."
)
@option(
    "--hybrid", is_flag=True, help="Use FTIO's wavelet-Fourier method; same as --method hybrid."
)
@option(
    "--outliers",
    type=click.Choice(list(OUTLIERS)),
    default="zscore",
    help="How --method dft finds outstanding frequencies.",
)
@option("--tolerance", type=Number(), default=0.8, help="Tolerance of --method dft.")
@option(
    "--false-alarm", type=Number(), default=0.01, help="Highest false-alarm probability to accept."
)
@option(
    "--components",
    type=click.IntRange(0, 1000),
    default=0,
    help="Describe the signal by N cosine waves.",
)
@option("--fit", is_flag=True, help="Fit the cosine waves by least squares.")
@option("--filter", "filter_text", help="Filter, such as lowpass:0.1 or bandpass:0.05,0.2:6.")
@option("--wavelet", default="haar", help="Mother wavelet, for --hybrid.")
@option("--level", type=AutoNumber(int), default="auto", help="Level of --wavelet.")
@option("--by", type=click.Choice(KEYS), help="Also find the period of each of these.")
@option("--mapping", type=PATH, help="TOML file that describes a text format.")
@page_or_figure("period")
@options.format_name
@options.as_json
@options.quiet
def period(
    paths: tuple[Path, ...],
    *,
    method: str,
    hybrid: bool,
    outliers: str,
    tolerance: float,
    false_alarm: float,
    filter_text: str | None,
    wavelet: str,
    level: int | None,
    mapping: Path | None,
    page: Path | None,
    figure: FigureRequest | None,
    force: bool,
    format_name: str | None,
    as_json: bool,
    quiet: bool,
    **sought: Any,  # noqa: ANN401 - as `PeriodSettings` has them
) -> None:
    """Find the period of a job's I/O, how certain it is, and when it holds.

    Several jobs, or a folder of them, become a table.

    Example: ioprism period run42.darshan --direction write
    """
    how = "hybrid" if hybrid else method
    settings = PeriodSettings(
        options=Options(how, false_alarm, outliers, tolerance, wavelet, level),
        chosen_filter=parse_filter(filter_text) if filter_text else None,
        **sought,
    )
    if mapping is None and len(jobs := _groups(paths, format_name)) > 1:
        if page or figure or settings.by is not None:
            raise click.UsageError("--output and --by are for one job: give a single TRACE.")
        _show_many(paths, jobs, settings, format_name, as_json=as_json, quiet=quiet)
        return
    trace = _read(paths, mapping, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        periodicity = job_periodicity(trace, LocalEngine(progress), settings)
    if page is not None:
        _write_page(page, periodicity, trace, settings, replace=force)
    if figure is not None:
        from ioprism.reports.figures.period_figures import DrawnPeriodicity

        figure.write(DrawnPeriodicity(periodicity.whole, settings.metric, settings.options))
    if as_json:
        click.echo(to_json.document(trace, periodicity.to_dict(settings.by)))
    else:
        output.show_job(trace, options.shown_paths(paths))
        show_period(periodicity.whole, output.console())
        show_asynchronous(periodicity.asynchronous, output.console())
        if settings.by is not None:
            parts = periodicity.parts[:MOST_PARTS]
            show_parts(parts, output.console(), key=settings.by)
        output.show_warnings(trace)
    output.say_written(page, figure.path if figure else None, quiet=quiet)


def _groups(paths: tuple[Path, ...], format_name: str | None) -> list[tuple[Path, ...]]:
    """The paths of each job; a single file is one without asking."""
    if len(paths) == 1 and paths[0].is_file():
        return [paths]
    return options.find_groups(paths, format_name)


def _show_many(
    paths: tuple[Path, ...],
    jobs: list[tuple[Path, ...]],
    settings: PeriodSettings,
    format_name: str | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from ioprism.periodicity.many import period_table

    with output.progress("looking for periods", quiet=quiet) as progress:
        periods = period_table(
            jobs, settings, format_name=format_name, reading=options.reading(), progress=progress
        )
    for message in periods.failed:
        output.say(f"skipped {message}")
    if as_json:
        document = to_json.document_of(periods.to_dict(), paths=paths, format_name="several")
        click.echo(document)
    else:
        show_many(periods, output.console())


def _write_page(
    page: Path,
    periodicity: JobPeriodicity,
    trace: Trace,
    settings: PeriodSettings,
    *,
    replace: bool,
) -> None:
    from ioprism.reports.to_html import period as html_form

    others = other_directions(trace, LocalEngine(), settings, answered=periodicity.whole.direction)
    atomic_write_text(page, html_form.page(periodicity, trace, settings, others), replace=replace)


def _read(paths: tuple[Path, ...], mapping: Path | None, format_name: str | None) -> Trace:
    if mapping is None:
        return options.read_job(paths, format_name)
    if len(paths) != 1:
        raise click.UsageError("--mapping describes one file: give a single TRACE.")
    from ioprism.formats.signals.monitors import read_described_text

    return read_described_text(paths[0], mapping)
