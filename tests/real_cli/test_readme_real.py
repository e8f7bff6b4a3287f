"""The README's commands for one's own skill, as they stand there, with the real Claude Code CLI and a scripted model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from namespace import run_in_namespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "docs"))

from doc_pages import blocks  # noqa: E402
from doc_project import Project  # noqa: E402

pytestmark = pytest.mark.real_cli

SKILL = "service-config"
"""The skill of the scratch project, as the CLI lists it to the model."""
CONFIG, CHOICE = "Write app.json", "Which port does the service use"


def write(port: int) -> dict[str, Any]:
    return {"Write": {"file_path": "@CWD@/app.json", "content": f'{{"port": {port}}}'}}


def verdict(passed: bool, *texts: str) -> dict[str, Any]:
    reply = {"StructuredOutput": {"reasoning": "As the answer says.", "passed": passed}}
    return {"when": {"tool_offered": "StructuredOutput", "all": list(texts)}, "tool": reply}


TURNS = [
    verdict(True, "The agent's final answer is 7."),
    verdict(True, "since the skill says so"),
    verdict(False),
    {"when": {"all": [CONFIG], "tools": True, "tool_results": 0, "any": SKILL}, "tool": write(8080)},
    {"when": {"all": [CONFIG], "tools": True, "tool_results": 0}, "tool": write(3000)},
    {"when": {"all": [CONFIG], "tools": True}, "text": "Done."},
    {"when": {"all": [CHOICE], "tools": True, "any": SKILL}, "text": "Port 8080, since the skill says so."},
    {"when": {"all": [CHOICE], "tools": True}, "text": "Probably 3000."},
]


def test_the_readme_leads_from_a_skill_to_a_judged_comparison_and_its_replay(claude_cli: Path, tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    project = Project(tmp_path, readme)
    commands = []
    for block in blocks(readme):
        if block.file is not None:
            (project.root / block.file).write_text(block.text, encoding="utf-8")
        elif block.tag == "sh" and block.not_run is None and block.checked_by is None:
            commands.append(block.text)
    script = tmp_path / "commands.sh"
    script.write_text("".join(commands), encoding="utf-8")
    env = {"CLAUDE_CLI_PATH": str(claude_cli), "PATH": os.pathsep.join([str(project.tools), os.environ["PATH"]])}

    done = run_in_namespace(TURNS, ["bash", "-e", str(script)], project.root, env=env)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "caliper check" in script.read_text()
    assert len(list((project.root / "my.cassettes").glob("*.json"))) == 12
    summaries = [line for line in done.stdout.splitlines() if line.startswith("Skill  ")]
    assert len(summaries) == 2, done.stdout
    assert all("better with the skill" in line for line in summaries)
    assert summaries[0] == summaries[1]
    assert "! replayed from cassettes: no agent and no judge ran" in done.stdout
    assert (project.root / "my.html").stat().st_size > 10_000
