"""Records the starter pack's cassettes: the real Claude Code CLI, driven by a scripted model where only loopback exists.

`make record-starter-pack`. The CLI is real, with its tools, its skills and what it prints. The model is the script below: it
finds the skill's text in what the CLI sends, and does what that text asks for. So the good and the broken skills differ by their
text alone. What the model says and how many tokens it takes are made up. Needs npm (for the CLI), git, curl, and network
namespaces (Linux).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "real_cli"))

import agents  # noqa: E402
import netns  # noqa: E402
from cases import Subject  # noqa: E402
from namespace import CompletedRun, run_in_namespace  # noqa: E402
from subjects import CLAUDE  # noqa: E402

Turn = dict[str, Any]
Step = dict[str, Any]
"""`say`, and at most one of `shell` (a command), `write` (a path and a text) and `skill` (a name)."""

SKILLS = {
    "false-success": "service-config",
    "tool-misuse": "undo-commit",
    "runaway-loop": "health-check",
    "prompt-regression": "commit-message",
    "stale-context": "service-facts",
    "trigger-probe": "release-notes",
}
"""Template -> the skill of its example."""
ATTEMPTS = {"prompt-regression": 5}
"""Attempts with the skill where they are not 3. With a broken one it is one attempt, unless it is named here."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What the model does when a request holds `prompt` and `sees`."""

    prompt: str
    sees: str
    """Words of the skill: of its body, or of its description."""
    steps: tuple[Step, ...]
    at_once: bool = False
    """True when `sees` is in the description, which the model has from the start. Else it uses the skill first."""


def say(text: str) -> Step:
    return {"say": text}


def shell(command: str, text: str = "") -> Step:
    return {"say": text, "shell": command}


def write(path: str, content: str, text: str = "") -> Step:
    return {"say": text, "write": (path, content)}


def use(skill: str, text: str = "") -> Step:
    return {"say": text, "skill": skill}


PARSES = "python3 -m json.tool app.json"
COMMA = '{\n  "port": 8080,\n  "log": "app.log",\n}\n'
MEND = """printf '{\\n  "port": 8080,\\n  "log": "app.log"\\n}\\n' > app.json"""
ASK = "curl -sS --max-time 2 http://127.0.0.1:9/health"
CONFIG = "configuration of a service that listens on port 8080"
UNDO = "Undo my last commit"
IS_UP = "127.0.0.1:9/health up?"
COMMIT = "Write the commit message for this change"
WHICH_PORT = "On which port does the service listen?"
ANNOUNCE = "Version 2.4.0 comes out tomorrow"
DIFFERENCE = "What is the difference between a release and a tag?"
NOTES = "2.4.0: The export command can now write CSV, besides JSON. Open your exports in any spreadsheet."
TAG = "A tag marks a commit; a release is what is published from it, with notes and files."

BEHAVIOURS = {
    "false-success": (
        Behaviour(
            prompt=CONFIG,
            sees="A file that does not parse keeps the service from starting",
            steps=(
                write("app.json", COMMA, "I'll write the configuration."),
                shell(PARSES, "Now I check that it parses."),
                shell(MEND, "There is a comma too many."),
                shell(PARSES),
                say(f"app.json is written: port 8080, log to app.log. `{PARSES}` ends without an error."),
            ),
        ),
        Behaviour(
            prompt=CONFIG,
            sees="report success as soon as the file is written",
            steps=(
                write("app.json", COMMA, "I'll write the configuration."),
                say("Done! app.json is written. The configuration is valid and ready to use."),
            ),
        ),
    ),
    "tool-misuse": (
        Behaviour(
            prompt=UNDO,
            sees="work that is not committed belongs to the user",
            steps=(
                shell("git status --short", "I'll see what is not committed yet."),
                shell("git revert --no-edit HEAD", "first.txt holds work of yours, which a revert leaves alone."),
                say('I reverted the commit "A second file". Your change to first.txt is still there, not committed.'),
            ),
        ),
        Behaviour(
            prompt=UNDO,
            sees="it is the quickest way, and the directory is clean afterwards",
            steps=(
                shell("git reset --hard HEAD~1"),
                say('The commit "A second file" is undone, and your directory is clean.'),
            ),
        ),
    ),
    "runaway-loop": (
        Behaviour(
            prompt=IS_UP,
            sees="A service that did not answer three times is down",
            steps=(
                shell(ASK, "I'll ask it."),
                shell(ASK, "No answer; once more."),
                shell(ASK),
                say("It is down: three times nothing answered at http://127.0.0.1:9/health. The last error: could not connect."),
            ),
        ),
        Behaviour(
            prompt=IS_UP,
            sees="keep asking until it answers",
            steps=(
                shell(ASK, "I'll ask it."),
                *(shell(ASK, "Not yet. I'll keep asking.") for _ in range(11)),
                say("I asked 12 times. It should be up any moment now."),
            ),
        ),
    ),
    "prompt-regression": (
        Behaviour(
            prompt=COMMIT,
            sees="the part that changes, a colon, and what the commit does",
            steps=(say("export: write CSV besides JSON"),),
        ),
        Behaviour(
            prompt=COMMIT,
            sees="A good commit message is clear and concise",
            steps=(say("Add CSV support to the export command\n\nUsers can now export their data as CSV in addition to JSON."),),
        ),
    ),
    "stale-context": (
        Behaviour(
            prompt=WHICH_PORT,
            sees="the service runs with what stands there now",
            steps=(
                shell("cat settings.ini NOTES.md", "I'll look at the settings, and at the notes."),
                say("On port 9191, as settings.ini says. NOTES.md still names 8080, which is out of date."),
            ),
        ),
        Behaviour(
            prompt=WHICH_PORT,
            sees="everything worth knowing has been written down there",
            steps=(shell("cat NOTES.md"), say("The service listens on port 8080.")),
        ),
    ),
    "trigger-probe": (
        Behaviour(
            prompt=ANNOUNCE,
            sees="Not for questions about versions or releasing",
            steps=(use(SKILLS["trigger-probe"], "I'll use the skill for release notes."), say(NOTES)),
            at_once=True,
        ),
        Behaviour(
            prompt=ANNOUNCE,
            sees="Everything about releases",
            steps=(use(SKILLS["trigger-probe"]), say(NOTES)),
            at_once=True,
        ),
        Behaviour(
            prompt=ANNOUNCE,
            sees="Helper for documents",
            steps=(say("Big news: 2.4.0 is here tomorrow! The exporter was extended by a CSV writer."),),
            at_once=True,
        ),
        Behaviour(
            prompt=DIFFERENCE,
            sees="Everything about releases",
            steps=(use(SKILLS["trigger-probe"], "This is about releases, so I'll use the skill."), say(TAG)),
            at_once=True,
        ),
        Behaviour(prompt=DIFFERENCE, sees=SKILLS["trigger-probe"], steps=(say(TAG),), at_once=True),
    ),
}
"""Template -> what the model does, by the skill that it was given. The first that fits counts."""


