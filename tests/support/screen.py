"""A terminal as far as pytest and our own line use one: text, line ends, colours (passed over), and the cursor's moves."""

from __future__ import annotations

import re
import unicodedata

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\n|\r|\x1b[78=>]|\x1b\][^\x07]*\x07|[^\x1b\n\r]")


class Screen:
    """Give it what was written with `feed`; `lines` is all that ever stood on it, the part that scrolled away included."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.width, self.height = width, height
        self._rows: list[list[str]] = [[]]
        self.row = self.column = 0

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._rows]

    def feed(self, text: str) -> None:
        for piece in _PIECE.finditer(text):
            count, command = piece[1], piece[2]
            if command is not None:
                self._move(command, int(count) if count.isdigit() else 1)
            elif piece[0] == "\n":
                self._down()
            elif piece[0] == "\r":
                self.column = 0
            elif not piece[0].startswith("\x1b"):
                self._put(piece[0])

    def _move(self, command: str, count: int) -> None:
        if command == "A":
            self.row = max(self.row - count, len(self._rows) - self.height, 0)
        elif command == "C":
            self.column = min(self.column + count, self.width - 1)
        elif command == "K":
            del self._rows[self.row][self.column :]
        else:
            assert command in "mhl", f"an escape sequence that is not known: {command}"

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self._rows):
            self._rows.append([])

    def _put(self, char: str) -> None:
        wide = unicodedata.east_asian_width(char) in "WF"
        if self.column + wide >= self.width:
            self._down()
            self.column = 0
        row = self._rows[self.row]
        row.extend(" " * (self.column - len(row)))
        row[self.column : self.column + 1 + wide] = [char, ""] if wide else [char]
        self.column += 1 + wide
