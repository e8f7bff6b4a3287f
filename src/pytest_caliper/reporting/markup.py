"""Texts of others inside GitHub's Markdown: shown as they are, and doing nothing.

Everything foreign stands in code: there GitHub makes no HTML, link, image, mention (`@name`), issue link (`#1`) or emoji of it
(https://github.github.com/gfm/, sections 6.3 and 4.10).
"""

from __future__ import annotations

import hashlib
import html
import re
from urllib.parse import quote

from pytest_caliper.reporting.text import clip, one_line, printable

_MARKER_CHARS = 300
_BACKTICKS = re.compile("`+")


def size(markdown: str) -> int:
    """The text's length as GitHub's limits count it: UTF-16 units, of which an emoji has two."""
    return len(markdown.encode("utf-16-le", "surrogatepass")) // 2


def code(text: str, *, chars: int = 200) -> str:
    """The text on one line as inline code, cut after `chars`. Not for cells of tables."""
    shown = _line(text, chars)
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(text: str, *, chars: int = 200) -> str:
    """`code` for the cell of a table, where a `|` would end the cell even inside of code."""
    return code(text, chars=chars).replace("|", "\\|")


def html_code(text: str, *, chars: int = 200) -> str:
    """The text on one line as HTML, for places such as `<summary>` in which GitHub reads no Markdown."""
    return f"<code>{html.escape(_line(text, chars))}</code>"


def block(text: str) -> str:
    """The text as a code block, without a final newline; no run of backticks inside can end it."""
    shown = printable(text)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def marker(spec: str) -> str:
    """The hidden first line by which a comment is known again: an HTML comment that nothing in the spec's path can end."""
    name = quote(spec, safe="/", errors="surrogatepass").replace("--", "-%2D")
    if len(name) > _MARKER_CHARS:
        name = f"sha256/{hashlib.sha256(name.encode('ascii')).hexdigest()}"
    return f"<!-- pytest-caliper:{name} -->"


def _line(text: str, chars: int) -> str:
    kept, cut = clip(one_line(text), chars=chars, lines=1)
    return f"{kept}…" if cut else kept or "—"


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