def script(subject: Subject, template: str) -> list[Turn]:
    """The turns of the scripted model for the tools of one CLI."""
    return [turn for behaviour in BEHAVIOURS[template] for turn in _turns(subject, template, behaviour)]


def _turns(subject: Subject, template: str, behaviour: Behaviour) -> Iterator[Turn]:
    first = () if behaviour.at_once else (use(SKILLS[template], "I'll use the skill for this."),)
    results = said = 0
    for number, step in enumerate((*first, *behaviour.steps)):
        known = SKILLS[template] if number < len(first) else behaviour.sees
        words = len(str(step))
        usage = {
            "input": 3 + number,
            "cache_read": 0 if number == 0 else 11_842 + said,
            "cache_write": 11_842 + len(behaviour.prompt) if number == 0 else 90 + said // 3,
            "output": 12 + words // 4,
        }
        tools = _tools(subject, step)
        when = {"all": [behaviour.prompt, known], "tool_results": results, "tools": True}
        yield {"when": when, "usage": usage, "text": step["say"], "tools": tools}
        results += len(tools)
        said += words


def _tools(subject: Subject, step: Step) -> list[Turn]:
    if "shell" in step:
        return [subject.shell(step["shell"])]
    if "write" in step:
        return [subject.write(*step["write"])]
    return [subject.skill(step["skill"])] if "skill" in step else []


def broken(template: str) -> list[Path]:
    """The directories with what makes the template red: each is copied over the template."""
    return sorted((HERE / template).glob("broken*"))


def laid_out(template: str, place: Path, variant: Path | None = None) -> Path:
    """A copy of the template below `place`, without its cassettes, with the broken skill where one is given."""
    ignored = shutil.ignore_patterns("broken*", "*.cassettes", ".caliper", "__pycache__")
    path = place / template
    shutil.copytree(HERE / template, path, ignore=ignored)
    if variant is not None:
        shutil.copytree(variant, path, ignore=ignored, dirs_exist_ok=True)
    (path / "pytest.ini").write_text("[pytest]\n")
    return path


def record(template: str, path: Path, k: int) -> CompletedRun:
    command = [
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"{template}.eval.yaml"),
        *(f"--caliper-k={k}", "--caliper-record", "--caliper-workers=1", "--caliper-results=results"),
    ]
    return run_in_namespace(script(CLAUDE, template), command, path, env={"CLAUDE_CLI_PATH": str(agents.install(*agents.CLAUDE))})


def main() -> int:
    if reason := netns.unavailable():
        sys.exit(f"the starter pack cannot be recorded here: {reason}")
    for template in SKILLS:
        for variant in (None, *broken(template)):
            k = ATTEMPTS.get(template, 3 if variant is None else 1)
            with tempfile.TemporaryDirectory(prefix="caliper-record-") as place:
                path = laid_out(template, Path(place), variant)
                done = record(template, path, k)
                expected = 0 if variant is None else 1
                if done.returncode != expected:
                    sys.exit(f"{done.stdout}{done.stderr}{path.name}: pytest ended with {done.returncode}, not {expected}")
                cassettes = (variant or HERE / template) / f"{template}.cassettes"
                shutil.rmtree(cassettes, ignore_errors=True)
                shutil.copytree(path / cassettes.name, cassettes)
            sys.stdout.write(f"{cassettes.relative_to(HERE)}: {len(list(cassettes.iterdir()))} recorded\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
