"""The agent and the judge of the scratch projects: it does what examples ask for, and says what it was told to say.

The prompt comes on standard input, as docs/command-backend.md has it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

KNOWN = {
    "app.json": """echo '{"port": 8080}' > app.json; echo I wrote app.json with the port 8080.""",
    "port number 8080 into the file port": "echo 8080 > port; echo Done.",
    "Which port": "echo The service uses port 8080, since the skill says that all services do.",
    "Tidy this directory": "rm -f ./*.tmp; echo Done.",
}
"""Words of a prompt -> a shell line that does it. What the line prints is the answer."""
SKILLED = {
    "Note it in CHANGELOG.md": "printf '# Changelog\\n\\n## Unreleased\\n\\n- **export**: CSV\\n' > CHANGELOG.md; echo Noted.",
    "commit message": 'echo "Add CSV export\\n\\nThe export command can write CSV besides JSON."',
}
"""The same, for an agent that has a skill; without one it makes something up."""


def tell(kind: str, **fields: object) -> None:
    print(json.dumps({"type": kind, **fields}), flush=True)


def judge(question: str) -> None:
    """Yes, unless nothing was done: `caliper check` asks about an attempt in which nothing happened."""
    code = re.search(r"^The code of this message is (\S+)$", question, re.M)
    idle = code is not None and all(f"[[{code[1]} {part}: empty]]" in question for part in ("transcript", "answer"))
    guess = code is not None and "I made this up" in question
    reasoning = (
        "Nothing was done." if idle else "The answer was made up." if guess else "The answer holds what the condition asks."
    )
    tell("result", text=json.dumps({"reasoning": reasoning, "passed": not idle and not guess}))


def solution(prompt: str, project: Path) -> str | None:
    """The `solution:` of the task that has this prompt, in a spec of the project."""
    import yaml

    for path in sorted(project.rglob("*.eval.yaml")):
        for task in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("tasks", []):
            if task.get("prompt", "").strip() == prompt and "solution" in task:
                return str(task["solution"])
    return None


def command(prompt: str, skilled: bool, project: Path, answer: Path) -> str:
    for known in (KNOWN, SKILLED if skilled else {}):
        for words, line in known.items():
            if words in prompt:
                return line
    if any(words in prompt for words in SKILLED):
        return "echo I made this up."
    if answer.exists():
        return answer.read_text(encoding="utf-8")
    return solution(prompt, project) or "echo Done."


def main(project: str, answer: str) -> None:
    """`project` is the directory of the page's project, `answer` a file with a shell line for prompts that nothing here knows."""
    prompt = sys.stdin.read()
    if os.environ["CALIPER_ROLE"] == "judge":
        judge(prompt)
        return
    tell("model", name="example-model")
    skills = [Path(path) for path in os.environ["CALIPER_SKILLS"].split(os.pathsep) if path]
    tell("skills", names=[skill.name for skill in skills])
    for number, skill in enumerate(skills):
        tell("tool_use", id=f"skill-{number}", name="read_file", input={"path": str(skill / "SKILL.md")})
        tell("tool_result", id=f"skill-{number}", output=(skill / "SKILL.md").read_text(encoding="utf-8"))
        tell("skill_used", name=skill.name)
    line = command(prompt.strip(), bool(skills), Path(project), Path(answer))
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, encoding="utf-8", check=False)
    tell("tool_use", id="shell", name="shell", input={"command": line})
    tell("tool_result", id="shell", output=done.stdout + done.stderr)
    tell("usage", input_tokens=1200 + len(prompt), output_tokens=40)
    tell("result", text=done.stdout.strip() or "Done.")
