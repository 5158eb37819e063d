"""`ioprism.records.dataclass` beside the standard library's, on the same classes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from ioprism import records


def made_by(dataclass: Any) -> dict[str, Any]:
    """One class of every kind that the project has."""

    @dataclass(frozen=True, slots=True)
    class Frozen:
        """With defaults."""

        name: str
        size: int = 7
        parts: list[int] = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class One:
        value: float

    @dataclass(slots=True)
    class Open:
        name: str
        size: int = 0

    @dataclass(frozen=True, slots=True, eq=False)
    class Same:
        name: str

    @dataclass(frozen=True, slots=True)
    class Checked:
        name: str

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    @dataclass(frozen=True, slots=True)
    class Derived(One):
        more: int = 1

    @dataclass(frozen=True, slots=True)
    class Secret:
        name: str
        key: bytes = field(default=b"", repr=False, compare=False)

    @dataclass(frozen=True, slots=True)
    class OwnText:
        name: str
        kind: ClassVar[str] = "text"

        def __repr__(self) -> str:
            return f"<{self.name}>"

    @dataclass(frozen=True)
    class NoSlots:
        name: str

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        name: str

    every = (Frozen, One, Open, Same, Checked, Derived, Secret, OwnText, NoSlots, Named)
    return {one.__name__: one for one in every}


OURS, STANDARD = made_by(records.dataclass), made_by(dataclasses.dataclass)
each_kind = pytest.mark.parametrize("name", OURS)


def both(name: str, question: Callable[[Any], object]) -> tuple[object, object]:
    """The answers of both classes; an error is an answer, too."""
    answers = []
    for classes in (OURS, STANDARD):
        try:
            answers.append(question(classes[name]))
        except (TypeError, AttributeError, ValueError) as error:
            answers.append((type(error), str(error)))
    return answers[0], answers[1]


@each_kind
@pytest.mark.parametrize(
    "question",
    [
        lambda kind: repr(kind("a")),
        lambda kind: str(inspect.signature(kind)),
        lambda kind: kind("a") == kind("a"),
        lambda kind: kind("a") == kind("b"),
        lambda kind: kind("a") == "a",
        lambda kind: kind("a") in {kind("a"): 1},
        lambda kind: repr(copy.copy(kind("a"))),
        lambda kind: repr(copy.deepcopy(kind("a"))),
        lambda kind: repr(dataclasses.replace(kind("a"), **{dataclasses.fields(kind)[0].name: 2})),
        lambda kind: dataclasses.asdict(kind("a")),
        lambda kind: [(one.name, one.type) for one in dataclasses.fields(kind)],
        lambda kind: kind.__match_args__,
        lambda kind: setattr(kind("a"), dataclasses.fields(kind)[0].name, 3),
        lambda kind: delattr(kind("a"), dataclasses.fields(kind)[0].name),
        lambda kind: hasattr(kind("a"), "__dict__"),
        lambda kind: repr(kind("")),
        lambda kind: kind("a", 1).__hash__ is None,
        lambda kind: kind(unknown=1),
        lambda kind: kind(),
    ],
)
def test_does_what_the_standard_library_does(name: str, question: Callable[[Any], object]) -> None:
    ours, standard = both(name, question)
    assert ours == standard


def test_a_default_made_for_each_object_is_not_shared() -> None:
    first, second = OURS["Frozen"]("a"), OURS["Frozen"]("b")
    first.parts.append(1)
    assert second.parts == []
    assert OURS["Frozen"]("c", parts=[2]).parts == [2]


@records.dataclass(frozen=True, slots=True)
class Sent:
    """Found by its name when it is read again."""

    name: str
    size: int = 1


def test_is_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Sent("a", 2))) == Sent("a", 2)


def test_is_matched_by_position() -> None:
    match Sent("a", 2):
        case Sent(name, size):
            assert (name, size) == ("a", 2)
