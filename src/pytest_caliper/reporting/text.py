"""Texts of agents, judges and specs made harmless: nothing in them reaches the terminal as a command, and nothing is dropped."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"
"""Zero-width (non-)joiners: part of the spelling of several languages and of emoji."""


def printable(text: str) -> str:
    """The text with everything but printable characters, newlines and tabs shown as escapes: `\\x1b`, `\\u202e`, `\\ud800`.

    That covers control characters, ANSI sequences, bidirectional overrides, invisible characters and lone surrogates.
    """
    # str.isprintable is one C call, and nearly every text needs no more.
    return text if text.isprintable() else "".join(c if _harmless(c) else _escaped(c) for c in text)


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
