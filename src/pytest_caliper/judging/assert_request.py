"""What goes to an assert's process and what comes back, as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class AssertRequest:
    """All that an assert's process needs."""

    code: bytes
    """A marshalled code object, for this very interpreter."""
    cwd: str
    env: Mapping[str, str]
    """The whole environment."""
    path: tuple[str, ...]
    """`sys.path`: absolute directories."""
    spec_dir: str
    """File names in the evidence are relative to it."""
    attempt: Mapping[str, Any]
    """`attempt_view.view_data`."""

    def to_bytes(self) -> bytes:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields.update(code=base64.b64encode(self.code).decode("ascii"), env=dict(self.env), attempt=dict(self.attempt))
        return json.dumps(fields).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> AssertRequest:
        fields = json.loads(data)
        fields.update(code=base64.b64decode(fields["code"]), path=tuple(fields["path"]))
        return cls(**fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class AssertAnswer:
    """What became of an assert: True passed, False failed, None no verdict."""

    passed: bool | None
    evidence: str

    def to_line(self, duration_s: float) -> bytes:
        """`duration_s` is the time it took, without fork and start."""
        return json.dumps({"passed": self.passed, "evidence": self.evidence, "duration_s": duration_s}).encode("ascii") + b"\n"
