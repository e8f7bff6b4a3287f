"""Agent CLIs that answer with what the real ones were recorded to say, and do in between what their prompt tells them.

The prompt of a recorded CLI is a shell script. `begin` prints the recorded stream up to the answer, `answer TEXT` the rest of it
with TEXT, which is the inside of a JSON string, in the place of the answer, and `message TEXT` only its message; `throttled` and `refused` replay a refusal of the
provider. Asked as a judge it says yes, unless the question holds one of the words of `JUDGE`.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

RECORDINGS = Path(__file__).parents[1] / "recordings"
ANSWER, VERDICT = "Hello from the fake model.", r"{\"verdict\": \"pass\", \"score\": 1}"
YES = r"{\"reasoning\": \"It did.\", \"passed\": true}"
SKILL = "house-style"
SECRET = "sk-ant-faultmatrix-0123456789abcdef"
"""Stands in the user's login files, copies of which attempts get."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One CLI's recordings and how it is called."""

    name: str
    """The backend's."""
    folder: str
    program: str
    variable: str
    version: str
    head: int
    """Lines of the stream before the answer."""
    throttled: str
    refused: str
    judge: str
    judge_option: str
    """By which a judge's command line is known."""
    login: tuple[str, object]
    """The file below the user's home that holds the login, and what is in it."""


CLAUDE = Recorded(
    name="claude-code",
    folder="claude",
    program="claude",
    variable="CLAUDE_CLI_PATH",
    version="2.1.332 (Claude Code)",
    head=1,
    throttled="g-429",
    refused="h-401-retries0",
    judge="n-judge",
    judge_option="--json-schema",
    login=(".claude/.credentials.json", {"claudeAiOauth": {"accessToken": SECRET, "expiresAt": 9_999_999_999_000}}),
)
CODEX = Recorded(
    name="codex",
    folder="codex",
    program="codex",
    variable="CODEX_CLI_PATH",
    version="codex-cli 0.171.0",
    head=3,
    throttled="g-429-noretry",
    refused="h-401-noretry",
    judge="n-judge",
    judge_option="--output-schema",
    login=(".codex/auth.json", {"OPENAI_API_KEY": SECRET}),
)
JUDGE = {
    "JUDGE-RAMBLES": "verdict 'That depends on what you call good.'",
    "JUDGE-HANGS": "sleep 331",
    "JUDGE-DIES": "kill -9 $$",
    "JUDGE-PRINTS-GARBAGE": r"printf '\000\377\376 {{{ \033[31m\n'",
    "JUDGE-LEAVES-A-CHILD": f"setsid sleep 331 & verdict {shlex.quote(YES)}",
}


def write_program(cli: Recorded, directory: Path, ledger: Path) -> Path:
    """Write the program below `directory`; each invocation appends a line `TAG agent` or `TAG judge` to `ledger`. -> its path."""
    lines = _lines(cli, "a-text")
    lines[0] = re.sub(r'"skills":\[[^]]*\]', f'"skills":{json.dumps([SKILL])}', lines[0])
    words = "".join(f"    *{word}*) {script} ;;\n" for word, script in JUDGE.items())
    program = directory / cli.program
    program.write_text(
        f"""#!/bin/sh
case " $* " in *" --version "*) echo {shlex.quote(cli.version)}; exit 0 ;; esac
{_function("begin", lines[: cli.head], ANSWER)}
{_function("message", lines[cli.head : cli.head + 1], ANSWER)}
{_function("answer", lines[cli.head :], ANSWER)}
{_function("verdict", _lines(cli, cli.judge), VERDICT)}
{_replay(cli, "throttled", cli.throttled)}
{_replay(cli, "refused", cli.refused)}
LEDGER={shlex.quote(str(ledger))}
given=$(cat)
case " $* " in
*" {cli.judge_option} "*)
  echo "$CALIPER_TAG judge" >> "$LEDGER"
  case "$given" in
{words}    *) verdict {shlex.quote(YES)} ;;
  esac ;;
*)
  echo "$CALIPER_TAG agent" >> "$LEDGER"
  eval "$given" ;;
esac
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def _lines(cli: Recorded, name: str) -> list[str]:
    return (RECORDINGS / cli.folder / f"{name}.stdout").read_text(encoding="utf-8").strip("\n").split("\n")


def _function(name: str, lines: list[str], place: str) -> str:
    """A shell function that prints `lines` with its argument in the place of `place`."""
    body = []
    for line in lines:
        first, *others = line.split(place)
        body.append(f"  printf %s {shlex.quote(first)}")
        body += [f"""  printf '%s%s' "$1" {shlex.quote(other)}""" for other in others]
        body.append("  echo")
    return "\n".join([f"{name}() {{", *body, "}"])


def _replay(cli: Recorded, name: str, recording: str) -> str:
    base = RECORDINGS / cli.folder / recording
    status = json.loads(base.with_suffix(".rc").read_text(encoding="utf-8"))["rc"]
    return f"{name}() {{ cat {shlex.quote(str(base.with_suffix('.stdout')))}; exit {status}; }}"
