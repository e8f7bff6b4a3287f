"""The bytes of a spec as text, with line numbers as editors and tracebacks count them."""

from __future__ import annotations

import hashlib
import re
import stat
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_caliper.spec.findings import Findings

MAX_BYTES = 4_000_000
"""A spec of 200 tasks has 180 kB; what is larger than this is no spec."""

# All but what YAML 1.1 calls printable (https://yaml.org/spec/1.1/#c-printable), and NEL, a line break to YAML not Python.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A spec's text with `\\n` line ends and no byte-order mark."""

    text: str
    digest: str
    """`sha256:` of the file's bytes."""

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _breaks(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    def line_at(self, index: int) -> int:
        """0-based line of the character at `index`. YAML's own marks also count U+2028 as a line; nobody else does."""
        return bisect_left(self._breaks, index)

    def column_at(self, index: int) -> int:
        """0-based column of the character at `index`, in UTF-8 bytes as `ast` counts them."""
        start = self.text.rfind("\n", 0, index) + 1
        return len(self.text[start:index].encode())


def read_source(path: Path, findings: Findings) -> Source:
    """Read the file at `path`. Raises SpecError when it is unreadable, too large, not UTF-8, or holds control characters."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            findings.fail(1, "this is not a file: name a `.eval.yaml` file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        findings.fail(1, f"cannot read the spec ({error.strerror or error}): check the path and its permissions")
    if len(data) > MAX_BYTES:
        findings.fail(1, f"the spec is larger than {MAX_BYTES // 1_000_000} MB: move long texts into files that the tasks read")
    text = _decode(data, findings).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if wrong := _FORBIDDEN.search(text):
        line = text.count("\n", 0, wrong.start()) + 1
        code = f"U+{ord(wrong.group()):04X}"
        findings.fail(
            line, f'control character {code} in the file: delete it, or write it as an escape in double quotes ("\\x1b")'
        )
    return Source(text=text, digest="sha256:" + hashlib.sha256(data).hexdigest())


def _decode(data: bytes, findings: Findings) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        kind = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "not UTF-8"
        byte = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        findings.fail(before.count(b"\n") + 1, f"the file is {kind} ({byte}): save it as UTF-8")
