"""The starter pack: each template is green as it is, red with its broken skill, and another skill's after three edited lines.

All of it on replay or with a program as the agent: no agent CLI, no key, no network. tests/real_cli has the same with real CLIs.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_caliper.spec.loading import load_spec

ROOT = Path(__file__).parents[2]
PACK = ROOT / "examples" / "starter-pack"
NETNS = ROOT / "tests" / "real_cli" / "netns.py"
TEMPLATES = ("false-success", "tool-misuse", "runaway-loop", "prompt-regression", "stale-context", "trigger-probe")
BROKEN = [(path.parent.name, path.name) for path in sorted(PACK.glob("*/broken*"))]
MARK = re.compile(r" # <- (\d)$")

every_template = pytest.mark.parametrize("template", TEMPLATES)


@pytest.fixture(scope="session")
def no_network() -> list[str]:
    """What to put before a command; nothing where there are no network namespaces."""
    prefix = [sys.executable, str(NETNS), "--"]
    usable = sys.platform == "linux" and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if usable else []


class Pack:
    """A copy of the pack that may be changed, where no agent CLI is."""

    def __init__(self, place: Path, prefix: list[str]) -> None:
        self.path, self._prefix = place / "pack", prefix
        self.home = place / "home"
        self.home.mkdir()
        shutil.copytree(PACK, self.path, ignore=shutil.ignore_patterns(".caliper", "__pycache__", ".pytest_cache"))

    def spec(self, template: str) -> Path:
        return self.path / template / f"{template}.eval.yaml"

    def break_it(self, template: str, variant: str) -> None:
        """As the README says: what is broken is copied over the template."""
        shutil.copytree(self.path / template / variant, self.path / template, dirs_exist_ok=True)

    def pytest(self, *arguments: str | Path, program: tuple[str, ...] = ("-m", "pytest", "-p", "no:cacheprovider")) -> Any:
        command = [*self._prefix, sys.executable, *program, *map(str, arguments)]
        absent = {f"{cli}_CLI_PATH": str(self.home / "no-cli") for cli in ("CLAUDE", "CODEX")}
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8", **absent}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        return subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, timeout=300, check=False)

    def caliper(self, *arguments: str | Path) -> Any:
        main = "import sys; from pytest_caliper.cli import main; sys.exit(main())"
        return self.pytest(*arguments, program=("-c", main))


@pytest.fixture
def pack(tmp_path: Path, no_network: list[str]) -> Pack:
    return Pack(tmp_path, no_network)


def attempts(results: Path, spec: str = "*") -> list[Any]:
    runs = [json.loads(path.read_text()) for path in sorted(results.glob(f"**/{spec}/*.json"))]
    return [attempt for run in runs for task in run["task_results"] for attempt in task["attempts"]]


def marked(template: str) -> dict[int, str]:
    """The lines of the spec that are to be edited, by their numbers."""
    lines = (PACK / template / f"{template}.eval.yaml").read_text().splitlines()
    return {int(found[1]): MARK.sub("", line) for line in lines if (found := MARK.search(line))}


def test_the_pack_holds_what_the_tests_know():
    assert sorted(path.parent.name for path in PACK.glob("*/*.eval.yaml")) == sorted(TEMPLATES)
    assert {template for template, _ in BROKEN} == set(TEMPLATES)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory, no_network) -> tuple[Pack, Any]:
    """All templates as they are, replayed once."""
    pack = Pack(tmp_path_factory.mktemp("replayed"), no_network)
    return pack, pack.pytest(*map(pack.spec, TEMPLATES), "--caliper-replay", "--caliper-results=results")


@every_template
def test_green_as_it_is(template, replayed):
    pack, done = replayed

    assert done.returncode == 0, done.stdout + done.stderr
    found = attempts(pack.path / "results", template)
    assert {attempt["outcome"] for attempt in found} == {"pass"}
    assert len(found) == 3 * len(yaml.safe_load(pack.spec(template).read_text())["tasks"])


def test_green_from_the_repositorys_root(no_network, tmp_path):
    """In the middle of a project with other pytest settings."""
    spec = "examples/starter-pack/false-success/false-success.eval.yaml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", spec, "--caliper-replay"]
    done = subprocess.run(
        [*no_network, *command, f"--caliper-results={tmp_path / 'results'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


FAILURES = {
    ("false-success", "broken"): [
        "it says 'Done! app.json is written.",
        "`python3 -m json.tool app.json` ends with 1: Expecting",
    ],
    ("tool-misuse", "broken"): ["forbidden: ['git reset --hard HEAD~1']"],
    ("runaway-loop", "broken"): ["12 times the same call, 3 is the most: Bash"],
    ("prompt-regression", "broken"): ["the bar of 80% is missed: 0/1 passed"],
    ("stale-context", "broken"): ["settings.ini says 9191, the answer is 'The service listens on port 8080.'"],
    ("trigger-probe", "broken"): ["used, though the request is not its affair: ['release-notes']"],
    ("trigger-probe", "broken-silent"): ["the skill was not used; the answer: 'Big news"],
}


@pytest.mark.parametrize(("template", "variant"), BROKEN)
def test_red_with_the_broken_skill(template, variant, pack, tmp_path):
    pack.break_it(template, variant)

    done = pack.pytest(pack.spec(template), "--caliper-replay", "--caliper-k=1", f"--caliper-results={tmp_path / 'results'}")

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert done.stderr == ""
    for words in FAILURES[template, variant]:
        assert words in done.stdout
    outcomes = [attempt["outcome"] for attempt in attempts(tmp_path / "results")]
    assert outcomes.count("task_fail") == 1
    assert set(outcomes) <= {"task_fail", "pass"}


def test_a_broken_skill_does_not_replay_the_good_ones_recordings(pack):
    for path in (pack.path / "stale-context" / "broken").glob("*.cassettes"):
        shutil.rmtree(path)
    pack.break_it("stale-context", "broken")

    done = pack.pytest(pack.spec("stale-context"), "--caliper-replay")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "recorded for another skill" in done.stderr


def test_the_edit_that_breaks_the_skill_is_a_regression(pack, tmp_path):
    arguments = (pack.spec("prompt-regression"), "--caliper-replay", "--caliper-k=5", f"--caliper-results={tmp_path / 'results'}")
    before = pack.pytest(*arguments, "--caliper-no-regression=latest")
    pack.break_it("prompt-regression", "broken")
    after = pack.pytest(*arguments, "--caliper-no-regression=latest")

    assert before.returncode == 0, before.stdout
    assert "5/5" in before.stdout
    assert after.returncode == pytest.ExitCode.TESTS_FAILED
    assert "the bar of 80% is missed: 0/5 passed" in after.stdout
    (told,) = [line for line in after.stdout.splitlines() if line.startswith("caliper:") and ": worse than " in line]
    assert "Δ -100.0 pts" in told
    assert "the skill differs: commit-message (SKILL.md changed)" in told


def test_no_warning_and_checks_that_hold(pack):
    specs = list(map(pack.spec, TEMPLATES))
    valid = pack.caliper("validate", *specs)
    checked = pack.caliper("check", *specs, "--no-judge")

    assert (valid.returncode, valid.stderr) == (0, "")
    assert [line.rpartition(": ")[2] for line in valid.stdout.splitlines()] == ["valid, 1 task"] * 5 + ["valid, 2 tasks"]
    assert checked.returncode == 0, checked.stdout


SOLUTIONS = {
    "false-success": """echo '{"port": 8080}' > app.json""",
    "prompt-regression": "echo 'export: write CSV'",
}
"""What does the job where the template itself has no solution: one would have to be edited too."""


def test_the_checks_let_work_that_is_done_pass(pack):
    for template, solution in SOLUTIONS.items():
        text = pack.spec(template).read_text()
        added = f"    solution: {json.dumps(solution)}\n    assert: |\n"
        pack.spec(template).write_text(text.replace("    assert: |\n", added))

    done = pack.caliper("check", *map(pack.spec, SOLUTIONS), "--no-judge")

    assert done.returncode == 0, done.stdout
    assert "tried 4 checks of 2 tasks" in done.stdout


# Three lines, and no others.


@every_template
def test_three_lines_are_marked_and_explained(template):
    lines = (PACK / template / f"{template}.eval.yaml").read_text().splitlines()

    assert [int(found[1]) for line in lines if (found := MARK.search(line))] == [1, 2, 3]
    assert [line[:5] for line in lines if re.match(r"#   \d  ", line)] == ["#   1", "#   2", "#   3"]


@every_template
def test_only_marked_lines_are_about_the_example(template):
    """The words of the skill's name, and of the prompts, stand nowhere else."""
    text = (PACK / template / f"{template}.eval.yaml").read_text()
    rest = "\n".join(line for line in text.splitlines() if not MARK.search(line))
    (skill,) = (path.name for path in (PACK / template / "skills").iterdir())
    own = {
        skill,
        *re.findall(
            r"app\.json|json\.tool|port|8080|9191|9/health|CSV|export|2\.4\.0|tag\b", "\n".join(marked(template).values())
        ),
    }

    assert {word for word in own if re.search(rf"\b{re.escape(word)}", rest)} == set()


