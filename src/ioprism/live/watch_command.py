"""``ioprism watch``: when is the next I/O phase of a running job due?"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ioprism.command import options, output
from ioprism.command.options import PATH, NumberRange, option
from ioprism.live.access import (
    ServerKeys,
    authenticate_clients,
    check_protected,
    endpoint,
    is_exposed,
    make_keys,
    server_keys,
    zeromq,
)
from ioprism.live.follow import Follower
from ioprism.live.http import WatchServer
from ioprism.live.metric_proxy import ReplyServer
from ioprism.live.publish import Answer, Listener, Publisher, Replier
from ioprism.live.sources import PullSource, StreamSource, open_source
from ioprism.live.watch import Watch, WatchSettings
from ioprism.local_http import LOOPBACK, is_loopback, read_token
from ioprism.periodicity.tracker import PeriodChange, Prediction, TrackerSettings
from ioprism.reports.to_terminal import PICTURE, bars, columns, name
from ioprism.storage.atomic import held_alone
from ioprism.text import printable
from ioprism.units import format_bytes, format_counted, format_seconds, parse_bytes

REFRESH = 0.25  # seconds between pictures in the terminal
DEFAULT_JOB = "job"
DEFAULTS = WatchSettings()


def _make_keys(context: click.Context, option: click.Parameter, folder: Path | None) -> None:  # noqa: ARG001 - click's own
    if folder is None:
        return
    server, client = make_keys(folder)
    output.say(f"wrote {server} for `ioprism watch --keys {folder}`")
    output.say(f"wrote {client} for senders and subscribers")
    context.exit()


@click.command()
@option(
    "--zmq",
    "pulls",
    multiple=True,
    metavar="ADDRESS",
    help="Receive messages at this address (PULL, binds).",
)
@option("--follow", "files", multiple=True, type=PATH, help="Read a file while it grows.")
@option(
    "--source",
    "others",
    multiple=True,
    metavar="ADDRESS",
    help="Read from any transport, named by its scheme: tcp, ipc, file, or a plug-in's.",
)
@option(
    "--metric-proxy",
    metavar="ADDRESS",
    help="Answer the Metric Proxy at this address (REP, binds).",
)
@option(
    "--direction",
    type=click.Choice(["read", "write", "both"]),
    default="both",
    help="Direction to follow.",
)
@option(
    "--false-alarm",
    type=NumberRange(0.0, 1.0, min_open=True),
    default=DEFAULTS.tracking.max_false_alarm,
    help="Probability of ever announcing a false period.",
)
@option("--every", type=NumberRange(min=0.0), default=0.0, help="Seconds between predictions.")
@option("--state", "save_to", type=PATH, help="File to save the state to, and to resume from.")
@option(
    "--expire",
    type=NumberRange(min=0.0),
    default=DEFAULTS.expire,
    help="Forget a job after this many seconds of silence.",
)
@option(
    "--max-jobs",
    "most_jobs",
    type=click.IntRange(1),
    default=DEFAULTS.most_jobs,
    help="Most jobs to follow simultaneously.",
)
@option(
    "--max-jobs-per-sender",
    "most_jobs_of_sender",
    type=click.IntRange(1),
    help="Most jobs of one sender; by default half of --max-jobs.",
)
@option("--max-message", default="16MiB", help="Drop larger messages.")
@option(
    "--json-lines",
    is_flag=True,
    help="Print one JSON document per prediction, each on its own line.",
)
@option(
    "--keys",
    "keys_folder",
    type=click.Path(path_type=Path, exists=True),
    help="On TCP, accept only peers that have keys from this folder.",
)
@option(
    "--keygen",
    metavar="FOLDER",
    type=PATH,
    is_eager=True,
    expose_value=False,
    callback=_make_keys,
    help="Create such keys in this folder and exit.",
)
@option("--unprotected", is_flag=True, help="Listen on TCP without keys: anyone can connect.")
@option("--publish", metavar="ADDRESS", help="Publish predictions at this address (PUB, binds).")
@option(
    "--reply", metavar="ADDRESS", help="Push 16 bytes per prediction to this address, as FTIO does."
)
@option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    help="Port on which to serve a live page and JSON.",
)
@option(
    "--token-file",
    type=PATH,
    help="File that keeps the page's token; without it, every start makes a new one.",
)
@option("--host", default=LOOPBACK, help="Host on which --http listens.")
@option(
    "--exit-when-idle",
    "idle",
    type=NumberRange(min=0.0),
    metavar="SECONDS",
    help="Stop after this many seconds of silence.",
)
@options.quiet
def watch(
    pulls: tuple[str, ...],
    files: tuple[Path, ...],
    *,
    others: tuple[str, ...],
    metric_proxy: str | None,
    false_alarm: float,
    max_message: str,
    json_lines: bool,
    keys_folder: Path | None,
    unprotected: bool,
    publish: str | None,
    reply: str | None,
    port: int | None,
    token_file: Path | None,
    host: str,
    idle: float | None,
    quiet: bool,
    **watched: Any,  # noqa: ANN401 - as `WatchSettings` has them
) -> None:
    """Follow running jobs: their period, its changes, and when the next I/O phase is due.

    An ADDRESS is a port on this machine, or an endpoint such as tcp://127.0.0.1:5555 or
    ipc://FILE. TCP needs --keys; FILE and everything saved is accessible to your user only.

    Example: ioprism watch --zmq ipc:///tmp/watch.me --http 8080
    """
    if not pulls and not files and not others and metric_proxy is None:
        raise click.UsageError("nothing to watch.\nHint: use --zmq ipc://FILE or --follow FILE.")
    settings = WatchSettings(
        TrackerSettings(max_false_alarm=false_alarm),
        largest_message=parse_bytes(max_message),
        **watched,
    )
    listening = [endpoint(text) for text in filter(None, (*pulls, metric_proxy, publish))]
    for address in (*listening, *others):
        check_protected(address, has_keys=keys_folder is not None, unprotected=unprotected)
    keys = None if keys_folder is None else server_keys(keys_folder)
    token = None if token_file is None else read_token(token_file)
    service = Watch(settings, notify=output.say)
    with ExitStack() as stack:
        sockets = _Sockets(stack, keys)
        places = _sources(service, sockets, (*map(endpoint, pulls), *others), files, metric_proxy)
        if publish is not None:
            publisher = Publisher(sockets.context, endpoint(publish), keys=keys)
            stack.callback(publisher.close)
            service.listeners.append(publisher.hear)
            places.append(("predictions", publisher.address))
        if reply is not None:
            replier = Replier(sockets.context, endpoint(reply))
            stack.callback(replier.close)
            service.listeners.append(replier.hear)
        if port is not None:
            server = WatchServer(service, host, port, token=token)
            stack.callback(server.close)
            places.append(("page", server.url))
        if settings.save_to is not None:
            lock = settings.save_to.with_name(f".{settings.save_to.name}.lock")
            taken = f"{settings.save_to}: another `ioprism watch` saves its state here.\n"
            hint = "Hint: give --state another name."
            stack.enter_context(held_alone(lock, otherwise=taken + hint))
        service.restore()
        stack.callback(service.close)
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: service.stop()))
        _tell(places, quiet=quiet, has_keys=keys is not None)
        service.listeners.append(
            stack.enter_context(_show_predictions(service, json_lines=json_lines))
        )
        service.run(idle=idle)
    if not quiet:
        output.say(_totals_line(service))


class _Sockets:
    """What sockets need: a ZeroMQ context, made when first asked for, and keys."""

    def __init__(self, stack: ExitStack, keys: ServerKeys | None) -> None:
        self.stack, self.keys = stack, keys

    @cached_property
    def context(self) -> object:
        """A context that ends with the command."""
        made = zeromq("ioprism watch").Context()
        self.stack.callback(made.destroy, linger=200)
        return self.stack.enter_context(authenticate_clients(made, self.keys))


def _sources(
    service: Watch,
    sockets: _Sockets,
    addresses: Iterable[str],
    files: Iterable[Path],
    metric_proxy: str | None,
) -> list[tuple[str, str]]:
    """Listen; return what listens where."""
    largest, keys = service.settings.largest_message, sockets.keys
    places = []

    def pull(address: str) -> StreamSource:
        return PullSource(sockets.context, address, job=DEFAULT_JOB, largest=largest, keys=keys)

    def follow(path: Path) -> StreamSource:
        return Follower(path, job=path.name, largest=largest)

    built_in = {
        "tcp": pull,
        "ipc": pull,
        "file": lambda address: follow(Path(address.removeprefix("file://"))),
    }
    for address in addresses:
        source = open_source(address, built_in)
        service.sources.append(source)
        if source.waits_on() is not None:
            places.append(("messages", source.address))
    service.sources.extend(follow(path) for path in files)
    if metric_proxy is not None:
        address, counts = endpoint(metric_proxy), service.counts
        server = ReplyServer(sockets.context, address, largest=largest, counts=counts, keys=keys)
        sockets.stack.callback(server.close)
        places.append(("metric proxy", server.address))
    return places


def _tell(places: list[tuple[str, str]], *, quiet: bool, has_keys: bool) -> None:
    for what, address in places:
        if not quiet:
            output.say(f"{what}: {address}")
        if address.startswith("tcp://") and not has_keys:
            who = "other machines" if is_exposed(address) else "all users of this machine"
            output.say(f"warning: {who} can reach {address}, unprotected")
        if address.startswith("http") and not is_loopback(urlsplit(address).hostname or ""):
            output.say("warning: the page's token crosses the network unencrypted")


@contextmanager
def _show_predictions(service: Watch, *, json_lines: bool) -> Iterator[Listener]:
    """What shows predictions on standard output."""
    if json_lines:
        yield lambda answer: click.echo(answer.json)
    elif sys.stdout.isatty():
        with Live(console=output.console(), auto_refresh=False) as screen:
            yield _moving_view(service, screen)
    else:
        yield _show_news


def _show_news(answer: Answer) -> None:
    """Print one line if there is something to announce."""
    prediction = answer.prediction
    if prediction.final:
        text = final_text(prediction)
    elif prediction.change is not None:
        text = change_text(prediction.change)
    else:
        return
    click.echo(f"{prediction.time:12.3f} s  {printable(answer.job)}: {text}")


def _moving_view(service: Watch, screen: Live) -> Listener:
    shown_at = 0.0

    def show(answer: Answer) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= REFRESH or answer.prediction.change is not None:
            shown_at = now
            screen.update(live_view(service, answer.job), refresh=True)

    return show


ROWS = 6  # of a picture
MOST_JOBS = 20


def final_text(prediction: Prediction) -> str:
    """Say what the whole job showed."""
    subject = {"both": "I/O repeats"}.get(prediction.direction, f"{prediction.direction}s repeat")
    period = prediction.period
    if period is None:
        return "over; no period"
    doubt = "possibly " if period.certainty == "maybe" else ""
    sure = f"confidence {period.confidence:.0%}"
    return f"over; {doubt}{subject} every {format_seconds(period.seconds)} ({sure})"


def change_text(change: PeriodChange) -> str:
    """Say what changed."""
    if change.after is None:
        return f"the period of {format_seconds(change.before)} ended at {change.time:.4g} s"
    if change.before is None:
        return f"a period of {format_seconds(change.after)} since {change.time:.4g} s"
    return (
        f"the period changed from {format_seconds(change.before)} "
        f"to {format_seconds(change.after)} at {change.time:.4g} s"
    )


def live_view(service: Watch, latest: str) -> RenderableType:
    """Return the live view: the jobs that sent last, and the signal of the latest."""
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for title in ("job", "time", "period", "false alarm", "next phase", "bytes", "sure"):
        grid.add_column(title, justify="left" if title == "job" else "right")
    jobs = [(job.name, job.latest) for job in service.jobs if job.latest is not None][::-1]
    for job, prediction in jobs[:MOST_JOBS]:
        grid.add_row(name(job), *_cells(prediction))
    more = len(jobs) - MOST_JOBS
    footer = _totals_line(service) + (f", {more:,} more jobs" if more > 0 else "")
    chosen = service.jobs.find(latest)
    rows = (
        [] if chosen is None else bars(columns(chosen.tracker.signal(), width=PICTURE), rows=ROWS)
    )
    picture = [Text(row, style="cyan") for row in rows]
    return Group(*picture, grid, Text(footer, style="dim"))


def _totals_line(service: Watch) -> str:
    messages = format_counted(service.counts.messages, "message")
    return f"{messages}, {format_counted(service.counts.dropped_records, 'record')} dropped"


def _cells(prediction: Prediction) -> list[str]:
    period, phase = prediction.period, prediction.next_phase
    return [
        f"{prediction.time:.1f} s",
        "none" if period is None else format_seconds(period.seconds),
        "" if period is None else f"{period.false_alarm_probability:.0e}",
        "" if phase is None else f"{phase.start:.1f} s",
        "" if phase is None else format_bytes(phase.bytes),
        "" if phase is None else f"{phase.confidence:.0%}",
    ]
