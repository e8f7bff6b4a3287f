"""Values made fit for JSON that every reader takes: no NaN, no infinity, no lone surrogate."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """A copy of `value` made of JSON's own types.

    Numbers that are not finite become None, surrogates that stand alone become U+FFFD, keys become text. TypeError for what
    JSON has no word for.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {whole(str(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    raise TypeError(f"{type(value).__name__} is not JSON")


def line(value: Any) -> str:
    """`value` as ASCII JSON without a line break."""
    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False)


def whole(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced, so that it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
