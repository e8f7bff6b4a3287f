"""What is known of the programs that agents call: which read below a directory, run text, only list names, or leave files out."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from pytest_caliper.attempt.shell import Group, Node, SimpleCommand, Word

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash"})
INTERPRETERS = frozenset({"python", "python3", "node", "deno", "bun", "perl", "ruby", "php", "lua", "Rscript", "awk", "sqlite3"})
_WRAPPERS = frozenset(
    {"sudo", "doas", "env", "command", "exec", "builtin", "nohup", "time", "nice", "ionice", "timeout", "stdbuf", "setsid"}
    | {"xargs", "parallel", "busybox"}
)
DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
READERS_OF_NAMES = frozenset({"xargs", "parallel", "read", "mapfile", "readarray", "cpio", "tar", "rsync"})
"""Commands that take names from standard input and read the files."""
LISTING = frozenset(
    {"ls", "dir", "tree", "cd", "pushd", "mkdir", "dirname", "basename", "realpath", "readlink", "stat", "du", "which"}
)
_GREP = frozenset({"grep", "egrep", "fgrep", "zgrep"})
_ALWAYS_WALKING = frozenset({"rg", "ag", "ack", "ugrep", "rgrep", "rsync", "mv"})
_WALKING_WITH = {
    **dict.fromkeys(_GREP, re.compile(r"-[A-Za-z]*[rR]|--(?:dereference-)?recursive|--directories=recurse")),
    "cp": re.compile(r"-[A-Za-z]*[rRa]|--recursive|--archive"),
    "scp": re.compile(r"-[A-Za-z]*r"),
    "diff": re.compile(r"-[A-Za-z]*r|--recursive"),
    "rm": re.compile(r"-[A-Za-z]*[rR]|--recursive"),
    "zip": re.compile(r"-[A-Za-z]*r|--recurse-paths"),
    "tar": re.compile(r"-?[A-Za-z]*[cru]|--(?:create|append|update)"),
}
PATTERN_FIRST = _GREP | {"rg", "ag", "ack", "ugrep", "rgrep"}
PATTERN_GIVEN = re.compile(r"-[A-Za-z]*[ef]|--(?:regexp|file)")
MESSAGE = re.compile(r"-[A-Za-z]*m|--message")
_FIND_TEST = re.compile(r"-(?:i?name|i?path|i?wholename|i?regex)")


def name_of(word: Word) -> str:
    """The name of a command: `/usr/bin/python3.12` is `python3`."""
    return re.sub(r"(?<=python3)\.\d+$", "", posixpath.basename(word.text))


def names_of(words: Sequence[Word]) -> set[str]:
    return {name_of(words[0])} if words else set()


def unwrapped(words: list[Word]) -> list[Word]:
    """`words` from the command that `sudo`, `env`, `timeout 5`, `xargs -n 1` and their like start."""
    while words and name_of(words[0]) in _WRAPPERS:
        index = 1
        while index < len(words) and re.match(r"-|\w+=|[\d.]+[smhd]?$|\{\}$", words[index].text):
            index += 1
        if index >= len(words):
            return words
        words = words[index:]
    return words


def readers_of(command: SimpleCommand) -> set[str]:
    """The names of the commands that read the output of `command`, wrappers included."""
    out: set[str] = set()
    reader: Node | None = command.piped_into
    for _ in range(64):
        if isinstance(reader, Group):
            reader = next(iter(reader.nodes), None)
        if not isinstance(reader, SimpleCommand):
            break
        words = [word for word in reader.words if word.text]
        out |= names_of(words) | names_of(unwrapped(words))
        reader = reader.piped_into
    return out


def walks(name: str, texts: Sequence[str]) -> bool:
    """Whether the command `name` with the arguments `texts` also reads what lies below the directories it names."""
    needed = _WALKING_WITH.get(name)
    options = [text for text in texts if text.startswith("-")]
    if name == "tar":  # its first word may be options without a dash
        options += texts[:1]
    found = name in _ALWAYS_WALKING or (needed is not None and any(needed.match(option) for option in options))
    return found and "--files" not in texts


def filters(words: Sequence[Word]) -> tuple[list[Word], tuple[str, ...], tuple[str, ...]]:
    """-> (the words that only leave files out, globs of what is read, globs of what is not)."""
    left_out: list[Word] = []
    only: list[str] = []
    but: list[str] = []
    for index, word in enumerate(words):
        after = words[index + 1] if index + 1 < len(words) else None
        option, equals, value = word.text.partition("=")
        holder = word if equals else after
        given = value if equals else (after.text if after is not None else "")
        if option in ("--exclude", "--exclude-dir", "--ignore", "--ignore-dir") and holder is not None:
            left_out += [word, holder]
            but.append(given.rstrip("/"))
        elif option in ("-g", "--glob", "--iglob") and holder is not None:
            if given.startswith("!"):
                left_out += [word, holder]
                but.append(given[1:].rstrip("/"))
            else:
                only.append(given)
        elif option == "--include":
            only.append(given)
    return left_out, tuple(only), tuple(but)


def find_tests(words: Sequence[Word]) -> tuple[list[Word], tuple[str, ...], tuple[str, ...]]:
    """The same for `find`: `-not -name X`, `-path X -prune`, `-name Y`."""
    texts = [word.text for word in words]
    left_out: list[Word] = []
    only: list[str] = []
    but: list[str] = []
    for index, text in _pairs(texts):
        negated = texts[index - 1] in ("-not", "!") or texts[index + 2 : index + 3] == ["-prune"]
        value = texts[index + 1]
        if negated:
            left_out += words[index : index + 2]
            but.append(value.removeprefix("*/").removesuffix("/*"))
        elif text in ("-name", "-iname"):
            only.append(value)
    return left_out, tuple(only), tuple(but)


def _pairs(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    return ((index, text) for index, text in enumerate(texts[:-1]) if index and _FIND_TEST.fullmatch(text))
