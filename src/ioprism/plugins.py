"""What other installed packages add to ioprism: entry points, one group for each kind of thing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioprism.errors import PluginError

if TYPE_CHECKING:  # takes as long to load as a small log to judge
    from importlib.metadata import EntryPoint

# What a package declares in each group; the how-to on plug-ins has an example of every one.
GROUPS: Mapping[str, str] = {
    "ioprism.readers": "a class with the methods of `ioprism.formats.registry.Reader`",
    "ioprism.counter_readers": "for servers' counters: `ioprism.servers.raw_files.CounterReader`",
    "ioprism.job_readers": "for lists of jobs: `ioprism.servers.raw_files.JobReader`",
    "ioprism.views": "an `ioprism.views.call_class.TableView`, under the view's name",
    "ioprism.causes": "a function from an `ioprism.diagnosis.observed.Observed` to "
    "an iterator of `ioprism.diagnosis.replay.Proposal`",
    "ioprism.rules": "a sequence of `ioprism.diagnosis.rules.rule.Rule`",
    "ioprism.reports": "a function from an `ioprism.report_steps.Document` to text, "
    "under the ending of the file's name",
    "ioprism.transports": "a function from an address to an `ioprism.live.sources.StreamSource`, "
    "under the address's scheme",
}

INFO = (".dist-info", ".egg-info")  # where installed packages say what they declare


@cache
def declared(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, in the order of their names."""
    if not any_declared():
        return ()
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda one: one.name))


def load(plugin: EntryPoint) -> Any:  # noqa: ANN401 - each group says what it is
    """Return what a plug-in declares.

    Raises:
        PluginError: its code cannot be loaded.
    """
    try:
        return plugin.load()
    except Exception as error:
        package = plugin.dist.name if plugin.dist is not None else plugin.module
        raise PluginError(plugin.name, group=plugin.group, package=package, why=error) from error


@cache
def any_declared() -> bool:
    """Whether some package speaks of us at all.

    Most installations have no plug-in, and `importlib.metadata` would take longer to find that
    out than a small log takes to be judged.
    """
    return any(
        entry.name.endswith(INFO) and b"[ioprism." in _content(entry / "entry_points.txt")
        for folder in map(Path, dict.fromkeys(sys.path))
        if folder.is_dir()
        for entry in folder.iterdir()
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # most packages declare nothing
        return b""
