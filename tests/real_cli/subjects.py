"""The agent CLIs as the cases need them: where the scripted model is, and what their tools are called."""

from __future__ import annotations

import json
import os

from agents import Cli
from cases import DECOY, DECOY_SKILL, SKILL_FILE, VERDICT, Subject

MODEL = "scripted-model"
KEY = "dummy-key"
DISJOINT = {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 40, "cache_creation_tokens": 7}
WITHOUT_WRITES: dict[str, int | None] = {
    "input_tokens": 107,
    "output_tokens": 20,
    "cache_read_tokens": 40,
    "cache_creation_tokens": None,
}
"""Chat Completions and Gemini do not tell what was written into a cache from what was not."""
NOT_ANTHROPIC = {"ANTHROPIC_API_KEY": None}

CLAUDE = Subject(
    backend="claude-code",
    variable="CLAUDE_CLI_PATH",
    model="claude-sonnet-4-5",
    reported_model="claude-sonnet-4-5",
    shell=lambda command: {"Bash": {"command": command, "description": "Run it"}},
    write=lambda path, text: {"Write": {"file_path": f"@CWD@/{path}", "content": text}},
    skill=lambda name: {"Skill": {"skill": name}},
    usage=DISJOINT,
    decoys={".claude/settings.json": json.dumps({"env": {"DECOY": DECOY}})},
    logged_out=NOT_ANTHROPIC,
    login="/login",
    lists_skills=True,
    mcp_reported=["echo:connected"],
    judge_tools=frozenset({"StructuredOutput", "DeferredToolPlaceholder"}),
    judge_verdict={"StructuredOutput": VERDICT},
)

CODEX = Subject(
    backend="codex",
    variable="CODEX_CLI_PATH",
    model="gpt-5.5",  # one that it has metadata of, so that it does not warn and offers apply_patch
    reported_model=None,
    shell=lambda command: {"exec_command": {"cmd": command}},
    write=lambda path, text: {
        "apply_patch": "\n".join(
            ("*** Begin Patch", f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines()), "*** End Patch", "")
        )
    },
    skill=lambda name: {
        "exec_command": {"cmd": f'cat "$CODEX_HOME/skills/{SKILL_FILE}" 2>/dev/null || cat "$HOME/.agents/skills/{SKILL_FILE}"'}
    },
    usage=DISJOINT,
    files={
        ".codex/config.toml": """
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "@URL@/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
supports_websockets = false
"""
    },
    env={**NOT_ANTHROPIC, "SCRIPTED_KEY": KEY},
    decoys={
        ".codex/AGENTS.md": DECOY,
        ".codex/skills/decoy/SKILL.md": DECOY_SKILL,
        ".codex/prompts/decoy.md": DECOY,
    },
    logged_out={"SCRIPTED_KEY": None},
    login="codex login",
)

PI = Subject(
    backend="pi",
    variable="PI_CLI_PATH",
    model=f"scripted/{MODEL}",
    reported_model=f"scripted/{MODEL}",
    shell=lambda command: {"bash": {"command": command}},
    write=lambda path, text: {"write": {"path": path, "content": text}},
    skill=lambda name: {"read": {"path": f"~/.pi/agent/skills/{name}/SKILL.md"}},
    usage=WITHOUT_WRITES,
    files={
        ".pi/agent/models.json": json.dumps(
            {
                "providers": {
                    "scripted": {
                        "baseUrl": "@URL@/v1",
                        "api": "openai-completions",
                        "apiKey": KEY,
                        "models": [{"id": MODEL}],
                    }
                }
            }
        ),
        ".pi/agent/settings.json": json.dumps(
            {"defaultProvider": "scripted", "defaultModel": MODEL, "retry": {"baseDelayMs": 200}},
        ),
    },
    env=NOT_ANTHROPIC,
    decoys={
        ".pi/agent/AGENTS.md": DECOY,
        ".pi/agent/APPEND_SYSTEM.md": DECOY,
        ".pi/agent/skills/decoy/SKILL.md": DECOY_SKILL,
        ".pi/agent/prompts/decoy.md": DECOY,
        ".pi/agent/extensions/decoy.ts": f'throw new Error("{DECOY}");',
        ".pi/agent/mcp.json": json.dumps({"mcpServers": {"decoy": {"command": DECOY}}}),
    },
    logged_out_files={},
    login="/login",
    lists_skills=True,
    mcp_reported=["echo:connected"],
    hang_s=5.0,
)

