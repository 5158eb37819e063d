"""What each number that decides a verdict does: moved by -30 % and +40 % over known answers.

``python -m benchmarks.sensitivity [FOLDER…]`` takes folders of real programs (`truth.json`) or of
planted causes (`*.truth.json`); by default one planted case of every kind. For each number of the
table of limits, and each named number in the modules of `ioprism.diagnosis`, it prints how many
first causes and savings change and how many first causes become right or wrong.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ioprism.diagnosis
from benchmarks.diagnosis_cases import make_cases
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.steps import judge_trace
from ioprism.engine.base import LocalEngine, in_memory
from ioprism.formats.registry import read_trace
from ioprism.model.trace import Trace

FACTORS = (0.7, 1.4)
CLOSE = 0.05  # of a saving
SEED = 101


class Answer(NamedTuple):
    """The code of the main cause and the seconds that a fix saves."""

    first: str | None
    saving: float


Case = tuple[Path, frozenset[str]]  # a log, and the causes that are accepted; none: nothing to gain


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folders = [Path(name) for name in sys.argv[1:]] or [Path(made)]
        if not sys.argv[1:]:
            make_cases(Path(made), (SEED,))
        cases = [case for folder in folders for case in known_cases(folder)]
        print(f"{len(cases)} logs with known answers")
        usual = answers(cases, Limits())
        right = sum(
            is_right(one.first, known) for one, (_, known) in zip(usual, cases, strict=True)
        )
        print(f"right as they are: {right} of {len(cases)}")
        for one in fields(Limits):
            moved = (
                answers(cases, replace(Limits(), **{one.name: scale(one.default, factor)}))
                for factor in FACTORS
            )
            print(f"{one.name:36} {one.default!s:24} {_effect(moved, cases, usual)}", flush=True)
        for module, name, value in named_numbers():
            moved = (_with_number(module, name, scale(value, factor), cases) for factor in FACTORS)
            short = f"{module.removeprefix('ioprism.diagnosis.')}.{name}"
            print(f"{short:36} {value!s:24} {_effect(moved, cases, usual)}", flush=True)


def _effect(moved: Iterable[list[Answer]], cases: list[Case], usual: list[Answer]) -> str:
    parts = []
    for factor, now in zip(FACTORS, moved, strict=True):
        rows = list(zip(now, usual, (known for _, known in cases), strict=True))
        first = sum(one.first != before.first for one, before, _ in rows)
        saving = sum(abs(a.saving - b.saving) > CLOSE * (b.saving or 1e-9) for a, b, _ in rows)
        gained = sum(is_right(a.first, t) and not is_right(b.first, t) for a, b, t in rows)
        lost = sum(is_right(b.first, t) and not is_right(a.first, t) for a, b, t in rows)
        change = f"{first} causes, {saving} savings change; +{gained} right, +{lost} wrong"
        parts.append(f"x{factor}: {change}" if first or saving else f"x{factor}: nothing")
    return "; ".join(parts)


def named_numbers() -> Iterator[tuple[str, str, Any]]:
    """Yield module, name and value of the numbers that modules of the diagnosis name."""
    for one in pkgutil.walk_packages(ioprism.diagnosis.__path__, "ioprism.diagnosis."):
        module = importlib.import_module(one.name)
        for node in ast.parse(Path(module.__file__ or "").read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                value = getattr(module, name)
                if name.isupper() and isinstance(value, int | float) and value > 1e-3:
                    yield one.name, name, value


def _with_number(module: str, name: str, value: Any, cases: list[Case]) -> list[Answer]:  # noqa: ANN401
    """Answer with another number in its module and in those that import it from there."""
    known = getattr(sys.modules[module], name)
    holders = [
        held
        for path, held in list(sys.modules.items())
        if path.startswith("ioprism.diagnosis") and getattr(held, name, None) is known
    ]
    try:
        for held in holders:
            setattr(held, name, value)
        return answers(cases, Limits())
    finally:
        for held in holders:
            setattr(held, name, known)


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


def answers(cases: list[Case], limits: Limits) -> list[Answer]:
    """Return the main cause of each log and its saving."""
    return [_answer(path, limits) for path, _ in cases]


def _answer(path: Path, limits: Limits) -> Answer:
    try:
        verdict = judge_trace(_trace(path), LocalEngine(), limits=limits).verdict
    except Exception as error:  # noqa: BLE001 - a number may be one that cannot be
        return Answer(type(error).__name__, 0.0)
    return Answer(verdict.first, next((one.saving.seconds for one in verdict.causes), 0.0))


@cache
def _trace(path: Path) -> Trace:
    return in_memory(read_trace(path))


def is_right(code: str | None, accepted: frozenset[str]) -> bool:
    """Return whether an answer is accepted; without a cause, none is."""
    return code in accepted if accepted else code is None


if __name__ == "__main__":
    main()
