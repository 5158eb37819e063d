"""Options that several commands share; `-o` and `--figure`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ioprism.errors import EndingError, UsageError
from ioprism.formats.reading import Reading, read_clock_offsets
from ioprism.model.pseudonyms import anonymised_by, chosen_pseudonyms
from ioprism.reports.figures import (
    CATALOGUE,
    COLUMN_WIDTH,
    ENDINGS,
    MAX_WIDTH,
    MIN_WIDTH,
    draw_figure,
    require_matplotlib,
)
from ioprism.settings import read_thresholds
from ioprism.text import printable
from ioprism.units import parse_bytes

if TYPE_CHECKING:
    from ioprism.diagnosis.steps import JobHistory
    from ioprism.engine.base import Engine
    from ioprism.engine.cluster import Session
    from ioprism.formats.reading import Reading
    from ioprism.formats.registry import Grouping
    from ioprism.model.machine import Ceiling
    from ioprism.model.trace import Progress, Trace


class _Finite(click.ParamType[float]):
    """Nothing is below or above NaN, so that bounds alone let it pass."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or refuse it."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Number(_Finite, click.types.FloatParamType):
    """Any finite number."""


class NumberRange(_Finite, click.FloatRange):
    """A finite number within bounds."""


class Share(click.ParamType[float]):
    """A share of something: `5%` or `0.05`; growth may be more than all."""

    name = "share"

    def __init__(self, most: float = math.inf) -> None:
        self.most = most

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share, or refuse it."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = math.nan
        if not 0 <= number <= self.most or number == math.inf:
            self.fail(f"{text!r} is not a share such as 5% or 0.05.", param, ctx)
        return number


class Written(click.Path):
    """A file to write, in the format that the ending of its name says."""

    def __init__(self, what: str, endings: Callable[[], Sequence[str]]) -> None:
        super().__init__(path_type=Path)
        self.what, self.endings = what, endings

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401
        """Return the path, or refuse its ending before any work is done."""
        path = cast("Path", super().convert(value, param, ctx))
        if path.suffix and path.suffix.lower() not in (known := self.endings()):
            raise EndingError(path, what=self.what, known=known)
        return path


# Options that few users need; help lists them last.
ADVANCED = {
    "--one-job", "--each", "--clock-offsets", "--anonymise", "--format", "--thresholds", "--layout",
    "--ceiling", "--model", "--servers", "--engine", "--scheduler", "--cluster", "--workers",
    "--memory-limit", "--index",
}  # fmt: skip


class Command(click.Command):
    """A command whose help lists advanced options last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in two sections."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Advanced": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                advanced = ADVANCED.intersection(parameter.opts)
                sections["Advanced" if advanced else "Options"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PAGE = Written("pages", lambda: (".html", ".htm"))
TABLE = Written("tables", lambda: (".csv", ".parquet"))
PATH: click.Path = click.Path(path_type=Path)
option = partial(click.option, show_default=True)


def stack_decorators(*decorators: Decorator) -> Decorator:
    """Apply decorators as if they stood one below the other."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


_GROUPING = "ioprism.grouping"
_READING = "ioprism.reading"
_ENGINE = "ioprism.engine"
_SESSION = "ioprism.session"


