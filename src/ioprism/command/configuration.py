"""The user's configuration file: defaults of options, by command.

```toml
[diagnose]
site = "/projects/io/site.store"

[servers.report]
top = 20
```
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from click import UsageError

from ioprism.text import printable, read_toml

VARIABLE = "IOPRISM_CONFIG"


def configuration_file() -> Path:
    """Return the file that IOPRISM_CONFIG names, or the one in the user's configuration folder."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "ioprism" / "config.toml"


def configured_defaults() -> dict[str, Any]:
    """Read the defaults; a file that is not there has none.

    Raises:
        UsageError: the file is not TOML, or does not hold options by command.
    """
    try:
        path = configuration_file()
        content = read_toml(path)
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return {}  # RuntimeError: the user has no home
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the configuration file {printable(str(path))} cannot be used: "
            f"{printable(str(error))}.\nHint: write options below [COMMAND], or remove the file."
        ) from error
    if not all(isinstance(options, dict) for options in content.values()):
        raise UsageError(
            f"the configuration file {printable(str(path))} has an option outside a command.\n"
            "Hint: write options below [COMMAND]."
        )
    return {command: _by_parameter(options) for command, options in content.items()}


def _by_parameter(options: dict[str, Any]) -> dict[str, Any]:
    """Name options as click's parameters, `fail-on` as `fail_on`, also of subcommands."""
    return {
        name.replace("-", "_") if not isinstance(value, dict) else name: (
            _by_parameter(value) if isinstance(value, dict) else value
        )
        for name, value in options.items()
    }
