"""``ioprism explore``: the report's page for a trace of any size.

The analyses are loaded after the first picture: they would delay it by half a second.
"""

from __future__ import annotations

import signal
from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import Command, option
from ioprism.engine.base import LocalEngine
from ioprism.explore import exploring
from ioprism.reports import to_json


@click.command(cls=Command)
@options.traces
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on; 0 chooses a free one.",
)
@option("--browser", is_flag=True, help="Open the page in a browser.")
@options.format_name
@options.as_json
@options.quiet
def explore(
    paths: tuple[Path, ...],
    *,
    port: int,
    browser: bool,
    format_name: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Serve the report of a trace of any size to a browser on this machine only.

    The address holds a secret: whoever has it and an account on this machine can see the
    trace. Ctrl-C stops.

    Example: ioprism explore run42.darshan
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it cleans up as for Ctrl-C
    trace = options.read_job(paths, format_name)
    if not quiet:
        output.say("reading events…")
    with exploring(trace, engine=LocalEngine(), port=port) as server:
        try:  # who has read the address may stop it immediately
            if as_json:
                click.echo(to_json.document(trace, {"address": server.address}))
            else:
                click.echo(server.address)
            if not quiet:
                output.say("Open this address in a browser; Ctrl-C stops.")
            if browser:
                click.launch(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            if not quiet:
                output.say("stopped")