def one_job(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let all files of a folder be one job, for commands that read one job from each path."""
    decorated: Callable[..., Any] = option(
        "--one-job", is_flag=True, expose_value=False, callback=_note_grouping,
        help="Treat all traces as one job or workflow.",
    )(command)  # fmt: skip
    return decorated


def when_given(load: Callable[[Any], Any], otherwise: object = None) -> Callable[..., Any]:
    """Return a callback of an option: it loads what was given when the command is to run."""

    def callback(context: click.Context, _: click.Parameter, given: object) -> object:
        return load(given) if given and not context.resilient_parsing else otherwise

    return callback


def _set_key(path: Path) -> None:
    """Let the traces that the command reads have other names."""
    click.get_current_context().with_resource(anonymised_by(path))


anonymise: Decorator = option(
    "--anonymise", metavar="KEYFILE", expose_value=False, type=PATH, callback=when_given(_set_key),
    help="Replace names of files, hosts, programs and users; the same under the same key.",
)  # fmt: skip


def traces(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the paths of traces, and what several of them mean (see `grouping`)."""
    return stack_decorators(
        click.argument("paths", metavar="TRACE...", nargs=-1, type=PATH, callback=_at_least_one),
        one_job,
        option("--each", is_flag=True, expose_value=False, callback=_note_grouping,
               help="Treat every trace as a separate job."),
        option("--clock-offsets", metavar="FILE", expose_value=False,
               type=PATH, callback=when_given(_set_clocks),
               help="Lines of a host, rank or file, and the seconds its clock is ahead."),
        anonymise,
    )(command)  # fmt: skip


def _at_least_one(
    context: click.Context, _: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Name the last argument as missing if there is no trace: it took the only word given."""
    if not paths:
        last = [one for one in context.command.params if isinstance(one, click.Argument)][-1]
        raise click.MissingParameter(ctx=context, param=last)
    return paths


def _note_grouping(context: click.Context, option: click.Parameter, value: bool) -> None:
    if not value:
        return
    if _GROUPING in context.meta:
        raise click.UsageError("--one-job and --each cannot be combined.")
    context.meta[_GROUPING] = "one" if option.name == "one_job" else "each"


def _set_clocks(path: Path) -> None:
    """Note the clock offsets for the traces that the command reads."""
    offsets = read_clock_offsets(path)
    click.get_current_context().meta[_READING] = Reading(clock_offsets=offsets)


def grouping() -> Grouping:
    """What several paths mean to the command that runs."""
    return cast("Grouping", click.get_current_context().meta.get(_GROUPING, "auto"))


def reading() -> Reading:
    """How the command that runs reads its traces: workers, if there are any, survey the files."""
    meta = click.get_current_context().meta
    chosen = cast("Reading", meta.get(_READING, Reading()))
    workers = cluster_session()
    if workers is None:
        return chosen
    beside = bool(meta[_ENGINE]["index"])
    return replace(chosen, workers=workers.map, indexes_beside_files=beside)


def shown_paths(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths that may be shown: other names where traces have other names."""
    names = chosen_pseudonyms()
    return paths if names is None else tuple(map(names.source, paths))


def read_job(paths: tuple[Path, ...], format_name: str | None = None) -> Trace:
    """Read the one job that a command is about."""
    from ioprism.formats.registry import read_trace

    return read_trace(*paths, format_name=format_name, grouping=grouping(), reading=reading())


def find_groups(paths: tuple[Path, ...], format_name: str | None) -> list[tuple[Path, ...]]:
    """Return the paths of each job that a command is about."""
    from ioprism.formats.registry import job_groups

    return job_groups(paths, format_name=format_name, grouping=grouping(), reading=reading())


def _read_ceilings(paths: tuple[Path, ...]) -> list[Ceiling]:
    from ioprism.formats.beside_trace import read_ceiling

    return [read_ceiling(path) for path in paths]


def _open_history(store: Path) -> JobHistory:
    from ioprism.site.history import open_history

    return open_history(store)


format_name: Decorator = option(
    "--format", "format_name", metavar="NAME", help="Format of the trace, if it is not recognised."
)
as_json: Decorator = option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)
seed: Decorator = option(
    "--seed", default=1, type=click.IntRange(0), help="Seed of the random numbers."
)
ceilings: Decorator = option(
    "--ceiling",
    "ceilings",
    metavar="FILE",
    multiple=True,
    type=PATH,
    callback=when_given(_read_ceilings, otherwise=()),
    help="Result of a benchmark (IOR, mdtest, fio): what this system can achieve.",
)
_thresholds = partial(
    option,
    "--thresholds",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="TOML file with your own thresholds (`ioprism rules --thresholds` lists them).",
)
thresholds_file: Decorator = _thresholds("thresholds_file")
thresholds: Decorator = _thresholds(callback=lambda _, __, file: read_thresholds(file))
SITE_VARIABLE = "IOPRISM_SITE"  # so that users of a centre need no option
site: Decorator = option(
    "--site",
    metavar="STORE",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar=SITE_VARIABLE,
    show_envvar=True,
    callback=when_given(_open_history),
    help="Site store (`ioprism site add`): judge by what other jobs reached, and by earlier runs.",
)
page: Decorator = stack_decorators(
    option("--output", "-o", "page", type=PAGE, help="HTML page to write."),
    option("--force", is_flag=True, help="Replace the page if it exists."),
)
quiet: Decorator = option("--quiet", "-q", is_flag=True, help="Do not show progress.")


def engine(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the events are read: see `make_engine`."""
    declare = partial(option, expose_value=False, callback=_note_engine)
    return stack_decorators(
        declare("--engine", "kind", type=click.Choice(["local", "dask"]), default=None,
                help="Where to compute: in this process, or on a Dask cluster."),
        declare("--scheduler", metavar="ADDRESS",
                help="Address of a running Dask scheduler."),
        declare("--cluster", type=click.Choice(["local", "slurm", "lsf", "pbs"]),
                help="Kind of Dask cluster to start."),
        declare("--workers", type=click.IntRange(1, 10_000),
                help="Number of Dask workers to start."),
        declare("--memory-limit", metavar="SIZE",
                help="Memory to use, such as 1GB; per worker with Dask."),
        declare("--index", is_flag=True,
                help="With Dask, keep indexes of compressed traces beside them for later runs, "
                "not in the cache folder."),
    )(command)  # fmt: skip


def _note_engine(context: click.Context, option: click.Parameter, value: object) -> None:
    context.meta.setdefault(_ENGINE, {})[option.name] = value


def make_engine(progress: Progress | None = None) -> Engine:
    """Return where the command that runs computes: here, or on a Dask cluster.

    Raises:
        UsageError: the options contradict each other or make no sense.
    """
    session, limit = cluster_session(), _memory_limit()
    if session is not None:
        from ioprism.engine.dask import DaskEngine

        return DaskEngine(memory_limit=limit, progress=progress, session=session)
    from ioprism.engine.base import LocalEngine

    return LocalEngine(progress, memory_limit=limit)


def cluster_session() -> Session | None:
    """Return the cluster that was asked for, until the command ends; None: this process.

    A scheduler, cluster or number of workers means one.

    Raises:
        UsageError: the options contradict each other or make no sense.
    """
    context = click.get_current_context()
    chosen: dict[str, Any] = context.meta.get(_ENGINE, {})
    if _SESSION in context.meta or not chosen:
        return cast("Session | None", context.meta.get(_SESSION))
    limit = _memory_limit()
    scheduler, cluster, workers = (chosen[name] for name in ("scheduler", "cluster", "workers"))
    implied = any(one is not None for one in (scheduler, cluster, workers))
    if chosen["kind"] == "local" and implied:
        raise UsageError(
            "--scheduler, --cluster and --workers are for --engine dask.\n"
            "Hint: leave them out, or use --engine dask."
        )
    if scheduler is not None and cluster is not None:
        raise UsageError(
            "--scheduler names a running cluster, --cluster starts one: give only one of them."
        )
    context.meta[_SESSION] = None
    if chosen["kind"] == "dask" or implied:
        from ioprism.engine.cluster import ClusterSettings, Session

        settings = ClusterSettings(scheduler, cluster or "local", workers or 2, limit)
        context.meta[_SESSION] = context.with_resource(closing(Session(settings)))
    return cast("Session | None", context.meta[_SESSION])


def _memory_limit() -> int | None:
    text = click.get_current_context().meta.get(_ENGINE, {}).get("memory_limit")
    limit = None if text is None else parse_bytes(text)
    if limit is not None and limit < SMALLEST_MEMORY:
        raise UsageError(
            f"--memory-limit {text} is not enough to work with.\n"
            f"Hint: give at least {SMALLEST_MEMORY // 10**6}MB."
        )
    return limit


SMALLEST_MEMORY = 100 * 10**6


@dataclass(frozen=True, slots=True)
class FigureRequest:
    """The figure that was asked for, and where to write it."""

    command: str
    name: str
    path: Path
    width: float  # inches
    replace: bool

    def write(self, subject: object) -> None:
        """Draw the figure of a result and write it."""
        figure = draw_figure(self.command, self.name, subject, width=self.width)
        figure.save(self.path, replace=self.replace)


def page_or_figure(
    command: str,
    *,
    what: str = "pages",
    page_endings: Callable[[], Sequence[str]] = lambda: (".html", ".htm"),
) -> Decorator:
    """Add `-o`, `--figure` and `--width`; they come as `page` and `figure`, one of them None.

    Args:
        command: a key of the catalogue of figures.
        what: the command writes without `--figure`.
        page_endings: of the files it then writes.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_figure(
            *args: Any,  # noqa: ANN401
            output_file: Path | None,
            figure: str | None,
            width: float,
            force: bool,
            **others: Any,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401 - whatever the command takes and returns
            page, request = output_file, None
            if figure is None:
                _check_page(output_file, command, what, page_endings())
            else:
                target = _checked_target(output_file)
                page, request = None, FigureRequest(command, figure, target, width, force)
            return function(*args, page=page, figure=request, force=force, **others)

        return stack_decorators(
            option("--output", "-o", "output_file", metavar="FILE", type=PATH,
                   help="HTML page to write; with --figure, an .svg, .png or .pdf file."),
            option("--force", is_flag=True, help="Replace files that exist."),
            option("--figure", metavar="NAME", type=click.Choice(list(CATALOGUE[command])),
                   help=f"Write this figure instead of a page: {', '.join(CATALOGUE[command])}."),
            option("--width", default=COLUMN_WIDTH, type=NumberRange(MIN_WIDTH, MAX_WIDTH),
                   help="Width of the figure, in inches."),
        )(with_figure)  # fmt: skip

    return decorate


def _checked_target(path: Path | None) -> Path:
    """Refuse what cannot be written before any work is done."""
    if path is None:
        raise UsageError("--figure needs a file to write.\nHint: add -o figure.svg.")
    if path.suffix.lower() not in ENDINGS:
        raise EndingError(path, what="figures", known=ENDINGS)
    require_matplotlib()
    return path


def _check_page(path: Path | None, command: str, what: str, known: Sequence[str]) -> None:
    if path is None or not path.suffix or path.suffix.lower() in known:
        return
    if path.suffix.lower() in ENDINGS:
        raise UsageError(
            f"{printable(path.name)} is a figure, but none was chosen.\n"
            f"Hint: add --figure {'|'.join(CATALOGUE[command])}."
        )
    raise EndingError(path, what=what, known=known)
