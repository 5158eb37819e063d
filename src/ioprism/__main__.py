"""``python -m ioprism`` is the command line."""

from __future__ import annotations

from ioprism.cli import main

if __name__ == "__main__":
    main()
