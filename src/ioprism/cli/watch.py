"""``ioprism watch``: when is the next I/O phase of a running job due?"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.live import Live

from ioprism.analyses.periodicity.live.online import Settings
from ioprism.cli import options, output
from ioprism.reports.to_terminal import live as terminal_form
from ioprism.service.addresses import LOOPBACK, endpoint, is_exposed, is_loopback, zeromq
from ioprism.service.answer import Answer, Listener
from ioprism.service.follow import Follower
from ioprism.service.http import Server
from ioprism.service.metric_proxy import ReplyServer
from ioprism.service.publish import Publisher, Replier
from ioprism.service.pull import PullSource
from ioprism.service.watch import Watch, WatchSettings
from ioprism.units import parse_bytes

REFRESH = 0.25  # seconds between pictures in the terminal
DEFAULT_JOB = "job"


@click.command()
@click.option(
    "--zmq", "pulls", multiple=True, metavar="ADDRESS", help="Receive messages here (PULL, binds)."
)
@click.option(
    "--follow",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Read a file that grows.",
)
@click.option(
    "--metric-proxy", metavar="ADDRESS", help="Answer the Metric Proxy here (REP, binds)."
)
@click.option(
    "--direction", type=click.Choice(["read", "write", "both"]), default="both", show_default=True
)
@click.option(
    "--false-alarm",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.01,
    show_default=True,
    help="Of ever announcing a rhythm that is none.",
)
@click.option(
    "--every", type=click.FloatRange(min=0.0), default=0.0, help="Seconds between predictions."
)
@click.option("--json-lines", is_flag=True, help="Print one JSON document a line and prediction.")
@click.option("--publish", metavar="ADDRESS", help="Publish predictions here (PUB, binds).")
@click.option("--reply", metavar="ADDRESS", help="Push 16 bytes a prediction here, as FTIO does.")
@click.option("--http", "port", type=click.IntRange(0, 65535), help="Serve a live page and JSON.")
@click.option("--host", default=LOOPBACK, show_default=True, help="Where --http listens.")
@click.option(
    "--state", "save_to", type=click.Path(path_type=Path), help="Save here, and go on from here."
)
@click.option(
    "--expire",
    type=float,
    default=600.0,
    show_default=True,
    help="Forget a job after such silence.",
)
@click.option("--max-jobs", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--max-message", default="16MiB", show_default=True, help="Drop larger ones.")
@click.option("--exit-when-idle", "idle", type=float, metavar="SECONDS", help="Stop after silence.")
@options.quiet
def watch(
    pulls: tuple[str, ...],
    files: tuple[Path, ...],
    *,
    metric_proxy: str | None,
    direction: str,
    false_alarm: float,
    every: float,
    json_lines: bool,
    publish: str | None,
    reply: str | None,
    port: int | None,
    host: str,
    save_to: Path | None,
    expire: float,
    max_jobs: int,
    max_message: str,
    idle: float | None,
    quiet: bool,
) -> None:
    """Follow running jobs: their rhythm, its changes, and when the next I/O phase is due.

    An ADDRESS is a port on this machine, or an endpoint such as tcp://127.0.0.1:5555.

    Example: ioprism watch --zmq 5555 --http 8080
    """
    if not pulls and not files and metric_proxy is None:
        raise click.UsageError("nothing to watch.\nHint: say --zmq 5555 or --follow FILE.")
    settings = WatchSettings(
        rhythm=Settings(max_false_alarm=false_alarm),
        direction=direction,
        every=every,
        expire=expire,
        most_jobs=max_jobs,
        largest_message=parse_bytes(max_message),
        save_to=save_to,
    )
    service = Watch(settings)
    with ExitStack() as stack:
        places = _sources(service, stack, pulls, files, metric_proxy)
        places += _outlets(service, stack, publish, reply, port, host)
        service.restore()
        stack.callback(service.close)
        stack.enter_context(_stopped_by_signals(service))
        _tell(places, quiet=quiet)
        service.listeners.append(stack.enter_context(_shown(service, json_lines=json_lines)))
        service.run(idle=idle)
    if not quiet:
        counts = service.counts
        click.echo(f"{counts.messages:,} messages, {counts.dropped:,} pieces dropped", err=True)


def _sources(
    service: Watch,
    stack: ExitStack,
    pulls: tuple[str, ...],
    files: tuple[Path, ...],
    metric_proxy: str | None,
) -> list[tuple[str, str]]:
    """Listen; return what listens where."""
    largest = service.settings.largest_message
    places = []
    for text in pulls:
        source = PullSource(_context(stack), endpoint(text), job=DEFAULT_JOB, largest=largest)
        service.pulls.append(source)
        places.append(("messages", source.address))
    for path in files:
        service.followers.append(Follower(path, job=path.name, largest=largest))
    if metric_proxy is not None:
        server = ReplyServer(
            _context(stack), endpoint(metric_proxy), largest=largest, counts=service.counts
        )
        stack.callback(server.close)
        places.append(("metric proxy", server.address))
    return places


def _outlets(
    service: Watch,
    stack: ExitStack,
    publish: str | None,
    reply: str | None,
    port: int | None,
    host: str,
) -> list[tuple[str, str]]:
    """Open what tells others; return what listens where."""
    places = []
    if publish is not None:
        publisher = Publisher(_context(stack), endpoint(publish))
        stack.callback(publisher.close)
        service.listeners.append(publisher.hear)
        places.append(("predictions", publisher.address))
    if reply is not None:
        replier = Replier(_context(stack), endpoint(reply))
        stack.callback(replier.close)
        service.listeners.append(replier.hear)
    if port is not None:
        server = Server(service, host, port)
        stack.callback(server.close)
        places.append(("page", server.url))
    return places


def _context(stack: ExitStack) -> object:
    """A ZeroMQ context that ends with the command."""
    context = zeromq("ioprism watch").Context()
    stack.callback(context.destroy, linger=200)
    return context


def _tell(places: list[tuple[str, str]], *, quiet: bool) -> None:
    for what, address in places:
        if not quiet:
            click.echo(f"{what}: {address}", err=True)
        exposed = is_exposed(address) or (
            address.startswith("http") and not is_loopback(address[7:].rpartition(":")[0])
        )
        if exposed:
            click.echo(f"warning: other machines can reach {address}, unprotected", err=True)


@contextmanager
def _stopped_by_signals(service: Watch) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - their signature
        service.stop()

    chosen = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, stop) for number in chosen]
    try:
        yield
    finally:
        for number, handler in zip(chosen, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def _shown(service: Watch, *, json_lines: bool) -> Iterator[Listener]:
    """What shows predictions on standard output."""
    if json_lines:
        yield lambda answer: click.echo(answer.json)
    elif sys.stdout.isatty():
        with Live(console=output.console(), auto_refresh=False) as screen:
            yield _moving_view(service, screen)
    else:
        yield _news


def _news(answer: Answer) -> None:
    text = terminal_form.news(answer.job, answer.prediction)
    if text is not None:
        click.echo(text)


def _moving_view(service: Watch, screen: Live) -> Listener:
    shown_at = 0.0

    def show(answer: Answer) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at < REFRESH and answer.prediction.change is None:
            return
        shown_at = now
        known = [(job.name, job.latest) for job in service.jobs if job.latest is not None]
        job = service.jobs.find(answer.job)
        picture = terminal_form.view(
            known[::-1],
            signal=None if job is None else job.tracker.signal(),
            dropped=service.counts.dropped,
            received=service.counts.messages,
        )
        screen.update(picture, refresh=True)

    return show
