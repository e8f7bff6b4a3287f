"""The real caliper-eval of several versions, each in a virtual environment of its own, driven with a scripted agent."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "interop"
"""Ignored by git."""
VERSIONS = ("0.4.0", "0.9.0", "0.10.0", "0.21.0")
HERE = Path(__file__).parent

_SKILL = "---\nname: greeter\ndescription: Greets people.\n---\nSay hello, twice.\n"
_SPEC = """\
{skill}
sandbox:
  forbidden_files: ["answers"]
tasks:
  - name: Writes the config
    prompt: Write app.json.
    assert: |
      import json
      assert json.load(open("app.json"))["port"] == 8080, "wrong port"
  - name: Explains itself
    prompt: Explain yourself.
    expect: It is explained well.
  - name: Looks nowhere
    prompt: Look for it.
    assert: "assert 1 + 1 == 2"
"""
_PROBE = """\
  - name: Reaches for the skill
    prompt: Greet me.
    activates: [greeter]
"""


class NoIndex(Exception):
    """The package could not be installed: no index can be reached, or it does not have it."""


def python_of(version: str) -> Path:
    """An interpreter that has this caliper-eval, made at the first call. Raises NoIndex."""
    place = CACHE / f"{version}-py{sys.version_info.major}.{sys.version_info.minor}"
    python = place / "bin" / "python"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:  # test workers share the cache
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            _install(f"caliper-eval=={version}", place, python)
            (place / "done").touch()
    return python


def _install(requirement: str, place: Path, python: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=False, symlinks=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
    ]
    done = subprocess.run([*pip, requirement], check=False, capture_output=True, text=True, timeout=300)
    if done.returncode:
        shutil.rmtree(place, ignore_errors=True)
        raise NoIndex(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"pip ended with {done.returncode}")


def caliper(version: str, *words: str, cwd: Path, home: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real `caliper` of that version; `path` comes before PATH."""
    before = f"{path}{os.pathsep}" if path else ""
    env = {"PATH": f"{before}{os.environ['PATH']}", "HOME": str(home), "COLUMNS": "200", "PYTHONUTF8": "1"}
    command = [python_of(version), "-c", "from caliper.main import app; app()", *words]
    return subprocess.run(command, cwd=cwd, env=env, check=False, capture_output=True, text=True, timeout=120)


def made_by(version: str, project: Path, *words: str) -> Path:
    """The run file that caliper-eval wrote after `caliper run` with a scripted agent in an empty directory.

    Three attempts at each task: 2 of 3 configs right; explained well, badly, and with a judge that gives no verdict; a cheat, a
    lost connection and a time-out; and, where the version knows it, a task that only asks which skill was used.
    """
    (project / "bin").mkdir(parents=True)
    (project / "home").mkdir()
    agent = project / "bin" / "claude"
    agent.write_text(f"#!{sys.executable}\n" + (HERE / "fake_claude.py").read_text(encoding="utf-8"), encoding="utf-8")
    agent.chmod(0o755)
    (project / "greeter").mkdir()
    (project / "greeter" / "SKILL.md").write_text(_SKILL)
    late = _number(version) >= (0, 10)
    skill = "skills: [./greeter/SKILL.md]" if late else "skill:\n  path: ./greeter/SKILL.md"
    spec = project / "greeter.eval.yaml"
    spec.write_text(_SPEC.format(skill=skill) + (_PROBE if late else ""))
    options: Sequence[str] = ("--k", "3", "--workers", "1", "--timeout", "5", *words)
    done = caliper(version, "run", spec.name, *options, cwd=project, home=project / "home", path=project / "bin")
    files = sorted((project / ".caliper" / "results" / "greeter").glob("*.json"))
    if len(files) != 1:
        raise AssertionError(f"caliper-eval {version} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return files[0]


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
