"""What fixtures hand to an attempt, looked at before it is believed: they may be anybody's."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union

T = TypeVar("T")


def checked(value: object, kind: type[T]) -> T:
    """`value`, if it is a `kind` (a dataclass) whose fields hold what they are declared to hold; lists pass for tuples.

    Raises TypeError that names the field. Without this a wrong value would surface far away, as the end of the whole run.
    """
    if not isinstance(value, kind):
        raise TypeError(f"it returned {_shown(value)}, not a {kind.__name__}")
    for name, hint in _fields(typing.cast("Any", kind)):
        if not _fits(given := getattr(value, name), hint):
            raise TypeError(f"it returned a {kind.__name__} whose {name} is {_shown(given)}")
    return value


@lru_cache(maxsize=32)
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _fits(value: object, hint: Any) -> bool:
    """Whether `value` is of the type that `hint` says, for the hints that our dataclasses have."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, (tuple, list)) and all(_fits(entry, parts[0]) for entry in value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    if hint is float or hint is int:
        return isinstance(value, (int, hint)) and not isinstance(value, bool) and math.isfinite(value)
    if dataclasses.is_dataclass(hint):
        return isinstance(value, typing.cast("type", hint)) and all(
            _fits(getattr(value, name), part) for name, part in _fields(typing.cast("type", hint))
        )
    return isinstance(value, hint)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  the object is somebody's own class
        text = f"<no repr: {type(error).__name__}>"
    return text if len(text) <= 80 else f"{text[:79]}…"
