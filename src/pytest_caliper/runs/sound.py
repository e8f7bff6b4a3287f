"""Whether data that came from elsewhere is what our dataclasses say that it is."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Union

_LATE = {"BarPolicy": Literal["point", "lower"]}
"""Names that are imported for type checkers only."""


@lru_cache(maxsize=32)
def fields_of(kind: type) -> tuple[tuple[str, Any], ...]:
    """(name, resolved type) of each field of a dataclass."""
    hints = typing.get_type_hints(kind, localns=_LATE)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def fits(value: object, hint: Any) -> bool:
    """Whether `value` is of the type that `hint` says, for the hints that our dataclasses have."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, (tuple, list)) and all(fits(entry, parts[0]) for entry in value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    if hint is float or hint is int:
        return isinstance(value, (int, hint)) and not isinstance(value, bool) and math.isfinite(value)
    if dataclasses.is_dataclass(hint):
        return isinstance(value, typing.cast("type", hint)) and all(
            fits(getattr(value, name), part) for name, part in fields_of(typing.cast("type", hint))
        )
    return isinstance(value, hint)
