"""Reads a shell command well enough to say which words its simple commands have. Never raises, in linear time.

Not a shell: nothing is expanded or run, and broken quoting yields what can be read of it. Grammar: POSIX XCU 2.2 to 2.10 and the
parts of bash that agents use (here-strings, process substitution, `&>`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

MAX_DEPTH = 40
"""Substitutions and subshells nested deeper are read as plain characters."""

_PLAIN = re.compile(r"""[^\\'"$`\s;|&<>()]+""")
_IN_DOUBLE_QUOTES = re.compile(r"""[^\\"$`]+""")
_IN_PARAMETER = re.compile(r"""[^\\'"$`}]+""")
_REDIRECT = re.compile(r"(?:\d*(?:<<<|<<-?|<>|<&|>&|>>|>\||[<>])|&>>?)")
_SUBSTITUTION_IN_TEXT = re.compile(r"\\.|\$\(|`", re.DOTALL)
_LOOSE = re.compile(r"""[\s;|&<>()`'"$]+""")
_RESERVED = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!", "time"})


@dataclass(kw_only=True, slots=True)
class Word:
    """One shell word, its quotes removed; a substitution inside it reads `$()`."""

    text: str
    start: int
    end: int
    inside: list[tuple[int, int]] = field(default_factory=list)
    """Where in the source its substitutions stand."""


@dataclass(kw_only=True, slots=True)
class Redirect:
    operator: str
    """Without its file descriptor: `<`, `>`, `>>`, `<<<`, …"""
    target: Word


@dataclass(kw_only=True, slots=True)
class SimpleCommand:
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    heredocs: list[str] = field(default_factory=list)
    piped_into: Node | None = None
    """What reads the output of this command."""


@dataclass(kw_only=True, slots=True)
class Group:
    """Commands with a working directory of their own: a subshell or a substitution."""

    nodes: list[Node]
    substitution: bool
    """True when the output becomes words or a file of the command around it."""


Node: TypeAlias = SimpleCommand | Group


@dataclass(kw_only=True, slots=True)
class Script:
    source: str
    nodes: list[Node]
    hidden: list[tuple[int, int]]
    """Where in the source the bodies of here-documents and the comments stand."""


def parse(source: str) -> Script:
    """Every simple command of `source`, in order, those of substitutions before the command they stand in."""
    parser = _Parser(source)
    nodes = parser.commands(None)
    if parser.loose:
        nodes.append(SimpleCommand(words=[Word(text=text, start=0, end=0) for text in parser.loose]))
    return Script(source=source, nodes=nodes, hidden=parser.hidden)


def visible(source: str, hidden: list[tuple[int, int]]) -> str:
    """`source` with the `hidden` spans, in any order, replaced by a space each."""
    out, at = [], 0
    for start, end in sorted(hidden):
        if end > at:
            out.append(source[at : max(start, at)])
            at = end
    return " ".join([*out, source[at:]])


@dataclass(kw_only=True, slots=True)
class _Pending:
    """A here-document whose body begins at the next line."""

    command: SimpleCommand
    delimiter: str
    strip_tabs: bool
    literal: bool


class _Parser:
    def __init__(self, source: str, depth: int = 0) -> None:
        self.source = source
        self.at = 0
        self.hidden: list[tuple[int, int]] = []
        self.loose: list[str] = []
        self._pending: list[_Pending] = []
        self._depth = depth

    def commands(self, closer: str | None) -> list[Node]:
        """The commands up to `closer`, which is consumed, or to the end."""
        nodes: list[Node] = []
        command = SimpleCommand()
        feeder: SimpleCommand | None = None

        def finish(*, piped: bool = False) -> None:
            nonlocal command, feeder
            if command.words or command.redirects:
                if feeder is not None:
                    feeder.piped_into = command
                nodes.append(command)
                feeder = command if piped else None
                command = SimpleCommand()
            elif not piped:
                feeder = None

        while self.at < len(self.source):
            char = self.source[self.at]
            if char == closer:
                self.at += 1
                break
            if char in " \t\r":
                self.at += 1
            elif char == "\n":
                self.at += 1
                if feeder is None or command.words:  # a pipe goes on after a line break
                    finish()
                self._read_heredocs(nodes)
            elif char == "#":
                self._skip_comment()
            elif self.source.startswith(("<(", ">("), self.at):
                self.at += 2
                nodes.append(self.group(substitution=True))
            elif match := _REDIRECT.match(self.source, self.at):
                self._redirect(command, match, nodes, closer)
            elif char in ";&|":
                finish(piped=self._operator())
            elif char == "(":
                self.at += 1
                finish(piped=feeder is not None and not command.words)
                group = self.group(substitution=False)
                if feeder is not None:
                    feeder.piped_into, feeder = group, None
                nodes.append(group)
            elif char == ")":
                self.at += 1
                finish()
            else:
                word = self._word(nodes, closer)
                if command.words or word.text not in _RESERVED:
                    command.words.append(word)
        finish()
        return nodes

    def _operator(self) -> bool:
        """Consume `;`, `&`, `|` and their doubles. -> whether it is a pipe."""
        start = self.at
        while self.at < len(self.source) and self.source[self.at] in ";&|":
            self.at += 1
        return self.source[start : self.at] in ("|", "|&")

    def group(self, *, substitution: bool, closer: str = ")") -> Group:
        """The commands up to `closer` as a group; an empty one, with nothing consumed, where the nesting is too deep."""
        if self._depth >= MAX_DEPTH:
            return Group(nodes=[], substitution=substitution)
        self._depth += 1
        try:
            return Group(nodes=self.commands(closer), substitution=substitution)
        finally:
            self._depth -= 1

    def _skip_comment(self) -> None:
        end = self.source.find("\n", self.at)
        end = len(self.source) if end < 0 else end
        self.hidden.append((self.at, end))
        self.at = end

    def _redirect(self, command: SimpleCommand, match: re.Match[str], nodes: list[Node], closer: str | None) -> None:
        self.at = match.end()
        operator = match[0].lstrip("0123456789")
        while self.at < len(self.source) and self.source[self.at] in " \t":
            self.at += 1
        if self.at >= len(self.source) or self.source[self.at] in "\n;|&<>()":
            return  # `< <(…)` and faults: what follows is read on its own
        start = self.at
        target = self._word(nodes, closer)
        if operator in ("<<", "<<-"):
            literal = any(quote in self.source[start : self.at] for quote in "'\"\\")
            pending = _Pending(command=command, delimiter=target.text, strip_tabs=operator == "<<-", literal=literal)
            self._pending.append(pending)
        else:
            command.redirects.append(Redirect(operator=operator, target=target))

    def _read_heredocs(self, nodes: list[Node]) -> None:
        pending, self._pending = self._pending, []
        for document in pending:
            start = self.at
            lines = []
            while self.at < len(self.source):
                end = self.source.find("\n", self.at)
                end = len(self.source) if end < 0 else end
                line = self.source[self.at : end]
                self.at = min(end + 1, len(self.source))
                if (line.lstrip("\t") if document.strip_tabs else line).rstrip("\r") == document.delimiter:
                    break
                lines.append(line)
            self.hidden.append((start, self.at))
            body = "\n".join(lines)
            document.command.heredocs.append(body)
            if not document.literal:
                nodes += _substitutions(body, self._depth)

    def _word(self, nodes: list[Node], closer: str | None) -> Word:
        """The word at `at`; at least one character is consumed. Its substitutions are appended to `nodes`."""
        word = Word(text="", start=self.at, end=self.at)
        out: list[str] = []
        while self.at < len(self.source):
            char = self.source[self.at]
            if match := _PLAIN.match(self.source, self.at):
                out.append(match[0])
                self.at = match.end()
            elif char == "\\":
                if not self.source.startswith("\\\n", self.at):
                    out.append(self.source[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'":
                out.append(self._single_quoted())
            elif char == '"':
                self.at += 1
                out.append(self._double_quoted(word, nodes))
            elif char == "$":
                out.append(self._dollar(word, nodes))
            elif char == "`" and closer != "`":
                out.append(self._substitution(word, nodes, 1, "`"))
            else:
                break
        self.at = min(max(self.at, word.start + 1), len(self.source))
        word.text, word.end = "".join(out), self.at
        return word

    def _single_quoted(self) -> str:
        start = self.at + 1
        end = self.source.find("'", start)
        if end < 0:
            return self._unterminated(start)
        self.at = end + 1
        return self.source[start:end]

    def _double_quoted(self, word: Word, nodes: list[Node]) -> str:
        start, out = self.at, []
        while self.at < len(self.source):
            char = self.source[self.at]
            if match := _IN_DOUBLE_QUOTES.match(self.source, self.at):
                out.append(match[0])
                self.at = match.end()
            elif char == '"':
                self.at += 1
                return "".join(out)
            elif char == "\\":
                escaped = self.source[self.at + 1 : self.at + 2]
                out.append({"\n": ""}.get(escaped, escaped if escaped in '$`"\\' else char + escaped))
                self.at += 2
            elif char == "$":
                out.append(self._dollar(word, nodes))
            else:
                out.append(self._substitution(word, nodes, 1, "`"))
        self._unterminated(start)
        return "".join(out)

    def _unterminated(self, start: int) -> str:
        """The rest of the source, also cut at everything that would part words, since nobody knows what was meant."""
        rest = self.source[start:]
        self.at = len(self.source)
        if not self.loose:
            self.loose += [piece for piece in _LOOSE.split(rest) if piece]
        return rest

    def _dollar(self, word: Word, nodes: list[Node]) -> str:
        following = self.source[self.at + 1 : self.at + 2]
        if following == "(":
            return self._substitution(word, nodes, 2, ")")
        if following == "{":
            return self._parameter(word, nodes)
        self.at += 1
        return "" if following in ("'", '"') else "$"

    def _substitution(self, word: Word, nodes: list[Node], opener: int, closer: str) -> str:
        start = self.at
        self.at += opener
        if self._depth >= MAX_DEPTH:
            return self.source[start : self.at]
        group = self.group(substitution=True, closer=closer)
        word.inside.append((start, self.at))
        if self.source[start + opener : self.at - 1].strip() == "pwd":
            return "$PWD"
        nodes.append(group)
        return "$()"

    def _parameter(self, word: Word, nodes: list[Node]) -> str:
        """`${…}` as written, but for the substitutions inside."""
        out = ["${"]
        self.at += 2
        while self.at < len(self.source):
            char = self.source[self.at]
            if match := _IN_PARAMETER.match(self.source, self.at):
                out.append(match[0])
                self.at = match.end()
            elif char == "}":
                self.at += 1
                out.append("}")
                break
            elif self.source.startswith("$(", self.at):
                out.append(self._substitution(word, nodes, 2, ")"))
            else:
                out.append("" if char in "'\"" else char)
                self.at += 1
        return "".join(out)


def _substitutions(body: str, depth: int) -> list[Node]:
    """What the substitutions in the text of a here-document run."""
    parser = _Parser(body, depth)
    nodes: list[Node] = []
    while match := _SUBSTITUTION_IN_TEXT.search(body, parser.at):
        parser.at = match.end()
        if not match[0].startswith("\\"):
            nodes.append(parser.group(substitution=True, closer=")" if match[0] == "$(" else "`"))
    return nodes
