"""The words of a tool call that may be paths, as they were written and as they are meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

MAX_PATH = 4096
"""Characters of a path; Linux' PATH_MAX."""
MAX_PIECES = 64
"""Of one word; more is a list of data, not of paths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """One path that may be meant."""

    text: str
    """As the agent wrote it."""
    path: str
    """With `~` and known variables replaced."""
    base: str
    """Absolute directory that `path` is relative to."""
    walks: bool = False
    """True when all that lies below is read too (`grep -r`)."""
    lists: bool = False
    """True when only names are shown (`ls`): then a glob reads nothing."""
    dotted: bool = False
    """True when a `*` also stands for names that begin with a dot."""
    only: tuple[str, ...] = ()
    """Globs of the file names that a walk reads; empty for all."""
    but: tuple[str, ...] = ()
    """Globs of the names that a walk leaves out."""


@dataclass(kw_only=True, slots=True)
class Names:
    """All that one tool call names."""

    commands: list[str] = field(default_factory=list)
    """Whole shell commands, without what they write."""
    words: list[Named] = field(default_factory=list)
    """Shell words and paths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How a command treats the paths that it names; the fields are those of `Named`."""

    walks: bool = False
    lists: bool = False
    dotted: bool = False
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()


PLAIN = Manner()


def named(text: str, base: str, variables: Mapping[str, str], manner: Manner = PLAIN) -> Iterator[Named]:
    """`text` and the parts of it that may be paths of their own, each with its braces and variables expanded."""
    for piece in _pieces(text):
        for written in _braces(piece):
            yield Named(
                text=written,
                path=expanded(written, variables),
                base=base,
                walks=manner.walks,
                lists=manner.lists,
                dotted=manner.dotted,
                only=manner.only,
                but=manner.but,
            )


def _pieces(text: str) -> Iterator[str]:
    """`text`, and what stands behind `=`, `:`, `@` or `,`, behind an option's letter, in quotes, or in a `file:` URL."""
    yield text
    if "://" in text and text.startswith("file:"):
        yield unquote(urlsplit(text).path)
    if "://" in text or len(text) > MAX_PATH:
        yield from literals(text)
        return
    if re.match(r"-\w[./~]", text):
        yield text[2:]
    yield from literals(text)
    seen = {text, ""}
    for separators in ("=", ":", "=:@,"):
        pieces = re.split(f"[{separators}]", text, maxsplit=MAX_PIECES)
        yield from (piece for piece in pieces if piece not in seen)
        seen.update(pieces)


_LITERAL = re.compile(r"""(["'`])([^"'`\n]{1,1024})\1""")


def literals(code: str) -> Iterator[str]:
    """The quoted strings in program text that look like one path: text to be shown has spaces and does not begin like a path."""
    for match in _LITERAL.finditer(code):
        text = match[2]
        if not re.search(r"\s", text) or text.startswith(("/", "./", "../", "~/")):
            yield text


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`text` with a leading `~` and the known `$NAME`s replaced; unknown ones stay."""
    if text == "~" or text.startswith("~/"):
        text = variables.get("HOME", "~") + text[1:]
    if "$" not in text:
        return text
    return re.sub(r"\$(?:\{(\w+)(?::?[-=][^{}]*)?\}|(\w+))", lambda m: variables.get(m[1] or m[2], m[0]), text)


def resolve(path: str, base: str) -> str:
    """`path` as an absolute one, `..` taken lexically."""
    return _one_root(os.path.normpath(joined(path, base)))


def joined(path: str, base: str) -> str:
    """`path`, behind `base` when it is relative."""
    return path if path.startswith("/") else f"{base}/{path}"


def real(path: str, base: str) -> str | None:
    """`path` as an absolute one, links followed as far as they exist; None when no file can have that name."""
    try:
        return _one_root(os.path.realpath(joined(path, base)))
    except (OSError, ValueError):
        return None


def _one_root(path: str) -> str:
    """`//x` is `/x` on every system we run on, though POSIX leaves it open."""
    return f"/{path.lstrip('/')}" if path.startswith("//") else path


def _braces(text: str) -> list[str]:
    """What a shell makes of `{a,b}`, at most `MAX_PIECES` texts; `text` itself where there is nothing to expand."""
    out, pending = [], [text]
    while pending:
        current = pending.pop()
        match = re.search(r"(?<!\$)\{([^{}]*,[^{}]*)\}", current) if len(current) <= MAX_PATH else None
        if match is None:
            out.append(current)
            continue
        parts = match[1].split(",")
        if len(out) + len(pending) + len(parts) > MAX_PIECES:
            return [*out, current, *pending]
        pending += [current[: match.start()] + part + current[match.end() :] for part in reversed(parts)]
    return out
