"""A scratch project for the examples of one page, in which they run in order as a reader would type them."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml
from doc_pages import CHECKED, ROOT, RUN, SHOWN, Block, blocks

from pytest_caliper.runs.place import project_of
from pytest_caliper.sources import resolve_skills
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import SpecError
from pytest_caliper.spec.schema import json_schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIMIT_S = 180
HERE = Path(__file__).parent
SKILL = """\
---
name: service-config
description: How configuration files of our services are written. Use it to write or explain a service's config.
---

All services use port 8080. Write `app.json` with that port.
"""
SPEC = """\
skill:
  path: ./SKILL.md

tasks:
  - name: Writes the config
    prompt: Write app.json with a "port" of 8080.
    assert: |
      import json
      assert "app.json" in attempt.files
      assert json.load(open("app.json"))["port"] == 8080
    solution: echo '{"port":8080}' > app.json

  - name: Explains the choice
    prompt: Which port does the service use, and why?
    expect: The answer names port 8080 and gives a reason.
"""
_SCRIPTS = {
    "pytest": "import pytest\n\nif __name__ == '__main__':\n    raise SystemExit(pytest.console_main())\n",
    "caliper": "from pytest_caliper.cli import main\n\nif __name__ == '__main__':\n    raise SystemExit(main())\n",
    "example-agent": "import sys\n\nsys.path.insert(0, {agent!r})\nimport example_agent\n\n"
    "example_agent.main({project!r}, {answer!r})\n",
}
"""Console scripts of this interpreter, under the names that readers type. (`python -m pytest` would have another `sys.path`.)"""
_OUTSIDE = (
    *("pip", "pip3", "pipx", "uv", "uvx", "npm", "npx", "brew", "apt", "apt-get", "sudo", "docker", "podman", "curl", "wget"),
    *("ssh", "gh", "glab", "claude", "codex", "pi", "gemini", "opencode", "hermes", "code", "make"),
)
"""What examples must not do here: install, fetch, call real agents."""
_REFUSED = "echo 'examples do not run {name} here: say why above the block, <!-- not run: … -->' >&2; exit 97"
NAMED_BY_SPECS = ("commands/review.md", "checks/port.py", "bin/tool", "servers/tickets.py")
_PRELUDE = """\
{state}
trap 'status=$?; export -p > {saved}; echo "cd $(printf %q "$PWD")" >> {saved}; exit $status' EXIT
trap 'echo $LINENO > {failed}' ERR
set -e
"""
_SPEC_KEYS = set(json_schema()["properties"])


@dataclass
class Wrong(Exception):
    """A block that is not as the page says."""

    block: Block
    message: str

    def __str__(self) -> str:
        return f"{self.block}: {self.message}"


class Project:
    """The project of one page: a git repository below `place` with a skill, a spec that passes, and an agent that costs nothing.

    The README of an example has a copy of that example instead, and no agent.
    """

    def __init__(self, place: Path, page: Path) -> None:
        self._place, self._page = place, page
        self.root = place / "project"
        self.tools = place / "bin"
        self._answer = place / "answer.sh"
        self._saved = place / "shell-state"
        self._own = page.name == "README.md" and "examples" in page.parts
        self._unrun: dict[str, Block] = {}
        self._make()

    def follow(self) -> list[Wrong]:
        """Does what the page says, in order. Returns the blocks that do not hold; those behind one are tried all the same."""
        found = []
        for block in blocks(self._page):
            try:
                self.take(block)
            except Wrong as wrong:
                found.append(wrong)
        remedy = "add an `sh` block that does, or `<!-- checked by: … -->`"
        found += [Wrong(block, f"no command behind this runs {name}: {remedy}") for name, block in self._unrun.items()]
        return found

    def take(self, block: Block) -> None:
        """Runs, writes or checks one block. Raises Wrong."""
        said = covered(block)
        if said is not None:
            raise Wrong(block, said)
        for line in block.setup:
            self._run(block, line + "\n", 0, "the setup of this block")
        if block.agent is not None:
            self._answer.write_text(block.agent + "\n", encoding="utf-8")
        if block.tag in CHECKED:
            self._check(block)
        if block.file is not None and block.not_run is None:
            self._write(block, block.file)
        elif block.tag in RUN:
            if block.not_run is not None or block.checked_by is not None:
                self._parse_shell(block)
            else:
                self._run(block, block.text, block.status, "the block")
                self._unrun.clear()

    # -- the project ------------------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        for directory in (self.root, self.tools, self._place / "home", self._place / "tmp"):
            directory.mkdir(parents=True)
        for name, code in _SCRIPTS.items():
            script = self.tools / f"run_{name.replace('-', '_')}.py"
            script.write_text(code.format(agent=str(HERE), project=str(self.root), answer=str(self._answer)), encoding="utf-8")
            self._tool(name, f'exec {shlex.join([sys.executable, str(script)])} "$@"')
        for name in ("python", "python3"):
            refused = _REFUSED.format(name="pip")
            self._tool(name, f'[ "$1 $2" != "-m pip" ] || {{ {refused}; }}\nexec {shlex.quote(sys.executable)} "$@"')
        for name in _OUTSIDE:
            self._tool(name, _REFUSED.format(name=name))
        if self._own:
            self._copy_example()
        else:
            (self.root / "SKILL.md").write_text(SKILL, encoding="utf-8")
            (self.root / "my.eval.yaml").write_text(SPEC, encoding="utf-8")
            (self.root / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["."]\n', encoding="utf-8")
        git = ["git", "-c", "init.defaultBranch=main", "init", "--quiet"]
        subprocess.run(git, cwd=self.root, env=self._environment(), check=True)

    def _tool(self, name: str, line: str) -> None:
        tool = self.tools / name
        tool.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        tool.chmod(0o755)

    def _copy_example(self) -> None:
        """What git knows of the example: no results, no caches."""
        here = self._page.parent
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "."]
        listed = subprocess.run(command, cwd=here, capture_output=True, check=False).stdout.decode().split("\0")
        for name in filter(None, listed):
            if (here / name).is_file():
                target = self.root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((here / name).read_bytes())
                target.chmod((here / name).stat().st_mode)

    def _environment(self) -> dict[str, str]:
        """A clean one: nothing of the machine's own, and no real agent CLI, whatever is installed."""
        engine = "command:example-agent"
        addopts = [word for name in _other_plugins() for word in ("-p", f"no:{name}")]
        if not self._own:
            addopts += ["-o", f"caliper_model={engine}", "-o", f"caliper_judge_model={engine}"]
        absent = {f"{cli}_CLI_PATH": "/no/real/agent" for cli in ("CLAUDE", "CODEX", "PI", "GEMINI", "OPENCODE", "HERMES")}
        return {
            **absent,
            "PATH": os.pathsep.join([str(self.tools), "/usr/local/bin", os.defpath]),
            "HOME": str(self._place / "home"),
            "TMPDIR": str(self._place / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": "100",
            "PYTHONUTF8": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "Reader",
            "GIT_AUTHOR_EMAIL": "reader@example.com",
            "GIT_COMMITTER_NAME": "Reader",
            "GIT_COMMITTER_EMAIL": "reader@example.com",
            "PYTEST_ADDOPTS": shlex.join(addopts),
            "CALIPER_REPOSITORY": str(ROOT),
        }

    # -- what is run ------------------------------------------------------------------------------------------------------------

    def _run(self, block: Block, text: str, status: int, what: str) -> None:
        """Raises Wrong unless `text` ends with `status`, and with its last command. Directory and variables outlive it."""
        failed, script = self._place / "failed", self._place / "script.sh"
        failed.unlink(missing_ok=True)
        state = f". {shlex.quote(str(self._saved))}" if self._saved.exists() else ":"
        prelude = _PRELUDE.format(state=state, saved=shlex.quote(str(self._saved)), failed=shlex.quote(str(failed)))
        script.write_text(prelude + text, encoding="utf-8")
        try:
            done = subprocess.run(
                ["bash", str(script)],
                cwd=self.root,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode(errors="replace")
            raise Wrong(block, f"{what} did not end within {LIMIT_S} s\n{text}{said}") from error
        said = done.stdout.decode(errors="replace")
        line = int(failed.read_text()) - prelude.count("\n") if failed.exists() else None
        at = f" at line {block.line + line}" if line is not None and text == block.text else ""
        if done.returncode != status:
            raise Wrong(block, f"{what} ended with {done.returncode}, not {status}{at}\n{text}--- it printed:\n{said}")
        if status != 0 and line is not None and line < _last_command(text):
            raise Wrong(block, f"{what} ended{at}, so the commands behind that never ran: put them into a block of their own")

    def _parse_shell(self, block: Block) -> None:
        done = subprocess.run(["bash", "-n"], input=block.text.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            raise Wrong(block, f"not valid shell: {done.stderr.decode(errors='replace')}")

    # -- what is checked --------------------------------------------------------------------------------------------------------

    def _check(self, block: Block) -> None:
        try:
            {"yaml": self._yaml, "python": _compile, "toml": _toml, "json": _json, "ini": _ini}[block.tag](block)
        except (ValueError, SyntaxError, yaml.YAMLError, configparser.Error) as error:
            raise Wrong(block, f"not valid {block.tag}: {error}") from error

    def _yaml(self, block: Block) -> None:
        """A spec, whole or a piece of one, must load without a warning, or with those that the text behind it shows."""
        name = block.file or "x.eval.yaml"
        expected = block.shows.splitlines() if block.shows and block.shows.startswith(f"{name}:") else []
        if not expected:
            loaded = yaml.safe_load(block.text)
            if not _is_spec(loaded, block.file):
                return
            text = block.text if "tasks" in loaded else f"{block.text}\ntasks:\n  - {{name: a, prompt: b, expect: c}}\n"
        else:
            text = block.text
        said = self._complaints(name, text)
        if said != expected:
            raise Wrong(block, f"as a spec, this tells\n{said}, not\n{expected}")

    def _complaints(self, name: str, text: str) -> list[str]:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        path.write_text(text, encoding="utf-8")
        made = [made for file in NAMED_BY_SPECS if (made := self._named(file))]
        try:
            return list(_complaints(path))
        finally:
            for file in made:
                file.unlink()
                file.parent.rmdir()
            path.unlink() if before is None else path.write_bytes(before)

    def _named(self, name: str) -> Path | None:
        """A file that an example of a spec may name, for as long as the spec is looked at."""
        path = self.root / name
        if path.parent.exists():
            return None
        path.parent.mkdir()
        python = path.suffix == ".py"
        path.write_text("assert 1 == len([1])\n" if python else "---\nname: example\ndescription: d\n---\n", encoding="utf-8")
        return path

    def _write(self, block: Block, name: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if path.suffix == ".sh":
            path.chmod(0o755)
        if re.fullmatch(r"(conftest|test_\w+|\w+_test)\.py", path.name) and block.checked_by is None:
            self._unrun[name] = block


@cache
def _other_plugins() -> tuple[str, ...]:
    """Plugins of the machine that a reader's project need not have; importing them takes longer than all of ours."""
    return tuple({point.name for point in entry_points(group="pytest11")} - {"caliper", "xdist", "xdist.looponfail"})


def covered(block: Block) -> str | None:
    """What keeps a block from being executed, validated or excused; None when one of these is so."""
    if not block.fenced:
        return "code is fenced and tagged here, not indented: ```sh"
    if block.not_run is not None and len(block.not_run.split()) < 2:
        return "`not run` needs a reason that a reader understands"
    if block.checked_by is not None and not (ROOT / block.checked_by).is_file():
        return f"`checked by` names {block.checked_by}, which is not there"
    if block.tag in RUN | CHECKED | SHOWN:
        return None
    known = ", ".join(sorted(RUN | CHECKED | SHOWN))
    return f"blocks are tagged with one of {known}, not {block.tag!r}: what is tagged otherwise is neither run nor checked"


def _is_spec(loaded: Any, file: str | None) -> bool:
    if file is not None and file.endswith((".eval.yaml", ".eval.yml")):
        return True
    return isinstance(loaded, dict) and ("tasks" in loaded or file is None) and bool(loaded) and set(loaded) <= _SPEC_KEYS


def _complaints(path: Path) -> Iterator[str]:
    """The mistakes and warnings of a spec and its skills, as `name:line: message`."""
    try:
        spec = load_spec(path)
        _, warnings = resolve_skills(spec, exclude=frozenset(), project=project_of(path, path.parent))
    except SpecError as error:
        found = error.diagnostics
    else:
        found = (*spec.warnings, *warnings)
    for one in found:
        yield f"{one.path.name}:{one.line}: {one.message}"


def _compile(block: Block) -> None:
    compile(block.text, f"{block}", "exec", dont_inherit=True)


def _toml(block: Block) -> None:
    tomllib.loads(block.text)


def _json(block: Block) -> None:
    """JSON, or the JSON with `//` comments of editors' settings."""
    json.loads(re.sub(r"^\s*//.*$", "", block.text, flags=re.M) if block.file else block.text)


def _ini(block: Block) -> None:
    configparser.ConfigParser(interpolation=None).read_string(block.text)


def _last_command(text: str) -> int:
    """The 1-based line on which the last command begins."""
    lines, begin, joined = text.split("\n"), 0, False
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            begin, joined = (begin if joined else number), line.endswith("\\")
    return begin
