"""Virtual environments for the boxes of the matrix: built once, by what is in them, below the project's `.cache`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "matrix"
DONE = ".complete"


def python_of(version: str) -> str:
    """An interpreter of this minor version. Skips, naming it, where the machine has none: it is not on the package index."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        return sys.executable
    places = [Path(found) for name in (f"python{version}",) if (found := shutil.which(name)) is not None]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [*sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True), *places]
    for place in places:
        asked = subprocess.run(
            [str(place), "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return str(place)
    pytest.skip(f"there is no Python {version} on this machine")


@cache
def uv() -> str:
    """uv, from the package index: it builds an environment in seconds."""
    place = CACHE / "uv"
    if not (place / DONE).exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, capture_output=True)
        _run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"])
        (place / DONE).touch()
    return str(place / "bin" / "uv")


def environment(python: str, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment that holds this project, as it stands, and the requirements."""
    pyproject = (ROOT / "pyproject.toml").read_bytes()
    named = "\n".join([python, *requirements]).encode() + pyproject
    place = CACHE / hashlib.sha256(named).hexdigest()[:16]
    interpreter = place / "bin" / "python"
    if not (place / DONE).exists():
        shutil.rmtree(place, ignore_errors=True)
        _run([uv(), "venv", "--quiet", "--python", python, str(place)])
        _run([uv(), "pip", "install", "--quiet", "--python", str(interpreter), "--editable", str(ROOT), *requirements])
        (place / DONE).touch()
    return interpreter


def _run(command: Sequence[str]) -> None:
    env = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        pytest.fail(f"{' '.join(command)}\n{done.stdout}{done.stderr}", pytrace=False)
