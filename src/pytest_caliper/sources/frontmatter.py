"""The name that a SKILL.md gives its skill."""

from __future__ import annotations

import re

_BLANK = re.compile(r"[ \t\r]*")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME = 64


def is_skill_name(name: str) -> bool:
    """Whether an Agent Skill may have this name (agentskills.io specification, field `name`)."""
    return len(name) <= MAX_NAME and _NAME.fullmatch(name) is not None


def skill_name(data: bytes) -> str | None:
    """The frontmatter's `name:` of a SKILL.md; None when it has none. ValueError, in one line, for what cannot be read."""
    import yaml

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    block = _frontmatter(text)
    if block is None:
        return None
    try:
        values = yaml.safe_load(block)
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 2}"
        raise ValueError(f"has broken frontmatter{line}: {error.problem or error.context}; quote the value or fix it") from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:  # impossible dates, odd characters
        raise ValueError(f"has broken frontmatter: {' '.join(str(error).split())}") from error
    if values is None:
        return None
    if not isinstance(values, dict):
        raise ValueError("has broken frontmatter: between the --- lines must stand `key: value` pairs")
    return _checked(values.get("name"))


def _frontmatter(text: str) -> str | None:
    lines = text.split("\n")
    if not _is_fence(lines[0]):
        return None
    for number, line in enumerate(lines[1:], 1):
        if _is_fence(line):
            return "\n".join(line.rstrip("\r") for line in lines[1:number])
    raise ValueError("has broken frontmatter: the closing --- line is missing")


def _is_fence(line: str) -> bool:
    return line.startswith("---") and _BLANK.fullmatch(line[3:]) is not None


def _checked(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise ValueError(f"has a `name:` that is no text ({name!r}); quote it")
    if not name.strip():
        return None
    if not is_skill_name(name):
        raise ValueError(
            f"has the name {name[:80]!r}, which is no Agent Skill name; use lower-case letters and digits, "
            f"with single hyphens between them, {MAX_NAME} characters at most"
        )
    return name
