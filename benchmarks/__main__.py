"""``python -m benchmarks [NAME…]`` runs all benchmarks, or those named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

WITHOUT_MAIN = (
    "__main__",
    "peers",
    "period_families",
    "simulated_machines",
    "simulated_storage",
)  # ends of names


def main() -> None:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    every = [name for name in names if not name.endswith(WITHOUT_MAIN)]
    for name in sys.argv[1:] or every:
        print(f"\n== {name}")
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
