"""The command line: a file per command, one place that turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from ioprism.command import output
from ioprism.command.options import option
from ioprism.command.output import configured_defaults
from ioprism.errors import UsageError
from ioprism.formats.reading import reading_budget
from ioprism.units import parse_bytes

DEBUG = "--debug"
BUDGET = "--reading-budget"
COLOR = "--color"

# The command's module is imported when the command runs, so that `ioprism --help` is quick.
GROUPS = {
    "Start here": {
        "diagnose": "What stalls the job, and what each fix would save.",
        "report": "Everything about a job: a summary here, and one page to explore.",
        "record": "Run a program under a tracer, and report on its I/O.",
        "demo": "Analyse a sample log.",
    },
    "Look closer": {
        "insights": "What is unusual about a job's I/O, and what to do about it.",
        "bottlenecks": "Bottlenecks from every combination of views, with reasons.",
        "inspect": "The records and calls behind one finding or bottleneck.",
        "characterise": "How much I/O, by whom, through which interface.",
        "phases": "When a job does I/O, and which rank each phase waits for.",
        "period": "The period of a job's I/O: how often it repeats.",
        "compare": "What a change did, and whether it is more than noise.",
        "explore": "The report's page for a trace of any size.",
    },
    "Whole machine": {
        "site": "All jobs of a centre: what they lose to I/O, why, since when.",
        "servers": "A machine from its file-system servers' counters.",
        "watch": "Follow running jobs and predict their next I/O phase.",
        "schedule": "Simulate jobs that share a file system.",
        "write-time": "Predict how long a write takes; choose a configuration.",
    },
    "Tools": {
        "convert": "Write a trace as Parquet, CSV or for Perfetto.",
        "replay": "Send a trace as a live stream to `watch`.",
        "formats": "What can be read, and what each format records.",
        "rules": "Every rule, its code and its threshold.",
        "mcp": "The same answers for AI assistants (Model Context Protocol).",
        "completion": "Print the completion script of a shell.",
        "help": "Show the help of a command.",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
ALIASES = {"characterize": "characterise", "analyse": "report", "analyze": "report"}

# Side products keep their commands in their own folders; related commands share a file.
ELSEWHERE = {
    **dict.fromkeys(("completion", "convert", "formats", "help", "mcp"), "ioprism.cli.tools"),
    **dict.fromkeys(("insights", "rules"), "ioprism.cli.diagnose"),
    "demo": "ioprism.cli.report",
    "inspect": "ioprism.cli.bottlenecks",
    "phases": "ioprism.cli.characterise",
    "replay": "ioprism.live.replay",
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
        cmd_name = ALIASES.get(cmd_name, cmd_name)
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
        if args[0] not in (COMMANDS | ALIASES) and not ctx.resilient_parsing:
            from difflib import get_close_matches

            for near in get_close_matches(args[0], COMMANDS, n=1):
                ctx.fail(f"No such command {args[0]!r}.\nHint: did you mean {near}?")
            if os.path.exists(args[0]):  # noqa: PTH110 - pathlib is not needed otherwise
                later = next((word for word in args[1:] if word in COMMANDS), "diagnose")
                ctx.fail(
                    f"{args[0]!r} is a trace, and the command comes first.\n"
                    f"Hint: ioprism {later} {args[0]}"
                )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading them."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

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
        for option_name in (BUDGET, COLOR):
            own = _to_front(own, option_name)
        return super().parse_args(ctx, [*own, *others])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401
        """Take defaults of options from the user's configuration file."""
        if "default_map" not in extra:
            extra["default_map"] = configured_defaults()
        return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run, and turn whatever goes wrong into one message and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a full disk behind a pipe shows here, not when Python ends
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - it stays open to the end
            raise click.exceptions.Exit(0) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.ClickException as error:
            raise output.explain_error(error) from error.__cause__
        except BaseException as error:
            if ctx.params.get("debug") or not output.is_last_resort(error):
                raise
            raise output.explain_error(error) from error
        return result


def _to_front(words: list[str], name: str) -> list[str]:
    """Put an option of all commands with its value before the command."""
    for place, word in enumerate(words):
        if word == name or word.startswith(f"{name}="):
            last = place + 1 + (word == name)
            return [*words[place:last], *words[:place], *words[last:]]
    return words


def _set_color(context: click.Context, _: click.Parameter, when: str) -> None:
    context.color = {"always": True, "never": False}.get(when)


def _set_reading_budget(context: click.Context, _: click.Parameter, size: str | None) -> None:
    """Hand the limit to the readers, also to those in processes that the command starts."""
    if size is not None:
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
@option(
    COLOR,
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    expose_value=False,
    callback=_set_color,
    help="When to use colours; `auto` asks the terminal and NO_COLOR.",
)
def main(debug: bool) -> None:
    """Explain the I/O of HPC jobs from their traces.

    Start with `ioprism diagnose TRACE`, where TRACE is a file or a folder. Most commands print
    JSON with --json. Defaults of options can be set in a configuration file (see the how-to).
    """
