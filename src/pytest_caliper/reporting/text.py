"""Texts of agents, judges and specs made harmless: nothing in them reaches the terminal as a command, and nothing is dropped."""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"
"""Zero-width (non-)joiners: part of the spelling of several languages and of emoji."""

_FEW = 16

_COMMAND = re.compile(r"((?:^|(?<=\r))[^\S\r\n]*):(?=:[A-Za-z])|#(?=#(?i:teamcity|vso)?\[[A-Za-z'])", re.MULTILINE)
"""Where a runner reads a command in a log: GitHub's `::name` first on a line, and anywhere on it `##[name`, Azure's `##vso[name`
and `##teamcity[name`, which PyCharm and TeamCity take for the start or the end of a test.

Sources: actions/runner, src/Runner.Common/ActionCommand.cs; it reads lines as .NET does, and blanks before `::` do not count.
https://www.jetbrains.com/help/teamcity/service-messages.html
https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands
"""


def printable(text: str) -> str:
    """The text with everything but printable characters, newlines and tabs shown as escapes: see `visible`. Commands to a
    runner or an editor are told apart by an escape too, see `inert_in_logs`.
    """
    return inert_in_logs(visible(text))


def visible(text: str) -> str:
    """The text with everything but printable characters, newlines and tabs shown as escapes: `\\x1b`, `\\u202e`, `\\ud800`.

    That covers control characters, ANSI sequences, bidirectional overrides, invisible characters and lone surrogates.
    """
    # str.isprintable and set(str) are one C call each, and texts have few different characters.
    if text.isprintable():
        return text
    escapes = {char: _escaped(char) for char in set(text) if not _harmless(char)}
    if len(escapes) > _FEW:
        return text.translate({ord(char): shown for char, shown in escapes.items()})
    for char, shown in escapes.items():  # much faster than str.translate, in texts of megabytes
        text = text.replace(char, shown)
    return text


def inert_in_logs(text: str) -> str:
    """The text without workflow commands: `::error::x` becomes `\\x3a:error::x`, and `##[group]` becomes `\\x23#[group]`.

    For text that may hold ANSI sequences or anything else on purpose; `printable` does this and more.
    """
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda found: f"{found[1]}\\x3a" if found[1] is not None else "\\x23", text)


def one_line(text: str) -> str:
    """`printable` on one line: every run of blanks and line ends becomes one space."""
    return " ".join(printable(text.replace("\r\n", "\n")).split())


def ascii_only(text: str) -> str:
    """What ASCII lacks shown as escapes."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def clip(text: str, *, chars: int, lines: int) -> tuple[str, int]:
    """The beginning of `text` within both limits, and how many characters were cut off."""
    kept = "\n".join(text.split("\n", lines)[:lines])[:chars]
    kept = kept.rstrip() if len(kept) < len(text.rstrip()) else text.rstrip()
    return kept, len(text.rstrip()) - len(kept)


def _harmless(char: str) -> bool:
    return char.isprintable() or char in "\n\t" or char in _JOINERS or unicodedata.category(char) == "Zs"


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
