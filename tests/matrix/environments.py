"""Interpreters, and an environment for each box of the matrix, built once and kept below .cache/matrix."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache" / "matrix"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
ELSEWHERE = (Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python", Path("/opt/hostedtoolcache/Python"))
"""Where pyenv, uv and the machines of GitHub Actions keep interpreters."""


@dataclass(frozen=True)
class Box:
    """What one environment holds: an interpreter and requirements as pip takes them, all resolved to `lowest` or newest."""

    name: str
    python: str
    requirements: tuple[str, ...]
    lowest: bool = False

    def has(self, project: str) -> bool:
        """Whether the box asks for that plugin."""
        return any(re.split(r"[=<>]", requirement)[0] == project for requirement in self.requirements)

    @property
    def key(self) -> str:
        """Of the cache. Newest is asked for anew every day."""
        day = "" if self.lowest else date.today().isoformat()
        what = [str(interpreter(self.python)), *sorted(self.requirements), *dependencies(), str(self.lowest), day]
        return hashlib.sha256("\n".join(what).encode()).hexdigest()[:16]


@functools.cache
def interpreter(version: str) -> Path | None:
    """A CPython of that minor version on this machine, or None. pyenv's shims that lead nowhere are none."""
    names = [sys.executable, shutil.which(f"python{version}"), shutil.which("python3"), shutil.which("python")]
    kept = [path for folder in ELSEWHERE for path in sorted(folder.glob(f"*{version}.*"), reverse=True)]
    below = [path / at / f"python{version}" for path in kept for at in ("bin", "x64/bin", "arm64/bin")]
    for path in [*(Path(name) for name in names if name), *below]:
        if path.exists() and _version_of(path) == version:
            return path
    return None


def _version_of(path: Path) -> str | None:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        asked = subprocess.run([str(path), "-I", "-c", code], check=False, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def wanted(version: str) -> str:
    """The version, if this machine has it. Else the test is skipped, or fails where CALIPER_REQUIRE_PYTHON names that one."""
    if interpreter(version) is None:
        told = f"this machine has no Python {version} (looked on PATH, and where pyenv, uv and GitHub's machines keep theirs)"
        if version in os.environ.get("CALIPER_REQUIRE_PYTHON", "").split():
            pytest.fail(told)
        pytest.skip(told)
    return version


def available() -> list[str]:
    """The minor versions that this machine has, oldest first."""
    return [version for version in PYTHONS if interpreter(version) is not None]


def oldest() -> str:
    """The oldest minor version that this machine has. The lowest requirements have no wheels for Pythons that came years later."""
    version = available()[0]
    if PYTHONS.index(version) > 1:
        pytest.skip(
            f"the lowest requirements need Python {PYTHONS[0]} or {PYTHONS[1]}, and this machine has none older than {version}"
        )
    return version


@functools.cache
def dependencies() -> tuple[str, ...]:
    """What pytest-caliper itself requires."""
    return tuple(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"])


def python_of(box: Box) -> Path:
    """The interpreter of the box's environment, which is built where there is none, with today's pytest-caliper in it."""
    folder = CACHE / box.key
    python = folder / "bin" / "python"
    with _alone(box.key):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _uv("venv", "--quiet", "--python", str(interpreter(box.python)), str(folder))
            resolution = "lowest-direct" if box.lowest else "highest"
            wanted = [*dependencies(), *box.requirements]
            _uv("pip", "install", "--quiet", "--python", str(python), "--resolution", resolution, *wanted)
            (folder / "complete").write_text(json.dumps([box.name, box.python, wanted], indent=1))
        wheel, stamp = _wheel(), folder / "installed"
        if not stamp.exists() or stamp.read_text() != wheel.parent.name:
            stamp.unlink(missing_ok=True)
            _uv("pip", "install", "--quiet", "--python", str(python), "--no-deps", "--reinstall", str(wheel))
            stamp.write_text(wheel.parent.name)
    return python


def versions_in(python: Path) -> dict[str, str]:
    """What is installed beside an interpreter: name to version."""
    listed = json.loads(_uv("pip", "list", "--quiet", "--format", "json", "--python", str(python)))
    return {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in listed}


@functools.cache
def _wheel() -> Path:
    """The wheel of the checkout as it stands: what users would get, and not what lies in the tree beside it."""
    source = REPOSITORY / "src"
    digest = hashlib.sha256((REPOSITORY / "pyproject.toml").read_bytes())
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(source)}\0".encode() + path.read_bytes())
    folder = CACHE / "wheels" / digest.hexdigest()[:16]
    with _alone("wheels"):
        if not list(folder.glob("*.whl")):
            _uv("build", "--quiet", "--wheel", "--out-dir", str(folder), str(REPOSITORY))
    (wheel,) = folder.glob("*.whl")
    return wheel


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Test workers share the cache: one builds, the others wait."""
    (CACHE / "locks").mkdir(parents=True, exist_ok=True)
    with (CACHE / "locks" / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _uv(*arguments: str) -> str:
    from uv import find_uv_bin

    env = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    command: Sequence[str] = [find_uv_bin(), *arguments, "--no-python-downloads", "--no-config"]
    ended = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=600)
    if ended.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)}\n{ended.stderr}")
    return ended.stdout
