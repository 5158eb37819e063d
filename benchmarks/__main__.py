"""``python -m benchmarks [NAME…]`` runs all benchmarks, or those named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

NOT_BENCHMARKS = {"__main__", "peers", "rhythm_families", "simulated_machines"}


def main() -> None:
    every = [
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in NOT_BENCHMARKS
    ]
    for name in sys.argv[1:] or every:
        print(f"\n== {name}")
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