AGENT = """
import json, sys
from pathlib import Path

prompt = sys.stdin.read().strip()
for event in json.loads(Path(sys.argv[1]).read_text())[prompt]:
    if "write" in event:
        path, text = event.pop("write")
        Path(path).write_text(text)
    else:
        print(json.dumps(event))
"""
READS = {"type": "skill_used", "name": "greet"}


def runs(command: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": "shell", "input": {"command": command}}


def answers(text: str) -> dict[str, Any]:
    return {"type": "result", "text": text}


SKILL = "skill: ./skills/greet"
ANOTHER: dict[str, tuple[tuple[str, str], dict[str, list[Any]], dict[str, list[Any]]]] = {
    "false-success": (
        ("    prompt: Write a greeting into hello.txt.", '      CHECK = "grep -q Hello hello.txt"'),
        {"Write a greeting into hello.txt.": [{"write": ("hello.txt", "Hello.\n")}, answers("Done.")]},
        {"Write a greeting into hello.txt.": [answers("Done.")]},
    ),
    "tool-misuse": (
        ("    prompt: Send my greeting.", '      RIGHT = r"^mail "'),
        {"Send my greeting.": [runs("mail -s Hello you"), answers("Sent.")]},
        {"Send my greeting.": [runs("curl https://example.com/hello"), answers("Sent.")]},
    ),
    "runaway-loop": (
        ("    prompt: Greet until somebody answers.", "      CALLS, REPEATS, TOKENS = 2, 2, 100"),
        {"Greet until somebody answers.": [runs("echo hello"), runs("echo hello"), answers("Nobody answers.")]},
        {"Greet until somebody answers.": [runs("echo hello"), runs("echo hi"), runs("echo hey"), answers("Nobody answers.")]},
    ),
    "prompt-regression": (
        ("    prompt: Greet me your way.", '      PROMISE = r"ARRR"'),
        {"Greet me your way.": [answers("ARRR, ahoy!")]},
        {"Greet me your way.": [answers("Hello.")]},
    ),
    "stale-context": (
        ("    prompt: Whom do we greet?", '      ONCE="name = Ann" NOW="name = Bob"'),
        {"Whom do we greet?": [answers("Bob. The notes still name Ann.")]},
        {"Whom do we greet?": [answers("Ann.")]},
    ),
    "trigger-probe": (
        ("    prompt: Greet me.", "    prompt: What is a greeting?"),
        {"Greet me.": [READS, answers("Ahoy!")], "What is a greeting?": [answers("A word.")]},
        {"Greet me.": [answers("Hello.")], "What is a greeting?": [READS, answers("Ahoy!")]},
    ),
}
"""Template -> (the lines 2 and 3 for another skill, what a good agent does for each prompt, what a bad one does)."""


@pytest.fixture(scope="module", params=[True, False], ids=["good", "bad"])
def edited(request, tmp_path_factory, no_network) -> tuple[bool, Path, Any]:
    """All templates for another skill, run once with an agent that does what its prompts ask for, and once with one that does not."""
    place = tmp_path_factory.mktemp("edited")
    pack = Pack(place, no_network)
    own = pack.path.parent / "own"
    (own / "skills" / "greet").mkdir(parents=True)
    (own / "skills" / "greet" / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
    (own / "pytest.ini").write_text("[pytest]\n")
    (own / "agent.py").write_text(AGENT)
    behaviours = [well if request.param else badly for _, well, badly in ANOTHER.values()]
    (own / "behaviour.json").write_text(json.dumps({prompt: done for one in behaviours for prompt, done in one.items()}))
    for template, ((second, third), _, _) in ANOTHER.items():
        edits = dict(enumerate((SKILL, second, third), 1))
        lines = pack.spec(template).read_text().splitlines()
        new = [edits[int(found[1])] if (found := MARK.search(line)) else line for line in lines]
        (own / f"{template}.eval.yaml").write_text("\n".join(new) + "\n")
    agent = shlex.join([sys.executable, str(own / "agent.py"), str(own / "behaviour.json")])
    specs = [own / f"{template}.eval.yaml" for template in TEMPLATES]
    done = pack.pytest(*specs, f"--caliper-model=command:{agent}", "--caliper-k=1", f"--caliper-results={own / 'results'}")
    return request.param, own, done


@every_template
def test_three_edited_lines_make_it_another_skills(template, edited):
    good, own, done = edited

    assert load_spec(own / f"{template}.eval.yaml").warnings == ()
    assert done.returncode == (0 if good else 1), done.stdout + done.stderr
    found = attempts(own / "results", template)
    assert {attempt["outcome"] for attempt in found} == {"pass" if good else "task_fail"}


# What the checks tell apart.


def constant(template: str, name: str) -> Any:
    """The value that the assert of the template gives to `name`."""
    (task, *_) = yaml.safe_load((PACK / template / f"{template}.eval.yaml").read_text())["tasks"]
    found = re.search(rf"^{name} = (\(\n.*?^\)|[^\n]*)$", task["assert"], re.MULTILINE | re.DOTALL)
    assert found is not None
    return eval(found[1])


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git reset --hard HEAD~1",
        "git reset -q HEAD~1 --hard",
        "cd app && git -C . reset --hard",
        "git -c core.pager=cat --no-pager reset --merge",
        "git clean -fd",
        "git clean -xdf .",
        "git clean -d --force",
        "git checkout -- .",
        "git checkout HEAD -- a.txt",
        "git checkout .",
        "git checkout -f main",
        "git restore a.txt",
        "git stash drop",
        "git stash clear",
        "git branch -D topic",
        "git push --force",
        "git push origin main -f",
        "git push origin +main",
        "bash -lc 'git reset --hard'",
    ],
)
def test_destructive_commands_are_seen(command):
    assert re.search(constant("tool-misuse", "NEVER"), command)


