"""The one place where foreign text becomes part of a page. What is not `Markup` is escaped, always.

Everything made here is ASCII, so that the page is the same in whatever encoding it is written.
"""

from __future__ import annotations

import html
import json
from typing import Any

from pytest_caliper.reporting.text import visible


class Markup(str):
    """HTML that may be written as it is."""

    __slots__ = ()


Child = str | None
"""Text, `Markup`, or nothing."""


def escaped(text: str) -> Markup:
    """The text as content of an element or of an attribute in double quotes; a `Markup` as it is.

    Control characters, bidirectional overrides, invisible characters and lone surrogates are shown as escapes.
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(visible(text.replace("\r\n", "\n"))).encode("ascii", "xmlcharrefreplace").decode("ascii"))


def joined(*parts: Child) -> Markup:
    """The parts one after the other."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """`<tag …>children</tag>`. `class_` is `class`, `data_key` `data-key`; True is a bare name, None and False leave it out."""
    return joined(opening(tag, **attributes), *children, Markup(f"</{tag}>"))


def opening(tag: str, **attributes: str | int | bool | None) -> Markup:
    """The start tag alone: for elements without content, and for those that are written piece by piece."""
    written = []
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {name}")
        elif value is not None and value is not False:
            written.append(f' {name}="{escaped(str(value))}"')
    return Markup(f"<{tag}{''.join(written)}>")


def preformatted(text: str, **attributes: str | int | bool | None) -> Markup:
    """A `<pre>` whose lines are those of the text: a first line break would be dropped by the parser."""
    return element("pre", Markup("\n"), text, **attributes)


def shown(text: str) -> str:
    """The text as a script may show it, with `textContent` and nothing else: see `escaped` for what is made visible."""
    return visible(text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """`shown` on one line. Unlike `text.one_line` it lets workflow commands be: nobody obeys a page."""
    return " ".join(shown(text).split())


def script_json(value: Any) -> Markup:
    """JSON that cannot end the `<script>` it stands in, nor begin a comment there: ASCII without `<`, `>` and `&`.

    ValueError for numbers that JSON has no word for.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
