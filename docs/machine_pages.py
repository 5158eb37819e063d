"""Reference pages of causes, settings, metrics, counters and errors, from the code itself."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields

from docs.api_page import field_table
from ioprism import errors
from ioprism.bottleneck_search.result import Settings as BottleneckSettings
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.steps import DiagnosisOptions
from ioprism.diagnosis.wording import FOLDER
from ioprism.engine.cluster import ClusterSettings
from ioprism.formats.darshan.meaning import FIXED, MODULES
from ioprism.live.metrics import Counts, Latency, exposition
from ioprism.live.watch import WatchSettings
from ioprism.periodicity.detect import Options
from ioprism.periodicity.of_job import PeriodSettings
from ioprism.periodicity.tracker import TrackerSettings as LiveSettings
from ioprism.plugins import GROUPS
from ioprism.report_steps import ReportSettings
from ioprism.scheduling.steps import ScheduleSettings
from ioprism.servers.series import MetricSettings
from ioprism.servers.steps import Question
from ioprism.settings import PhaseSettings
from ioprism.site.steps import SiteOptions
from ioprism.write_time.sampling import PlanSettings
from ioprism.write_time.training_data import TrainingSettings

SETTINGS: dict[str, tuple[type, ...]] = {
    "report": (ReportSettings,),
    "diagnose": (DiagnosisOptions,),
    "bottlenecks": (BottleneckSettings,),
    "phases": (PhaseSettings,),
    "period": (PeriodSettings, Options),
    "schedule": (ScheduleSettings,),
    "watch": (WatchSettings, LiveSettings),
    "servers": (Question, MetricSettings),
    "site": (SiteOptions,),
    "write-time": (PlanSettings, TrainingSettings),
    "--engine dask": (ClusterSettings,),
}


def cause_page() -> Iterator[str]:
    """Every cause that `ioprism diagnose` knows."""
    yield "# Causes of `ioprism diagnose`\n"
    yield "[How a diagnosis is made](../explanation/diagnosis.md) says how each is found, and"
    yield "[words](../explanation/words.md) what a target, a stripe or an aggregator is. Words in"
    yield "italics are filled from the log; *peers* are calls of the same kind and size. A plug-in"
    yield "may [add causes](../how-to/add-a-plug-in.md).\n"
    for file in sorted(FOLDER.glob("*.toml")):
        words = tomllib.loads(file.read_text(encoding="utf-8"))
        yield f"## `{file.stem}`\n"
        yield f"{_in_italics(words['title'])}.\n"
        yield f"- **Compared**: {' with '.join(words['groups'])}"
        advice = [entry["text"].partition("\n")[0] for entry in words.get("recommendation", ())]
        if advice:
            yield "- **Advice**, as far as it fits the job:"
            yield from (f"    - {_in_italics(text)}" for text in dict.fromkeys(advice))
        yield ""
    yield "## Numbers that decide\n"
    yield "What checks compare with; `python -m benchmarks.sensitivity` moves each of them.\n"
    yield from ("| name | value | unit | meaning | source |", "|---|---|---|---|---|")
    for one in fields(Limits):
        about = (str(one.metadata[key]) for key in ("unit", "meaning", "source"))
        yield f"| `{one.name}` | {one.default} | {' | '.join(about)} |"
    yield ""


def _in_italics(template: str) -> str:
    """Show what a log fills in by its name."""
    return re.sub(r"\{(\w+)\}", lambda field: f"*{field[1].replace('_', ' ')}*", template)


def settings_page() -> Iterator[str]:
    """Every setting of every analysis, and the groups that plug-ins declare."""
    yield "# Settings\n"
    yield "What functions take as `settings` or as keywords of these names, and commands as options"
    yield "of similar ones. Thresholds of findings are [with the rules](rules.md#thresholds).\n"
    for command, kinds in SETTINGS.items():
        yield f"## {command}\n"
        for kind in kinds:
            yield f"`{kind.__module__}.{kind.__qualname__}`: {inspect.getdoc(kind)}\n"
            yield from field_table(kind)
    yield "## Entry points\n"
    yield "What an installed package may declare; [how to](../how-to/add-a-plug-in.md).\n"
    yield from ("| group | what it declares |", "|---|---|")
    yield from (f"| `{group}` | {meaning} |" for group, meaning in GROUPS.items())
    yield ""


def metrics_page() -> Iterator[str]:
    """Every metric that Prometheus collects from `ioprism watch --http`."""
    yield "# Metrics of `ioprism watch`\n"
    yield "With `--http PORT`, Prometheus collects these from `/metrics`;"
    yield "[how to watch](../how-to/watch-a-running-job.md) has an example.\n"
    yield from ("| metric | type | meaning |", "|---|---|---|")
    name = meaning = ""
    for line in exposition(Counts(), Latency(), []).splitlines():
        if line.startswith("# HELP "):
            name, _, meaning = line.removeprefix("# HELP ").partition(" ")
        elif line.startswith("# TYPE "):
            yield f"| `{name}` | {line.split()[-1]} | {meaning} |"
    yield ""


def counter_page() -> Iterator[str]:
    """Every Darshan counter of `trace.counters`, module by module."""
    yield "# Darshan's counters\n"
    yield "`trace.counters[MODULE]` is a table with a row for each record: `file`, `rank` (−1: all"
    yield "ranks together), and these columns, named as Darshan names them. Columns that the log's"
    yield "version does not have are null.\n"
    for name, versions in sorted(FIXED.items()):
        layout = versions[max(versions)]
        known = MODULES.get(name)
        layer = f", the interface `{known.layer}`" if known is not None else ""
        yield f"## {name}\n"
        yield f"Newest version {max(versions)}{layer}.\n"
        yield (
            ", ".join(f"`{counter}`" for counter in (*layout.counters, *layout.times, *layout.tail))
            + "\n"
        )


def error_page() -> Iterator[str]:
    """Every error a caller can catch."""
    yield "# Errors\n"
    yield from ("```", inspect.cleandoc(errors.__doc__ or ""), "```\n")
    for name, thing in vars(errors).items():
        if isinstance(thing, type) and issubclass(thing, errors.IoprismError | UserWarning):
            base = thing.__mro__[1].__name__
            yield f"## {name}\n"
            yield f"{inspect.getdoc(thing)}\n"
            yield f"A kind of `{base}`.\n"
