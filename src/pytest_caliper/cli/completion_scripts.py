"""The completion scripts of three shells, written out from the commands as `completion` describes them.

bash 3.2 (macOS), zsh 5 and fish 3 or newer. A script starts `caliper` only where names of saved runs are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_caliper.cli.completion import Completed, Flag, Value

_HELP_CHARS = 60

_BASH = r"""# Completion of caliper in bash. In ~/.bashrc: eval "$(caliper completion bash)"
_caliper_lines() {  # of standard input, those that begin with $1
    local line
    while IFS= read -r line; do
        case "$line" in "$1"*) COMPREPLY+=("$(printf '%q' "$line")") ;; esac
    done
}
_caliper_files() {  # directories, and files like the pattern $2, that begin with $1
    local path
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        if [ -d "$path" ]; then COMPREPLY+=("$path"); continue; fi
        case "$path" in $2) COMPREPLY+=("$path") ;; esac
    done < <(compgen -f -- "$1")
}
_caliper_words() { COMPREPLY+=($(compgen -W "$2" -- "$1")); }
_caliper_value() {  # $1: how it begins, $2: its kind, $3: words, $4: the program
    [ -z "$3" ] || _caliper_words "$1" "$3"
    case "$2" in
        spec) _caliper_files "$1" '*.eval.y*ml' ;;
        file) _caliper_files "$1" '*' ;;
        directory) _caliper_files "$1" '' ;;
        saved | run)
            _caliper_lines "$1" < <("$4" __candidates "$2" 2>/dev/null)
            [ "${#COMPREPLY[@]}" -gt 0 ] || _caliper_files "$1" '*' ;;
    esac
}
_caliper() {
    local program=$1 cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    if [ "$cur" = "=" ]; then cur=
    elif [ "$option" = "=" ]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi
    if [ "$COMP_CWORD" -eq 1 ]; then _caliper_words "$cur" '@COMMANDS@'; return; fi
    case "${COMP_WORDS[1]} $option" in
@VALUES@
    esac
    case "${COMP_WORDS[1]} $cur" in
@FLAGS@
    esac
    case "${COMP_WORDS[1]}" in
@ARGUMENTS@
    esac
}
complete -F _caliper caliper
"""

_ZSH = r"""#compdef caliper
# Completion of caliper in zsh. In ~/.zshrc, after compinit: source <(caliper completion zsh)
# or as a file `_caliper` in a directory of $fpath.
_caliper_names() {
    local -a names
    names=(${(f)"$(${(Q)program} __candidates $1 2>/dev/null)"})
    (( $#names )) && compadd -- $names
}
_caliper_spec() { _files -g '*.eval.(yaml|yml)' }
_caliper_saved() { _caliper_names saved || _caliper_spec }
_caliper_run() { _caliper_names run || _files }
_caliper_latest() { _alternative 'words:word:(latest)' 'files:file:_files' }
_caliper() {
    local program=$words[1] curcontext=$curcontext context state state_descr line
    typeset -A opt_args
    local -a commands
    commands=(
@COMMANDS@
    )
    _arguments -C '(- *)'{-h,--help}'[show help]' '(- *)--version[show the version]' \
        '1:command:->command' '*::argument:->argument'
    case $state in
        command) _describe -t commands 'caliper command' commands ;;
        argument)
            case $line[1] in
@ARGUMENTS@
            esac ;;
    esac
}
if [ "$funcstack[1]" = "_caliper" ]; then _caliper "$@"; else compdef _caliper caliper; fi
"""

_FISH = r"""# Completion of caliper in fish: caliper completion fish > ~/.config/fish/completions/caliper.fish
function __caliper_names
    set -l words (commandline -opc)
    $words[1] __candidates $argv[1] 2>/dev/null
end
function __caliper_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = "$argv[1]"
end
function __caliper_none
    test (count (commandline -opc)) -eq 1
