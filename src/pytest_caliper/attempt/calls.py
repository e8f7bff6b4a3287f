"""What a tool call names: the shell commands it runs and the paths it touches, without the text it writes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_caliper.attempt.commands import ShellReader
from pytest_caliper.attempt.named import MAX_PATH, PLAIN, Manner, Named, Names, expanded, literals, named, resolve
from pytest_caliper.attempt.patches import is_patch, patched_paths
from pytest_caliper.runs.records import Turn

MAX_STRINGS = 2_000
"""Of one tool call's input that are looked at."""

# Keys and names of tools are compared in lower case without separators: `file_path`, `filePath` and `file-path` are one.
_SHELL_KEYS = frozenset({"command", "cmd", "commands", "shellcommand", "commandline"})
_CWD_KEYS = ("cwd", "workdir", "workingdirectory", "dirpath", "directory")
_CODE_KEYS = frozenset({"code", "script", "javascript", "python", "sourcecode"})
_CONTENT_KEYS = frozenset(
    {"content", "contents", "newstring", "oldstring", "newtext", "oldtext", "newstr", "oldstr", "filetext", "newsource"}
    | {"prompt", "description", "message", "body", "todos", "instructions", "inserttext", "data", "title", "subject", "thought"}
)
_PATH_KEY = re.compile(r"(?:paths?|files?|filenames?|dir|directory|directories|folder|source|destination|uri|cwd|workdir)$")
_GREP = frozenset({"grep", "ripgrep", "grepsearch", "searchfilecontent", "codesearch"})
_GLOB = frozenset({"glob", "globsearch", "fileglob", "filesearch"})
_PATHS_ONLY = frozenset(
    {
        "task",
        "agent",
        "skill",
        "activateskill",
        "webfetch",
        "websearch",
        "todowrite",
        "todoread",
        "askuserquestion",
        "exitplanmode",
    }
    | {
        "bashoutput",
        "killshell",
        "killbash",
        "taskoutput",
        "toolsearch",
        "structuredoutput",
        "write",
        "edit",
        "multiedit",
        "writefile",
    }
    | {"bash", "shell", "runshellcommand", "execcommand", "commandexecution"}
)
"""Well-known tools, of which nothing but commands and the values of path keys is read."""
_TYPES = {"yaml": ("*.yaml", "*.yml"), "md": ("*.md",), "markdown": ("*.md",), "py": ("*.py",), "js": ("*.js",), "ts": ("*.ts",)}
_PATH_LIKE = re.compile(r"(?:~|\.{0,2})/.*|\S*/\S+|\S*\.\w{1,12}|\.\w\S*")


def read_call(turn: Turn, *, work: str, variables: Mapping[str, str]) -> Names:
    """What the tool call `turn` names. `variables` are the known ones of the agent's shell, HOME among them."""
    call = _Call.of(turn, work, variables)
    for key, text in _strings(turn.tool_input or {}):
        call.read(key, text)
    if call.tool in _GREP and not isinstance(call.given.get("path"), str):
        call.names.words += named(".", work, variables, call.walk())
    return call.names


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    tool: str
    given: Mapping[str, Any]
    """The input by plain keys."""
    work: str
    cwd: str
    variables: Mapping[str, str]
    names: Names

    @classmethod
    def of(cls, turn: Turn, work: str, variables: Mapping[str, str]) -> _Call:
        given = {_plain(key): value for key, value in (turn.tool_input or {}).items()}
        cwd = next((value for key in _CWD_KEYS if isinstance(value := given.get(key), str)), ".")
        return cls(
            tool=_plain((turn.tool_name or "").rsplit("__", 1)[-1]),
            given=given,
            work=work,
            cwd=resolve(expanded(cwd, variables), work),
            variables=variables,
            names=Names(),
        )

    def read(self, key: str, text: str) -> None:
        """Add what the string `text` under `key` names."""
        if key in _SHELL_KEYS:
            ShellReader(names=self.names).read(text, cwd=self.cwd, variables=self.variables)
        elif is_patch(text):
            self.names.words += [entry for path in patched_paths(text) for entry in self._named(path)]
        elif key in _CODE_KEYS and self.tool not in _PATHS_ONLY:
            self.names.words += [entry for literal in literals(text) for entry in self._named(literal)]
        elif text and len(text) <= MAX_PATH and "\n" not in text and key not in _CONTENT_KEYS:
            self.names.words += self._path(key, text)

    def _path(self, key: str, text: str) -> Iterator[Named]:
        if self.tool in _GREP:
            if key in ("glob", "include"):
                return iter(()) if text.startswith("!") else self._named(text, manner=Manner(lists=True))
            return self._named(text, manner=self.walk()) if _PATH_KEY.search(key) else iter(())
        if self.tool in _GLOB:
            path = self.given.get("path")
            base = resolve(expanded(path, self.variables), self.work) if isinstance(path, str) else self.work
            if key in ("pattern", "glob", "query"):
                return self._named(text, base=base, manner=Manner(dotted=True))
            return self._named(text, manner=Manner(lists=True)) if _PATH_KEY.search(key) else iter(())
        if key.startswith(("exclude", "ignore")):
            return iter(())
        if _PATH_KEY.search(key) or text.startswith("file:"):
            return self._named(text, manner=Manner(dotted=True))
        if self.tool in _PATHS_ONLY or "://" in text or not _PATH_LIKE.fullmatch(text):
            return iter(())
        return self._named(text, manner=Manner(dotted=True))

    def walk(self) -> Manner:
        """How a search tool walks, narrowed by the call's glob and type."""
        globs = [value for key in ("glob", "include") if isinstance(value := self.given.get(key), str)]
        only = [glob for glob in globs if not glob.startswith("!")]
        but = [glob[1:] for glob in globs if glob.startswith("!")]
        if isinstance(kind := self.given.get("type"), str) and not only:
            only += _TYPES.get(kind, (f"*.{kind}",))
        return Manner(walks=True, only=tuple(only), but=tuple(but))

    def _named(self, text: str, *, base: str | None = None, manner: Manner = PLAIN) -> Iterator[Named]:
        return named(text, base or self.work, self.variables, manner)


def _strings(value: Any) -> Iterator[tuple[str, str]]:
    """The strings of a tool's input, each with the plain form of the nearest key; an argv as the command it is."""
    pending: list[tuple[str, Any]] = [("", value)]
    found = 0
    while pending and found < MAX_STRINGS:
        key, value = pending.pop(0)
        if isinstance(value, str):
            found += 1
            yield key, value
        elif isinstance(value, Mapping):
            pending += [(_plain(name), entry) for name, entry in value.items()]
        elif isinstance(value, (list, tuple)):
            if key in _SHELL_KEYS and value and all(isinstance(entry, str) for entry in value):
                yield key, "\n".join(value) if key == "commands" else shlex.join(value)
            else:
                pending += [(key, entry) for entry in value]


def _plain(key: object) -> str:
    return re.sub(r"[\W_]+", "", str(key)).lower()
