"""`dataclass`, as the standard library's, but created in a third of the time.

The standard library compiles the text of six methods for each class. A short command has about 70
classes and spent half of its instructions on that. Here only `__init__` is compiled; the others
are the same functions for every class. Whatever is unusual (derived classes, fields with options)
is left to the standard library, and so are the fields: `fields`, `replace` and `asdict` work.
"""

from __future__ import annotations

import dataclasses
import inspect
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # so that type checkers know what it does
else:

    def dataclass(
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        repr: bool = True,  # noqa: A002 - its name in the standard library
        **others: bool,
    ) -> Callable[[type], type]:
        """Make a class a dataclass."""

        def decorate(cls: type) -> type:
            if others or not _is_plain(cls):
                options = {"frozen": frozen, "slots": slots, "eq": eq, "repr": repr, **others}
                return dataclasses.dataclass(**options)(cls)
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature is found for one
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            made.__dataclass_params__.frozen = frozen  # what derived dataclasses must be, too
            methods = _methods(made, frozen=frozen, slots=slots, eq=eq, shown=repr)
            for name, method in methods.items():
                if name not in cls.__dict__:
                    setattr(made, name, method)
            return made

        return decorate


def _is_plain(cls: type) -> bool:
    """Whether it has fields of its own alone, and none has more than a default."""
    kinds = inspect.get_annotations(cls)
    return (
        bool(kinds)
        and not any(map(dataclasses.is_dataclass, cls.__bases__))
        and not any(str(kind).startswith(("ClassVar", "InitVar")) for kind in kinds.values())
        and not any(_has_options(cls.__dict__.get(name)) for name in kinds)
    )


def _has_options(default: object) -> bool:
    if not isinstance(default, dataclasses.Field):
        return False
    options = default.init, default.repr, default.compare, default.hash, default.kw_only
    return options != (True, True, True, None, dataclasses.MISSING)


def _methods(
    cls: Any,  # noqa: ANN401
    *,
    frozen: bool,
    slots: bool,
    eq: bool,
    shown: bool,
) -> dict[str, Any]:
    """All methods of a dataclass, by name."""
    methods: dict[str, Any] = {"__init__": _constructor(cls, slots=slots)}
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:  # else copies are refused
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    if shown:
        methods["__repr__"] = _shown
    if eq:
        methods |= _comparison(attrgetter(*cls.__match_args__), hashable=frozen)
    return methods


def _constructor(cls: Any, *, slots: bool) -> Callable[..., None]:  # noqa: ANN401
    """Compile `__init__`, which sets every slot, or entry of the object's dictionary."""
    space: dict[str, Any] = {"GIVEN_BY": _GIVEN_BY}
    parameters, body = ["self"], ["    own = self.__dict__"] if not slots else []
    for name in cls.__match_args__:
        field, value = cls.__dataclass_fields__[name], name
        if slots:
            space[f"set_{name}"] = getattr(cls, name).__set__
        if field.default is not dataclasses.MISSING:
            space[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            space[f"make_{name}"] = field.default_factory
            parameters.append(f"{name}=GIVEN_BY")
            value = f"make_{name}() if {name} is GIVEN_BY else {name}"
        else:
            parameters.append(name)
        body.append(f"    set_{name}(self, {value})" if slots else f"    own[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body), space)  # noqa: S102
    constructor: Any = space["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    constructor.__annotations__ = inspect.get_annotations(cls) | {"return": None}
    return constructor  # type: ignore[no-any-return]


class _Factory:
    """Stands for the default of a field that is made anew for every object."""

    def __repr__(self) -> str:
        return "<factory>"


_GIVEN_BY = _Factory()


def _comparison(values: Callable[[Any], Any], *, hashable: bool) -> dict[str, Any]:
    def equal(self: object, other: object) -> Any:  # noqa: ANN401 - true, false or not comparable
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hashed if hashable else None}


def _shown(self: Any) -> str:  # noqa: ANN401
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({fields})"


def _state(self: Any) -> list[Any]:  # noqa: ANN401
    return [getattr(self, name) for name in self.__match_args__]


def _restore(self: Any, state: list[Any]) -> None:  # noqa: ANN401
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
