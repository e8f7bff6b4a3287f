from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.contracts import Workspace
from pytest_caliper.runs.placeholders import localised, portable

HERE = Workspace.at(Path("/tmp/caliper-a1/t"))
THERE = Workspace.at(Path("/var/x"))

PIECES = st.sampled_from(
    [
        "$",
        "$$",
        "WORK",
        "HOME",
        "ROOT",
        "$WORK",
        "$$HOME",
        "/",
        "-",
        "2",
        "work",
        "_SLUG",
        "-tmp-caliper-a1-t-work",
        "/tmp",
        str(HERE.root),
        str(HERE.work),
        str(HERE.home),
    ]
)
TEXTS = st.lists(PIECES | st.text(st.characters(exclude_categories=()), max_size=4), max_size=12).map("".join)


@given(TEXTS)
def test_localised_is_the_inverse_of_portable(text: str) -> None:
    assert localised(portable(text, HERE), HERE) == text


@given(TEXTS)
def test_for_a_root_with_a_dollar_too(text: str) -> None:
    odd = Workspace.at(Path("/tmp/$WORK$"))
    assert localised(portable(text + str(odd.root), odd), odd) == text + str(odd.root)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (f"cd {HERE.work} && ls {HERE.home}/.claude", "cd $WORK && ls $HOME/.claude"),
        (f"{HERE.tmp}/x", "$ROOT/tmp/x"),
        (f'{{"cwd":"{HERE.work}","n":1}}', '{"cwd":"$WORK","n":1}'),
        (f"Wrote {HERE.work}.", "Wrote $WORK."),
        (f"{HERE.work}2/a", "$ROOT/work2/a"),
        (f"{HERE.root}0/a", f"{HERE.root}0/a"),
        ("echo $WORK $HOMEBREW $$ROOT", "echo $$WORK $$HOMEBREW $$$$ROOT"),
        (f"${HERE.work}", "$$$WORK"),
        ("costs $5, $PATH", "costs $5, $PATH"),
        (f"{HERE.home}/.claude/projects/-tmp-caliper-a1-t-work/memory", "$HOME/.claude/projects/$WORK_SLUG/memory"),
        ("-tmp-caliper-a1-t-work2 $WORK_SLUG", "$ROOT_SLUG-work2 $$WORK_SLUG"),
    ],
)
def test_what_is_stored(text: str, stored: str) -> None:
    assert portable(text, HERE) == stored
    assert localised(stored, HERE) == text


def test_a_recording_moves_to_another_workspace() -> None:
    stored = portable(f"{HERE.work}/a $WORK {HERE.tmp}", HERE)
    assert localised(stored, THERE) == "/var/x/work/a $WORK /var/x/tmp"


def test_a_long_run_of_dollars_is_read_once() -> None:
    text = "$" * 300_000
    assert localised(portable(text, HERE), HERE) == text


OUTER = {"PROJECT": Path("/app"), "SPEC_DIR": Path("/app/evals/x")}


@given(TEXTS.map(lambda text: text.replace("/tmp", "/app").replace("-", "$SPEC_DIR")))
def test_localised_is_the_inverse_with_the_project_too(text: str) -> None:
    assert localised(portable(text, HERE, OUTER), HERE, OUTER) == text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("cat /app/evals/x/a.eval.yaml /app/.caliper", "cat $SPEC_DIR/a.eval.yaml $PROJECT/.caliper"),
        ("/opt/app /app2 /apps ./app /app/evals/xy", "/opt/app /app2 /apps ./app $PROJECT/evals/xy"),
        (r'{"text":"see\n/app/README","path":"/app"}', r'{"text":"see\n$PROJECT/README","path":"$PROJECT"}'),
        ("echo $PROJECT $/app", "echo $$PROJECT $$$PROJECT"),
    ],
)
def test_the_spec_and_its_project(text: str, stored: str) -> None:
    assert portable(text, HERE, OUTER) == stored
    assert localised(stored, HERE, OUTER) == text


def test_a_recording_is_read_in_another_project() -> None:
    stored = portable("/app/evals/x/a /app/b", HERE, OUTER)

    assert localised(stored, THERE, {"SPEC_DIR": Path("/home/u/p"), "PROJECT": Path("/home/u/p")}) == "/home/u/p/a /home/u/p/b"
    assert localised(stored, THERE) == "$SPEC_DIR/a $PROJECT/b"


def test_where_spec_and_project_lie_in_one_directory_the_spec_counts() -> None:
    one = Path("/srv/one")
    assert portable("/srv/one/a", HERE, {"SPEC_DIR": one, "PROJECT": one}) == "$SPEC_DIR/a"
