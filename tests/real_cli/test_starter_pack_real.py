"""The starter pack's templates with real CLIs: green with the skill that is there, red with the broken one, by its text alone.

The scripted model of examples/starter-pack/record.py does what the skill says that the CLI sends it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agents import Cli
from cases import Subject
from namespace import run_in_namespace
from subjects import CLAUDE, CODEX

pytestmark = pytest.mark.real_cli

PACK = Path(__file__).parents[2] / "examples" / "starter-pack"
FAILURES = {
    "false-success": "ends with 1: Expecting property name",
    "tool-misuse": "forbidden: ['git reset --hard HEAD~1']",
    "runaway-loop": "12 times the same call, 3 is the most",
    "prompt-regression": "not as the skill promises: 'Add CSV support",
    "stale-context": "settings.ini says 9191, the answer is 'The service listens on port 8080.'",
    "trigger-probe": "used, though the request is not its affair: ['release-notes']",
}


def _recording() -> ModuleType:
    name = "starter_pack_record"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PACK / "record.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def run(subject: Subject, cli: Cli, path: Path, variant: str | None) -> dict[str, list[Any]]:
    """Template -> its attempts. `variant` names the directory with what is broken; templates without it are left out."""
    record = _recording()
    templates = [name for name in record.SKILLS if variant is None or (PACK / name / variant).is_dir()]
    for name in templates:
        record.laid_out(name, path, None if variant is None else PACK / name / variant)
    (path / "pytest.ini").write_text("[pytest]\n")
    target = subject.backend if subject.model is None else f"{subject.backend}:{subject.model}"

    done = run_in_namespace(
        [turn for name in templates for turn in record.script(subject, name)],
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"{name}/{name}.eval.yaml" for name in templates)),
            *(
                "--caliper-k=1",
                f"--caliper-model={target}",
                "--caliper-workers=2",
                "--caliper-timeout=100",
                "--caliper-results=results",
            ),
        ],
        path,
        env={**cli.environment(subject.variable), **subject.env},
        files=subject.files,
    )

    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert done.returncode == (0 if variant is None else 1), done.stdout + done.stderr
    found = {}
    for saved in (path / "results").rglob("*.json"):
        tasks = json.loads(saved.read_text())["task_results"]
        found[saved.parent.name] = [attempt for task in tasks for attempt in task["attempts"]]
    assert sorted(found) == sorted(templates), done.stdout
    return found


def check(subject: Subject, cli: Cli, path: Path) -> None:
    good = run(subject, cli, path / "good", None)
    bad = run(subject, cli, path / "bad", "broken")
    silent = run(subject, cli, path / "silent", "broken-silent")

    assert {attempt["outcome"] for attempts in good.values() for attempt in attempts} == {"pass"}
    told = {name: [attempt["outcome"] for attempt in attempts] for name, attempts in bad.items()}
    assert told == {**{name: ["task_fail"] for name in FAILURES}, "trigger-probe": ["pass", "task_fail"]}
    for name, words in FAILURES.items():
        assert words in bad[name][-1]["reason"], name
    fires, stays = silent["trigger-probe"]
    assert (fires["outcome"], stays["outcome"]) == ("task_fail", "pass")
    assert "the skill was not used" in fires["reason"]


def read_with_codex(name: str) -> dict[str, Any]:
    return {
        "exec_command": {
            "cmd": f'cat "$CODEX_HOME/skills/{name}/SKILL.md" 2>/dev/null || cat "$HOME/.agents/skills/{name}/SKILL.md"'
        }
    }


@pytest.fixture(autouse=True)
def places(tmp_path: Path) -> None:
    for name in ("good", "bad", "silent"):
        (tmp_path / name).mkdir()


def test_the_starter_pack_on_claude_code(claude_cli: Path, tmp_path: Path) -> None:
    check(CLAUDE, Cli(binary=claude_cli, version=""), tmp_path)


def test_the_starter_pack_on_codex(codex_cli: Cli, tmp_path: Path) -> None:
    check(replace(CODEX, skill=read_with_codex), codex_cli, tmp_path)
