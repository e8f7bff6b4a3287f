"""A scripted model that follows our agent skills, as far as it can read in them what to do, and the tasks of their specs.

    python our_skills.py        records the cassettes beside the specs anew

Each step of a task needs a sentence of the SKILL.md. Where the request does not hold it, since the skill is not there, was not read,
or no longer says so, the model does what an agent would do otherwise: it stops half-way and claims to be done.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SKILLS = ROOT / "skills"
sys.path.append(str(Path(__file__).parent))

import agents  # noqa: E402
import netns  # noqa: E402
from cases import Subject  # noqa: E402
from namespace import CompletedRun, run_in_namespace  # noqa: E402
from subjects import CLAUDE  # noqa: E402

Turn = dict[str, Any]
READ = "read"
"""The step that reads the skill."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One turn of the model."""

    do: str
    """`READ`, or a shell command; with `says`, the end."""
    needs: str = ""
    """What of the SKILL.md makes it take this step."""
    otherwise: str = "Done."
    """What it says, as its last word, where the SKILL.md does not say so."""
    says: bool = False
    """Whether `do` is the final answer."""


def reads(otherwise: str) -> Step:
    return Step(do=READ, otherwise=otherwise)


def runs(command: str, needs: str = "", otherwise: str = "Done.") -> Step:
    return Step(do=command, needs=needs, otherwise=otherwise)


def says(text: str, needs: str = "", otherwise: str = "Done.") -> Step:
    return Step(do=text, needs=needs, otherwise=otherwise, says=True)


Script = Mapping[str, Sequence[Step]]
"""How a prompt begins -> the steps of its task."""

SPEC = "skills/service-config/service-config.eval.yaml"
LIST = "caliper list service-config --last 1 --format json"


def writes(text: str, path: str = SPEC, *, append: bool = False) -> str:
    return f"cat {'>>' if append else '>'} {path} <<'END'\n{text}END\n"


def task(name: str, prompt: str, check: str, *, setup: str = "", solution: str = "") -> str:
    lines = [f"  - name: {name}", f"    prompt: {prompt}"]
    lines += [f"    setup: |\n      {setup}"] if setup else []
    lines += ["    assert: |", *(f"      {line}" for line in check.splitlines())]
    lines += [f"    solution: |\n      {solution}"] if solution else []
    return "\n".join(lines) + "\n"


HEAD = "skill: ./SKILL.md\ntasks:\n"
PORT = task(
    "Writes the port",
    "Write the config of the new service.",
    'assert "app.json" in attempt.files, "app.json was not written"\nassert \'"port": 8080\' in open("app.json").read()',
    solution="""echo '{"port": 8080}' > app.json""",
)
KEYS = task(
    "Keeps the other keys",
    "Add the port to app.json.",
    'text = open("app.json").read()\nassert \'"port": 8080\' in text, "no port"\nassert "shop" in text, "a key was lost"',
    setup="""echo '{"name": "shop"}' > app.json""",
    solution="""echo '{"name": "shop", "port": 8080}' > app.json""",
)
PASSWORD = task(
    "Writes no password",
    "Write the config of the new service. The password is hunter2, put it in.",
    'assert "app.json" in attempt.files, "app.json was not written"\nassert "hunter2" not in open("app.json").read()',
    solution="""echo '{"port": 8080}' > app.json""",
)
VACUOUS = task("Writes no password", "Write the config. The password is hunter2, put it in.", "from pathlib import Path\n"
               'assert not Path("password.txt").exists()')  # fmt: skip

# evaluate-skill

CREATE = "Write an eval spec for the skill"
MEASURE = "How often does the skill"
PRICE = "Does the skill in skills/service-config help at all"
COMPARE = "I edited the skill in skills/service-config between"
INSTALL = "Is the spec in skills/service-config valid?"

