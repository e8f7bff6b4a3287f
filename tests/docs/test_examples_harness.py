"""The harness of the examples finds what is broken, names its line, and lets nothing pass by."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import blocks, pages
from doc_project import Project, covered


def wrong(tmp_path: Path, text: str, name: str = "page.md") -> list[str]:
    """What does not hold on a page with this text."""
    page = tmp_path / name
    page.write_text(text, encoding="utf-8")
    return [str(one) for one in Project(tmp_path / "place", page).follow()]


def block(tag: str, text: str, above: str = "") -> str:
    return f"# Page\n\n{above}\n```{tag}\n{text}```\n"


def test_a_page_that_holds(tmp_path):
    run = "pytest my.eval.yaml --caliper-k=1 --caliper-baseline\ncaliper list\ncaliper check my.eval.yaml\n"

    assert wrong(tmp_path, block("sh", run)) == []


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("sh", "true\nfalse\necho not reached\n"),
        ("sh", "pytest no-such.eval.yaml\n"),
        ("sh", "pytest my.eval.yaml --caliper-no-such\n"),
        ("sh", "pip install something\n"),
        ("sh", "python -m pip install something\n"),
        ("sh", "claude --version\n"),
        ("yaml", "tasks:\n  - name: A\n    promt: Say hello.\n    expect: A greeting.\n"),
        ("yaml", "tasks:\n  - {name: A, prompt: b, assert: 'assert True'}\n"),
        ("yaml", "sandbox: {extra_pth: [./bin]}\n"),
        ("yaml", "jobs: [\n"),
        ("python", "def f(:\n"),
        ("toml", "a = \n"),
        ("json", "{'a': 1}\n"),
        ("ini", "a\n"),
        ("bash", "true\n"),
        ("", "true\n"),
    ],
)
def test_a_broken_block_is_found_and_named(tmp_path, tag, text):
    (said,) = wrong(tmp_path, block(tag, text))

    assert said.startswith("page.md:4: ")


def test_the_line_of_the_command_that_failed_is_told_with_what_it_printed(tmp_path):
    (said,) = wrong(tmp_path, block("sh", "echo so far\n\nls no-such-file\n"))

    assert "ended with 2, not 0 at line 7" in said
    assert "so far" in said
    assert "no-such-file" in said


def test_code_that_is_not_fenced_is_found(tmp_path):
    (said,) = wrong(tmp_path, "# Page\n\n    pytest my.eval.yaml\n")

    assert said.startswith("page.md:3: ")


def test_every_broken_block_of_a_page_is_told(tmp_path):
    assert len(wrong(tmp_path, block("sh", "false\n") + block("json", "{\n") + block("sh", "true\n"))) == 2


def test_blocks_of_lists_count(tmp_path):
    (said,) = wrong(tmp_path, "1. First:\n\n   ```sh\n   false\n   ```\n")

    assert said.startswith("page.md:3: ")


def test_directory_and_variables_outlive_a_block(tmp_path):
    first = block("sh", "mkdir sub\ncd sub\nexport COLOUR=red\n")

    assert wrong(tmp_path, first + block("sh", 'test "$(basename "$PWD") $COLOUR" = "sub red"\n')) == []


def test_comments_above_a_block(tmp_path):
    text = block("sh", "test -d other\n", "<!-- setup: mkdir other -->")
    text += block("sh", "pytest no.eval.yaml\n", "<!-- status: 4 -->")
    text += block("sh", "npm install -g agent\n", "<!-- not run: needs the network -->")
    text += block("yaml", "# one.eval.yaml\ntasks:\n  - {name: A, prompt: Sing., assert: assert attempt.answer == 'la'}\n")
    text += block("sh", "pytest one.eval.yaml --caliper-k=1\n", "<!-- agent: echo la -->")

    assert wrong(tmp_path, text) == []


def test_a_status_that_did_not_come(tmp_path):
    (said,) = wrong(tmp_path, block("sh", "true\n", "<!-- status: 1 -->"))

    assert "ended with 0, not 1" in said


def test_what_stands_behind_the_command_with_the_status_would_never_run(tmp_path):
    (said,) = wrong(tmp_path, block("sh", "false\necho \\\n  more\n", "<!-- status: 1 -->"))

    assert "never ran" in said


def test_a_block_that_is_not_run_must_be_shell_and_have_a_reason(tmp_path):
    assert len(wrong(tmp_path, block("sh", "if true\n", "<!-- not run: needs the network -->"))) == 1
    (named,) = blocks(tmp_path / "page.md")
    assert named.not_run == "needs the network"
    (tmp_path / "short.md").write_text(block("sh", "true\n", "<!-- not run: GitHub -->"))
    (short,) = blocks(tmp_path / "short.md")
    assert covered(short) is not None


def test_files_are_written_and_used(tmp_path):
    text = block("python", "# conftest.py\nimport pytest\n\n\n@pytest.fixture(autouse=True)\ndef _loud():\n    print('loud')\n")

    assert len(wrong(tmp_path, text)) == 1
    run = block("sh", "pytest my.eval.yaml --caliper-k=1 -s | tee out\ngrep loud out\n")
    (tmp_path / "used").mkdir()
    assert wrong(tmp_path / "used", text + run) == []


def test_a_spec_may_be_wrong_where_the_text_says_how(tmp_path):
    broken = "```yaml\ntasks:\n  - {name: A, promt: b, expect: c}\n```\n\n```text\n"

    assert len(wrong(tmp_path, f"{broken}x.eval.yaml:2: another mistake\n```\n")) == 1
    (tmp_path / "told").mkdir()
    told = broken + "x.eval.yaml:2: unknown key `promt`: did you mean `prompt`?\n```\n"
    assert wrong(tmp_path / "told", told) == []


def test_settings_of_editors_may_have_comments_where_they_are_a_file(tmp_path):
    assert wrong(tmp_path, block("json", '// .vscode/settings.json\n{"a": 1}\n')) == []


def test_hidden_and_built_pages_are_no_documentation(tmp_path):
    for name in ("README.md", "docs/a.md", "docs/_build/b.md", "examples/x/README.md", "examples/x/.pytest_cache/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A\n")

    names = [page.relative_to(tmp_path).as_posix() for page in pages(tmp_path)]
    assert names == ["README.md", "docs/a.md", "examples/x/README.md"]