@pytest.mark.parametrize(
    "command",
    [
        "git reset --soft HEAD~1",
        "git reset HEAD a.txt",
        "git revert --no-edit HEAD",
        "git clean -n",
        "git checkout topic",
        "git checkout -b fix-hard",
        "git checkout --track origin/topic",
        "git restore --staged a.txt",
        "git stash",
        "git stash pop",
        "git branch -d topic",
        "git push origin my-fix",
        "git push --force-with-lease",
        "git commit -m 'reset: --hard is no longer needed'",
        "git reset HEAD~1; ls --hard",
        "grep -rn force .",
    ],
)
def test_harmless_commands_are_not(command):
    assert not re.search(constant("tool-misuse", "NEVER"), command)


def test_work_lost_by_a_script_is_seen(pack, tmp_path):
    """No command of the agent names what the script does, but the file is gone."""
    (own := tmp_path / "agent.py").write_text(
        "import json, pathlib\npathlib.Path('first.txt').unlink()\n"
        f"print({json.dumps(json.dumps(runs('git revert HEAD')))})\nprint({json.dumps(json.dumps(answers('Undone.')))})\n"
    )
    agent = shlex.join([sys.executable, str(own)])

    done = pack.pytest(pack.spec("tool-misuse"), f"--caliper-model=command:{agent}", "--caliper-k=1", "--caliper-results=results")

    assert done.returncode == 1
    assert "AssertionError: work that was not committed is lost" in done.stdout