GEMINI = Subject(
    backend="gemini",
    variable="GEMINI_CLI_PATH",
    model="gemini-2.5-flash",
    reported_model="gemini-2.5-flash",
    shell=lambda command: {"run_shell_command": {"command": command}},
    write=lambda path, text: {"write_file": {"file_path": f"@CWD@/{path}", "content": text}},
    skill=lambda name: {"activate_skill": {"name": name}},
    usage=WITHOUT_WRITES,
    env={**NOT_ANTHROPIC, "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "@URL@"},
    decoys={".gemini/GEMINI.md": DECOY, ".gemini/skills/decoy/SKILL.md": DECOY_SKILL},
    logged_out={"GEMINI_API_KEY": None},
    login="GEMINI_API_KEY",
    hang_s=15.0,
)

OPENCODE = Subject(
    backend="opencode",
    variable="OPENCODE_CLI_PATH",
    model=f"scripted/{MODEL}",
    reported_model=None,
    shell=lambda command: {"bash": {"command": command, "description": "Run it"}},
    write=lambda path, text: {"write": {"filePath": f"@CWD@/{path}", "content": text}},
    skill=lambda name: {"skill": {"name": name}},
    usage=WITHOUT_WRITES,
    files={
        ".config/opencode/opencode.json": json.dumps(
            {
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "Scripted",
                        "options": {"baseURL": "@URL@/v1", "apiKey": KEY},
                        "models": {MODEL: {}},
                    }
                }
            }
        )
    },
    env=NOT_ANTHROPIC,
    decoys={
        ".config/opencode/AGENTS.md": DECOY,
        ".config/opencode/skills/decoy/SKILL.md": DECOY_SKILL,
    },
    logged_out_files={},
    login="opencode auth login",
    most_requests=6,
    hang_s=30.0,
    timeout_s=120.0,
)

HERMES = Subject(
    backend="hermes",
    variable="HERMES_CLI_PATH",
    model=None,  # the default of its configuration
    reported_model=MODEL,
    shell=lambda command: {"terminal": {"command": command}},
    write=lambda path, text: {"write_file": {"path": f"@CWD@/{path}", "content": text}},
    skill=lambda name: {"skill_view": {"name": name}},
    usage=WITHOUT_WRITES,
    files={
        ".hermes/config.yaml": f"""
model:
  provider: custom
  default: {MODEL}
  base_url: @URL@/v1
  api_key: {KEY}
"""
    },
    env=NOT_ANTHROPIC,
    decoys={
        ".hermes/SOUL.md": DECOY,
        ".hermes/memories/MEMORY.md": DECOY,
        ".hermes/skills/decoy/SKILL.md": DECOY_SKILL,
    },
    logged_out_files={},
    login="hermes model",
    hang_s=20.0,
    timeout_s=120.0,
    skips={"long_prompt": "Hermes takes prompts as an argument alone, at most 128 KiB", "judge_long_question": "the same"},
)


def target(subject: Subject) -> str:
    """As `--caliper-model` takes it."""
    return subject.backend if subject.model is None else f"{subject.backend}:{subject.model}"


def environment(*used: tuple[Subject, Cli]) -> dict[str, str | None]:
    """What a session needs that uses several CLIs: where they are, and what their users set. None takes a variable away."""
    found: dict[str, str] = {}
    for subject, cli in used:
        found |= cli.environment(subject.variable)
    own = [str(directory) for _, cli in used for directory in cli.path]  # such as the Node that pi needs
    found["PATH"] = os.pathsep.join([*own, os.environ.get("PATH", os.defpath)])
    given = {name: value for subject, _ in used for name, value in subject.env.items() if value is not None}
    taken = {name: None for subject, _ in used for name, value in subject.env.items() if value is None}
    if any(subject.backend == "claude-code" for subject, _ in used):
        taken = {}
    return {**taken, **found, **given}
