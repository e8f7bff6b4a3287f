"""What an agent does to files, says and asks is the same when its recording is replayed. The agent is a shell."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from shell_agent import ShellAgent

class Gone(ShellAgent):
    def find(self, *arguments):
        raise AssertionError("a replay asks no CLI")
    check = agent_command = judge_command = find

def pytest_caliper_backends(config):
    return [Gone() if config.getoption("caliper_replay") else ShellAgent()]
"""
INI = "[pytest]\ncaliper_model = shell-agent\ncaliper_judge_model = shell-agent\n"


class Project:
    def __init__(self, pytester: pytest.Pytester) -> None:
        self.path = pytester.path
        self._pytester = pytester
        pytester.makefile(".ini", pytest=INI)
        pytester.makeconftest(CONFTEST)

    def spec(self, text: str) -> None:
        (self.path / "demo.eval.yaml").write_text(textwrap.dedent(text))

    def record(self, *arguments: str) -> tuple[pytest.RunResult, Any]:
        return self._run("recorded", "--caliper-record", *arguments)

    def replay(self, *arguments: str) -> tuple[pytest.RunResult, Any]:
        return self._run("replayed", "--caliper-replay", *arguments)

    def cassette(self, name: str = "task-001-skill-1") -> Path:
        return self.path / "demo.cassettes" / f"{name}.json"

    def _run(self, results: str, *arguments: str) -> tuple[pytest.RunResult, Any]:
        common = ("-p", "no:cacheprovider", "demo.eval.yaml", "--caliper-k=1", f"--caliper-results={results}")
        result = self._pytester.runpytest_subprocess(*common, *arguments)
        (path,) = (self.path / results).rglob("*.json")
        return result, json.loads(path.read_text())


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def comparable(run: Any) -> Any:
    """A run file without ids, times, worker settings, and whether it is of a replay."""
    for name in ("id", "timestamp", "workers", "replay"):
        run["run"].pop(name)
    for task in run["task_results"]:
        for attempt in task["attempts"]:
            for name in ("started", "wall_seconds", "duration_seconds", "durations"):
                attempt.pop(name, None)
    return run


FILES = r"""
tasks:
  - name: Files of all kinds
    setup: |
      echo old > gone.txt; echo before > kept.txt; printf x > tool; mkdir dir empty; echo x > dir/inner
    prompt: |
      printf '\000\377\376' > blob.bin
      rm -r gone.txt dir; rmdir empty
      mkdir -p new/deep hollow; echo hi > new/deep/file; chmod 750 tool; chmod 700 new; printf y > sealed; chmod 400 sealed
      printf '%s, $WORK and $$HOME, é\r\nno end' "$PWD" > paths.txt
      printf 'caf\303\251 \342\200\250 \342\200\256' > unseen.txt
      ln -s kept.txt link; ln -s "$PWD/kept.txt" absolute; ln -s /nowhere/else outside
      echo "in $PWD of $HOME, literally \$WORK and \$\$ROOT"
    assert: |
      import os, stat
      from pathlib import Path
      here = os.getcwd()
      mode = lambda name: stat.S_IMODE(os.stat(name).st_mode)
      assert Path("blob.bin").read_bytes() == b"\0\xff\xfe"
      assert not any(map(os.path.lexists, ["gone.txt", "dir", "empty"]))
      assert Path("new/deep/file").read_text() == "hi\n"
      assert os.listdir("hollow") == []
      assert [mode("tool"), mode("new"), mode("sealed")] == [0o750, 0o700, 0o400]
      assert Path("paths.txt").read_bytes().decode() == here + ", $WORK and $$HOME, é\r\nno end"
      assert Path("unseen.txt").read_text() == "café \u2028 \u202e"
      assert [os.readlink(name) for name in ("link", "absolute", "outside")] == ["kept.txt", here + "/kept.txt", "/nowhere/else"]
      assert Path("kept.txt").read_text() == "before\n"
      home = Path(here).parent / "home"
      assert attempt.answer == f"in {here} of {home}, literally $WORK and $$ROOT"
"""


def test_the_agents_changes_are_made_again_byte_for_byte(project: Project) -> None:
    project.spec(FILES)
    first, recorded = project.record()
    second, replayed = project.replay()

    first.assert_outcomes(passed=1)
    second.assert_outcomes(passed=1)
    assert (recorded["run"]["replay"], replayed["run"]["replay"]) == (False, True)
    assert comparable(replayed) == comparable(recorded)


