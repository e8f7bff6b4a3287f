"""`caliper import`: evals.json of the skill-creator becomes a spec."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_caliper.cli import main
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Spec

EVALS: dict[str, Any] = {
    "skill_name": "pdf",
    "evals": [
        {
            "id": 1,
            "prompt": "Fill evals/files/form.pdf.",
            "expected_output": "A filled form.",
            "files": ["evals/files/form.pdf"],
            "expectations": ["The name is in it", "The date: today"],
        },
        {"id": 2, "prompt": "Say hi", "expected_output": "A greeting.", "files": []},
    ],
}


def skill(tmp_path: Path, evals: Any = EVALS, name: str = "evals.json") -> Path:
    """A skill's directory with evals/evals.json; -> the latter."""
    (tmp_path / "pdf" / "evals" / "files").mkdir(parents=True)
    (tmp_path / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Fills forms.\n---\nx\n")
    (tmp_path / "pdf" / "evals" / "files" / "form.pdf").write_text("form")
    path = tmp_path / "pdf" / "evals" / name
    path.write_text(evals if isinstance(evals, str) else json.dumps(evals))
    return path


def imported(tmp_path: Path, evals: Any = EVALS, *words: str) -> Spec:
    path = skill(tmp_path, evals)
    assert main(["import", str(path), *words]) == 0
    return load_spec(next(path.parent.glob("*.eval.yaml")))


def one(**more: Any) -> dict[str, Any]:
    return {"skill_name": "pdf", "evals": [{"id": 1, "prompt": "p", "expected_output": "An answer.", **more}]}


def test_the_spec_lies_beside_it_and_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = imported(tmp_path)
    assert spec.path == tmp_path / "pdf" / "evals" / "pdf.eval.yaml"
    assert [ref.path for ref in spec.skills] == [(tmp_path / "pdf" / "SKILL.md")]
    first, second = spec.tasks
    assert (first.name, first.prompt) == ("Eval 1: Fill evals/files/form.pdf.", "Fill evals/files/form.pdf.")
    assert first.expect == "A filled form.\n\nAll of these hold:\n- The name is in it\n- The date: today\n"
    assert (second.name, second.prompt, second.expect, second.setup) == ("Eval 2: Say hi", "Say hi", "A greeting.", None)
    out = capsys.readouterr().out
    assert "pdf.eval.yaml: 2 tasks from " in out
    assert "Next: caliper validate " in out
    assert "not carried over" not in out
    assert main(["validate", str(spec.path)]) == 0
    assert "TODO" not in spec.path.read_text()


def work(tmp_path: Path, spec: Spec, number: int = 0) -> list[str]:
    """What lies in the working directory after the task's `setup:`."""
    place = tmp_path / "work"
    place.mkdir()
    setup = spec.tasks[number].setup
    assert setup is not None
    env = {**os.environ, "CALIPER_SPEC_DIR": str(spec.directory)}
    subprocess.run(["/bin/sh", "-c", setup], cwd=place, env=env, check=True)
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def test_files_come_to_where_the_prompt_looks_for_them(tmp_path: Path) -> None:
    assert work(tmp_path, imported(tmp_path)) == ["evals/files/form.pdf"]


@pytest.mark.parametrize(
    "written", ["evals/files/form.pdf", "files/form.pdf", "./evals/files/form.pdf", "../pdf/evals/files/form.pdf"]
)
def test_files_that_no_prompt_places_come_to_the_working_directory(tmp_path: Path, written: str) -> None:
    assert work(tmp_path, imported(tmp_path, one(files=[written]))) == ["form.pdf"]


def test_an_absolute_path_works(tmp_path: Path) -> None:
    path = tmp_path / "pdf" / "evals" / "files" / "form.pdf"
    assert work(tmp_path, imported(tmp_path, one(files=[str(path)]))) == ["form.pdf"]


@pytest.mark.parametrize(
    "name", ["a b.txt", "-rf", "it's.txt", "$(touch x).txt", "`touch x`", 'a"b', "x;touch y", "ü\u2028.txt", "*"]
)
def test_odd_names_are_no_commands(tmp_path: Path, name: str) -> None:
    (tmp_path / "pdf" / "evals" / "files").mkdir(parents=True)
    (tmp_path / "pdf" / "evals" / name).write_text("x")
    (tmp_path / "pdf" / "evals" / "evals.json").write_text(json.dumps(one(files=[name], prompt=f"Read {name}")))
    assert main(["import", str(tmp_path / "pdf" / "evals" / "evals.json")]) == 0
    assert work(tmp_path, load_spec(tmp_path / "pdf" / "evals" / "pdf.eval.yaml")) == [name]


def test_files_of_one_name_do_not_take_each_others_place(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        (tmp_path / "pdf" / directory).mkdir(parents=True)
        (tmp_path / "pdf" / directory / "x.txt").write_text(directory)
    assert work(tmp_path, imported(tmp_path, one(files=["a/x.txt", "b/x.txt"]))) == ["a/x.txt", "b/x.txt"]


def test_a_directory_is_copied(tmp_path: Path) -> None:
    assert work(tmp_path, imported(tmp_path, one(files=["evals/files"]))) == ["files/form.pdf"]


def test_a_missing_file_is_for_a_human_and_fails_the_setup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = imported(tmp_path, one(files=["gone.txt", "evals/files/form.pdf"]))
    assert "# TODO: gone.txt was not found" in spec.path.read_text()
    assert "look for TODO" in capsys.readouterr().out
    with pytest.raises(subprocess.CalledProcessError):
        work(tmp_path, spec)


def test_without_a_skill_a_human_must_name_it(tmp_path: Path) -> None:
    (tmp_path / "evals.json").write_text(json.dumps(EVALS))
    assert main(["import", str(tmp_path / "evals.json")]) == 0
    spec = load_spec(tmp_path / "pdf.eval.yaml")
    assert spec.skills == ()
    assert "# TODO: no SKILL.md" in spec.path.read_text()


def test_the_skill_is_found_from_where_the_spec_goes(tmp_path: Path) -> None:
    path = skill(tmp_path)
    target = tmp_path / "elsewhere" / "mine.eval.yaml"
    target.parent.mkdir()
    assert main(["import", str(path), "-o", str(target)]) == 0
    spec = load_spec(target)
    assert [ref.path.resolve() for ref in spec.skills] == [(tmp_path / "pdf" / "SKILL.md").resolve()]
    assert work(tmp_path, spec) == ["evals/files/form.pdf"]


def test_a_path_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill(tmp_path)
    monkeypatch.chdir(tmp_path / "pdf" / "evals")
    assert main(["import", "evals.json"]) == 0
    assert len(load_spec(Path("pdf.eval.yaml")).skills) == 1


@pytest.mark.parametrize(
    ("expectations", "expected"),
    [
        ({"assertions": [{"id": "a", "text": "It is X"}]}, "- It is X\n"),
        ({"assertions": ["It is X"]}, "- It is X\n"),
        ({"assertions": [{"name": "short", "description": "It is X"}]}, "- It is X\n"),
        ({"expectations": ["It is X"], "assertions": ["It is X", "It is Y"]}, "- It is X\n- It is Y\n"),
        ({"expected_behavior": ["It is X"]}, "- It is X\n"),
        ({"expectations": "It is X"}, "- It is X\n"),
        ({"expectations": ["It is\n  X"]}, "- It is X\n"),
    ],
)
def test_expectations_in_all_their_spellings(tmp_path: Path, expectations: dict[str, Any], expected: str) -> None:
    spec = imported(tmp_path, {"evals": [{"prompt": "p", **expectations}]})
    assert spec.tasks[0].expect == f"All of these hold:\n{expected}"


def test_what_has_no_place_in_a_spec_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evals = {
        **EVALS,
        "version": "1.0",
        "evals": [
            *EVALS["evals"],
            {
                "id": "csv",
                "prompt": "p",
                "assertions": [{"text": "T", "type": "contains"}, {"x": 1}, 5],
                "focus": ["a"],
                "note": "",
            },
            {"id": 9, "expected_output": "no prompt"},
            {"id": 10, "prompt": "no check"},
            "text",
            {
                "id": 11,
                "prompt": "p",
                "expected_output": "x is there",
                "files": [{"path": "a", "content": "b"}],
                "should_trigger": True,
            },
            {"query": "q", "should_trigger": True},
            {"prompt": "q", "should_trigger": False},
        ],
    }
    spec = imported(tmp_path, evals)
    told = [
        line.removeprefix("not carried over: ") for line in capsys.readouterr().out.splitlines() if line.startswith("not carr")
    ]
    assert told == [
        "the file: version",
        'eval "csv": type of an expectation, which is judged by its text alone',
        'eval "csv": an entry of assertions has no text',
        'eval "csv": an entry of assertions has no text',
        'eval "csv": focus',
        "eval 9: has no prompt",
        "entry 6: is str, not an object",
        "eval 11: should_trigger",
        "eval 11: an entry of files is no path; create the file in setup:",
        "eval 10: has neither expected_output nor expectations",
        f"2 trigger evals of {tmp_path}/pdf/evals/evals.json: specs have no `activates:` yet; docs/interop.md shows an assert for it",
    ]
    assert [task.name for task in spec.tasks] == ["Eval 1: Fill evals/files/form.pdf.", "Eval 2: Say hi", "csv", "Eval 11: p"]


def test_an_eval_without_a_check_is_kept_as_a_comment_that_becomes_a_task(tmp_path: Path) -> None:
    evals = {"evals": [*EVALS["evals"], {"id": 3, "prompt": "Two\nlines: of it", "name": "Third"}]}
    spec = imported(tmp_path, evals)
    text = spec.path.read_text()
    assert "# TODO: eval 3 does not say what is right" in text
    assert len(spec.tasks) == 2
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("  # - name: Third"))
    lines[begin:] = [line.replace("# ", "", 1) for line in lines[begin:]]
    spec.path.write_text("\n".join([*lines, "    expect: It is right.", ""]))
    assert load_spec(spec.path).tasks[2].prompt == "Two\nlines: of it"


@pytest.mark.parametrize(
    "evals",
    [
        [{"query": "q", "should_trigger": True}],
        {"evals": [{"query": "q", "should_trigger": False}]},
        {"evals": []},
        {"evals": [{"id": 1, "prompt": "p"}]},
        {"evals": [5, None]},
    ],
)
def test_nothing_to_make_a_spec_of(tmp_path: Path, evals: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = skill(tmp_path, evals)
    assert main(["import", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "nothing is written" in err
    assert list(path.parent.glob("*.eval.yaml")) == []
    assert ("trigger eval" in out) == ("trigger" in json.dumps(evals))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("5", "holds no evals"),
        ("{}", "holds no evals"),
        ('{"evals": {}}', "holds no evals"),
        ('{"test_cases": []}', "holds no evals"),
    ],
)
def test_what_is_no_evals_json(tmp_path: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(skill(tmp_path, text))]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "evals.json")]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_a_list_of_evals_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = skill(tmp_path, "")
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(EVALS["evals"]).encode())
    assert main(["import", str(path)]) == 0
    assert len(load_spec(path.parent / "skill.eval.yaml").tasks) == 2