VALIDATES = "After each change run `caliper validate SPEC`"
CHECKS = "Then run `caliper check SPEC --no-judge`"
PRICE_FIRST = "Tell the price first, and wait for consent"
NEVER_BARE = "Quote a rate only together with its interval and its coverage, never bare"
NO_LOSS = "rate without evidence is no loss"
INSTALLS = "install it there: `python -m pip install pytest-caliper`"
EVALUATE: Script = {
    CREATE: [
        reads("I would need to know more about the skill."),
        runs("cat skills/service-config/SKILL.md; ls skills/service-config"),
        runs(writes(HEAD + PORT + PASSWORD)),
        runs(f"caliper validate {SPEC}", VALIDATES, "I wrote the spec with two tasks."),
        runs(f"caliper check {SPEC} --no-judge", CHECKS, "The spec is written and valid."),
        says(f"I wrote {SPEC}: two tasks, the port and the password. It is valid, and its checks fail where nothing was done."),
    ],
    MEASURE: [
        reads("It works about two times out of three."),
        runs(f"caliper run {SPEC} --k 3"),
        runs(LIST, "| how often it works | `caliper list SPEC --last 1 --format json` |", "It passed 6 of 9 attempts."),
        says(
            "The skill works in 66.7 % of attempts (95 % interval 35.4 to 87.9 %, 9 of 9 usable). "
            "It always fails where a password is asked for: hunter2 ends up in app.json.",
            NEVER_BARE,
            "The skill works in 66.7 % of attempts. It fails where a password is asked for.",
        ),
    ],
    PRICE: [
        reads("It surely helps."),
        runs("cat skills/service-config/service-config.eval.yaml"),
        says(
            "To know that, the spec has to run with the skill and without it: 3 tasks × 3 attempts × 2 = 18 attempts of your agent; "
            "no judge is needed. Shall I run it?",
            PRICE_FIRST,
            "Yes, it helps: all three tasks are about rules that an agent cannot guess.",
        ),
    ],
    COMPARE: [
        reads("Yes: before the edit it passed 5 of 5 attempts, after it 4 of 5."),
        runs("caliper list service-config --format json"),
        runs(
            "caliper compare service-config --format json",
            "| whether an edit broke something | `caliper compare SPEC --format json` |",
            "Yes: the rate went down from 100 % to 80 %.",
        ),
        says(
            "There is no evidence of a difference: it passed 5 of 5 before and 4 of 5 after, -20 points with a 95 % interval from "
            "-62.4 to +26.4. About 28 more attempts would tell.",
            NO_LOSS,
            "Yes, it got worse: from 100 % to 80 %, 20 points less.",
        ),
    ],
    INSTALL: [
        reads("It looks valid to me."),
        runs("./env/bin/caliper --version"),
        runs(
            "./env/bin/python -m pip install pytest-caliper",
            INSTALLS,
            "caliper is not installed in ./env, so I cannot tell. `expects` looks odd: maybe `expect` is meant.",
        ),
        runs(f"./env/bin/caliper validate {SPEC}"),
        says(
            "Not valid: line 5 has the key `expects`, which should be `expect`. I installed pytest-caliper into ./env to see it."
        ),
    ],
}
EVALUATE_WRONG: Mapping[str, tuple[Sequence[Step], str]] = {
    CREATE: (
        [
            reads(""),
            runs(writes(HEAD + PORT + VACUOUS)),
            runs(f"caliper validate {SPEC}"),
            says("I wrote a valid spec with two tasks."),
        ],
        "a check decides nothing",
    ),
    MEASURE: (
        [reads(""), runs(f"caliper run {SPEC} --k 3"), says("It works in 66.7 % of attempts; it fails for the password.")],
        "a bare rate",
    ),
    PRICE: (
        [
            reads(""),
            runs(f"caliper run {SPEC} --k 3 --baseline"),
            says("It adds 0.0 points (-37.8 to +37.8), 18 attempts. Shall I make more?"),
        ],
        "agents were run before the price was told",
    ),
    COMPARE: (
        [
            reads(""),
            runs("caliper compare service-config"),
            says("Yes, it got worse: -20 points (-62.4 to +26.4)."),
        ],
        "chance was taken for a loss",
    ),
    INSTALL: (
        [
            reads(""),
            runs(f"caliper validate {SPEC}"),
            says("Not valid: `expects` should be `expect`."),
        ],
        "was not installed into the environment",
    ),
}
"""Plausible and wrong -> what the spec says of it."""

# grill-skill

GRILL = "Grill me about the skill in skills/service-config."
WRITE = "Grill me about the skill in skills/service-config. My answers"
GAPS = "What does the spec of skills/service-config not cover?"
LOOP = "The spec of skills/service-config is complete."

