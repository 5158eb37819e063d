"""The command line: one file per command, one place that turns errors into exit codes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from ioprism.command import failure
from ioprism.command.options import option

DEBUG = "--debug"
BUDGET = "--reading-budget"

# The command's module is imported when the command runs, so that `ioprism --help` is quick.
COMMANDS = {
    "compare": "What a change did: metrics, findings gone, new and kept.",
    "diagnose": "What stalls the job, and what each fix would save. Start here.",
    "explore": "The report's page for a trace of any size, from a local server.",
    "record": "Run a program under a tracer, and report on its I/O.",
    "report": "Everything about a job: a summary here, and one page to explore.",
    "bottlenecks": "Bottlenecks from every combination of views, with reasons.",
    "insights": "What is wrong with a job's I/O, and what to do about it.",
    "inspect": "The records and calls behind one finding or bottleneck.",
    "characterise": "How much I/O, by whom, through which interface.",
    "convert": "Keep a trace as a Parquet store, or write its events as CSV.",
    "demo": "Make a sample trace and analyse it.",
    "period": "The period of a job's I/O: how often it repeats.",
    "formats": "What can be read, and what each format records.",
    "mcp": "The same answers for AI assistants, over the Model Context Protocol.",
    "phases": "When a job does I/O, and which rank each phase waits for.",
    "rules": "Every rule, its code and its threshold.",
    "schedule": "What jobs gain if the file system serves them in turn: a simulation.",
    "servers": "Characterise a machine from its file-system servers' counters.",
    "site": "All jobs of a centre: what they lose to I/O, why, and since when.",
    "replay": "Send a trace as a live stream, to see what `watch` would have reported.",
    "watch": "Follow running jobs and predict their next I/O phase.",
    "write-time": "Predict how long a write takes, and choose a better configuration.",
}

# Side products keep their commands in their own folders.
ELSEWHERE = {
    "replay": "ioprism.live.replay_command",
    "servers": "ioprism.servers.commands",
    "watch": "ioprism.live.watch_command",
    "write-time": "ioprism.write_time.commands",
}


class CommandGroup(click.Group):
    """Loads commands late; shows expected failures as one message, never as a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name every command."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = ELSEWHERE.get(cmd_name, f"ioprism.cli.{name}")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where there is none, say which was perhaps meant."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from difflib import get_close_matches

            for near in get_close_matches(args[0], COMMANDS, n=1):
                ctx.fail(f"No such command {args[0]!r}.\nHint: did you mean {near}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options of all commands wherever they stand; refuse an empty argument.

        Words behind `--` are another program's, or names of files.
        """
        end = args.index("--") if "--" in args else len(args)
        own, others = args[:end], args[end:]
        if "" in own:
            raise click.UsageError("an argument is empty.\nHint: check where it comes from.", ctx)
        if DEBUG in own:
            own = [DEBUG, *(word for word in own if word != DEBUG)]
        for place, word in enumerate(own):
            if word == BUDGET or word.startswith(f"{BUDGET}="):
                last = place + 1 + (word == BUDGET)
                own = [*own[place:last], *own[:place], *own[last:]]
                break
        return super().parse_args(ctx, [*own, *others])

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run, and turn whatever goes wrong into one message and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a full disk behind a pipe shows here, not when Python ends
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except click.ClickException as error:
            raise failure.explained(error) from error.__cause__
        except BaseException as error:
            if ctx.params.get("debug") or not failure.is_last_resort(error):
                raise
            raise failure.explained(error) from error
        return result


def _set_reading_budget(context: click.Context, _: click.Parameter, size: str | None) -> None:
    """Hand the limit to the readers, also to those in processes that the command starts."""
    if size is not None:
        from ioprism.errors import UsageError
        from ioprism.formats.budget import reading_budget
        from ioprism.units import parse_bytes

        try:
            context.with_resource(reading_budget(parse_bytes(size)))
        except UsageError as error:
            raise click.UsageError(str(error)) from error


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ioprism")
@option(DEBUG, is_flag=True, expose_value=True, help="Show the traceback of an error.")
@option(
    BUDGET,
    metavar="SIZE",
    expose_value=False,
    callback=_set_reading_budget,
    help="Memory that one input may take at once, such as 4GB; by default 256 MiB and 200 times "
    "its size.",
)
def main(debug: bool) -> None:
    """Explain the I/O of HPC jobs from their traces.

    Start with: ioprism diagnose TRACE, where TRACE is a file or a folder. Every command
    explains itself with --help; those that answer a question print JSON with --json.
    """
