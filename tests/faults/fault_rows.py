"""Faults of one attempt: each is a task of a spec of recorded CLIs, with what its attempt must amount to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Attempt = Mapping[str, Any]

FINE = "begin; answer done"
DONE = "assert attempt.answer == 'done'"
ODD = r"\u001b[2J\u001b]0;owned\u0007\u2028::error::hi\u0000\u0085\ud83c\udff4 [red]x[/red] <b>"
"""The inside of a JSON string: escape sequences, line ends to some readers, a workflow command, NUL, markup."""
BIG = 256 * 1024
"""Bytes that one text of a run file takes at the most, give or take."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault."""

    prompt: str = FINE
    """What the recorded CLI does (see `fault_clis`)."""
    outcome: str
    reason: str = ""
    """A part of the attempt's reason."""
    check: str | None = DONE
    expect: str | None = None
    setup: str | None = None
    cleanup: str | None = None
    more: Callable[[Attempt], bool] = lambda _: True
    """What else must hold of the attempt in the run file."""

    def task(self, name: str) -> dict[str, str]:
        fields = {
            "prompt": self.prompt,
            "assert": self.check,
            "expect": self.expect,
            "setup": self.setup,
            "cleanup": self.cleanup,
        }
        return {"name": name, **{key: value for key, value in fields.items() if value is not None}}


def judged(word: str, outcome: str, reason: str = "") -> Row:
    return Row(check=None, expect=f"The answer is done. {word}", outcome=outcome, reason=reason)


def quick(attempt: Attempt) -> bool:
    """The attempt did not wait for what sleeps."""
    return bool(attempt["duration_seconds"] < 60)


def small(attempt: Attempt) -> bool:
    return len(repr(attempt)) < 4 * BIG


ROWS: dict[str, Row] = {
    "agent times out before it answers": Row(prompt="begin; sleep 331", outcome="timeout", reason="no finished answer"),
    "agent times out after it answered": Row(prompt=f"{FINE}; sleep 331", outcome="pass"),
    "agent ignores SIGINT and SIGTERM": Row(
        prompt="trap '' INT TERM; begin; while :; do sleep 0.2; done", outcome="timeout", reason="no finished answer"
    ),
    "agent exits non-zero": Row(prompt="begin; echo out of luck >&2; exit 3", outcome="infra_error", reason="3"),
    "agent exits non-zero after its answer": Row(prompt=f"{FINE}; exit 3", outcome="pass"),
    "agent prints nothing": Row(prompt="exit 0", outcome="infra_error"),
    "agent is killed by a signal": Row(prompt="begin; kill -9 $$", outcome="infra_error"),
    "agent prints invalid UTF-8": Row(prompt=r"begin; printf '\377\376\200{\n\303\n'; answer done", outcome="pass"),
    "agent prints ANSI, U+2028 and NUL": Row(
        prompt=r"begin; printf '\033[31m\342\200\250\000\033]0;x\007\n{\000}\n\r\n'; answer done", outcome="pass"
    ),
    "agent answers with ANSI, U+2028 and NUL": Row(
        prompt=f"begin; answer '{ODD}'", outcome="task_fail", reason="assert", more=lambda attempt: "owned" in attempt["output"]
    ),
    "agent prints a line of 1 MB": Row(
        prompt=r"begin; head -c 1000000 /dev/zero | tr '\0' x; echo; answer done", outcome="pass", more=small
    ),
    "agent answers with 1 MB": Row(
        prompt=r"begin; answer done$(head -c 1000000 /dev/zero | tr '\0' x)",
        check="assert len(attempt.answer) > 900_000",
        outcome="pass",
        more=lambda attempt: small(attempt) and len(attempt["output"]) < 2 * BIG,
    ),
    "grandchild holds the pipe": Row(prompt="begin; sleep 331 & answer done", outcome="pass", more=quick),
    "grandchild writes on and on": Row(
        prompt="begin; (while :; do echo still here; sleep 0.01; done) & answer done", outcome="pass", more=quick
    ),
    "grandchild in a session of its own": Row(
        prompt="""begin; setsid sh -c "trap '' INT TERM HUP; while :; do sleep 0.2; done" & answer done""",
        outcome="pass",
        more=quick,
    ),
    "grandchild in a session of its own after a time-out": Row(
        prompt="begin; setsid sleep 331 > /dev/null 2>&1 & setsid -f sleep 331; sleep 331",
        outcome="timeout",
        reason="no finished answer",
    ),
    "agent removes its directories": Row(
        prompt='begin; rm -rf "$HOME" "$PWD" "$TMPDIR"; answer done',
        cleanup='touch "$HOME/a" "$TMPDIR/b" c',
        outcome="judge_error",
        reason="No such file",
        more=lambda attempt: attempt["cleanup_error"] is None,
    ),
    "agent locks its directories": Row(
        prompt='begin; mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a "$HOME"; answer done', outcome="pass"
    ),
    "setup fails": Row(setup="echo no database >&2; exit 7", outcome="infra_error", reason="no database"),
    "setup hangs": Row(setup="sleep 331 & setsid sleep 331", outcome="infra_error", reason="setup"),
    "setup leaves a server behind": Row(
        setup="setsid sleep 331 & echo $! > server", prompt="begin; kill -0 $(cat server) && answer done", outcome="pass"
    ),
    "cleanup fails": Row(
        cleanup="echo still locked >&2; exit 9", outcome="pass", more=lambda attempt: "still locked" in attempt["cleanup_error"]
    ),
    "cleanup hangs": Row(
        cleanup="trap '' TERM; setsid sleep 331 & sleep 331; sleep 331",
        outcome="pass",
        more=lambda attempt: "cleanup" in attempt["cleanup_error"],
    ),
    "cleanup leaves a server behind": Row(cleanup="setsid sleep 331 & exit 0", outcome="pass"),
    "assert hangs": Row(check="while True: pass", outcome="judge_error", reason="longer than"),
    "assert forks and passes": Row(
        check="import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(331)\nassert True", outcome="pass"
    ),
    "assert starts a process and hangs": Row(
        check="import subprocess\nsubprocess.run('setsid sleep 331 & sleep 331', shell=True)",
        outcome="judge_error",
        reason="longer than",
    ),
    "assert calls os._exit": Row(check="import os\nos._exit(0)", outcome="judge_error", reason="exited with status 0"),
    "assert kills itself": Row(
        check="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", outcome="judge_error", reason="SIGKILL"
    ),
    "assert prints 10 MB": Row(check="print('x' * 10_000_000)\nassert attempt.answer == 'more'", outcome="task_fail", more=small),
    "judge rambles": judged("JUDGE-RAMBLES", "judge_error", "no verdict"),
    "judge hangs": judged("JUDGE-HANGS", "judge_error"),
    "judge dies": judged("JUDGE-DIES", "judge_error"),
    "judge prints garbage": judged("JUDGE-PRINTS-GARBAGE", "judge_error"),
    "judge leaves a child behind": judged("JUDGE-LEAVES-A-CHILD", "pass"),
    "provider throttles once": Row(
        prompt='test -e "$LEDGER.once" || { touch "$LEDGER.once"; setsid sleep 331 & throttled; }; begin; answer done',
        outcome="pass",
        more=lambda attempt: attempt["retries"] == 1,
    ),
    "provider throttles for ever": Row(
        prompt="throttled", outcome="infra_error", reason="429", more=lambda attempt: attempt["retries"] == 1
    ),
}
