"""Runs the ids of a file: what the extension starts for each of its run buttons."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    sys.path.insert(0, os.getcwd())
    ids = Path(os.environ["RUN_TEST_IDS_PIPE"]).read_text(encoding="utf-8").splitlines()
    pytest.main(["-p", "vscode_pytest", *sys.argv[1:], *ids])
