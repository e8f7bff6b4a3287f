"""The messages in the source: what is raised, noted, or said of a failure, as templates in which `…` stands for what differs.

A message is a text with a blank in it that stands

- in a `raise`, but for those of programming mistakes,
- in a call that notes something for people (`findings.error`, `notes.append`, `Failure(…)`, …), or behind `error=`, `fatal=`,
- in a `return` of a function that says what is wrong, and in a constant of a module that holds such words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "pytest_caliper"

_CALLS = re.compile(
    r"(^|\.)(Failure|_Failure|Finding|_alarm|_note|Decision|remark|warn|complaint|HelperError|parser\.error|pytest\.fail|pytest\.exit|findings\.(error|warn|fail)"
    r"|_findings\.(error|fail)|(notes|problems|lost|differences|_left)\.append)$"
)
_NAMES = frozenset({"what", "seen", "why", "hint", "remedy", "reason"})
"""Variables that hold a message, or a part of one, until it is passed on."""
_KEYWORDS = frozenset({"error", "fatal", "remedy", "reason"})
_SAYING = re.compile(
    r"_?(refuses|refusal|problem|lacks|remedy|fatal|mistake|unsupported_reason|missing_reason|stale|why_not_ahead|contradiction"
    r"|hopeless|settling|append_summary|selection_differs|limit_remedy|broken_servers?|missing_servers|unset|first_usable"
    r"|fixture_stands_between|how_it_died|journal_advice|no_command|server_failure|mapping_in|meant|always_holds|syntax_error|unjudged|holds_nothing_text|clean_up)"
)
_SAYING_MODULES = frozenset({"spec/complaints.py"})
_NOTING = {"runs/merging.py": "told.append", "running/resuming.py": "out.append"}
_WORDS_OF = re.compile(
    r"backends/\w+(_errors|_home)\.py|backends/hermes\.py|backends/opencode\.py|spec/(remarks|tree)\.py|judging/probe\.py|fixtures\.py"
)


@dataclass(frozen=True, kw_only=True)
class Message:
    where: str
    """`module.py:line` below the package."""
    kind: str
    """The exception, the function that is called, or the function or constant that holds it."""
    text: str

    @property
    def module(self) -> str:
        return self.where.split(":")[0]

    @property
    def pieces(self) -> list[str]:
        """What of the text is always the same, its blanks as one."""
        return [" ".join(piece.split()) for piece in self.text.split("…") if piece.strip()]

    @property
    def telling(self) -> str:
        """The longest piece that is more than a word, by which it is known."""
        return max((piece for piece in self.pieces if " " in piece), key=len, default="")


def template(node: ast.AST) -> str | None:
    """The text of a string or f-string; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return None


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in an expression, outermost first; not those inside the fields of an f-string, which are parts of it."""
    text = template(node)
    if text is not None:
        yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from texts(child)


def _found_in(tree: ast.Module, module: str) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            kind = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            for text in texts(node.exc):
                yield node.lineno, kind, text
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            notes = _CALLS.search(name) is not None or _NOTING.get(module) == name
            for argument in node.args if notes else ():
                yield from ((node.lineno, name, text) for text in texts(argument))
            for keyword in node.keywords:
                if keyword.arg in _KEYWORDS or notes:
                    yield from ((node.lineno, name, text) for text in texts(keyword.value))
        elif isinstance(node, ast.FunctionDef) and (module in _SAYING_MODULES or _SAYING.search(node.name)):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from ((inner.lineno, node.name, text) for text in texts(inner.value))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in _NAMES:
            yield from ((node.lineno, "=", text) for text in texts(node.value) if text.count(" ") > 2)
    for node in tree.body if _WORDS_OF.fullmatch(module) else ():
        if isinstance(node, ast.Assign) and not (isinstance(node.value, ast.Call) and "re.compile" in ast.unparse(node.value)):
            yield from ((node.lineno, ast.unparse(node.targets[0]), text) for text in texts(node.value) if text.count(" ") > 2)


@cache
def messages() -> tuple[Message, ...]:
    """All of them, each text once, in the order of the modules."""
    found: dict[str, Message] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        for line, kind, text in sorted(_found_in(ast.parse(path.read_text(encoding="utf-8")), module)):
            message = Message(where=f"{module}:{line}", kind=kind, text=text)
            installs = text.startswith(("npm install", "curl ")) or kind.endswith("_TEXT")
            if not installs and len(message.telling) > 6:
                found.setdefault(text, message)
    return tuple(found.values())


@cache
def every_text() -> str:
    """All strings of the source, each on a line of its own, blanks as one."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = template(node)
            if text is not None:
                found.append(" ".join(text.split()))
    return "\n".join(found)


if __name__ == "__main__":
    for message in messages():
        print(message.where, message.kind, message.text.replace("\n", "\\n"), sep="\t")
