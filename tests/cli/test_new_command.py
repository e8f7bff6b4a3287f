"""`caliper new`: what was typed is what the spec says, and nothing is written that is not valid."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_caliper.cli import asking, main, new_spec
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Spec

CALIPER = (sys.executable, "-c", "from pytest_caliper.cli import main; raise SystemExit(main())")
ONE = ("--prompt", "Write app.json.", "--expect", "app.json holds a port.")


def skill(directory: Path, name: str = "config") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Writes configs.\n---\nUse port 8080.\n")
    return directory / "SKILL.md"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a skill, which is the current one. Standard input is no terminal."""
    place = tmp_path / "config"
    skill(place)
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return place


def written(place: Path) -> Spec:
    (path,) = place.rglob("*.eval.yaml")
    assert main(["validate", str(path)]) == 0
    return load_spec(path)


def specs(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if ".eval.y" in path.name)


def test_a_spec_from_options(here: Path, caliper: Any) -> None:
    told = caliper(
        "new", "first", *("--task", "Writes it", "--setup", "touch a"), *ONE, *("--assert", "assert 1 < len(attempt.files)"),
        *("--solution", "touch b"), *("--task", "Refuses", "--prompt", "Skip the port.", "--expect", "It has a port."),
    )  # fmt: skip

    assert (told.status, told.err) == (0, "")
    assert told.out.splitlines() == [
        "first.eval.yaml: 2 tasks for SKILL.md",
        "Next: caliper check first.eval.yaml --no-judge",
        "then: caliper run first.eval.yaml --k 1",
    ]
    spec = written(here)
    assert spec.path.name == "first.eval.yaml"
    assert spec.skills[0].path == here / "SKILL.md"
    one, two = spec.tasks
    assert (one.name, one.setup, one.prompt, one.expect) == ("Writes it", "touch a", ONE[1], ONE[3])
    assert one.assertion is not None
    assert (one.assertion.source.strip(), one.solution) == ("assert 1 < len(attempt.files)", "touch b")
    assert (two.name, two.prompt, two.expect, two.assertion) == ("Refuses", "Skip the port.", "It has a port.", None)