end
complete -c caliper -f
complete -c caliper -n __caliper_none -s h -l help -d 'show help'
complete -c caliper -n __caliper_none -l version -d 'show the version'
"""


def bash(commands: Sequence[Completed]) -> str:
    """The script for bash."""
    names = " ".join([*(command.name for command in commands), "--help", "--version"])
    values, flags, arguments = [], [], []
    for command in commands:
        for flag in command.flags:
            if flag.value is not None:
                pattern = " | ".join(f'"{command.name} {name}"' for name in flag.names)
                values.append(f"        {pattern}) {_bash_value(flag.value)}; return ;;")
        every = " ".join(name for flag in command.flags for name in flag.names)
        flags.append(f'        "{command.name} "-*) _caliper_words "$cur" \'{every}\'; return ;;')
        if command.argument is not None:
            arguments.append(f"        {command.name}) {_bash_value(command.argument)} ;;")
    parts = {"COMMANDS": names, "VALUES": "\n".join(values), "FLAGS": "\n".join(flags), "ARGUMENTS": "\n".join(arguments)}
    return _filled(_BASH, parts)


def zsh(commands: Sequence[Completed]) -> str:
    """The script for zsh; a file of `$fpath` as well as something to source."""
    listed = [f"        {_quoted(f'{command.name}:{command.help}')}" for command in commands]
    cases = [
        f"                {command.name}) _arguments {' '.join(_zsh_arguments(command))} ;;"
        for command in commands
        if command.flags or command.argument is not None
    ]
    return _filled(_ZSH, {"COMMANDS": "\n".join(listed), "ARGUMENTS": "\n".join(cases)})


def fish(commands: Sequence[Completed]) -> str:
    """The script for fish."""
    lines = [f"complete -c caliper -n __caliper_none -a {_fish(c.name)} -d {_fish(c.help)}" for c in commands]
    for command in commands:
        start = f"complete -c caliper -n {_fish(f'__caliper_is {command.name}')}"
        for flag in command.flags:
            names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names]
            value = "" if flag.value is None else " " + _fish_value(flag.value, required=True)
            lines.append(f"{start} {' '.join(names)}{value} -d {_fish(_short(flag.help))}")
        if command.argument is not None and command.argument.kind != "unknown":
            lines.append(f"{start} {_fish_value(command.argument, required=False)}")
    return _FISH + "\n".join(lines) + "\n"


def _bash_value(value: Value) -> str:
    if value.kind == "unknown" and not value.words:
        return ":"
    return f'_caliper_value "$cur" {value.kind} {_quoted(" ".join(value.words))} "$program"'


def _zsh_arguments(command: Completed) -> Iterator[str]:
    for flag in command.flags:
        yield from _zsh_flag(flag)
    if command.argument is not None:
        yield _quoted(f"*:{command.argument.name}:{_zsh_value(command.argument)}")


def _zsh_flag(flag: Flag) -> Iterator[str]:
    text = re.sub(r"([\[\]:\\])", r"\\\1", _short(flag.help))
    others = "*" if flag.repeatable else f"({' '.join(flag.names)})"
    for name in flag.names:
        if flag.value is None:
            yield _quoted(f"{others}{name}[{text}]")
        else:
            joint = "=" if name.startswith("--") else ""
            yield _quoted(f"{others}{name}{joint}[{text}]:{flag.value.name}:{_zsh_value(flag.value)}")


def _zsh_value(value: Value) -> str:
    if value.kind == "words":
        return f"({' '.join(value.words)})"
    if value.words:
        return "_caliper_latest"
    return {
        "spec": "_caliper_spec",
        "saved": "_caliper_saved",
        "run": "_caliper_run",
        "file": "_files",
        "directory": "_files -/",
        "unknown": " ",
    }[value.kind]


def _fish_value(value: Value, *, required: bool) -> str:
    words = {
        "spec": "(__fish_complete_suffix .eval.yaml)",
        "saved": "(__caliper_names saved)",
        "run": "(__caliper_names run)",
        "directory": "(__fish_complete_directories)",
    }.get(value.kind, " ".join(value.words))
    files = "-F" if value.kind in {"file", "run"} else ""
    alone = ("-r" if files else "-x") if required else ""
    return " ".join(filter(None, (alone, files, f"-a {_fish(words)}" if words else "")))


def _short(text: str) -> str:
    """The first part of a help text, for lists: up to a colon or a bracket, and never long."""
    first = re.split(r"[:;(]", text, maxsplit=1)[0].strip()
    return first if len(first) <= _HELP_CHARS else first[: _HELP_CHARS - 1].rsplit(" ", 1)[0] + " …"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _filled(template: str, parts: dict[str, str]) -> str:
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], template)
