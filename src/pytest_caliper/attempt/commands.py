"""Follows a shell command from directory to directory and notes what it reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_caliper.attempt.named import PLAIN, Manner, Names, expanded, literals, named, resolve
from pytest_caliper.attempt.patches import patched_paths
from pytest_caliper.attempt.programs import (
    DECLARING,
    INTERPRETERS,
    LISTING,
    MESSAGE,
    PATTERN_FIRST,
    PATTERN_GIVEN,
    READERS_OF_NAMES,
    SHELLS,
    filters,
    find_tests,
    name_of,
    names_of,
    readers_of,
    unwrapped,
    walks,
)
from pytest_caliper.attempt.shell import Group, Node, Script, SimpleCommand, Word, parse, visible

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
MAX_NESTED = 8
"""`bash -c` inside `bash -c`: deeper is not followed."""


@dataclass(kw_only=True, slots=True)
class _State:
    """Where a (sub)shell stands."""

    cwd: str
    variables: dict[str, str]


@dataclass(kw_only=True, slots=True)
class ShellReader:
    """Adds to `names` what commands name."""

    names: Names
    _nested: int = 0
    _hidden: list[tuple[int, int]] = field(default_factory=list)

    def read(self, source: str, *, cwd: str, variables: Mapping[str, str]) -> None:
        """Read one command, started in the absolute directory `cwd` with the known `variables`."""
        state = _State(cwd=cwd, variables={**variables, "PWD": cwd})
        self._script(parse(source), state)

    def _script(self, script: Script, state: _State) -> None:
        outer, self._hidden = self._hidden, list(script.hidden)
        self._nodes(script.nodes, state)
        self.names.commands.append(visible(script.source, self._hidden))
        self._hidden = outer

    def _nodes(self, nodes: Sequence[Node], state: _State, *, substitution: bool = False) -> None:
        for node in nodes:
            if isinstance(node, Group):
                inner = _State(cwd=state.cwd, variables=dict(state.variables))
                self._nodes(node.nodes, inner, substitution=node.substitution)
            else:
                self._simple(node, state, substitution)

    def _nest(self, source: str, state: _State) -> None:
        if self._nested < MAX_NESTED:
            self._nested += 1
            self._script(parse(source), state)
            self._nested -= 1

    def _simple(self, command: SimpleCommand, state: _State, substitution: bool) -> None:
        words = [word for word in command.words if word.text]
        while words and (match := _ASSIGNMENT.match(words[0].text)):
            self._assign(match, state)
            words = words[1:]
        wrapped = unwrapped(words)
        readers = names_of(words) | names_of(wrapped) | readers_of(command)
        self._redirects(command, readers, state)
        self._feed(command, readers, state)
        if words:
            self._add(words[: len(words) - len(wrapped)], state)
            self._dispatch(command, wrapped, state, substitution)

    def _assign(self, match: re.Match[str], state: _State) -> None:
        state.variables[match[1]] = expanded(match[2], state.variables)
        self.names.words += named(match[0], state.cwd, state.variables)

    def _redirects(self, command: SimpleCommand, readers: set[str], state: _State) -> None:
        for redirect in command.redirects:
            if redirect.operator == "<<<":
                self._text(redirect.target, readers, state)
            elif not (redirect.operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", redirect.target.text)):
                self._add([redirect.target], state)

    def _feed(self, command: SimpleCommand, readers: set[str], state: _State) -> None:
        """Here-documents count where they are run, not where they are written to a file."""
        for body in command.heredocs:
            if readers & SHELLS:
                self._nest(body, state)
            elif readers & INTERPRETERS:
                for literal in literals(body):
                    self.names.words += named(literal, state.cwd, state.variables)
            elif "apply_patch" in readers or "applypatch" in readers:
                for path in patched_paths(body):
                    self.names.words += named(path, state.cwd, state.variables)
            elif readers & READERS_OF_NAMES:
                self._texts(body.split(), state)

    def _text(self, word: Word, readers: set[str], state: _State) -> None:
        """A text that is data to its command: it counts where the reader runs it or takes names from it."""
        self._hide(word)
        if readers & SHELLS:
            self._nest(word.text, state)
        elif readers & INTERPRETERS or readers & READERS_OF_NAMES:
            self._texts([word.text, *word.text.split()], state)

    def _dispatch(self, command: SimpleCommand, words: list[Word], state: _State, substitution: bool) -> None:
        name = name_of(words[0]) if words else ""
        if name in ("echo", "printf"):
            for word in words[1:]:
                self._text(word, readers_of(command), state)
        elif name in DECLARING:
            for word in words[1:]:
                if match := _ASSIGNMENT.match(word.text):
                    self._assign(match, state)
        elif name in ("cd", "pushd", "chdir"):
            self._change_directory(words, state)
        elif name == "eval":
            self._hide(*words[1:])
            self._nest(" ".join(word.text for word in words[1:]), state)
        elif name in SHELLS:
            self._shell(words, state)
        elif name in ("find", "fd", "fdfind"):
            reads = substitution or bool(readers_of(command) & (READERS_OF_NAMES | SHELLS))
            self._find(words, state, reads)
        elif name == "git":
            self._git(words, state)
        else:
            reads = substitution or bool(readers_of(command) & (READERS_OF_NAMES | SHELLS))
            self._other(name, words, state, reads)

    def _change_directory(self, words: list[Word], state: _State) -> None:
        target = next((word for word in words[1:] if not word.text.startswith("-")), None)
        self._add(words[1:], state, Manner(lists=True))
        path = expanded("~" if target is None else target.text, state.variables)
        if "$" not in path and not any(word.text == "-" for word in words[1:]):
            state.cwd = resolve(path, state.cwd)
            state.variables["PWD"] = state.cwd

    def _shell(self, words: list[Word], state: _State) -> None:
        """`bash -lc SCRIPT`: the script is a command of its own; else the words are files."""
        for index, word in enumerate(words[1:], 1):
            if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word.text) and index + 1 < len(words):
                self._hide(words[index + 1])
                self._nest(words[index + 1].text, _State(cwd=state.cwd, variables=dict(state.variables)))
                self._add(words[index + 2 :], state)
                return
            if not word.text.startswith(("-", "+")):
                break
        self._add(words[1:], state)

    def _find(self, words: list[Word], state: _State, reads: bool) -> None:
        texts = [word.text for word in words]
        run = next(
            (index for index, text in enumerate(texts) if text in ("-exec", "-execdir", "-ok", "-x", "-X", "--exec")), None
        )
        if run is not None:
            self._dispatch(
                SimpleCommand(), unwrapped([w for w in words[run + 1 :] if w.text not in (";", "+", "{}")]), state, False
            )
        left_out, only, but = find_tests(words[:run])
        self._hide(*left_out)
        kept = [word for word in words[:run] if word not in left_out]
        walks = reads or run is not None or "-delete" in texts
        self._add(kept, state, Manner(walks=walks, lists=not walks, dotted=True, only=only, but=but))

    def _git(self, words: list[Word], state: _State) -> None:
        """Messages are text; `-C DIR` moves."""
        state = replace(state, variables=dict(state.variables))
        named_words: list[Word] = []
        rest = iter(words[1:])
        for word in rest:
            if MESSAGE.fullmatch(word.text):
                self._hide(*[text for text in (next(rest, None),) if text is not None])
            elif word.text.startswith(("--message=", "-m")):
                self._hide(word)
            else:
                named_words.append(word)
                if word.text == "-C" and (directory := next(rest, None)) is not None:
                    self._add([directory], state, Manner(lists=True))
                    state.cwd = resolve(expanded(directory.text, state.variables), state.cwd)
        manner = Manner(walks=any(word.text == "grep" for word in named_words))
        self._add(named_words, state, manner)
        if manner.walks:
            self._texts(["."], state, manner)

    def _other(self, name: str, words: list[Word], state: _State, reads: bool) -> None:
        """`reads`: whether the names that the command prints are read by another."""
        left_out, only, but = filters(words[1:])
        self._hide(*left_out)
        kept = [word for word in words if word not in left_out]
        texts = [word.text for word in kept[1:]]
        deep = walks(name, texts)
        if name in PATTERN_FIRST and deep:
            kept = self._without_pattern(kept, state)
            if not any(not word.text.startswith("-") for word in kept[1:]):
                self.names.words += named(".", state.cwd, state.variables, Manner(walks=True, only=only, but=but))
        manner = Manner(walks=True, only=only, but=but) if deep else Manner(lists=name in LISTING and not reads)
        self._add(kept, state, manner)

    def _without_pattern(self, words: list[Word], state: _State) -> list[Word]:
        """The words of a searching command without the text it searches for, which is still a shell word."""
        if any(PATTERN_GIVEN.match(word.text) for word in words[1:]):
            return words
        for index, word in enumerate(words[1:], 1):
            if not word.text.startswith("-"):
                self._add([word], state, Manner(lists=True))
                return words[:index] + words[index + 1 :]
        return words

    def _add(self, words: Sequence[Word], state: _State, manner: Manner = PLAIN) -> None:
        self._texts([word.text for word in words], state, manner)

    def _texts(self, texts: Sequence[str], state: _State, manner: Manner = PLAIN) -> None:
        for text in texts:
            self.names.words += named(text, state.cwd, state.variables, manner)

    def _hide(self, *words: Word) -> None:
        """Take `words` out of the whole command, but for the substitutions inside them."""
        for word in words:
            start = word.start
            for inner_start, inner_end in sorted(word.inside):
                self._hidden.append((start, inner_start))
                start = max(start, inner_end)
            self._hidden.append((start, word.end))
