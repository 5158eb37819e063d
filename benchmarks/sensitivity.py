"""What each number that decides a verdict does: moved by -30 % and +40 % over known answers.

``python -m benchmarks.sensitivity [FOLDER…]`` takes folders of real programs (`truth.json`) or of
planted causes (`*.truth.json`); by default one planted case of every kind. For each number it
prints how many first causes change and how many of them become right or wrong.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchmarks.diagnosis_cases import make_cases
from ioprism.diagnosis.judge import judge_trace
from ioprism.diagnosis.limits import Limits
from ioprism.engine.local import LocalEngine
from ioprism.engine.prepared import in_memory
from ioprism.errors import IoprismError
from ioprism.formats.registry import read_trace

FACTORS = (0.7, 1.4)
SEED = 101

Case = tuple[Path, frozenset[str]]  # a log, and the causes that are accepted; none: nothing to gain


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folders = [Path(name) for name in sys.argv[1:]] or [Path(made)]
        if not sys.argv[1:]:
            make_cases(Path(made), (SEED,))
        cases = [case for folder in folders for case in known_cases(folder)]
        print(f"{len(cases)} logs with known answers")
        usual = {path: first_cause(path, Limits()) for path, _ in cases}
        print(f"right as they are: {sum(is_right(usual[p], t) for p, t in cases)} of {len(cases)}")
        for one in fields(Limits):
            print(f"{one.name:22} {one.default!s:24} {_effect(one.name, cases, usual)}")


def _effect(name: str, cases: list[Case], usual: dict[Path, str | None]) -> str:
    parts = []
    for factor in FACTORS:
        limits = replace(Limits(), **{name: scale(getattr(Limits(), name), factor)})
        answers = {path: first_cause(path, limits) for path, _ in cases}
        changed = [(p, t) for p, t in cases if answers[p] != usual[p]]
        gained = sum(is_right(answers[p], t) and not is_right(usual[p], t) for p, t in changed)
        lost = sum(is_right(usual[p], t) and not is_right(answers[p], t) for p, t in changed)
        parts.append(f"x{factor}: {len(changed)} change, {gained} become right, {lost} wrong")
    return "; ".join(parts)


def scale(value: Any, factor: float) -> Any:  # noqa: ANN401 - a number, or several
    """Move a number, or all numbers of a tuple."""
    if isinstance(value, tuple):
        return tuple(scale(one, factor) for one in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def known_cases(folder: Path) -> Iterator[Case]:
    """Yield the logs of a folder, and what is accepted as their first cause."""
    whole = folder / "truth.json"
    if whole.is_file():
        for truth in json.loads(whole.read_text()).values():
            accepted = frozenset(truth["truth"]) - {"compute-imbalance"}
            for log in truth["logs"]:
                if log["side"] == "before" and log["recorder"] not in truth["not_in_the_log_of"]:
                    yield folder / log["path"], accepted
        return
    for path in sorted(folder.glob("*.truth.json")):
        log = path.with_name(path.name.removesuffix(".truth.json") + ".darshan")
        if log.is_file():
            yield log, frozenset(json.loads(path.read_text())["causes"])


def first_cause(path: Path, limits: Limits) -> str | None:
    """Return the code of the main cause of a log."""
    try:
        trace = in_memory(read_trace(path))
        return judge_trace(trace, LocalEngine(), limits=limits).verdict.first
    except IoprismError:
        return None


def is_right(code: str | None, accepted: frozenset[str]) -> bool:
    """Return whether an answer is accepted; without a cause, none is."""
    return code in accepted if accepted else code is None


if __name__ == "__main__":
    main()
