"""Text within a bound, with its head, its tail and a mark that says how much is missing between them."""

from __future__ import annotations

MARK = "[… {n} bytes cut …]"


def cut_middle(text: str, limit: int, mark: str = MARK) -> str:
    """`text` in at most `limit` bytes of UTF-8 (or the mark alone, where even that is longer).

    `mark` takes its own line and says in `{n}` how many bytes were left out. Lone surrogates, which UTF-8 cannot hold, come out
    as `\\udc80`: what is returned can always be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    room = max(0, limit - len(f"\n{mark.format(n=len(data))}\n".encode()))
    head = data[: (room + 1) // 2].decode("utf-8", "ignore")
    tail = data[len(data) - room // 2 :].decode("utf-8", "ignore")
    missing = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}\n{mark.format(n=missing)}\n{tail}"


def first_line(text: str) -> str:
    """The first line of `text` that is not blank, with everything in it that does not print as a space."""
    for line in text.split("\n"):
        if line.strip():
            return " ".join("".join(char if char.isprintable() else " " for char in line).split())
    return ""
