"""Real agent CLIs, pinned, installed from npm and PyPI into a cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLAUDE = ("@anthropic-ai/claude-code", "2.1.332", "claude")
"""npm package, version, binary. A native program: whatever Node npm itself runs on does."""
CODEX = ("@openai/codex", "0.171.0", "codex")
"""Native as well."""
PI = ("@earendil-works/pi-coding-agent", "1.6.0", "pi")
"""Needs Node 22.19."""
GEMINI = ("@google/gemini-cli", "0.61.0", "gemini")
"""Needs Node 20."""
OPENCODE = ("opencode-ai", "1.18.33", "opencode")
"""Native, but its skills need ripgrep on PATH."""
NODE = ("node", "22.23.3", "node")
RIPGREP = ("@vscode/ripgrep", "1.18.0")
"""An npm package whose platform packages hold the binary `rg`."""
HERMES = ("hermes-agent[mcp]", "0.19.0", "hermes")
"""PyPI requirement, version, binary. Needs Python 3.11."""
HERMES_EXTRAS = ("anthropic",)
"""What Hermes would otherwise install by itself when it talks to Anthropic's API."""

ROOT = Path(__file__).parents[2]


class CannotInstall(Exception):
    """Why a CLI cannot be had here, in one line."""


@dataclass(frozen=True, kw_only=True)
class Cli:
    """An installed CLI."""

    binary: Path
    version: str
    path: tuple[Path, ...] = ()
    """Folders that stand first on PATH when it runs: the Node or the tools that it needs."""

    def environment(self, variable: str) -> dict[str, str]:
        """The variables to run it with: `variable`, by which its backend finds it, and PATH."""
        directories = (*map(str, self.path), os.environ.get("PATH", os.defpath))
        return {variable: str(self.binary), "PATH": os.pathsep.join(directories)}


def claude() -> Cli:
    """Claude Code. Like its neighbours below: from the cache or freshly installed; raises CannotInstall."""
    return Cli(binary=install(*CLAUDE), version=CLAUDE[1])


def codex() -> Cli:
    return Cli(binary=install(*CODEX), version=CODEX[1])


def pi() -> Cli:
    node = install(*NODE).resolve().parent
    return Cli(binary=install(*PI, path=(node,)), version=PI[1], path=(node,))


def gemini() -> Cli:
    return Cli(binary=install(*GEMINI), version=GEMINI[1])


def opencode() -> Cli:
    binary = install(*OPENCODE, extra=("@".join(RIPGREP),))
    ripgrep = sorted(binary.parents[1].glob("@vscode/ripgrep-*/bin/rg"))
    if not ripgrep:
        raise CannotInstall(f"{'@'.join(RIPGREP)} has no rg for this platform")
    return Cli(binary=binary, version=OPENCODE[1], path=(ripgrep[0].parent,))


def hermes() -> Cli:
    requirement, version, binary = HERMES
    return Cli(binary=install_python(f"{requirement}=={version}", *HERMES_EXTRAS, binary=binary), version=version)


def cache_folder() -> Path:
    """Where CLIs are kept between runs: $CALIPER_TEST_CACHE, else `.cache/agents` of the repository."""
    return Path(os.environ.get("CALIPER_TEST_CACHE") or ROOT / ".cache" / "agents")


def install(package: str, version: str, binary: str, *, path: tuple[Path, ...] = (), extra: tuple[str, ...] = ()) -> Path:
    """The binary of an npm package, from the cache or freshly installed. Safe beside other processes that do the same.

    `path` goes first on npm's PATH, so that the package's install scripts meet the right Node; `extra` are further npm packages
    beside it. Raises CannotInstall when npm is missing or fails.
    """
    place = cache_folder() / f"{package.rpartition('/')[2]}-{version}"
    program = place / "node_modules" / ".bin" / binary
    with _alone(place):
        if not program.exists():
            _npm_install((f"{package}@{version}", *extra), place, path)
    if not program.exists():
        raise CannotInstall(f"{package}@{version} has no binary {binary!r}: remove {place} and try again")
    return program


def _npm_install(packages: tuple[str, ...], place: Path, path: tuple[Path, ...]) -> None:
    """Install into a folder beside `place` and rename it, so that a killed install leaves nothing that looks whole."""
    npm = shutil.which("npm")
    if npm is None:
        raise CannotInstall("npm is not installed, and agent CLIs come from there")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-", ignore_cleanup_errors=True) as directory:
        fresh = Path(directory) / "install"
        fresh.mkdir()
        env = {**os.environ, "PATH": os.pathsep.join((*map(str, path), os.environ.get("PATH", os.defpath)))}
        _must((npm, "install", "--prefix", str(fresh), "--no-audit", "--no-fund", "--no-package-lock", *packages), env)
        fresh.rename(place)


def install_python(*requirements: str, binary: str) -> Path:
    """The program `binary` of a virtual environment with `requirements`, the first of which names the folder. Raises CannotInstall.

    Programs of a virtual environment hold its path, so it cannot be renamed: a marker says that it is whole.
    """
    place = cache_folder() / requirements[0].replace("[", "-").replace("]", "").replace("==", "-")
    program, whole = place / "bin" / binary, place / "installed"
    with _alone(place):
        if not whole.exists():
            shutil.rmtree(place, ignore_errors=True)
            _must((_python311(), "-m", "venv", str(place)), os.environ)
            _must((str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements), os.environ)
            whole.touch()
    if not program.exists():
        raise CannotInstall(f"{requirements[0]} has no program {binary!r}: remove {place} and try again")
    return program


def _python311() -> str:
    if (3, 11) <= sys.version_info[:2] < (3, 14):
        return sys.executable
    if found := shutil.which("python3.11"):
        return found
    raise CannotInstall("no Python 3.11 here, and Hermes needs one")


def _must(command: tuple[str, ...], env: Mapping[str, str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=dict(env))
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CannotInstall(f"{Path(command[0]).name} {' '.join(command[1:])} failed: {said}")


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Hold the lock beside `place`, whose parent is made when it is missing."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{place.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
