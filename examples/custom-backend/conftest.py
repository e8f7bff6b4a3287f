# conftest.py
import shutil
from pathlib import Path

from pytest_caliper.backends.environment import base_environment
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.contracts import CliInfo, Command, EngineError, HarnessResult, JudgeReply, Workspace
from pytest_caliper.runs.records import Turn, Usage


class MyAgent:
    name, aliases = "my-agent", ()

    def find(self, env):
        if (path := shutil.which("my-agent", path=env.get("PATH"))) is None:
            raise EngineError("my-agent is not installed: there is no `my-agent` on PATH")
        return CliInfo(path=Path(path), version="1.0")

    def check(self, engine, env):
        if not env.get("MY_AGENT_KEY"):
            raise EngineError("my-agent has no key: set MY_AGENT_KEY")

    def refuses(self, *, skills, mcp):
        if any(skill.kind == "command" for skill in skills):
            return "my-agent has no commands: name a skill directory"
        return "my-agent has no MCP: delete `mcp:`" if mcp else None

    def agent_command(self, plan, workspace, cli):
        for skill in plan.skills:  # none in the baseline
            install_skill(skill, workspace.home / ".my-agent" / "skills" / skill.name)
        return self._command(cli, plan.engine, plan.task.prompt, plan.env, workspace, plan.sandbox.extra_path)

    def read_agent(self, raw, plan, workspace):
        turns, end, error = [], None, None
        for event in json_objects(raw.stdout, LineFaults()):
            if event.get("type") == "tool":
                turns.append(Turn(role="tool_use", tool_name=str(event.get("name")), tool_input=event.get("input") or {}))
            elif event.get("type") in ("answer", "error"):
                end, error = (event, None) if event["type"] == "answer" else (None, str(event.get("text")))
        if end is None and error is None and raw.cause == "exit":
            error = f"my-agent ended with status {raw.exit_code} and no answer"
        return HarnessResult(
            answer=str(end.get("text")) if end else "",
            finished=end is not None,
            transcript=tuple(turns),
            usage=Usage(input_tokens=end.get("in"), output_tokens=end.get("out")) if end else None,
            error=error,
            timed_out=raw.cause == "timeout",
        )

    def judge_command(self, request, engine, env, home, cli):
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True, exist_ok=True)
        return self._command(cli, engine, f"{request.system}\n\n{request.prompt}", env, place)

    def read_judge(self, raw):
        texts = [str(event.get("text")) for event in json_objects(raw.stdout, LineFaults()) if event.get("type") == "answer"]
        error = None if texts else f"my-agent ended with status {raw.exit_code} and no answer"
        return JudgeReply(text=texts[-1] if texts else "", error=error)

    def _command(self, cli, engine, prompt, env, place, extra_path=()):
        model = ("--model", engine.model) if engine.model else ()
        inherited = base_environment(env, place, extra_path=extra_path, passed=("MY_AGENT_KEY",))
        return Command(argv=(str(cli.path), *model), cwd=place.work, env=inherited, stdin=prompt.encode())


def pytest_caliper_backends(config):
    return [MyAgent()]
