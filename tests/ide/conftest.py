"""Workspaces for the editors' Python sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path.resolve() / "project"
    root.mkdir()
    return Workspace(root)
