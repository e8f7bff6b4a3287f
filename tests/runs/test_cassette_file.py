from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_runs import SNAPSHOT, names

from pytest_caliper.runs.cassette import (
    MAX_BYTES,
    AgentRecording,
    Cassette,
    CassetteError,
    Identity,
    JudgeIdentity,
    JudgeRecording,
    RecordedFile,
    Recording,
    cassette_path,
    judge_stale_reason,
    missing_reason,
    skills_hash,
    stale_reason,
    text_hash,
)
from pytest_caliper.runs.cassette_file import read, write

IDENTITY = Identity(
    task_id="task-001",
    arm="skill",
    attempt=2,
    engine="claude-code:claude-x",
    prompt=text_hash("Say hi"),
    skill=skills_hash([SNAPSHOT]),
    setup=text_hash(""),
)
JUDGE = JudgeIdentity(expect=text_hash("It says hi"), engine="claude-code", prompt=text_hash("You judge"))
REPLY = Recording(stdout='{"passed": true}\n', stderr="", exit_code=0, cause="exit", duration_s=2.0)
FILES = (
    RecordedFile(path="out/a.txt", change="added", mode=0o755, content="line\nno end"),
    RecordedFile(path="b.bin", change="modified", mode=0o644, content=b"\x00\xff"),
    RecordedFile(path="c", change="deleted"),
    RecordedFile(path="empty", change="added", mode=0o600, content=""),
    RecordedFile(path="latest", change="added", link="out/a.txt"),
    RecordedFile(path="hollow", change="added", mode=0o700, directory=True),
)
REPLIES = JudgeRecording(identity=JUDGE, replies=(REPLY, REPLY))


def cassette(**more: Any) -> Cassette:
    values: dict[str, Any] = {
        "stdout": '{"type":"result"}\n',
        "stderr": "warn\n",
        "exit_code": 0,
        "cause": "exit",
        "duration_s": 3.5,
    }
    agent = AgentRecording(argv=("claude", "-p"), **{**values, "files": FILES, **more})
    return Cassette(identity=IDENTITY, agent=agent, judge=REPLIES, cli_version="2.1.3")


def damaged(tmp_path: Path, change: Any) -> Path:
    path = tmp_path / "c.json"
    write(cassette(), path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_path_is_beside_the_spec() -> None:
    path = cassette_path(Path("/p/evals/greet.eval.yaml"), "task-001", "baseline", 3)
    assert path == Path("/p/evals/greet.cassettes/task-001-baseline-3.json")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.cassettes" / "c.json"
    for one in (cassette(), replace(cassette(), judge=None, cli_version=None)):
        write(one, path)
        assert read(path) == one
    assert names(path.parent) == ["c.json"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stdout=st.text(st.characters(exclude_categories=()), max_size=50),
    content=st.text(st.characters(exclude_categories=()), max_size=50) | st.binary(max_size=50),
)
def test_any_text_survives(tmp_path: Path, stdout: str, content: str | bytes) -> None:
    one = cassette(stdout=stdout, files=(RecordedFile(path="f", change="added", mode=0o644, content=content),))
    write(one, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == one


def test_a_diff_shows_lines_and_hides_nothing(tmp_path: Path) -> None:
    write(cassette(stdout="Grüße\n\x1b[31m\u202e\u2028end"), tmp_path / "c.json")
    data = (tmp_path / "c.json").read_bytes()
    text = data.decode()
    assert '"Grüße",\n' in text
    for hidden in ("\x1b", "\u202e", "\u2028"):
        assert hidden not in text


@pytest.mark.parametrize(
    ("large", "named"),
    [
        ({"stdout": "x" * MAX_BYTES}, "the agent's stdout with 1,000,000 bytes"),
        (
            {"files": (RecordedFile(path="data/big.bin", change="added", mode=0o644, content=b"x" * 900_000),)},
            "the file 'data/big.bin'",
        ),
    ],
)
def test_too_large_names_what_is_large(tmp_path: Path, large: dict[str, Any], named: str) -> None:
    path = tmp_path / "task-001-skill-2.json"
    with pytest.raises(CassetteError) as caught:
        write(cassette(**large), path)
    message = str(caught.value)
    assert named in message
    assert "limit is 1,000,000" in message
    assert str(path) in message
    assert names(tmp_path) == []


def test_an_older_cassette_stays_when_the_new_one_is_refused(tmp_path: Path) -> None:
    write(cassette(), tmp_path / "c.json")
    with pytest.raises(CassetteError):
        write(cassette(stdout="x" * MAX_BYTES), tmp_path / "c.json")
    assert read(tmp_path / "c.json") == cassette()


def test_just_under_the_limit_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write(cassette(stdout=""), path)
    room = MAX_BYTES - path.stat().st_size
    write(cassette(stdout="x" * (room - 1)), path)
    assert path.stat().st_size == MAX_BYTES - 1
    with pytest.raises(CassetteError):
        write(cassette(stdout="x" * room), path)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", ".", "a\0b"])
def test_a_cassette_may_not_name_a_file_outside_the_work_directory(tmp_path: Path, path: str) -> None:
    file = damaged(tmp_path, lambda data: data["agent"]["files"][0].update(path=path))
    with pytest.raises(CassetteError, match="leads out of the work directory"):
        read(file)


def test_a_cassette_may_not_write_through_a_link_of_its_own(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["agent"]["files"].append({"path": "latest/x", "change": "added", "mode": "0644", "text": [""]})

    with pytest.raises(CassetteError, match="'latest/x' lies behind a link"):
        read(damaged(tmp_path, change))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data["agent"].pop("stdout"), "'stdout' is missing"),
        (lambda data: data.update(version=2), "version 2"),
        (lambda data: data["agent"].update(stdout="text"), "stdout is no list of lines"),
        (lambda data: data["agent"].update(cause="magic"), "cause is 'magic'"),
        (lambda data: data["agent"].update(exit_code=True), "exit_code"),
        (lambda data: data["recorded_for"].update(attempt="2"), "attempt"),
        (lambda data: data["agent"]["files"][1].update(base64="?"), "not a whole cassette"),
        (lambda data: data["agent"]["files"][1].pop("base64"), "content of 'b.bin' is missing"),
        (lambda data: data.update(judge=[]), "not a whole cassette"),
    ],
)
def test_a_damaged_cassette_is_named(tmp_path: Path, change: Any, says: str) -> None:
    path = damaged(tmp_path, change)
    with pytest.raises(CassetteError, match=says) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"[]"])
