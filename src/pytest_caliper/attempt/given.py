"""What fixtures hand to an attempt, looked at before it is believed: they may be anybody's."""

from __future__ import annotations

import typing
from typing import Any, TypeVar

from pytest_caliper.runs.sound import fields_of, fits

T = TypeVar("T")


def checked(value: object, kind: type[T]) -> T:
    """`value`, if it is a `kind` (a dataclass) whose fields hold what they are declared to hold; lists pass for tuples.

    Raises TypeError that names the field. Without this a wrong value would surface far away, as the end of the whole run.
    """
    if not isinstance(value, kind):
        raise TypeError(f"it returned {_shown(value)}, not a {kind.__name__}")
    for name, hint in fields_of(typing.cast("Any", kind)):
        if not fits(given := getattr(value, name), hint):
            raise TypeError(f"it returned a {kind.__name__} whose {name} is {_shown(given)}")
    return value


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  the object is somebody's own class
        text = f"<no repr: {type(error).__name__}>"
    return text if len(text) <= 80 else f"{text[:79]}…"
