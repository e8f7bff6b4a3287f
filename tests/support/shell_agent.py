"""A third-party backend for the plugin's own tests: its "agent" is a shell that runs the prompt.

It comes in through the public hook, runs through the real process room, and needs no CLI. Lines of standard output that begin
with `!` are its protocol: `!read PATH` is a tool call, `!tokens N` usage, `!error TEXT` an infrastructure error,
`!fatal TEXT` a lost login. Everything else is the answer. The judge says no to `SAY-NO` and rambles for `SAY-GARBAGE`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from pytest_caliper.backends.environment import base_environment
from pytest_caliper.contracts import CliInfo, Command, EngineError, HarnessResult, JudgeReply
from pytest_caliper.runs.records import Turn, Usage

JUDGE = """
text=$(cat)
case "$text" in
  *SAY-GARBAGE*) echo "well, it depends" ;;
  *SAY-NO*) echo '{"reasoning": "it did not do it", "passed": false}' ;;
  *) echo '{"reasoning": "it did it", "passed": true}' ;;
esac
"""


class ShellAgent:
    name = "shell-agent"
    aliases = ("shell",)

    def find(self, env):
        return CliInfo(path=Path("/bin/sh"), version="1.0")

    def check(self, engine, env):
        if env.get("SHELL_AGENT_LOGGED_OUT"):
            raise EngineError("shell-agent: not logged in; run `shell-agent login`")

    def refuses(self, *, skills, mcp):
        return "mcp: is not supported by shell-agent; remove it" if mcp else None

    def agent_command(self, plan, workspace, cli):
        for skill in plan.skills:
            for name in skill.files:
                target = workspace.home / "skills" / skill.name / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(skill.root / name, target)
        env = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path)
        env["ATTEMPT"], env["ARM"] = str(plan.key.attempt), plan.arm
        return Command(argv=("/bin/sh", "-s"), cwd=workspace.work, env=env, stdin=plan.task.prompt.encode() + b"\n")

    def read_agent(self, raw, plan, workspace):
        answer, turns, usage, error, fatal = [], [], None, None, None
        for line in raw.stdout.read_bytes().decode("utf-8", "replace").split("\n"):
            word, _, rest = line.partition(" ")
            if word == "!read":
                turns.append(Turn(role="tool_use", tool_name="Read", tool_input={"file_path": rest}))
            elif word == "!tokens":
                usage = Usage(input_tokens=int(rest), output_tokens=1, cache_read_tokens=0, cache_creation_tokens=0)
            elif word in {"!error", "!fatal"}:
                error, fatal = rest, rest if word == "!fatal" else None
            elif line:
                answer.append(line)
        if error is None and raw.exit_code and raw.cause == "exit":
            error = f"shell-agent ended with status {raw.exit_code}"
        return HarnessResult(
            answer="\n".join(answer),
            finished=raw.cause == "exit" and error is None,
            transcript=(Turn(role="user", content=plan.task.prompt), *turns, Turn(role="assistant", content="\n".join(answer))),
            usage=usage,
            model="shell-1",
            error=error,
            fatal=fatal,
            timed_out=raw.cause == "timeout",
            skills_used=tuple(skill.name for skill in plan.skills),
        )

    def judge_command(self, request, engine, env, home, cli):
        home.mkdir(parents=True, exist_ok=True)
        return Command(argv=("/bin/sh", "-c", JUDGE), cwd=home, env={"PATH": env["PATH"]}, stdin=request.prompt.encode())

    def read_judge(self, raw):
        if raw.exit_code:
            return JudgeReply(text="", error=f"the judge ended with status {raw.exit_code}")
        return JudgeReply(text=raw.stdout.read_text(), model="shell-judge-1")


def read_runs(directory: Path) -> list[dict]:
    """All run files below a results directory, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(directory.rglob("*.json")) if ".cassettes" not in str(path)]
