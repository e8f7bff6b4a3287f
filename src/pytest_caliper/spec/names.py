"""Names of pytest nodes, made from the names of tasks."""

from __future__ import annotations

import re
import unicodedata

MAX_CHARS = 200
"""Enough to read; some runners put ids into file names and environment variables."""

_REPLACED = str.maketrans({"[": "(", "]": ")", "/": "-", "\\": "-"})


def node_name(raw: str, fallback: str) -> str:
    """`raw` as one component of a pytest id: one line, no brackets, `::`, slashes or characters that do not print.

    `fallback`, the task's id, when nothing is left. Stable: `node_name(node_name(x, f), f) == node_name(x, f)`.
    VS Code splits ids at line separators, brackets and `::`; PyCharm at slashes.
    """
    printable = "".join(" " if char.isspace() else char for char in raw if char.isspace() or char.isprintable())
    name = unicodedata.normalize("NFC", printable).translate(_REPLACED)
    name = re.sub(":{2,}", ":", re.sub(" +", " ", name))
    return name.strip(": ")[:MAX_CHARS].strip(": ") or fallback