def test_nothing_is_written_over_without_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = skill(tmp_path)
    target = path.parent / "pdf.eval.yaml"
    target.write_text("mine")
    assert main(["import", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert main(["import", str(path), "--force"]) == 0
    assert len(load_spec(target).tasks) == 2
    assert sorted(one.name for one in path.parent.iterdir()) == ["evals.json", "files", "pdf.eval.yaml"]


@pytest.mark.parametrize("target", ["x.yaml", "x.json", "x"])
def test_a_name_that_pytest_would_not_find_is_refused(tmp_path: Path, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = skill(tmp_path)
    assert main(["import", str(path), "--output", str(tmp_path / target)]) == 2
    assert "ends in .eval.yaml" in capsys.readouterr().err
    assert not (tmp_path / target).exists()


def test_a_directory_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(skill(tmp_path)), "-o", str(tmp_path / "no" / "x.eval.yaml")]) == 2
    assert "cannot be written: No such file" in capsys.readouterr().err


def test_a_skill_name_is_no_path(tmp_path: Path) -> None:
    spec = imported(tmp_path, {**EVALS, "skill_name": "../../a b/c\x1b"})
    assert spec.path.parent == tmp_path / "pdf" / "evals"
    assert spec.path.name == "a-b-c.eval.yaml"


def test_names_that_would_share_a_node_are_told_apart(tmp_path: Path) -> None:
    same = {"prompt": "p", "expected_output": "An answer."}
    evals = [
        {**same, "name": "Read a/b"},
        {**same, "name": "read a-b"},
        {**same, "name": "Read a/b"},
        {**same, "name": "x" * 400},
    ]
    spec = imported(tmp_path, {"skill_name": "pdf", "evals": [*evals, {**same, "name": "x" * 400}]})
    assert [task.name for task in spec.tasks[:3]] == ["Read a/b", "read a-b (2)", "Read a/b (3)"]
    assert len(spec.tasks) == 5


def test_hostile_text_reaches_the_terminal_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(tmp_path, {"evals": [{"id": "\x1b[31m\n::error::x", "prompt": "p", "expected_output": "An answer.", "\x1b]0;x": 1}]})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\n::" not in out


texts = st.text(st.characters(codec=None), max_size=60)
words = st.one_of(
    texts,
    st.sampled_from(
        ["yes", "404", "2024-01-01", "- a: b", "# x", " lead", "a\n  b\n\n c", "a \nb", "'", '"', "|", "\t", "a\r\nb", "\ufeff"]
    ),
)


@settings(max_examples=60, deadline=None)
@given(prompt=words, expected=words, expectations=st.lists(words, max_size=3), name=words)
def test_every_character_of_a_prompt_arrives(prompt: str, expected: str, expectations: list[str], name: str) -> None:
    entry = {"id": 1, "name": name, "prompt": prompt, "expected_output": expected, "expectations": expectations}
    always = {"id": 2, "prompt": "p", "expected_output": "An answer."}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "evals.json"
        path.write_text(json.dumps({"evals": [entry, always]}))
        assert main(["import", str(path)]) == 0
        spec = load_spec(Path(scratch) / "skill.eval.yaml")
        data = yaml.safe_load(spec.path.read_text(encoding="utf-8"))
    whole = prompt.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    complete = bool(prompt.strip()) and (bool(expected.strip()) or any(text.strip() for text in expectations))
    assert len(spec.tasks) == len(data["tasks"]) == 1 + complete
    if complete:
        assert spec.tasks[0].prompt == whole


@pytest.mark.parametrize("path", ["/etc/hostname", "../../../../../../etc/passwd"])
def test_files_of_this_machine_are_not_copied_for_an_agent(tmp_path, monkeypatch, path):
    from pytest_caliper.cli.main import main

    (tmp_path / "evals").mkdir()
    evals = tmp_path / "evals" / "evals.json"
    evals.write_text(
        json.dumps({"skill_name": "s", "evals": [{"id": 1, "prompt": "Read it.", "expected_output": "Read.", "files": [path]}]})
    )
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\n")
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(evals), "-o", "s.eval.yaml"]) == 0
    text = (tmp_path / "s.eval.yaml").read_text()
    assert "cp -R" not in text
    assert "lies outside the skill" in text