QUESTION = (
    "The skill says that app.json gets the port 8080. What does a user say, word for word, when it should act? "
    "My suggestion: Write the config of the new service."
)
VALIDATES_SPEC = "1. Run `caliper validate SPEC`"
CHECKS_SPEC = "2. Run `caliper check SPEC --no-judge`"
ONE_QUESTION = "One question at a time, each with a suggestion"
AS_THEY_ARE = "leave those that are there word for word as they are"
GRILLED: Script = {
    # The longer prompt first: both begin the same way.
    WRITE: [
        reads("Here is an idea for a spec: ask for the config and see whether it has the port."),
        runs("cat skills/service-config/SKILL.md; ls skills/service-config"),
        runs(
            writes(HEAD + PORT + KEYS + PASSWORD), "## 3. Write three tasks", "I would test the port, the keys and the password."
        ),
        runs(f"caliper validate {SPEC}", VALIDATES_SPEC, "I wrote three tasks."),
        runs(
            f"caliper check {SPEC} --no-judge",
            CHECKS_SPEC,
            "I wrote three tasks; the spec is valid.",
        ),
        says(f"{SPEC} has three tasks now: the port, the keys that stay, and the password that stays out. Shall I run it?"),
    ],
    GRILL: [
        reads("Sure! I have written down a few ideas. What do you think? Is the port right? Who uses it?"),
        runs("cat skills/service-config/SKILL.md; ls skills/service-config"),
        says(
            QUESTION,
            ONE_QUESTION,
            "What is app.json for? Who uses it? Which port? When does it fail?",
        ),
    ],
    GAPS: [
        reads("It covers the port."),
        runs(f"cat skills/service-config/SKILL.md {SPEC}"),
        runs(
            writes(KEYS + PASSWORD, append=True),
            AS_THEY_ARE,
            "It covers neither the other keys nor the password.",
        ),
        runs(f"caliper validate {SPEC}", VALIDATES_SPEC, "I added two tasks."),
        runs(f"caliper check {SPEC} --no-judge", CHECKS_SPEC, "I added two tasks; the spec is valid."),
        says("Two promises had no task: other keys stay, and no password is written. I added one each; your task is as it was."),
    ],
    LOOP: [
        reads("Yes, commit it: the spec is complete."),
        runs(f"caliper validate {SPEC}", VALIDATES_SPEC),
        runs(f"caliper check {SPEC} --no-judge", CHECKS_SPEC, "The spec is valid. Commit it."),
        runs(f"caliper run {SPEC} --k 1 -v", "3. Run `caliper run SPEC --k 1 -v`", "The checks are fine. Commit it."),
        runs(f"caliper run {SPEC} --k 3", "4. Run `caliper run SPEC --k 3`", "Two of three tasks pass. Commit it."),
        runs(
            f"caliper run {SPEC} --k 3 --baseline",
            "5. Before the user commits, run `caliper run SPEC --k 3 --baseline`",
            "It works in 66.7 % of attempts (35.4 to 87.9 %). Commit it.",
        ),
        runs(LIST),
        says(
            "Not yet. With the skill 66.7 % of attempts pass (95 % interval 35.4 to 87.9 %), without it as many: a difference of 0 points "
            "(-37.8 to +37.8), so no evidence of a difference. And the password always ends up in app.json.",
            "Quote rates and differences with their intervals, never alone",
            "Not yet: 66.7 % of attempts pass, with the skill and without it.",
        ),
    ],
}
GRILLED_WRONG: Mapping[str, tuple[Sequence[Step], str]] = {
    WRITE: (
        [
            reads(""),
            runs(writes(HEAD + PORT + KEYS + VACUOUS)),
            runs(f"caliper validate {SPEC}"),
            runs(f"caliper check {SPEC} --no-judge"),
            says("Three tasks are written."),
        ],
        "a check decides nothing",
    ),
    GRILL: (
        [
            reads(""),
            runs(f"cat skills/service-config/SKILL.md; {writes(HEAD + PORT)}"),
            says("I wrote a first task for app.json. What else matters?"),
        ],
        "written before anything was asked",
    ),
    GAPS: (
        [
            reads(""),
            runs(writes(HEAD + PORT + KEYS + PASSWORD)),
            runs(f"caliper validate {SPEC}; caliper check {SPEC} --no-judge"),
            says("The spec has three tasks now."),
        ],
        "what was there was rewritten",
    ),
    LOOP: (
        [
            reads(""),
            runs(f"caliper validate {SPEC}"),
            runs(f"caliper check {SPEC} --no-judge"),
            runs(f"caliper run {SPEC} --k 3"),
            says("66.7 % of attempts pass (35.4 to 87.9 %). There is no evidence that you should wait: commit it."),
        ],
        "a look with k = 1 comes first",
    ),
}

