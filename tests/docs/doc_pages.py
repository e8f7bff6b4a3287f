"""The pages of the documentation, and their code blocks with what the comments above them ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]

RUN = frozenset({"sh"})
CHECKED = frozenset({"yaml", "python", "toml", "json", "ini"})
SHOWN = frozenset({"text", "console", "markdown"})
"""What is printed, and prose that is a file. Nothing is done with these unless they have a file name."""

_COMMENT = re.compile(r"<!--(?:[^>]*,)?\s*(not run|checked by|setup|status|agent|file):\s*(.*?)\s*-->", re.S)
_NAME = re.compile(r"(?:#|//) +((?:[\w.-]+/)*[\w.-]*\.(?:ya?ml|py|toml|ini|json|cfg|md|sh|txt))")
_FENCED = re.compile(r" {0,3}(```+|~~~+)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A code block of a page."""

    page: Path
    line: int
    """1-based line of the opening fence."""
    tag: str
    """The language behind the fence; empty for none, and for code that is indented instead of fenced."""
    text: str
    fenced: bool = True
    file: str | None = None
    """The file that the reader makes of it, relative to the project."""
    setup: tuple[str, ...] = ()
    """Shell lines that prepare the project for it, unseen by the reader."""
    agent: str | None = None
    """A shell line: what the agent does from here on when it is asked something that nobody has thought of."""
    status: int = 0
    not_run: str | None = None
    checked_by: str | None = None
    shows: str | None = None
    """The text block that follows directly, if there is one."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix() if self.page.is_relative_to(ROOT) else self.page.name}:{self.line}"


def pages(root: Path = ROOT) -> list[Path]:
    """README, docs, the READMEs of examples, and everything of the skills."""
    found = {root / "README.md", *root.glob("docs/**/*.md"), *root.glob("examples/**/README.md"), *root.glob("skills/**/*.md")}
    return sorted(page for page in found if not any(part.startswith((".", "_")) for part in page.relative_to(root).parts))


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The code blocks of a page, in order."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    found: list[Block] = []
    for number, token in enumerate(tokens):
        if token.type in {"fence", "code_block"}:
            after = tokens[number + 1] if number + 1 < len(tokens) else None
            found.append(_block(page, token, _comments(tokens, number), _shown(after)))
    return tuple(found)


def _block(page: Path, token: Token, comments: list[tuple[str, str]], shows: str | None) -> Block:
    said = dict(comments)
    text = token.content
    first = text.split("\n", 1)[0]
    named = _NAME.fullmatch(first.rstrip())
    return Block(
        page=page,
        line=(token.map or [0])[0] + 1,
        tag=token.info.strip().split(" ")[0],
        text=text,
        fenced=token.type == "fence",
        file=said.get("file") or (named[1] if named else None),
        setup=tuple(value for key, value in comments if key == "setup"),
        agent=said.get("agent"),
        status=int(said.get("status", "0")),
        not_run=said.get("not run"),
        checked_by=said.get("checked by"),
        shows=shows,
    )


def _comments(tokens: list[Token], number: int) -> list[tuple[str, str]]:
    """What the HTML comments directly above a token say, in order."""
    above = number
    while above > 0 and tokens[above - 1].type == "html_block":
        above -= 1
    return [match for token in tokens[above:number] for match in _COMMENT.findall(token.content)]


def _shown(token: Token | None) -> str | None:
    return token.content if token is not None and token.type == "fence" and token.info.strip() == "text" else None
