"""The questions of `caliper new`, one after another on a terminal. Empty answers take the default."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_caliper.cli.output import say

Read = Callable[[], str]
"""Gives the next line without its end. Raises EOFError."""

KINDS = (
    ("Happy path", "The usual request, with everything in place.", True),
    ("Edge case", "An input at the border of what the skill promises: empty, huge, in another form.", False),
    ("Adversarial", "A request that leads to a plausible wrong result, or asks to skip a rule of the skill.", False),
)
"""What a first spec should hold: a title, what is meant, and whether the task is needed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """One task, as it was typed."""

    prompt: str
    name: str | None = None
    """None: made from the prompt."""
    setup: str | None = None
    expect: str | None = None
    assertion: str | None = None
    solution: str | None = None
    kind: str | None = None
    """One of the titles of `KINDS`."""


def terminal_lines() -> Read:
    """Lines from the terminal, with the usual keys to edit them."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  input() uses it from here on

    return lambda: input("> ")


def ask_for_skill(found: Sequence[Path], read: Read) -> Path | None:
    """Which skill; None for the bare agent. `found` are those nearby, the likeliest first."""
    if len(found) > 1:
        _line("Skills nearby:")
        for number, path in enumerate(found, 1):
            _line(f"  {number}  {path}")
    question = "Which skill? A number, a path, or - for the bare agent" if len(found) > 1 else "Which skill? - for the bare agent"
    while True:
        answer = _ask(question, read, default=str(found[0]) if found else "-").strip()
        if answer == "-":
            return None
        if answer.isascii() and answer.isdigit() and 0 < int(answer[:9]) <= len(found):
            return found[int(answer) - 1]
        if Path(answer).exists():
            return Path(answer)
        _line(f"There is no {answer} here: name a SKILL.md, or the directory that holds it.")


def ask_for_tasks(read: Read) -> list[Draft]:
    """One task of each kind; all but the first may be left out."""
    _line("End a line with \\ to go on in the next. Enter alone takes what stands in brackets.")
    return [draft for title, meaning, needed in KINDS if (draft := _task(title, meaning, needed, read)) is not None]


def _task(title: str, meaning: str, needed: bool, read: Read) -> Draft | None:
    _line("")
    _line(f"{title}. {meaning}")
    prompt = _needed("What does a user say?", read) if needed else _ask("What does a user say?", read, default="no such task")
    if not needed and prompt == "no such task":
        return None
    setup = _ask("Shell command that fills the directory before", read, default="it is empty")
    checks = list(_checks(read))
    question = "What must be so, in a sentence or two? A judge reads it"
    expect = _ask(question, read, default="no judge") if checks else _needed(question, read)
    return Draft(
        prompt=prompt,
        setup=None if setup == "it is empty" else setup,
        assertion="".join(f"{line}\n" for line in checks) or None,
        expect=None if expect == "no judge" else expect,
        kind=title,
    )


def _checks(read: Read) -> Iterator[str]:
    """Lines of an `assert:` about one file."""
    path = _ask("File that must be there afterwards", read, default="none").strip()
    if path == "none":
        return
    yield "from pathlib import Path"
    yield f"file = Path({path!r})"
    yield f"assert file.is_file(), {path + ' was not written'!r}"
    text = _ask(f"Text that {path} must hold", read, default="any")
    if text != "any":
        yield f"assert {text!r} in file.read_text(encoding='utf-8')"


def _needed(question: str, read: Read) -> str:
    while True:
        answer = _ask(question, read)
        if answer.strip():
            return answer
        _line("This one needs an answer.")


def _ask(question: str, read: Read, *, default: str | None = None) -> str:
    """The answer, of several lines where they end in a backslash; the default for a blank one."""
    _line(question if default is None else f"{question} [{default}]")
    lines = [read()]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(read())
    answer = "\n".join(lines)
    return default if default is not None and not answer.strip() else answer


def _line(text: str) -> None:
    from pytest_caliper.reporting.text import one_line

    say(f"{one_line(text)}\n")