def test_its_next_commands_work(here: Path, caliper: Any) -> None:
    told = caliper("new", "my spec", "--prompt", "Make x.", "--assert", "assert 'x' in attempt.files")
    check = next(line for line in told.out.splitlines() if line.startswith("Next: ")).removeprefix("Next: caliper ")
    done = subprocess.run(
        [*CALIPER, *shlex.split(check)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_template_needs_no_answers(here: Path, caliper: Any) -> None:
    told = caliper("new", "--yes")

    assert told.status == 0
    assert "config.eval.yaml: look for TODO: what it says is for you to decide" in told.out
    spec = written(here)
    assert (spec.path.name, [task.name for task in spec.tasks], spec.warnings) == ("config.eval.yaml", ["Happy path"], ())
    whole = re.sub(r"^  # ?(?=(- |  |$))", "  ", spec.path.read_text(), flags=re.M)
    spec.path.write_text(whole)
    assert [task.name for task in load_spec(spec.path).tasks] == ["Happy path", "Edge case", "Adversarial"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (None, "config.eval.yaml"),
        ("x", "x.eval.yaml"),
        ("x.eval.yaml", "x.eval.yaml"),
        ("x.eval.yml", "x.eval.yml"),
        ("evals/deep/x", "evals/deep/x.eval.yaml"),
        ("evals/", "evals/config.eval.yaml"),
        ("v1.2", "v1.2.eval.yaml"),
    ],
)
def test_the_files_name(name: str | None, file: str, here: Path, caliper: Any) -> None:
    assert caliper("new", *([] if name is None else [name]), *ONE).status == 0
    assert specs(here) == [file]
    assert load_spec(here / file).skills[0].path.samefile(here / "SKILL.md")


def test_the_skill_may_lie_anywhere(tmp_path: Path, here: Path, caliper: Any) -> None:
    other = skill(tmp_path / "other skills" / "a: b", "other")
    (tmp_path / "link").symlink_to(tmp_path / "other skills" / "a: b")
    real = tmp_path / "real" / "deep"
    real.mkdir(parents=True)
    (tmp_path / "evals").symlink_to(real)
    for number, path in enumerate([other, other.parent, "../other skills/a: b", "../link", here / "SKILL.md", "."]):
        for name in (f"s{number}", f"../evals/s{number}"):
            assert caliper("new", name, "--skill", str(path), *ONE).status == 0
            found = load_spec(here / f"{name}.eval.yaml").skills[0].path
            assert (found if found.is_dir() else found.parent).resolve() in {other.parent, here}


def test_without_a_name_it_lies_beside_the_skill(tmp_path: Path, here: Path, caliper: Any) -> None:
    skill(tmp_path / "b c", "other")
    assert caliper("new", "--skill", "../b c", *ONE).status == 0
    assert (tmp_path / "b c" / "b-c.eval.yaml").is_file()
    assert load_spec(tmp_path / "b c" / "b-c.eval.yaml").skills[0].path.samefile(tmp_path / "b c")


def test_the_nearby_skill_of_that_name_is_taken(
    tmp_path: Path, here: Path, caliper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        skill(tmp_path / "project" / "skills" / name, name)
    monkeypatch.chdir(tmp_path / "project")

    told = caliper("new", *ONE)
    assert (told.status, told.out) == (2, "")
    assert "several skills are here: skills/one/SKILL.md, skills/two/SKILL.md; name one with --skill PATH" in told.err
    assert caliper("new", "two", *ONE).status == 0
    assert written(tmp_path / "project").skills[0].path.parent.name == "two"


def test_the_bare_agent_has_to_be_asked_for(tmp_path: Path, here: Path, caliper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")

    assert "no SKILL.md here or below skills/: name it with --skill PATH, or give --no-skill" in caliper("new", *ONE).err
    assert caliper("new", "--no-skill", *ONE).status == 0
    assert written(tmp_path / "empty").skills == ()
    assert specs(tmp_path / "empty") == ["empty.eval.yaml"]


def test_what_is_there_stays(here: Path, caliper: Any) -> None:
    (here / "x.eval.yaml").write_text("mine")
    told = caliper("new", "x", *ONE)
    assert told.status == 2
    assert told.err == "caliper: x.eval.yaml: is there already; give another NAME, or write over it with --force\n"
    assert (here / "x.eval.yaml").read_text() == "mine"
    assert caliper("new", "x", *ONE, "--force").status == 0
    assert written(here).tasks


def test_force_keeps_a_link(tmp_path: Path, here: Path, caliper: Any) -> None:
    (tmp_path / "kept.eval.yaml").write_text("old")
    (here / "x.eval.yaml").symlink_to("../kept.eval.yaml")
    assert caliper("new", "x", *ONE).status == 2
    assert caliper("new", "x", *ONE, "--force").status == 0
    assert (here / "x.eval.yaml").is_symlink()
    assert "Write app.json." in (tmp_path / "kept.eval.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "no task is given: add --prompt with --expect or --assert, or --yes for a template"),
        (["--prompt", "x"], 2, "nothing decides whether the task passed: add --expect TEXT or --assert CODE"),
        (["--expect", "x"], 2, "the task has no prompt: add --prompt TEXT"),
        (["--task", "A", *ONE, "--task", "B", "--prompt", "x"], 2, "nothing decides whether the task 'B' passed"),
        (
            ["--prompt", "x", "--prompt", "y", "--expect", "z"],
            2,
            "--prompt is given twice for one task; begin the next task with",
        ),
        (["--prompt", " \n", "--expect", "z"], 2, "--prompt is blank"),
        ([*ONE, "--skill", "nowhere"], 2, "nowhere: there is no such skill"),
        ([*ONE, "--skill", ".", "--no-skill"], 2, "--skill and --no-skill exclude each other"),
        (["spec.yaml", *ONE], 2, "'spec.yaml' is no name for a spec"),
        (["", *ONE], 2, "is no name for a spec"),
        (["--prompt", "x", "--assert", "assert ("], 1, "nothing is written"),
        (["--prompt", "x", "--assert", "pass"], 1, "nothing is written"),
        (["--prompt", "x", "--assert", "check.py"], 1, "nothing is written"),
        (["--task", "A", *ONE, "--task", "A", *ONE], 1, "nothing is written"),
        (["--prompt", "x\udcff", "--expect", "y"], 2, "holds bytes that are no UTF-8"),
        (["deep/er/x", "--prompt", "x", "--assert", "assert ("], 1, "nothing is written"),
    ],
)
def test_what_cannot_be_written_is_told(words: list[str], status: int, said: str, here: Path, caliper: Any) -> None:
    told = caliper("new", *words)

    assert (told.status, told.out) == (status, "")
    assert said in told.err
    assert "Traceback" not in told.err
    assert sorted(path.name for path in here.iterdir()) == ["SKILL.md"]


def test_a_skill_that_cannot_be_installed_is_told(here: Path, caliper: Any) -> None:
    (here / "SKILL.md").write_text("---\nname: Not A Name\n---\nx\n")
    told = caliper("new", *ONE)
    assert (told.status, specs(here)) == (1, [])
    assert "is no Agent Skill name" in told.err


def test_a_place_that_cannot_be_written_is_told(here: Path, caliper: Any) -> None:
    (here / "file").write_text("x")
    told = caliper("new", "file/x", *ONE)
    assert told.status == 2
    assert "cannot be written: " in told.err


# -- whatever is typed ----------------------------------------------------------------------------------------------------------

HOSTILE = ["a: b", "- x", "#", "'", '"', "`", "|", ">", "%", "&a", "*a", "!t", "{", "[", "? x", "yes", "404", "1:30", "~", "null",
           "2026-01-01", "=", "<<", "a\nb", "a\n\n  b\n", " a", "a ", "\ta", "a\r\nb", "\u2028", "\x85", "\ufeff", "é", "🙂", "\x1b[31m",
           "a\\", "\\n", "---", "...", "---\na", "\n a", "x" * 200 + " " + "y" * 200, "a #b", "a:\n- b", "%YAML 1.1", "\x7f"]  # fmt: skip
alphabet = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no argument can hold a null byte
typed = st.one_of(st.sampled_from(HOSTILE), st.text(alphabet, min_size=1, max_size=40)).filter(str.strip)


@settings(max_examples=60, deadline=None)
@given(name=typed, prompt=typed, expect=typed, setup=typed, solution=typed)
@example(name="a: b", prompt="- x\n  y: z", expect="#", setup="'", solution="a\u2028")
def test_what_was_typed_is_what_the_spec_says(name: str, prompt: str, expect: str, setup: str, solution: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "x.eval.yaml"
        words = ["new", str(target), "--no-skill", f"--task={name}", f"--prompt={prompt}", f"--expect={expect}"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
            status = main([*words, f"--setup={setup}", f"--solution={solution}"])
        assert sorted(os.listdir(directory)) == (["x.eval.yaml"] if status == 0 else [])
        assert status == 0, err.getvalue()
        (task,) = load_spec(target).tasks
        assert (task.name, task.prompt, task.expect, task.setup, task.solution) == (name, prompt, expect, setup, solution)


@settings(max_examples=30, deadline=None)
@given(text=typed)
def test_a_check_means_what_was_typed(text: str) -> None:
    code = f"text = {text!r}\nassert attempt.answer == text"
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "x.eval.yaml"
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["new", str(target), "--no-skill", "--prompt=p", f"--assert={code}"]) == 0
        assertion = load_spec(target).tasks[0].assertion
        assert assertion is not None
        values: dict[str, Any] = {"attempt": type("Attempt", (), {"answer": text})}
        exec(compile(assertion.source, "x", "exec"), values)
        assert values["text"] == text


@settings(max_examples=60, deadline=None)
@given(prompts=st.lists(typed, min_size=1, max_size=4))
def test_names_that_nobody_gave_are_different_and_fit(prompts: list[str]) -> None:
    names: list[str] = []
    for number, prompt in enumerate(prompts, 1):
        names.append(new_spec._title(prompt, number, names))
    assert len({name.casefold() for name in names}) == len(names)
    assert all(0 < len(name) <= 70 and name.isprintable() for name in names)


# -- questions ------------------------------------------------------------------------------------------------------------------


def answers(*lines: str) -> asking.Read:
    rest = iter(lines)

    def read() -> str:
        try:
            return next(rest)
        except StopIteration:
            raise EOFError from None

    return read


def test_the_answers_become_tasks() -> None:
    drafts = asking.ask_for_tasks(
        answers(
            *("", "Write app.json:\\", "  port 8080", "", "app.json", 'it\'s "8080"', ""),
            *("Write it again.", "touch app.json", "", "", "It says so."),
            "",
        )
    )

    assert [(draft.kind, draft.prompt, draft.setup, draft.expect) for draft in drafts] == [
        ("Happy path", "Write app.json:\n  port 8080", None, None),
        ("Edge case", "Write it again.", "touch app.json", "It says so."),
    ]
    assert drafts[1].assertion is None
    assert drafts[0].assertion is not None
    assert drafts[0].assertion.splitlines() == [
        "from pathlib import Path",
        "file = Path('app.json')",
        "assert file.is_file(), 'app.json was not written'",
        "assert 'it\\'s \"8080\"' in file.read_text(encoding='utf-8')",
    ]


@pytest.mark.parametrize("path", ["no such task", "it's.json", "a'b\"c.json"])
def test_odd_answers_are_kept(path: str) -> None:
    (draft,) = asking.ask_for_tasks(answers("x", "", path, "", "", "", ""))
    assert draft.assertion is not None
    assert f"file = Path({path!r})" in draft.assertion
    compile(draft.assertion, "x", "exec")


@pytest.mark.parametrize(
    ("lines", "chosen"),
    [([""], "a/SKILL.md"), (["2"], "b/SKILL.md"), (["3", "b/SKILL.md"], "b/SKILL.md"), (["-"], None), (["nope", "a"], "a")],
)
def test_a_skill_is_chosen(lines: list[str], chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [skill(Path(name), name) for name in ("a", "b")]
    assert asking.ask_for_skill(found, answers(*lines)) == (None if chosen is None else Path(chosen))


class Terminal:
    """`caliper new` on a terminal of its own."""

    def __init__(self, place: Path, *words: str) -> None:
        pid, self._fd = pty.fork()
        if pid == 0:
            os.chdir(place)
            os.environ["TERM"] = "dumb"
            os.execv(sys.executable, [*CALIPER, "new", *words])
        self.pid, self.said, self._seen = pid, "", 0

    def until(self, text: str) -> None:
        """Read until `text` has been said, after what was waited for before."""
        deadline = time.monotonic() + 60
        while text not in self.said[self._seen :]:
            assert time.monotonic() < deadline, self.said
            if not self._read():
                raise AssertionError(self.said)
        self._seen = self.said.index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def interrupt(self) -> None:
        """As often as it takes: one that comes between a prompt and the read behind it is seen when the read ends."""
        for _ in range(6):
            os.kill(self.pid, signal.SIGINT)
            deadline = time.monotonic() + 15
            while time.monotonic() < deadline:
                if "interrupted" in self.said or not self._read():
                    return
        raise AssertionError(self.said)

    def end(self) -> int:
        deadline = time.monotonic() + 60
        while self._read():
            assert time.monotonic() < deadline, self.said
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 1)[0]:
            return True
        try:
            data = os.read(self._fd, 4096)
        except OSError:  # Linux says so when the other side is gone
            return False
        self.said += data.decode(errors="replace")
        return bool(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)


@pytest.fixture
def terminal(here: Path) -> Iterator[Any]:
    opened = []

    def start(*words: str) -> Terminal:
        opened.append(Terminal(here, *words))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_on_a_terminal_it_asks(here: Path, terminal: Any) -> None:
    told = terminal()
    for question, answer in (
        ("Which skill? - for the bare agent [SKILL.md]", ""),
        ("What does a user say?", "Write: app.json #1"),
        ("Shell command that fills the directory before [it is empty]", ""),
        ("File that must be there afterwards [none]", "app.json"),
        ("Text that app.json must hold [any]", "8080"),
        ("What must be so, in a sentence or two? A judge reads it [no judge]", ""),
        ("What does a user say? [no such task]", ""),
        ("What does a user say? [no such task]", ""),
    ):
        told.until(question)
        told.until("> ")
        told.type(f"{answer}\n")

    assert told.end() == 0
    assert "config.eval.yaml: 1 task for SKILL.md" in told.said
    assert "Next: caliper check config.eval.yaml --no-judge" in told.said
    (task,) = written(here).tasks
    assert (task.prompt, task.name) == ("Write: app.json #1", "Write: app.json #1")
    assert "# Happy path" in (here / "config.eval.yaml").read_text()


def test_a_terminal_that_hangs_up_leaves_nothing(here: Path, terminal: Any) -> None:
    told = terminal("x")
    told.until("> ")
    told.type("\n")
    told.until("What does a user say?")
    told.until("> ")
    told.type("\x04")

    assert told.end() == 2
    assert "caliper: the answers ended too early; nothing is written" in told.said
    assert sorted(path.name for path in here.iterdir()) == ["SKILL.md"]


def test_ctrl_c_leaves_nothing(here: Path, terminal: Any) -> None:
    told = terminal("x")
    told.until("> ")
    told.interrupt()

    assert told.end() == 130
    assert "caliper: interrupted; nothing is written" in told.said
    assert "Traceback" not in told.said
    assert sorted(path.name for path in here.iterdir()) == ["SKILL.md"]


def test_what_is_there_is_told_before_the_questions(here: Path, terminal: Any) -> None:
    (here / "x.eval.yaml").write_text("mine")
    told = terminal("x")
    told.until("> ")
    told.type("\n")
    assert told.end() == 2
    assert "is there already" in told.said
    assert "What does a user say?" not in told.said


def test_options_on_a_terminal_ask_nothing(here: Path, terminal: Any) -> None:
    told = terminal(*ONE)
    assert told.end() == 0
    assert "> " not in told.said
    assert len(written(here).tasks) == 1
