"""Real agent CLIs, pinned, installed from npm into a cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLAUDE = ("@anthropic-ai/claude-code", "2.1.332", "claude")
"""npm package, version, binary. A native program: whatever Node npm itself runs on does."""

ROOT = Path(__file__).parents[2]


class CannotInstall(Exception):
    """Why a CLI cannot be had here, in one line."""


def cache_folder() -> Path:
    """Where CLIs are kept between runs: $CALIPER_TEST_CACHE, else `.cache/agents` of the repository."""
    return Path(os.environ.get("CALIPER_TEST_CACHE") or ROOT / ".cache" / "agents")


def install(package: str, version: str, binary: str) -> Path:
    """The binary of an npm package, from the cache or freshly installed. Safe beside other processes that do the same.

    Raises CannotInstall when npm is missing or fails.
    """
    cache = cache_folder()
    place = cache / f"{package.rpartition('/')[2]}-{version}"
    path = place / "node_modules" / ".bin" / binary
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f"{place.name}.lock"):
        if not path.exists():
            _npm_install(f"{package}@{version}", place)
    if not path.exists():
        raise CannotInstall(f"{package}@{version} has no binary {binary!r}: remove {place} and try again")
    return path


def _npm_install(what: str, place: Path) -> None:
    """Install into a folder beside `place` and rename it, so that a killed install leaves nothing that looks whole."""
    npm = shutil.which("npm")
    if npm is None:
        raise CannotInstall("npm is not installed, and agent CLIs come from there")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-", ignore_cleanup_errors=True) as directory:
        fresh = Path(directory) / "install"
        fresh.mkdir()
        command = (npm, "install", "--prefix", str(fresh), "--no-audit", "--no-fund", "--no-package-lock", what)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise CannotInstall(f"npm install {what} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        fresh.rename(place)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
