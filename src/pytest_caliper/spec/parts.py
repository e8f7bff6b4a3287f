"""The parts of a spec, built from its tree. What is only wrong in shape is told by `complaints`; here it is passed over.

Checked here is what needs the disk or several keys at once.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path

from pytest_caliper.spec.assertions import read_assertion
from pytest_caliper.spec.complaints import misspelt
from pytest_caliper.spec.files import is_directory, is_file, resolve
from pytest_caliper.spec.findings import Findings, in_line, shown
from pytest_caliper.spec.model import EngineDefault, McpServer, Sandbox, SkillRef, Task
from pytest_caliper.spec.names import node_name
from pytest_caliper.spec.rates import parse_rate
from pytest_caliper.spec.remarks import says_nothing
from pytest_caliper.spec.schema import NOT_YET, compile_pattern, rate_text
from pytest_caliper.spec.source import Source
from pytest_caliper.spec.tree import Node

_MISSING = Node(line=1, start=0, data=None)
_FROM_HERE = "paths start at the spec's directory"


def skills(root: Node, findings: Findings) -> tuple[SkillRef, ...]:
    """The skills of `skill:` or `skills:`, each of which exists. Notes a missing one, one named twice, and both keys at once."""
    one, several = root.get("skill") or _MISSING, root.get("skills") or _MISSING
    if one.data is not None and several.data is not None:
        findings.error(max(one.line, several.line), "both `skill:` and `skills:` are given: keep one, and list every skill there")
    refs: dict[Path, SkillRef] = {}
    for node in (one, *several.elements()):
        where = node.get("path") or node
        text = node.text("path") if isinstance(node.data, dict) else node.data
        if not isinstance(text, str) or not text.strip():
            continue
        path = resolve(findings.path.parent, text)
        if (first := refs.get(Path(os.path.realpath(path)))) is not None:
            findings.error(where.line, f"the skill {shown(text)} stands on line {first.line} already: delete one of the two")
        elif mistake := _skill_mistake(path, text):
            findings.error(where.line, mistake)
        else:
            refs[Path(os.path.realpath(path))] = SkillRef(path=path, line=where.line)
    return tuple(refs.values())


def _skill_mistake(path: Path, text: str) -> str | None:
    if is_directory(path):
        if is_file(path / "SKILL.md"):
            return None
        return f"the skill directory {shown(text)} holds no `SKILL.md`: name the directory that does, or create the file"
    if not is_file(path):
        note = "`~` is not expanded, " + _FROM_HERE if text.startswith("~") else _FROM_HERE
        return f"the skill {shown(text)} does not exist: fix the path ({note})"
    if path.suffix != ".md":
        return f"{shown(text)} is no skill: name a `SKILL.md`, the directory that holds it, or a command `.md`"
    return None


def engine_defaults(root: Node, findings: Findings) -> tuple[EngineDefault | None, EngineDefault | None]:
    """What a caliper-eval 0.4 spec says of the engine and of the judge. Warns once that both belong on the command line."""
    named: list[tuple[Node, str, str]] = []
    found: list[EngineDefault | None] = []
    for key, option in (("skill", "--caliper-model"), ("judge", "--caliper-judge-model")):
        block = root.get(key) or _MISSING
        backend, model = block.text("backend"), block.text("model")
        found.append(EngineDefault(backend=backend, model=model) if backend or model else None)
        if backend or model:
            target = f"`{option} {in_line(':'.join(filter(None, (backend, model))))}`"
            named += [(block.children[part], f"`{key}.{part}`", target) for part in ("backend", "model") if block.text(part)]
    if named:
        keys = ", ".join(name for _, name, _ in named)
        options = " and ".join(dict.fromkeys(option for _, _, option in named))
        line = min(node.line for node, _, _ in named)
        findings.warn(line, f"a spec no longer names its engine (as in caliper-eval 0.4): delete {keys} and pass {options}")
    return found[0], found[1]


def sandbox(root: Node, findings: Findings) -> Sandbox:
    """Directories and patterns of `sandbox:`. Notes directories that are missing; warns of a pattern that forbids everything."""
    block = root.get("sandbox") or _MISSING
    directories, patterns = [], []
    for node in (block.get("extra_path") or _MISSING).elements():
        if isinstance(node.data, str) and node.data.strip():
            path = resolve(findings.path.parent, node.data)
            if not is_directory(path):
                findings.error(
                    node.line, f"`extra_path` names {shown(node.data)}, which is no directory: fix the path ({_FROM_HERE})"
                )
            elif os.pathsep in str(path):
                findings.error(
                    node.line, f"`extra_path` names {shown(str(path))}, and PATH cannot hold a `{os.pathsep}`: rename it"
                )
            directories.append(path)
    for node in (block.get("forbidden_files") or _MISSING).elements():
        if isinstance(node.data, str) and node.data.strip():
            if _matches_everything(node.data):
                what = f"the pattern {shown(node.data)} matches everything, so every attempt is a cheat: name the files"
                findings.warn(node.line, what)
            patterns.append(node.data)
    return Sandbox(extra_path=tuple(directories), forbidden_files=tuple(patterns))


def _matches_everything(pattern: str) -> bool:
    """True for patterns such as `.*`, which are found in any path. False for what is no pattern (told elsewhere)."""
    try:
        compiled = compile_pattern(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return all(compiled.search(text) for text in ("x", "/", "-"))


def bar(node: Node) -> Fraction | None:
    """The rate of `bar:` in the spec or a task; None where there is none, or a wrong one (told elsewhere)."""
    written = rate_text((node.get("bar") or _MISSING).data)
    try:
        return None if written is None else parse_rate(written)
    except ValueError:
        return None


def mcp_servers(root: Node) -> tuple[McpServer, ...]:
    """The servers of `mcp:`, in the order of the file; only meaningful when their shape is right."""
    servers = []
    for name, node in (root.get("mcp") or _MISSING).items():
        if isinstance(node.data, dict):
            servers.append(
                McpServer(
                    name=name,
                    transport=node.data.get("type") or "stdio",
                    line=node.line,
                    command=node.text("command"),
                    args=tuple(node.data.get("args") or ()),
                    env=dict(node.data.get("env") or {}),
                    url=node.text("url"),
                    headers=dict(node.data.get("headers") or {}),
                )
            )
    return tuple(servers)


def tasks(root: Node, source: Source, findings: Findings) -> tuple[Task, ...]:
    """The tasks, in the order of the file. Notes what is wrong with their checks, and names that would share a node."""
    built = []
    names: dict[str, tuple[str, int]] = {}
    for number, node in enumerate((root.get("tasks") or _MISSING).elements(), 1):
        if not isinstance(node.data, dict):
            continue
        task_id = f"task-{number:03d}"
        _note_missing_check(node, number, findings)
        _note_weak_check(node, findings)
        if name := node.text("name"):
            _note_duplicate(name, task_id, node.children["name"].line, names, findings)
        checked = node.get("assert")
        built.append(
            Task(
                task_id=task_id,
                name=name or "",
                prompt=node.text("prompt") or "",
                line=node.start,
                expect=node.text("expect"),
                assertion=read_assertion(checked, source, findings) if checked else None,
                setup=node.text("setup"),
                cleanup=node.text("cleanup"),
                solution=node.text("solution"),
                lines={key: child.line for key, child in node.items()},
                bar=bar(node),
            )
        )
    return tuple(built)


def _note_missing_check(node: Node, number: int, findings: Findings) -> None:
    loc = ("tasks", number - 1)
    if (
        any(node.get(key) for key in ("expect", "assert", *NOT_YET))
        or misspelt(node, loc, "expect")
        or misspelt(node, loc, "assert")
    ):
        return
    findings.error(node.line, f"task {number} has nothing that decides whether it passed: add `expect:` or `assert:`")


def _note_weak_check(node: Node, findings: Findings) -> None:
    """Warn of an `expect:` that says nothing, and of a `solution:` that nothing is tried on."""
    expect, solution = node.get("expect"), node.get("solution")
    if expect is not None and says_nothing(node.text("expect")):
        what = f"`expect` is {shown(expect.data)}, which says nothing that can be judged: tell in a sentence what must be there"
        findings.warn(expect.line, what)
    if solution is not None and node.text("solution") and not node.get("assert"):
        what = "`solution` is only tried on `assert:`, which this task does not have: add one, or delete `solution:`"
        findings.warn(solution.line, what)


def _note_duplicate(name: str, task_id: str, line: int, names: dict[str, tuple[str, int]], findings: Findings) -> None:
    """Note a name that an earlier task has too, as pytest's ids and people's `-k` see them: without case and odd characters."""
    other, first = names.setdefault(node_name(name, task_id).casefold(), (name, line))
    if (other, first) == (name, line):
        return
    why = "" if other == name else f" ({shown(other)}; case, slashes and brackets make no difference in pytest's ids)"
    findings.error(line, f"the task name {shown(name)} is taken by the task on line {first}{why}: rename one of the two")
