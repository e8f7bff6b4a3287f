"""Fixtures of the backends' tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def user_home(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Write files below a home directory of the user's: relative path -> text, or data for JSON."""

    def write(files: dict[str, Any]) -> Path:
        home = tmp_path / "user"
        home.mkdir(exist_ok=True)
        for relative, content in files.items():
            path = home / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return home

    return write
