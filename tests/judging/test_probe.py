"""One judge call before anything is paid for."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from judging_bench import ScriptedJudge

from pytest_caliper.contracts import Cancelled, CliInfo, Engine, EngineError, JudgeReply
from pytest_caliper.judging.probe import probe_judge
from pytest_caliper.process import Processes

YES = JudgeReply(text='{"reasoning": "it is 7", "passed": true}')
ENGINE = Engine(backend="scripted", model="m")


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes(f"test-{uuid.uuid4().hex}") as session:
        yield session


def probe(
    processes: Processes, root: Path, *replies: JudgeReply | Exception, cli: str = "/bin/cat"
) -> tuple[JudgeReply, ScriptedJudge]:
    scripted = ScriptedJudge(replies=list(replies), dir=root)
    info = CliInfo(path=Path(cli), version="1.0")
    return probe_judge(scripted, ENGINE, os.environ, info, processes, root / "probe"), scripted  # type: ignore[arg-type]


def test_a_judge_that_says_yes(processes: Processes, tmp_path: Path) -> None:
    reply, scripted = probe(processes, tmp_path, YES)
    assert reply == YES
    assert "3 + 4" in scripted.asked[0].prompt
    assert (tmp_path / "probe" / "judge-1.stdout").read_text() == scripted.asked[0].prompt


def test_a_re_ask_is_allowed(processes: Processes, tmp_path: Path) -> None:
    reply, scripted = probe(processes, tmp_path, JudgeReply(text="?"), YES)
    assert reply == YES
    assert [request.number for request in scripted.asked] == [1, 2]


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([JudgeReply(text="?"), JudgeReply(text="")], "judge scripted:m gives no verdict that can be read (the reply is empty)"),
        ([JudgeReply(text='{"reasoning": "", "passed": false}')], "judge scripted:m said no"),
        ([JudgeReply(text="", error="529\nmore")], "judge scripted:m failed on a first question: 529; "),
        ([JudgeReply(text="", error="not logged in", fatal="run x login")], "judge scripted:m: not logged in; run x login"),
        ([JudgeReply(text="", fatal="run x login")], "judge scripted:m: run x login"),
    ],
)
def test_a_judge_that_cannot_be_used(processes: Processes, tmp_path: Path, replies: list[JudgeReply], said: str) -> None:
    with pytest.raises(EngineError) as caught:
        probe(processes, tmp_path, *replies)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_cli_that_cannot_be_started(processes: Processes, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be started"):
        probe(processes, tmp_path, cli=str(tmp_path / "nothing"))


def test_a_stopped_session(processes: Processes, tmp_path: Path) -> None:
    processes.cancel_all()
    with pytest.raises(Cancelled):
        probe(processes, tmp_path, YES, cli=sys.executable)
