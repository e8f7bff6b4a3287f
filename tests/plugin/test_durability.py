"""Where results cannot be kept: a warning at once, the attempts run and are shown, the run ends non-zero, and nothing else breaks."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell_agent import read_runs

from pytest_caliper.runs.journal import Journal
from pytest_caliper.runs.reading import list_runs, load_run

SPEC = """
tasks:
  - {name: T, prompt: 'echo a', assert: assert attempt.answer == 'a'}
"""
WAYS = pytest.mark.parametrize("way", [(), ("-n2",)], ids=["pool", "n2"])


@pytest.fixture
def temporary(project, monkeypatch):
    """A TMPDIR of the project's own."""
    place = project.path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


@WAYS
def test_a_results_directory_that_cannot_be_made(project, temporary, way):
    project.spec(SPEC)
    (project.path / "results").mkdir()
    (project.path / "results" / "demo").write_text("a file stands here")
    result = project.runpytest_subprocess("demo.eval.yaml", *way)
    assert result.ret == 1
    result.assert_outcomes(passed=3)
    lines = result.outlines
    warned = next(n for n, line in enumerate(lines) if "attempts cannot be kept in" in line and line.startswith("caliper: "))
    assert warned < next(n for n, line in enumerate(lines) if "= caliper =" in line), "told only at the end"
    result.stdout.fnmatch_lines(["*3/3*", "*could not be saved in*; it is *"])
    (saved,) = temporary.glob("caliper-unsaved-*/*.json")
    run = load_run(saved)
    assert [record.outcome for record in run.results[0].attempts] == ["pass"] * 3
    document = json.loads(saved.read_text())
    assert all(attempt["transcript"] for attempt in document["task_results"][0]["attempts"])
    assert saved.parent.stat().st_mode & 0o077 == 0


def small_disk(tmp_path: Path, kilobytes: int) -> Path:
    """A file system that is full soon; skips where none can be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    return place


@WAYS
def test_a_full_disk(project, temporary, way, request):
    place = small_disk(project.path, 64)
    request.addfinalizer(lambda: subprocess.run(["umount", str(place)], check=False))
    project.spec("""
    tasks:
      - {name: T, prompt: 'echo a; head -c 30000 /dev/zero | tr "\\0" x', assert: assert attempt.answer.startswith('a')}
    """)
    result = project.runpytest_subprocess("demo.eval.yaml", f"--caliper-results={place}", "--caliper-k=6", *way)
    assert result.ret == 1
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["caliper: *attempts cannot be kept in*No space left*", "*6/6*", "*it is *"])
    (saved,) = temporary.glob("caliper-unsaved-*/*.json")
    assert len(load_run(saved).results[0].attempts) == 6
    for file in place.rglob("*.json"):
        pytest.fail(f"{file} was left half-written")


@WAYS
def test_results_that_vanish_while_the_session_runs(project, way):
    project.spec(f"""
    tasks:
      - {{name: T, prompt: 'rm -rf {project.path / "results"}; echo a', assert: assert attempt.answer == 'a'}}
    """)
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=4", "--caliper-workers=1", *way)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["caliper: demo.eval.yaml: *results/demo was removed while the session ran"])
    (run,) = read_runs(project.path)
    assert len(run["task_results"][0]["attempts"]) == 4


def test_a_disk_that_has_room_again(project, monkeypatch):
    """What the journal did not take at first is in it as soon as it can be."""
    project.spec(SPEC)
    refuse = [True, True]
    append = Journal.append

    def failing(self, record):
        if refuse:
            refuse.pop()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, record)
        kept.append(self.path.read_text().count('"task_name"'))

    kept: list[int] = []
    monkeypatch.setattr(Journal, "append", failing)
    result = project.runpytest_inprocess("demo.eval.yaml", "--caliper-workers=1")
    assert kept == [1, 2, 3]
    assert result.ret == 1
    assert result.stdout.str().count("No space left") == 2  # when it happened, and at the end
    assert len(read_runs(project.path)) == 1


def test_runs_in_the_same_second_never_share_a_file(project):
    project.spec(SPEC)
    command = [sys.executable, "-m", "pytest", "demo.eval.yaml", "-q"]
    sessions = [subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [session.wait(120) for session in sessions] == [0] * 4
    runs = read_runs(project.path)
    assert len(runs) == len({run["run"]["id"] for run in runs}) == 4
    assert all(len(run["task_results"][0]["attempts"]) == 3 for run in runs)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'{"a": 1}', b"\xff\xfe\x00", b"{" * 100_000],
    ids=["empty", "torn", "list", "foreign", "bytes", "deep"],
)
@pytest.mark.parametrize(
    "name", ["2020-01-01T00-00-00Z-aaaa.json", "2020-01-01T00-00-00Z-aaaa.jsonl", "9999-01-01T00-00-00Z-aaaa.json"]
)
def test_a_damaged_file_among_the_results_breaks_no_run(project, name, text):
    project.spec(SPEC)
    place = project.path / "results" / "demo"
    place.mkdir(parents=True)
    (place / name).write_bytes(text)
    result = project.runpytest_subprocess("demo.eval.yaml")
    assert result.ret == 0
    result.assert_outcomes(passed=3)
    if text or name.endswith(".json"):  # an empty journal is what a kill before its first line leaves: it goes
        assert (place / name).read_bytes() == text
    assert len(list_runs(place)) == 1 + name.endswith(".json")


@pytest.mark.parametrize("vanish", ["true", "rm -rf {results}"], ids=["kept", "vanishing"])
def test_answers_that_memory_does_not_hold_are_in_the_file(project, vanish):
    """Passing attempts are held without their texts; the run file, and who listens to records, have them."""
    project.makeconftest(
        (project.path / "conftest.py").read_text()
        + "\n\ndef pytest_caliper_record(config, record):\n    print('heard', record.output, len(record.changed_files))\n"
    )
    spec = """
    tasks:
      - {name: T, prompt: 'echo new > file; %s; echo answer $ATTEMPT', assert: assert attempt.answer.startswith('answer')}
    """
    project.spec(spec % vanish.format(results=project.path / "results"))
    result = project.runpytest_inprocess("demo.eval.yaml", "--caliper-workers=1", "-s")
    result.stdout.fnmatch_lines([f"*heard answer {n} 1*" for n in (1, 2, 3)])
    (run,) = read_runs(project.path)
    attempts = run["task_results"][0]["attempts"]
    assert [attempt["output"] for attempt in attempts] == [f"answer {n}" for n in (1, 2, 3)]
    assert [[file["path"] for file in attempt["changed_files"]] for attempt in attempts] == [["file"]] * 3
