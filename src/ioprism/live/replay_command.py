"""``ioprism replay``: what would `watch` have reported about this job?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import NumberRange, option
from ioprism.live.addresses import endpoint
from ioprism.live.keys import client_keys
from ioprism.live.replay import PushSink, messages, requests
from ioprism.live.replay import replay as send
from ioprism.units import format_counted

WALL_BATCH = 0.1  # seconds of real time in one message
FAST_BATCH = 0.1  # seconds of the job's time in one message, if sent as fast as possible


@click.command()
@options.traces
@option(
    "--zmq",
    "address",
    required=True,
    metavar="ADDRESS",
    help="Port or endpoint that `ioprism watch` listens on.",
)
@option(
    "--keys",
    type=click.Path(path_type=Path, exists=True),
    help="Keys made by `ioprism watch --keygen`.",
)
@option(
    "--speed",
    type=NumberRange(min=0.0),
    default=1.0,
    help="Seconds of the job per second of real time; 0 sends as fast as possible.",
)
@option("--batch", type=NumberRange(min=0.0, min_open=True), help="Seconds of the job per message.")
@option(
    "--direction",
    type=click.Choice(["read", "write", "both"]),
    default="both",
    help="Direction to send.",
)
@option("--job", help="Job name to send; by default that of the trace.")
@options.format_name
@options.quiet
def replay(
    paths: tuple[Path, ...],
    *,
    address: str,
    keys: Path | None,
    speed: float,
    batch: float | None,
    direction: str,
    job: str | None,
    format_name: str | None,
    quiet: bool,
) -> None:
    """Send a trace as the live stream its job would have sent.

    Example: ioprism replay run42.darshan --speed 10 --zmq ipc:///tmp/watch.me
    """
    done = requests(options.read_job(paths, format_name), direction=direction)
    chosen = batch or (speed * WALL_BATCH if speed else FAST_BATCH)
    stream = messages(done, batch=chosen, job=job or paths[0].name)
    known = None if keys is None else client_keys(keys)
    sent = send(stream, PushSink(endpoint(address), keys=known), speed=speed)
    if not quiet:
        output.say(
            f"sent {format_counted(len(done.start), 'request')} "
            f"in {format_counted(sent, 'message')}"
        )
