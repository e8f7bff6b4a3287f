"""Which skills a Codex agent used. The CLI reports none: its agent reads a SKILL.md with whatever command it likes.

The path may be relative, come from a variable, or be left out after a `cd` (recorded), so what the command printed decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_caliper.contracts import Skill

_FRONTMATTER = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_MENTION = re.compile(r"(?<![\w$\\])\$([A-Za-z0-9_:-]+)")
_TELLING = 8
"""Shorter lines (`## Use`) are found in any text."""
_ENOUGH = 3
_LINES = 400


class SkillWatch:
    """Sees the agent's commands and what they printed."""

    def __init__(self, skills: Iterable[Skill], prompt: str) -> None:
        """A skill that the prompt mentions as `$name` is used from the start: Codex puts its text there, with no event."""
        mentioned = set(_MENTION.findall(prompt))
        self._lines = {skill.name: _telling_lines(skill) for skill in skills}
        self._used = [name for name in self._lines if name in mentioned]

    @property
    def used(self) -> tuple[str, ...]:
        """In the order of their first use."""
        return tuple(self._used)

    def command(self, command: str, output: str) -> None:
        """A command that ended. It read a skill when it printed lines of its SKILL.md: one will do where it names the file."""
        for name, lines in self._lines.items():
            if name in self._used or not lines:
                continue
            needed = 1 if "SKILL.md" in command and name in command else min(_ENOUGH, len(lines))
            if sum(line in output for line in lines) >= needed:
                self._used.append(name)


def _telling_lines(skill: Skill) -> tuple[str, ...]:
    """Lines of a skill's SKILL.md by which it is known again, its body's where it has one."""
    text = _text(skill).replace("\r\n", "\n")
    for part in (_FRONTMATTER.sub("", text), text):
        lines = dict.fromkeys(line.strip() for line in part.split("\n"))
        if telling := [line for line in lines if len(line) >= _TELLING]:
            return tuple(telling[:_LINES])
    return ()


def _text(skill: Skill) -> str:
    entry = skill.snapshot.files.get("SKILL.md")
    if entry is not None and "content" in entry:
        return entry["content"]
    path = skill.root / "SKILL.md"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
