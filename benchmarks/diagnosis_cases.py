"""Diagnoses of simulated runs with a planted cause: how often cause, culprit and saving are right.

``python -m benchmarks.diagnosis_cases [SEED…]`` makes one case of every kind for each seed, with
single calls and, where counters can show the cause, with counters only; workflows are read back
from DFTracer files. The shares mean what ``accept/causes.py`` of the shared folder prints.
``--verbose`` prints every case, ``--kind KIND`` looks at some kinds only, ``--folder FOLDER``
judges cases that lie there instead.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.simulated_storage.cases import (
    COUNTED,
    KINDS,
    WORKFLOWS,
    make,
    write_case,
    write_workflow,
)
from ioprism.diagnosis.steps import judge_trace
from ioprism.engine.base import LocalEngine
from ioprism.formats.registry import read_trace

SEEDS = (101, 102, 103)
WORTH = 0.03  # of the run time: what claims more where nothing is to be gained is a false alarm
THIRD = 1.33
TELLING = ("target", "targets", "host", "ranks", "rank", "file", "directory", "from", "to")
NEAR = 6.0  # seconds that the edges of a stretch of time may be off
WANTED = {
    "first cause": 0.9, "culprit": 0.9, "saving within a third": 0.7,
    "interval holds the saving": 0.75, "interval is narrow": 0.7, "both of two": 0.9,
    "nothing to gain": 1.0, "no second counted twice": 1.0,
}  # fmt: skip

Truth = Mapping[str, Any]
Marks = dict[str, list[bool]]


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(arguments.folder or folder)
        if arguments.folder is None:
            make_cases(place, arguments.seeds or SEEDS, arguments.kind)
        groups: dict[str, Marks] = defaultdict(lambda: defaultdict(list))
        for path in sorted(place.glob("*.truth.json")):
            name = path.name.removesuffix(".truth.json")
            truth = json.loads(path.read_text())
            trace = read_trace(_trace_path(place, name), grouping="one")
            answer = judge_trace(trace, LocalEngine()).verdict.to_dict()
            marks, line = _judge(truth, answer)
            for group in ("all", _group(name)):
                for what, value in marks.items():
                    groups[group][what].append(value)
            if arguments.verbose:
                print(f"{name:34} {line}")
    for group, marks_of in groups.items():
        print(f"\n{group}")
        for what, wanted in WANTED.items():
            given = marks_of.get(what, [])
            if given:
                share = sum(given) / len(given)
                print(f"  {what:28} {share:5.2f} of {len(given):3} (wanted {wanted})")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int)
    parser.add_argument("--kind", action="append")
    parser.add_argument("--folder")
    parser.add_argument("--verbose", action="store_true")
    known, _ = parser.parse_known_args()
    return known


def make_cases(folder: Path, seeds: tuple[int, ...], kinds: list[str] | None = None) -> None:
    """Write one case of every kind for each seed."""
    for seed in seeds:
        for kind in kinds or [*KINDS, *WORKFLOWS]:
            case = make(kind, seed=seed)
            if kind in WORKFLOWS:
                write_workflow(folder, f"{kind}_{seed}", case)
                continue
            write_case(folder, f"{kind}_{seed}", case)
            if kind in COUNTED:
                write_case(folder, f"{kind}-counters_{seed}", case, counters_only=True)


def _trace_path(folder: Path, name: str) -> Path:
    log = folder / f"{name}.darshan"
    return log if log.exists() else folder / name


def _group(name: str) -> str:
    if name.startswith("workflow"):
        return "workflows"
    return "counters only" if "-counters" in name else "single calls"


def _judge(truth: Truth, answer: Mapping[str, Any]) -> tuple[dict[str, bool], str]:
    causes = answer["causes"]
    said = [(c["code"], c["culprit"], round(c["saving"]["seconds"], 2)) for c in causes[:2]]
    total = sum(cause["saving"]["seconds"] for cause in causes)
    if not truth["causes"]:
        calm = all(c["saving"]["seconds"] <= WORTH * truth["runtime"] for c in causes)
        return {
            "nothing to gain": calm
        }, f"{'ok' if calm else 'FALSE ALARM'} {said if not calm else ''}"
    marks = dict(_marks(truth, causes))
    marks["no second counted twice"] = total <= 1.05 * truth["in_io"]
    wrong = [what for what, right in marks.items() if not right]
    wants = f"{truth['causes'][0]} {truth['culprit']} {truth.get('savings', truth['saving'])}"
    return marks, f"{'ok' if not wrong else '; '.join(wrong)} | {wants} | {said}"


def _marks(truth: Truth, causes: list[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    first = causes[0] if causes else None
    right = first is not None and first["code"] in truth["causes"]
    yield "first cause", right
    named = _names(first["culprit"], truth["culprit"]) if first and right else False
    if named is not None:
        yield "culprit", named
    if first is not None and right:
        true = truth.get("savings", {}).get(first["code"], truth["saving"])
        saving = first["saving"]
        yield "saving within a third", true / THIRD <= saving["seconds"] <= true * THIRD
        yield "interval holds the saving", saving["low"] <= true <= saving["high"]
        width = saving["high"] - saving["low"]
        yield "interval is narrow", width <= max(0.6 * true, 0.05 * truth["runtime"])
    else:
        yield "saving within a third", False
        yield "interval holds the saving", False
    if "savings" in truth:
        yield "both of two", {cause["code"] for cause in causes[:3]} >= set(truth["causes"])


def _names(culprit: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool | None:
    """Whether a culprit names what was planted; None where the code says it all."""
    telling = {key: value for key, value in wanted.items() if key in TELLING}
    if not telling:
        return None
    if "directory" in telling and "directory" in culprit:
        return str(culprit["directory"]).rstrip("/").startswith(str(telling["directory"]))
    return any(_same(culprit, key, value) for key, value in telling.items())


def _same(culprit: Mapping[str, Any], key: str, value: Any) -> bool:  # noqa: ANN401 - JSON
    said = culprit.get(key)
    if key in ("ranks", "targets"):
        return said is not None and set(value) <= set(said) and len(said) <= 2 * len(value)
    if key in ("from", "to"):
        return said is not None and abs(said - value) <= NEAR
    if key == "target" and value in culprit.get("targets", ())[:2]:
        return True  # files that always lie on both: no log tells which of the two it is
    return said is not None and str(said) == str(value)


if __name__ == "__main__":
    main()
