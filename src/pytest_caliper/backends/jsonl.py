"""Reads the JSON lines that agent CLIs print, whatever else is between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is skipped: no event of any CLI is that long, and the whole of it would have to be held in memory."""


_DECODER = json.JSONDecoder(parse_constant=str)


@dataclass(kw_only=True, slots=True)
class LineFaults:
    """What `json_objects` left out."""

    garbage: int = 0
    """Lines that are no JSON object: noise, or the last line of a stream that was cut."""
    too_long: int = 0


def json_objects(path: Path, faults: LineFaults, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one line at a time, in order; what is none is counted in `faults`.

    Lines end at `\\n` only: JSON strings may hold U+2028, U+0085 and other characters at which `str.splitlines` splits.
    """
    with path.open("rb") as file:
        while line := file.readline(max_line_bytes):
            if len(line) == max_line_bytes and not line.endswith(b"\n"):
                faults.too_long += 1
                _skip_line(file)
            elif text := line.strip():
                # What cannot be an object is not parsed: millions of lines of noise would take minutes.
                data = parse_json(line) if text.startswith(b"{") else None
                if isinstance(data, dict):
                    yield data
                else:
                    faults.garbage += 1


def parse_json(line: bytes) -> Any:
    """The value of a JSON text, with bytes that are not UTF-8 replaced and NaN as a word; None when it is no JSON."""
    try:
        return _DECODER.decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _skip_line(file: IO[bytes]) -> None:
    while chunk := file.readline(1024 * 1024):
        if chunk.endswith(b"\n"):
            return
