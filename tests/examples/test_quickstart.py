"""The quick start's recorded attempts, replayed where there is no agent, no key, no network and nobody's home."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
NETNS = ROOT / "tests" / "real_cli" / "netns.py"

FEATURE, BREAKING, CRASH = "Notes a new feature", "Marks a breaking change", "Leaves old releases alone"
WITH_SKILL = {
    FEATURE: ["pass", "task_fail", "pass"],
    BREAKING: ["pass", "pass", "pass"],
    CRASH: ["pass", "pass", "pass"],
}
WITHOUT = {
    FEATURE: ["task_fail", "task_fail", "task_fail"],
    BREAKING: ["task_fail", "pass", "task_fail"],
    CRASH: ["pass", "pass", "pass"],
}


@pytest.fixture(scope="session")
def no_network() -> list[str]:
    """What to put before a command; nothing where there are no network namespaces."""
    prefix = [sys.executable, str(NETNS), "--"]
    usable = sys.platform == "linux" and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if usable else []


class Quickstart:
    """A copy of the example that may be changed."""

    def __init__(self, directory: Path, prefix: list[str]) -> None:
        self.path = directory / "quickstart"
        self.home = directory / "home"
        self.home.mkdir()
        self._prefix = prefix
        shutil.copytree(QUICKSTART, self.path, ignore=shutil.ignore_patterns(".caliper", "__pycache__"))

    @property
    def spec(self) -> Path:
        return self.path / "changelog.eval.yaml"

    def cassette(self, name: str) -> Path:
        return self.path / "changelog.cassettes" / f"{name}.json"

    def replay(self, *arguments: str, k: int = 3, results: str = "results") -> subprocess.CompletedProcess[str]:
        command = [*self._prefix, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", self.spec.name, f"--caliper-k={k}"]
        command += ["--caliper-baseline", "--caliper-replay", f"--caliper-results={results}", *arguments]
        nothing = str(self.home / "claude")  # found first, and would be an error as soon as anybody looks
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8", "CLAUDE_CLI_PATH": nothing}
        return subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, timeout=120, check=False)

    def run_file(self, results: str = "results") -> Any:
        (path,) = (self.path / results).rglob("*.json")
        return json.loads(path.read_text())


@pytest.fixture
def quickstart(tmp_path: Path, no_network: list[str]) -> Quickstart:
    return Quickstart(tmp_path, no_network)


@pytest.fixture(scope="module")
def replayed(
    tmp_path_factory: pytest.TempPathFactory, no_network: list[str]
) -> tuple[Quickstart, subprocess.CompletedProcess[str]]:
    """The example as it is, replayed once."""
    example = Quickstart(tmp_path_factory.mktemp("replayed"), no_network)
    return example, example.replay()


def outcomes(run: Any, arm: str = "task_results") -> dict[str, list[str]]:
    return {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in run[arm]}


def attempts(run: Any) -> list[Any]:
    return [attempt for arm in ("task_results", "baseline_task_results") for task in run[arm] for attempt in task["attempts"]]


def test_every_attempt_ends_as_recorded(replayed):
    example, done = replayed
    run = example.run_file()

    assert outcomes(run) == WITH_SKILL
    assert outcomes(run, "baseline_task_results") == WITHOUT
    assert done.stderr == ""
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 8 passed, 5 xfailed, 4 xpassed" in done.stdout


def test_the_summary_says_what_the_skill_adds(replayed):
    _, done = replayed

    assert "Skill       Δ +44.4 pts [+1.0, +71.6]: better with the skill (p = 0.040)\n" in done.stdout
    assert "\nchangelog.eval.yaml:7: assert: no entry in the house style under Added: ''\n" in done.stdout
    assert "replayed from cassettes" in done.stdout
    assert max(map(len, done.stdout.split("=== caliper ===")[-1].split("\n"))) <= 130


def test_what_the_agents_did_is_in_the_run_file(replayed):
    example, _ = replayed
    run = example.run_file()

    assert (run["run"]["backend"], run["run"]["cli_version"]) == ("claude-code", "2.1.332")
    for task in run["task_results"]:
        for attempt in task["attempts"]:
            assert attempt["skills_used"] == ["changelog-entry"]
            assert [file["path"] for file in attempt["changed_files"]] == ["CHANGELOG.md"]
            assert attempt["usage"]["output_tokens"] > 0
            assert any(turn.get("tool_name") in {"Write", "Edit"} for turn in attempt["transcript"])
    for task in run["baseline_task_results"]:
        assert [attempt["skills_used"] for attempt in task["attempts"]] == [[], [], []]


def test_the_judge_is_heard_where_the_assert_held(replayed):
    example, _ = replayed
    run = example.run_file()
    judged = [attempt["autorater_passed"] for attempt in attempts(run)]

    assert judged == [None] * 3 + [True] * 3 + [None] * 3 + [None] * 3 + [None, True, False] + [None] * 3
    assert "does not name --format=xml" in run["baseline_task_results"][1]["attempts"][2]["reason"]


def test_nothing_is_left_beside_the_results(replayed):
    example, _ = replayed

    assert list(example.home.iterdir()) == []
    there = {path.relative_to(example.path) for path in example.path.rglob("*") if path.is_file()}
    recorded = {path.relative_to(QUICKSTART) for path in QUICKSTART.rglob("*") if path.is_file()}
    assert {path for path in there - recorded if path.parts[0] != "results"} == set()


def comparable(run: Any) -> Any:
    """A run file without ids, times and worker settings."""
    for name in ("id", "timestamp", "workers"):
        run["run"].pop(name)
    for attempt in attempts(run):
        for name in ("started", "wall_seconds", "duration_seconds", "durations"):
            attempt.pop(name, None)
    return run


@pytest.mark.parametrize("extra", [["--caliper-workers=1"], ["-n2"]], ids=["alone", "xdist"])
def test_a_second_replay_gives_the_same_run_file(replayed, quickstart, extra):
    example, first = replayed
    second = quickstart.replay(*extra)

    assert second.returncode == first.returncode
    assert comparable(quickstart.run_file()) == comparable(example.run_file())


def test_the_results_of_the_demo_are_ignored_by_git(quickstart):
    subprocess.run(["git", "init", "--quiet", str(quickstart.path)], check=True)
    subprocess.run(["git", "-C", str(quickstart.path), "add", "."], check=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        quickstart.spec.name,
        "--caliper-k=1",
        "--caliper-replay",
    ]
    subprocess.run(command, cwd=quickstart.path, capture_output=True, check=True)

    status = subprocess.run(
        ["git", "-C", str(quickstart.path), "status", "--short"], capture_output=True, text=True, check=True
    ).stdout
    assert [line for line in status.splitlines() if not line.startswith("A ")] == []
    assert list(quickstart.path.glob(".caliper/results/changelog/*.json"))


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def unchanged(_: Quickstart) -> None:
    """The options differ."""


STALE: dict[str, tuple[Callable[[Quickstart], None], tuple[str, ...], tuple[str, ...]]] = {
    "prompt": (
        lambda q: edited(q.spec, "besides JSON. Note it", "besides JSON. Please note it"),
        (),
        (
            "task-001-skill-1.json: recorded for another prompt; record again",
            "task-001-baseline-3.json: recorded for another prompt",
        ),
    ),
    "skill": (
        lambda q: edited(q.path / "skills/changelog-entry/SKILL.md", "in one line each", "in a line each"),
        (),
        ("task-001-skill-1.json: recorded for another skill; record again", "task-003-skill-3.json: recorded for another skill"),
    ),
    "setup": (
        lambda q: edited(q.spec, "- first release\\n", "- the first release\\n"),
        (),
        ("task-003-skill-1.json: recorded for another setup, sandbox or MCP server; record again",),
    ),
    "engine": (
        unchanged,
        ("--caliper-model=claude-code:opus",),
        ("task-002-baseline-2.json: recorded for engine claude-code (now claude-code:opus); record again",),
    ),
    "k": (
        unchanged,
        ("--caliper-k=4",),
        ("3 attempts of task-001 (skill) recorded, attempt 4 asked for; use --caliper-k=3 or record again",),
    ),
    "attempt": (
        lambda q: shutil.copy(q.cassette("task-001-skill-2"), q.cassette("task-001-skill-1")) and None,
        (),
        ("task-001-skill-1.json: recorded for attempt 2 (now 1); record again",),
    ),
    "missing": (
        lambda q: q.cassette("task-002-baseline-1").unlink(),
        (),
        ("no cassette changelog.cassettes/task-002-baseline-1.json; record it with --caliper-record",),
    ),
    "cut": (
        lambda q: q.cassette("task-002-skill-3").write_bytes(q.cassette("task-002-skill-3").read_bytes()[:4000]) and None,
        (),
        ("task-002-skill-3.json: not JSON (",),
    ),
    "corrupt": (
        lambda q: edited(q.cassette("task-002-skill-3"), '"stdout": [', '"output": ['),
        (),
        ("task-002-skill-3.json: not a whole cassette ('stdout' is missing); record it again",),
    ),
    "escaping": (
        lambda q: edited(q.cassette("task-002-skill-3"), '"path": "CHANGELOG.md"', '"path": "../../CHANGELOG.md"'),
        (),
        ("task-002-skill-3.json: not a whole cassette (the path '../../CHANGELOG.md' leads out of the work directory)",),
    ),
    "later": (
        lambda q: edited(q.cassette("task-002-skill-3"), '"version": 1', '"version": 2'),
        (),
        ("task-002-skill-3.json: cassette version 2, this pytest-caliper reads 1",),
    ),
}


@pytest.mark.parametrize("name", STALE)
def test_a_recording_that_does_not_fit_is_a_usage_error_by_name(quickstart, name):
    change, arguments, told = STALE[name]
    change(quickstart)

    done = quickstart.replay(*arguments)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    for text in told:
        assert text in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "no tests ran" in done.stdout
    assert not (quickstart.path / "results").exists()


def test_only_what_does_not_fit_is_named(quickstart):
    edited(quickstart.path / "skills/changelog-entry/SKILL.md", "in one line each", "in a line each")

    done = quickstart.replay()

    assert done.stderr.count("another skill") == 9
    assert "baseline" not in done.stderr


def test_a_selection_needs_its_own_cassettes_only(quickstart):
    for path in quickstart.path.glob("changelog.cassettes/task-00[23]-*.json"):
        path.unlink()

    assert quickstart.replay("-k", "feature and attempt-1").returncode == 0


@pytest.mark.parametrize(
    ("change", "arguments", "reason"),
    [
        (("is marked as breaking and", "is clearly marked as breaking and"), (), "recorded for another expect:"),
        (None, ("--caliper-judge-model=claude-code:haiku",), "recorded for judge claude-code (now claude-code:haiku)"),
    ],
    ids=["expect", "judge"],
)
def test_another_question_makes_only_the_judges_replies_stale(quickstart, change, arguments, reason):
    if change is not None:
        edited(quickstart.spec, *change)

    done = quickstart.replay(*arguments)
    run = quickstart.run_file()

    assert outcomes(run) == {**WITH_SKILL, BREAKING: ["judge_error"] * 3}
    assert outcomes(run, "baseline_task_results") == {**WITHOUT, BREAKING: ["task_fail", "judge_error", "judge_error"]}
    lost = [attempt["reason"] for attempt in attempts(run) if attempt["outcome"] == "judge_error"]
    assert len(lost) == 5
    assert all(reason in told and "record again with --caliper-record" in told for told in lost)
    assert "Marks a breaking change: no attempt was usable" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


def test_a_changed_assert_is_judged_anew(quickstart):
    edited(quickstart.spec, 'assert "empty" in text', 'assert "void" in text')

    quickstart.replay()

    assert outcomes(quickstart.run_file()) == {**WITH_SKILL, CRASH: ["task_fail"] * 3}


def test_the_cassettes_are_small_and_tell_nothing_of_the_machine_they_were_made_on():
    names = {f"task-00{task}-{arm}-{n}.json" for task in (1, 2, 3) for arm in ("skill", "baseline") for n in (1, 2, 3)}
    there = {path.name: path.read_text() for path in (QUICKSTART / "changelog.cassettes").iterdir()}

    assert set(there) == names
    for text in there.values():
        assert len(text) < 60_000
        for private in ("dummy-key", "/tmp/caliper", "-tmp-", "/root", "/home/", "/Users/", "127.0.0.1", "localhost"):
            assert private not in text


def test_the_cassettes_are_not_ignored_by_git():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    paths = sorted(map(str, (QUICKSTART / "changelog.cassettes").iterdir()))

    ignored = subprocess.run(["git", "-C", str(ROOT), "check-ignore", *paths], capture_output=True, text=True, check=False)

    assert ignored.stdout == ""
