"""Finds out whether an agent touched what it must not: the spec's `forbidden_files`, and always what is protected."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_caliper.attempt.calls import read_call
from pytest_caliper.attempt.named import MAX_PATH, Named, Names, resolve
from pytest_caliper.attempt.protected import ProtectedFiles
from pytest_caliper.contracts import Workspace
from pytest_caliper.runs.records import Turn

MAX_EVIDENCE = 20
MAX_SHOWN = 200
"""Characters of the matched text in a line of evidence."""
WINDOW, OVERLAP = 2048, 512
"""Longer texts are searched piece by piece: a pattern that backtracks is quadratic in the length at least."""
Directories: TypeAlias = tuple[tuple[str, str], ...]
_NO_VARIABLES: Mapping[str, str] = {}


def find_cheating(
    transcript: Sequence[Turn],
    *,
    patterns: Sequence[str],
    protected: Sequence[Path],
    workspace: Workspace,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> tuple[str, ...]:
    """One line of evidence for every tool call and forbidden pattern or protected file, in order; empty for an honest agent.

    `patterns` are regular expressions, each searched in the whole shell command, each shell word, and each path that a tool call
    names: as written, as `./relative` to `work/`, and as absolute. `protected` are absolute files and directories. Only tool
    calls count, not their results and not the answer; of a call, not the text that it writes. `variables` are further ones that
    the agent's shell knows. At most `MAX_EVIDENCE` lines.
    """
    directories = tuple(_directories(workspace))
    forbidden = [_Forbidden.compile(pattern, directories) for pattern in patterns]
    files = ProtectedFiles(protected, workspace)
    known = {"TMPDIR": str(workspace.tmp), "CALIPER_WORKDIR": str(workspace.work), **variables, "HOME": str(workspace.home)}
    evidence: dict[str, None] = {}
    for turn in transcript:
        if turn.role != "tool_use":
            continue
        names = read_call(turn, work=str(workspace.work), variables=known)
        evidence.update(dict.fromkeys(_evidence(turn.tool_name or "tool", names, forbidden, files, directories)))
        if len(evidence) >= MAX_EVIDENCE:
            break
    return tuple(evidence)[:MAX_EVIDENCE]


def _evidence(
    tool: str, names: Names, forbidden: Sequence[_Forbidden], files: ProtectedFiles, directories: Directories
) -> Iterator[str]:
    words = tuple(dict.fromkeys(names.words))
    forms = [(word, _forms(word, directories)) for word in words] if forbidden else []
    for pattern in forbidden:
        hit = next((word.text for word, texts in forms if pattern.matches(texts)), None)
        hit = hit if hit is not None else next((found for text in names.commands if (found := pattern.find(text))), None)
        if hit is not None:
            yield _line(tool, hit, "matches the forbidden pattern", pattern.source)
    reached: dict[Path, str] = {}
    for word in words:
        if (path := files.match(word)) is not None:
            reached.setdefault(path, word.text)
    for path, text in reached.items():
        yield _line(tool, text, "reaches the protected", str(path))


def _line(tool: str, text: str, verb: str, target: str) -> str:
    """One printable, bounded line."""
    shown = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN // 2]} … {text[-MAX_SHOWN // 2 :]}"
    return f"{_printable(tool)}: '{_printable(shown)}' {verb} '{_printable(target)}'"


def _printable(text: str) -> str:
    """`text` with its control characters and lone surrogates escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Forbidden:
    source: str
    regex: re.Pattern[str]
    masks: tuple[tuple[str, str], ...]
    """Directories to leave out of every text, with what stands for them."""

    @classmethod
    def compile(cls, source: str, directories: Directories) -> _Forbidden:
        """A pattern that the workspace's own path already matches (`/tmp/`) would make every file of it forbidden: for such a one
        the paths below are told without it."""
        regex = re.compile(_without_leading_any(source))
        own = [(directory, name) for directory, name in directories if regex.search(directory + "/")]
        return cls(source=source, regex=regex, masks=tuple(own))

    def matches(self, texts: Sequence[str]) -> bool:
        return any(self.find(text) is not None for text in texts)

    def find(self, text: str) -> str | None:
        """What of `text` matches, with a little around it; None when nothing does."""
        for directory, name in self.masks:
            text = text.replace(directory, name)
        for window in _windows(text):
            if (match := self.regex.search(window)) is not None:
                return window[max(0, match.start() - 40) : match.end() + 40].strip() or window[:80]
        return None


def _without_leading_any(pattern: str) -> str:
    """`pattern` without a leading `.*`, which changes nothing for a search but makes it quadratic."""
    stripped = pattern[2:]
    if pattern.startswith(".*") and stripped and stripped[0] not in "*+?{|" and "|" not in stripped:
        return stripped
    return pattern


def _directories(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """The workspace's directories by each of their names, the inner ones first."""
    for path, name in ((workspace.work, "."), (workspace.home, "~"), (workspace.root, "..")):
        for spelling in dict.fromkeys((str(path), os.path.realpath(path))):
            yield spelling, name


def _forms(word: Named, directories: Directories) -> list[str]:
    """`word` as written, as `./relative` and as absolute, without repetitions."""
    texts = [word.text, word.path]
    if not 0 < len(word.path) <= MAX_PATH or "\n" in word.path or word.path.startswith("-"):
        return list(dict.fromkeys(texts))
    absolute = resolve(word.path, word.base)
    texts.append(absolute)
    if not word.path.startswith(("/", "..")):
        texts.append(f"./{os.path.normpath(word.path)}")
    for directory, name in directories:
        if name == "." and absolute.startswith(directory + "/"):
            texts.append("." + absolute[len(directory) :])
    return list(dict.fromkeys(texts))


def _windows(text: str) -> Iterator[str]:
    """`text` in overlapping pieces, cut at a space where there is one, so that `^` and `$` mean the ends of words."""
    start = 0
    while len(text) - start > WINDOW:
        end = _space(text, start + WINDOW // 2, start + WINDOW)
        yield text[start:end]
        start = _space(text, end - OVERLAP, end - OVERLAP // 2)
    yield text[start:]


def _space(text: str, start: int, end: int) -> int:
    """The last white space in `text[start:end]`; `end` when there is none."""
    found = max(text.rfind(blank, start, end) for blank in " \n\t")
    return found if found >= 0 else end
