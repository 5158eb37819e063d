"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Usage: python .ci/lowest_versions.py [EXTRA...] > constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

LOWER = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9.]+)")


def main() -> None:
    """Print one line per requirement, each package once."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for extra in sys.argv[1:] for one in extras[extra])]
    for text in wanted:
        found = LOWER.match(text)
        if found is None:
            raise SystemExit(f"{text!r} has no lower bound")
        sys.stdout.write(f"{found[1]}=={found[2]}\n")


if __name__ == "__main__":
    main()