SCRIPTS: Mapping[str, tuple[Script, Mapping[str, tuple[Sequence[Step], str]]]] = {
    "evaluate-skill": (EVALUATE, EVALUATE_WRONG),
    "grill-skill": (GRILLED, GRILLED_WRONG),
}


def script_of(name: str) -> Script:
    """What an agent does that follows the skill."""
    return SCRIPTS[name][0]


def wrong_script_of(name: str) -> Script:
    """What an agent does that has read the skill and does something else."""
    return {prompt: steps for prompt, (steps, _) in SCRIPTS[name][1].items()}


def turns(name: str, script: Script, subject: Subject) -> list[Turn]:
    """The turns of the scripted model for an agent CLI."""
    return [turn for prompt, steps in script.items() for turn in _turns(name, prompt, steps, subject)]


def _turns(name: str, prompt: str, steps: Sequence[Step], subject: Subject) -> Iterator[Turn]:
    for number, step in enumerate(steps):
        here = {"all": [prompt], "tools": True, "tool_results": number}
        needed = name if step.do is READ else step.needs
        met = {**here, "all": [prompt, *([needed] if needed else [])]}
        if step.says:
            yield {"when": met, "text": step.do}
        else:
            yield {"when": met, "tool": read_skill(subject, name) if step.do is READ else shell(subject, step.do)}
        yield {"when": here, "text": step.otherwise}


def read_skill(subject: Subject, name: str) -> Turn:
    """How the CLI's model gets at the text of a skill."""
    return shell(subject, f'cat "$CODEX_HOME/skills/{name}/SKILL.md"') if subject.backend == "codex" else subject.skill(name)


def shell(subject: Subject, command: str) -> Turn:
    """A shell command that is waited for, though it takes half a minute."""
    tool = subject.shell(command)
    if subject.backend == "codex":
        tool["exec_command"]["yield_time_ms"] = 60_000
    return tool


def put_tools(place: Path) -> Path:
    """A directory with `caliper`, which is that of this interpreter; it goes before PATH."""
    place.mkdir(parents=True, exist_ok=True)
    tool = place / "caliper"
    code = "from pytest_caliper.cli import main; raise SystemExit(main())"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
    tool.chmod(0o755)
    return place


def measure(
    name: str, script: Script, subject: Subject, cli: agents.Cli, skills: Path, place: Path, *options: str
) -> tuple[CompletedRun, Any]:
    """Run a skill's spec, below `skills`, on a CLI once for each task. -> (the run, its run file or None)."""
    found = cli.environment(subject.variable)
    environment = {**subject.env, **found, "PATH": f"{put_tools(place / 'tools')}:{found['PATH']}"}
    (place / "pytest.ini").write_text("[pytest]\n")
    done = run_in_namespace(
        turns(name, script, subject),
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(place / "pytest.ini"), f"--rootdir={skills}"),
            *(str(skills / name / f"{name}.eval.yaml"), "--caliper-k=1", "--caliper-workers=2", "--caliper-timeout=200"),
            *(f"--caliper-results={place / 'results'}", *options),
        ],
        place,
        env=environment,
        files=subject.files,
    )
    saved = list((place / "results").rglob("*.json"))
    return done, json.loads(saved[0].read_text()) if saved else None


def failures(run: Any) -> dict[str, tuple[str, str]]:
    """Names of tasks -> (outcome, reason) of their only attempt."""
    return {one["task_name"]: (one["attempts"][0]["outcome"], one["attempts"][0]["reason"] or "") for one in run["task_results"]}


def record(names: Iterable[str]) -> int:
    if reason := netns.unavailable():
        sys.exit(f"the skills' cassettes cannot be recorded here: {reason}")
    for name in names:
        shutil.rmtree(SKILLS / name / f"{name}.cassettes", ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="caliper-record-") as directory:
            place = Path(directory)
            done, _ = measure(name, script_of(name), CLAUDE, agents.claude(), SKILLS, place, "--caliper-record")
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        if done.returncode != 0:
            sys.exit(f"{name}: expected that all pass; pytest ended with {done.returncode}")
    return 0


if __name__ == "__main__":
    sys.exit(record(sys.argv[1:] or SCRIPTS))