def test_what_is_no_cassette(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(CassetteError, match=r"c\.json"):
        read(tmp_path / "c.json")


def test_no_cassette_is_the_callers_to_explain(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "c.json")


def test_a_fitting_recording_is_not_stale() -> None:
    assert stale_reason(cassette(), IDENTITY) is None
    assert judge_stale_reason(REPLIES, JUDGE) is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"prompt": text_hash("Say ho")}, "another prompt"),
        ({"skill": skills_hash([])}, "another skill"),
        ({"attempt": 1}, "attempt 2 (now 1)"),
        ({"arm": "baseline"}, "arm skill (now baseline)"),
        ({"engine": "codex"}, "engine claude-code:claude-x (now codex)"),
        ({"task_id": "task-002"}, "task task-001 (now task-002)"),
        ({"setup": text_hash("touch a")}, "another setup, sandbox or MCP server"),
        ({"prompt": text_hash("x"), "skill": text_hash("y")}, "another prompt, another skill"),
    ],
)
def test_stale_names_what_changed(change: dict[str, Any], named: str) -> None:
    reason = stale_reason(cassette(), replace(IDENTITY, **change))
    assert reason is not None
    assert named in reason
    assert "--caliper-record" in reason


def test_setup_is_not_compared_where_it_is_not_known() -> None:
    assert stale_reason(cassette(), replace(IDENTITY, setup=None)) is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"expect": text_hash("x")}, "another expect:"),
        ({"engine": "codex"}, "judge claude-code (now codex)"),
        ({"prompt": text_hash("x")}, "another judge prompt"),
    ],
)
def test_the_judge_goes_stale_on_its_own(change: dict[str, Any], named: str) -> None:
    reason = judge_stale_reason(REPLIES, replace(JUDGE, **change))
    assert reason is not None
    assert named in reason


def test_a_skill_with_another_file_or_content_has_another_hash() -> None:
    changed = replace(SNAPSHOT, files={"SKILL.md": {"content": "x", "hash": "sha256:01"}})
    elsewhere = replace(SNAPSHOT, path="other", git_sha="def")
    assert skills_hash([changed]) != skills_hash([SNAPSHOT]) == skills_hash([elsewhere])


def test_missing_says_how_many_attempts_were_recorded(tmp_path: Path) -> None:
    spec = tmp_path / "x.eval.yaml"
    for number in (1, 2):
        write(cassette(), cassette_path(spec, "task-001", "skill", number))
    assert "2 attempts of task-001 (skill) recorded, attempt 3 asked for; use --caliper-k=2" in missing_reason(
        spec, "task-001", "skill", 3
    )
    assert "no cassette x.cassettes/task-001-baseline-1.json" in missing_reason(spec, "task-001", "baseline", 1)
