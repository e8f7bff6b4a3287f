"""Files that hold secrets: read from the user's configuration, written into an attempt's home for its owner alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.contracts import EngineError

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


def read_bytes(path: Path) -> bytes | None:
    """A file's content; None when there is no such file. Raises EngineError when it cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EngineError(f"{path}: {error.strerror}: make it readable") from error


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """The JSON object in a file; empty when there is no such file or it holds something else.

    Raises EngineError with the `remedy` when it is no JSON.
    """
    data = read_bytes(path)
    return {} if data is None else parse_object(data.decode("utf-8-sig", "replace"), str(path), remedy)


def parse_object(text: str, where: str, remedy: str) -> dict[str, Any]:
    """The object that JSON, or JSON with comments and trailing commas, spells; empty for another value.

    Raises EngineError that begins with `where` and ends with the `remedy` when it spells nothing.
    """
    bare = _COMMENT.sub(_blanked, text)
    bare = _TRAILING_COMMA.sub(lambda match: " " if match[0] == "," else match[0], bare)
    if not bare.strip():
        return {}
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{where}: not valid JSON ({error}): {remedy}") from error
    return value if isinstance(value, dict) else {}


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file with mode 0600. What stands at its place is replaced, never written through: it may be a link."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)


def write_object(path: Path, data: Mapping[str, Any]) -> None:
    """`write_bytes` of a JSON object."""
    write_bytes(path, json.dumps(data, indent=2).encode())


def _blanked(match: re.Match[str]) -> str:
    """A string as it is; a comment as blanks, so that errors name the right line and column."""
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])