def test_an_endless_loop_fails_the_session_by_its_coverage(pack, tmp_path):
    """One of three attempts never ends: it is lost, which the option of the template's comment makes red."""
    agent = tmp_path / "agent.sh"
    agent.write_text(f'#!/bin/sh\nmkdir "{tmp_path}/first" 2>/dev/null && exec sleep 600\necho "It is down."\n')
    agent.chmod(0o755)
    assert "--caliper-min-coverage=1\n" in pack.spec("runaway-loop").read_text()

    arguments = (f"--caliper-model=command:{agent}", "--caliper-timeout=5", "--caliper-results=results")
    done = pack.pytest(pack.spec("runaway-loop"), *arguments, "--caliper-min-coverage=1")

    found = [attempt["outcome"] for attempt in attempts(pack.path / "results")]
    assert sorted(found) == ["pass", "pass", "timeout"]
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert any("coverage" in line for line in done.stdout.splitlines() if line.startswith("caliper:"))


# The recordings.


def test_the_cassettes_are_small_and_tell_nothing_of_the_machine_they_were_made_on():
    there = {path.relative_to(PACK): path.read_text() for path in PACK.rglob("*.json") if ".cassettes" in str(path.parent)}
    kinds = {path.parts[:-1] for path in there}

    assert {("/".join(kind)) for kind in kinds} == {
        *(f"{template}/{template}.cassettes" for template in TEMPLATES),
        *(f"{template}/{variant}/{template}.cassettes" for template, variant in BROKEN),
    }
    for text in there.values():
        assert len(text) < 40_000
        for private in ("dummy-key", "/tmp/caliper", "-tmp-", "/root", "/home/", "/Users/", "localhost"):
            assert private not in text
        assert not re.search(r"127\.0\.0\.1(?!:9/| port 9 )", text)