def test_a_cassette_holds_no_private_path_and_shows_what_cannot_be_seen(project: Project) -> None:
    project.spec(FILES)
    project.record()
    text = project.cassette().read_text()

    assert "/caliper-" not in text
    assert "in $WORK of $HOME, literally $$WORK and $$$$ROOT" in text
    assert '"$WORK, $$WORK and $$$$HOME, é\\r"' in text
    assert "\\u2028 \\u202e" in text
    assert '"link": "$WORK/kept.txt"' in text


def test_a_secret_is_neither_recorded_nor_replayed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2-hunter2")
    project.spec("""
        tasks:
          - name: Leaks
            prompt: |
              half=hunter2-; secret="$half${half}hunter2"
              echo "$secret" | tee note.txt; ln -s "$secret" link
            expect: x
    """)
    project.record()
    monkeypatch.delenv("SOME_API_KEY")
    result, _ = project.replay()

    result.assert_outcomes(passed=1)
    everything = "".join(path.read_text() for path in project.path.rglob("*.json"))
    assert "hunter2-hunter2-hunter2" not in everything
    assert "[redacted:SOME_API_KEY]" in project.cassette().read_text()


ENDS = """
tasks:
  - {name: Works, prompt: "echo ok; echo '!tokens 1200'", expect: it works}
  - {name: Judge says no, prompt: echo ok, expect: SAY-NO}
  - {name: Judge rambles, prompt: echo ok, expect: SAY-GARBAGE}
  - {name: Fails by its assert, prompt: echo 1, assert: "assert int(attempt.answer) == 2"}
  - {name: Breaks, prompt: "echo '!error rate limited'", expect: x}
  - {name: Hangs, prompt: "touch begun; exec sleep 100", expect: x}
  - {name: Cheats, prompt: "echo '!read SPEC'", expect: x}
  - {name: Dies, prompt: "echo words >&2; kill -9 $$", expect: x}
"""


@pytest.mark.parametrize("extra", [["--caliper-workers=1"], ["-n2"]], ids=["pool", "xdist"])
def test_every_end_of_an_attempt_is_replayed(project: Project, extra: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = project.path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    project.spec(ENDS.replace("SPEC", str(project.path / "demo.eval.yaml")))
    _, recorded = project.record("--caliper-timeout=2", *extra)
    _, replayed = project.replay("--caliper-timeout=2", *extra)

    outcomes = {task["task_name"]: task["attempts"][0]["outcome"] for task in recorded["task_results"]}
    assert outcomes == {
        "Works": "pass",
        "Judge says no": "task_fail",
        "Judge rambles": "judge_error",
        "Fails by its assert": "task_fail",
        "Breaks": "infra_error",
        "Hangs": "timeout",
        "Cheats": "cheat",
        "Dies": "infra_error",
    }
    failed = recorded["task_results"][3]["attempts"][0]
    assert " where '1' = attempt.answer\n" in failed["assert_evidence"]
    assert comparable(replayed) == comparable(recorded)
    replies = json.loads(project.cassette("task-003-skill-1").read_text())["judge"]["replies"]
    assert [reply["stdout"][0] for reply in replies] == ["well, it depends"] * 2
    assert [path.name for path in temporary.iterdir() if path.name.startswith("caliper-")] == []


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "xdist"])
def test_what_cannot_be_recorded_is_said_and_spoils_no_attempt(project: Project, extra: list[str]) -> None:
    project.spec(
        """
        tasks:
          - {name: Big, prompt: head -c 2000000 /dev/urandom > big.bin; echo ok, expect: it works}
          - {name: Huge, prompt: head -c 20000000 /dev/zero > huge.bin; echo ok, expect: it works}
          - {name: Small, prompt: echo ok, expect: it works}
        """
    )
    for name in ("task-001-skill-1", "task-002-skill-1"):
        project.cassette(name).parent.mkdir(exist_ok=True)
        project.cassette(name).write_text("an older recording, which nobody may take for this one")

    result, _ = project.record(*extra)

    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        [
            "caliper: *demo.cassettes/task-001-skill-1.json: * bytes, the limit is 1,000,000; *'big.bin'*",
            "caliper: *demo.cassettes/task-002-skill-1.json: *more than 16.0 MiB can be recorded; the largest: huge.bin*",
        ]
    )
    assert [path.name for path in project.cassette().parent.iterdir()] == ["task-003-skill-1.json"]


def test_recording_again_replaces_what_was_there(project: Project) -> None:
    project.spec("tasks:\n  - {name: A, prompt: echo one, expect: x}\n")
    project.record()
    project.spec("tasks:\n  - {name: A, prompt: echo two, expect: x}\n")
    (project.path / "recorded").rename(project.path / "before")
    project.record()
    result, run = project.replay()

    result.assert_outcomes(passed=1)
    assert run["task_results"][0]["attempts"][0]["output"] == "two"
