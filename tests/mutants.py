"""Change the code a little, many times, and see whether a test notices: `make mutants`.

Every mutant is one change to one line of a reader, a rule or a store: a comparison turned round,
a number moved by one, a condition negated, a warning dropped. It is noticed if the tests beside
its module fail. Mutants are chosen by a seed, so that two runs compare; the code itself is never
touched, they run in a copy.

Usage: python -m tests.mutants [--seconds 600] [--only WORD] [--what WORD]
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ioprism"
PATIENCE = 90.0  # seconds for the tests of one mutant; then it is neither noticed nor not
SUBJECTS = {  # modules, and the tests that have to notice
    "formats/darshan": "tests/formats/darshan",
    "formats/dftracer": "tests/formats/dftracer",
    "formats/recorder": "tests/formats/recorder",
    "formats/strace": "tests/formats/strace",
    "formats/chrome": "tests/formats/chrome",
    "formats/tables": "tests/formats/tables",
    "servers": "tests/servers",
    "formats/signals": "tests/formats/signals",
    "formats/reading.py": "tests/formats/test_plausibility.py",
    "storage": "tests/storage",
    "diagnosis": "tests/diagnosis",
    "bottleneck_search/rule_language": "tests/bottleneck_search",
}
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to a module."""

    path: Path
    number: int  # of the changed node in the module's tree
    line: int
    what: str
    text: str = field(repr=False)  # of the module, which may be edited while mutants run

    def source(self) -> str:
        """The module with the change."""
        tree = ast.parse(self.text)
        _change(list(ast.walk(tree))[self.number], self.what)
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every change that this program knows to make to a module."""
    text = path.read_text(encoding="utf-8")
    for number, node in enumerate(ast.walk(ast.parse(text))):
        for what in _changes(node):
            yield Mutant(path, number, getattr(node, "lineno", 0), what, text)


def _changes(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
        return ["comparison turned"]
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        return ["operator swapped"]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return ["condition negated"]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _warns(node.value):
        return ["warning dropped"]
    if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < 1000:
        return ["number plus one"]
    return []


def _warns(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in ("warn", "_warn")


def _change(node: ast.AST, what: str) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = TURNED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = SWAPPED[type(node.op)]()
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Expr):
        node.value = ast.Constant(None)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    else:
        raise TypeError(what)


def chosen(seed: int, only: str, what: str = "") -> Iterator[tuple[Mutant, str]]:
    """Yield mutants and their tests for ever so long, one subject after the other in turn."""
    queues = []
    for subject, tests in SUBJECTS.items():
        if only in subject and (ROOT / tests).exists():
            place = PACKAGE / subject
            files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
            found = [m for file in files for m in mutants_of(file) if what in m.what]
            random.Random(f"{seed}{subject}").shuffle(found)
            queues.append((found, tests))
    while queues:
        for found, tests in list(queues):
            if found:
                mutant = found.pop()
                yield mutant, tests
            else:
                queues.remove((found, tests))


def closest(module: Path, tests: str) -> str:
    """The tests of the module itself if there are some, else all of its subject."""
    own = f"{tests}/test_{module.stem}.py"
    return own if (ROOT / own).is_file() else tests


def is_noticed(mutant: Mutant, tests: str, place: Path) -> bool | None:
    """Whether the tests fail with this mutant in place; None if they take too long."""
    target = place / mutant.path.relative_to(PACKAGE.parent)
    target.write_text(mutant.source(), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", tests]
    command += ["--ignore", "tests/storage/test_faults.py"]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(place)},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    finally:
        target.write_text(mutant.text, encoding="utf-8")
    return done.returncode != 0


def main() -> None:
    """Try mutants until the time is over, and say how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**9, help="mutants to try")
    parser.add_argument("--only", default="", help="a word that the subject's name holds")
    parser.add_argument("--what", default="", help="the kind of change, such as `warning`")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    results: Counter[bool | None] = Counter()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shutil.copytree(PACKAGE, place / PACKAGE.name, ignore=shutil.ignore_patterns("*.pyc"))
        for mutant, tests in chosen(options.seed, options.only, options.what):
            if time.monotonic() > until or results.total() >= options.most:
                break
            found = is_noticed(mutant, closest(mutant.path, tests), place)
            if found is False and closest(mutant.path, tests) != tests:
                found = is_noticed(mutant, tests, place)
            results[found] += 1
            told = {True: "noticed", False: "SURVIVED", None: "too slow"}[found]
            where = mutant.path.relative_to(ROOT)
            sys.stdout.write(f"{told}: {where}:{mutant.line} {mutant.what}\n")
            sys.stdout.flush()
    decided = results[True] + results[False]
    share = results[True] / decided if decided else 0.0
    slow = f", {results[None]} took too long" if results[None] else ""
    sys.stdout.write(f"{results[True]} of {decided} mutants noticed ({share:.0%}){slow}\n")


if __name__ == "__main__":
    main()
