"""Starts pytest as PyCharm's run configurations do, and reads the service messages that its tree is made of."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workspace import BOUND_S, Workspace, python

STANDIN = Path(__file__).with_name("standin") / "pycharm"
VARIABLE = "CALIPER_PYCHARM_HELPERS"
"""Names the directory `helpers/pycharm` of an installed PyCharm."""
_PLACES = (
    ("/opt", "pycharm*/plugins/python*/helpers/pycharm"),
    ("/snap", "pycharm-*/current/plugins/python*/helpers/pycharm"),
    ("/Applications", "PyCharm*.app/Contents/plugins/python*/helpers/pycharm"),
    ("~/.local/share/JetBrains/Toolbox/apps", "pycharm*/plugins/python*/helpers/pycharm"),
)
_MESSAGE = re.compile(r"##teamcity\[(\w+)((?: \w+='(?:\|.|[^'|])*')*)\]")
_PROPERTY = re.compile(r" (\w+)='((?:\|.|[^'|])*)'")
_ESCAPES = {"n": "\n", "r": "\r"}


def installed() -> Path | None:
    """The helpers of the PyCharm on this machine, or those that VARIABLE names; else None."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve(strict=True)
    for place, pattern in _PLACES:
        for path in sorted(Path(place).expanduser().glob(pattern), reverse=True):
            if (path / "_jb_pytest_runner.py").exists():
                return path
    return None


@dataclass
class Node:
    """A node of the tree in the run window."""

    name: str
    parent: str
    hint: str
    outcome: str = ""
    text: str = ""
    meta: str = ""
    children: list[str] = field(default_factory=list)


@dataclass
class Shown:
    """What the run window shows at the end."""

    nodes: dict[str, Node]
    count: int
    exit_code: int
    output: str

    @property
    def tests(self) -> dict[str, str]:
        """Path of names, joined by ` > ` -> outcome. The same path twice is two nodes of one name."""
        found: dict[str, str] = {}
        for key, node in self.nodes.items():
            if not node.children:
                path = " > ".join(self._path(key))
                assert path not in found, f"shown twice: {path}"
                found[path] = node.outcome
        return found

    @property
    def suites(self) -> list[str]:
        return [" > ".join(self._path(key)) for key, node in self.nodes.items() if node.children]

    def _path(self, key: str) -> list[str]:
        node = self.nodes[key]
        return [*(self._path(node.parent) if node.parent != "0" else []), node.name]

    def of(self, path: str) -> Node:
        (key,) = [key for key, node in self.nodes.items() if " > ".join(self._path(key)) == path]
        return self.nodes[key]


@dataclass
class PyCharm:
    """A run configuration "pytest" in a workspace."""

    workspace: Workspace
    helpers: Path

    def run(self, *, path: str | Path | None = None, target: str | None = None, options: Sequence[str] = ()) -> Shown:
        where = ["--path", str(path)] if path is not None else ["--target", str(target)]
        env = self.workspace.environment(PYTHONIOENCODING="utf-8", PYCHARM_HOSTED="1")
        done = subprocess.run(
            [python, str(self.helpers / "_jb_pytest_runner.py"), *where, "--", *options],
            cwd=self.workspace.path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BOUND_S,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        nodes: dict[str, Node] = {}
        count = 0
        for kind, values in _messages(output):
            if kind == "testCount":
                count = int(values["count"])
            elif kind in {"testStarted", "testSuiteStarted"}:
                key = values["nodeId"]
                nodes[key] = Node(values["name"], values["parentNodeId"], values["locationHint"], meta=values.get("metainfo", ""))
                if values["parentNodeId"] != "0":
                    nodes[values["parentNodeId"]].children.append(key)
            elif kind in {"testFailed", "testIgnored", "testFinished"}:
                node = nodes[values["nodeId"]]
                node.outcome = node.outcome or {"testFailed": "failed", "testIgnored": "ignored"}.get(kind, "passed")
                node.text += values.get("details", "") or values.get("message", "")
        return Shown(nodes, count, done.returncode, output)


def _messages(output: str) -> Iterator[tuple[str, dict[str, str]]]:
    for found in _MESSAGE.finditer(output):
        yield found[1], {name: _plain(value) for name, value in _PROPERTY.findall(found[2])}


def _plain(value: str) -> str:
    return re.sub(
        r"\|(0x[0-9a-fA-F]{4}|.)", lambda m: chr(int(m[1], 16)) if m[1].startswith("0x") else _ESCAPES.get(m[1], m[1]), value
    )


def linked(text: str) -> list[tuple[str, int]]:
    """Where the console makes a link of a word: `path:LINE`, with any extension."""
    return [(path, int(line)) for path, line in re.findall(r"(?:^|(?<=[\s\"']))([^\s\"':]+\.\w+):(\d+)", text)]
