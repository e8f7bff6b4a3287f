from pathlib import Path
import pytest
from agents import Cli
from cases import CASES, check
from subjects import CLAUDE


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, claude_cli: Path, tmp_path: Path) -> None:
    check(name, CLAUDE, Cli(binary=claude_cli, version="2.1.332"), tmp_path)
