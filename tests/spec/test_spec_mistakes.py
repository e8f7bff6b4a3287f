"""Each kind of mistake: on which line it is told, and with which remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import SpecError

Mistakes = Callable[[str | bytes], list[str]]

TASK = "tasks:\n  - name: a\n    prompt: b\n    expect: c\n"
"""Four lines."""


def task(lines: str) -> str:
    """A spec of one task with these lines in it; they start at line 4."""
    return "tasks:\n  - name: a\n    prompt: b\n" + "".join(f"    {line}\n" for line in lines.split("\n"))


CASES = [
    # keys
    (TASK + "skil: x\n", 5, "unknown key `skil`: did you mean `skill`?"),
    (TASK + "zzz: x\n", 5, "unknown key `zzz`: delete it, or use one of skill, skills, judge, sandbox, mcp, bar, tasks"),
    (TASK + '"a\\u2028b\\nc": x\n', 5, "unknown key `a\\u2028b\\nc`"),
    (TASK + "k: 3\n", 5, "pass `--caliper-k`"),
    (TASK + "model: x\n", 5, "pass `--caliper-model`"),
    (task("expect: c\nset-up: x"), 5, "unknown key `set-up`: did you mean `setup`?"),
    (task("expect: c\nExpect: x"), 5, "unknown key `Expect`: did you mean `expect`?"),
    (task("asert: c"), 4, "unknown key `asert`: did you mean `assert`?"),
    ("tasks:\n  - name: a\n    promt: b\n    expect: c\n", 3, "unknown key `promt`: did you mean `prompt`?"),
    ("taks: []\n", 1, "unknown key `taks`: did you mean `tasks`?"),
    ("sandbox:\n  extra-path: [bin]\n" + TASK, 2, "unknown key `extra-path`: did you mean `extra_path`?"),
    ("skill:\n  path: SKILL.md\n  modell: x\n" + TASK, 3, "unknown key `modell`: did you mean `model`?"),
    ("skills:\n  - path: other\n    backend: x\n" + TASK, 3, "unknown key `backend`: delete it, or use one of path"),
    ("judge: {backand: x}\n" + TASK, 1, "unknown key `backand`: did you mean `backend`?"),
    (TASK + "activates: x\n", 5, "`activates` is not supported yet: delete it"),
    (task("expect: c\nactivates: x"), 5, "`activates` is not supported yet: delete it"),
    (task("activates: [x]"), 4, "`activates` is not supported yet: delete it"),
    (task("expect: c\nhistory:\n  - user: hi"), 5, "`history` is not supported yet: delete it"),
    # repeated keys
    (TASK + "tasks: []\n", 5, "`tasks` stands on line 1 already: delete one of the two"),
    (task("expect: c\nexpect: c"), 5, "`expect` stands on line 4 already"),
    ("sandbox: {extra_path: [], extra_path: []}\n" + TASK, 1, "`extra_path` stands on line 1 already"),
    ("mcp:\n  a: {command: x}\n  a: {command: x}\n" + TASK, 3, "`a` stands on line 2 already"),
    ("mcp:\n  a:\n    command: x\n    env:\n      A: x\n      A: y\n" + TASK, 6, "`A` stands on line 5 already"),
    # text
    (
        "tasks:\n  - name: 404\n    prompt: b\n    expect: c\n",
        2,
        '`name` is text, and YAML reads 404 as a number: quote it, as "404"',
    ),
    (task("expect: yes"), 4, '`expect` is text, and YAML reads yes as the boolean true: quote it, as "yes"'),
    (task("expect: on"), 4, '`expect` is text, and YAML reads on as the boolean true: quote it, as "on"'),
    (task("expect: c\nsetup: 1:30"), 5, 'YAML reads 1:30 as the number 90: quote it, as "1:30"'),
    (task("expect: c\ncleanup: 2024-01-01"), 5, 'YAML reads 2024-01-01 as a date: quote it, as "2024-01-01"'),
    (task("expect: 2024-99-99"), 4, 'YAML reads 2024-99-99 as a date: quote it, as "2024-99-99"'),
    (task("expect: 0x1F"), 4, "YAML reads 0x1F as the number 31"),
    (task("expect: .inf"), 4, "YAML reads .inf as the number inf"),
    (task("expect: !!bool nonsense"), 4, "YAML reads nonsense as a boolean"),
    (task("expect: " + "9" * 5000), 4, "as a number: quote it"),
    (task("assert: true"), 4, '`assert` is text, and YAML reads true as a boolean: quote it, as "true"'),
    (task("expect: {name}"), 4, "`expect` is text, not a mapping: quote it if braces or a colon are part of the text"),
    (task("expect:\n  - c"), 4, "`expect` is text, not a list: quote it if the brackets or dashes are part of the text"),
    ("skill: 3\n" + TASK, 1, "`skill` is text, and YAML reads 3 as a number"),
    ("skills:\n  - 3\n" + TASK, 2, "`skills` item 1 is text, and YAML reads 3 as a number"),
    (task("expect: !custom c"), 4, "the tag `!custom` has no meaning here: delete it"),
    (task("expect: !!python/object:os.system c"), 4, "has no meaning here: delete it"),
    (task("expect: !!binary aGk="), 4, "has no meaning here: delete it"),
    ("sandbox: !!set {}\n" + TASK, 1, "has no meaning here: delete it"),
    (task('expect: "a\\0b"'), 4, '"a\\u0000b" holds a null byte'),
    (TASK + "[a]: b\n", 5, "a key must be text, not a list: put quotes around it"),
    # blanks
    (task("expect:"), 4, "`expect` is blank: write its text, or delete the key"),
    (task("expect: ~"), 4, "`expect` is blank"),
    (task('expect: " \\t\\n"'), 4, "`expect` is blank"),
    (task("expect: c\nassert:"), 5, "`assert` is blank"),
    (task("assert: |\n\n\nsetup: x"), 4, "`assert` is blank"),
    (task("expect: c\nsetup: ''"), 5, "`setup` is blank"),
    ("tasks:\n  - name:\n    prompt: b\n    expect: c\n", 2, "`name` is blank: write its text"),
    ("tasks:\n  - name: a\n    prompt: ''\n    expect: c\n", 3, "`prompt` is blank: write its text"),
    ("tasks:\n  - name: a\n    expect: c\n", 2, "task 1 has no `prompt`: add `prompt:`"),
    ("tasks:\n  - prompt: a\n    expect: c\n", 2, "task 1 has no `name`: add `name:`"),
    (task("setup: x"), 2, "task 1 has nothing that decides whether it passed: add `expect:` or `assert:`"),
    # no tasks
    ("skill: SKILL.md\n", 1, "there are no tasks: add at least one under `tasks:`"),
    ("skill: SKILL.md\ntasks:\n", 2, "there are no tasks: add at least one under `tasks:`"),
    ("tasks: []\n", 1, "there are no tasks: add at least one under `tasks:`"),
    ("tasks: {name: a}\n", 1, "`tasks` is a mapping, not a list: write its items below it, each after `- `"),
    ("tasks:\n  - name: a\n    prompt: b\n    expect: c\n  - foo\n", 5, "task 2 is text, not a mapping"),
    # names
    (
        TASK + "  - {name: a, prompt: b, expect: c}\n",
        5,
        'the task name "a" is taken by the task on line 2: rename one of the two',
    ),
    (
        TASK + "  - {name: ' A', prompt: b, expect: c}\n",
        5,
        '" A" is taken by the task on line 2 ("a"; case, slashes and brackets',
    ),
    (TASK + '  - {name: "\\u200ea", prompt: b, expect: c}\n', 5, '"\\u200ea" is taken by the task on line 2'),
    # skills
    ("skill: SKIL.md\n" + TASK, 1, 'the skill "SKIL.md" does not exist: fix the path (paths start at the spec\'s directory)'),
    ("skill:\n  path: SKIL.md\n" + TASK, 2, 'the skill "SKIL.md" does not exist'),
    ("skill: ~/x\n" + TASK, 1, "`~` is not expanded"),
    ("skill: {path: " + "x" * 5000 + "}\n" + TASK, 1, "does not exist: fix the path"),
    ("skill: ./empty\n" + TASK, 1, "holds no `SKILL.md`: name the directory that does, or create the file"),
    ("skill: check.py\n" + TASK, 1, '"check.py" is no skill: name a `SKILL.md`'),
    ("skill: [other]\n" + TASK, 1, "`skill` is one skill, not a list: write `skills:` for several"),
    ("skills: other\n" + TASK, 1, "`skills` is text, not a list: write its items below it"),
    ("skills:\n  - other\n  - other/\n" + TASK, 3, 'the skill "other/" stands on line 2 already'),
    ("skills:\n  - {}\n" + TASK, 2, "`skills` item 1 has no `path`: add `path:`"),
    ("skills:\n  -\n" + TASK, 2, "`skills` item 1 is blank: write its text, or delete the item"),
    ("skill: SKILL.md\nskills:\n  - other\n" + TASK, 2, "both `skill:` and `skills:` are given: keep one"),
    ("judge: claude-code\n" + TASK, 1, "`judge` is text, not a mapping: delete it and pass `--caliper-judge-model`"),
    # sandbox
    ("sandbox: [x]\n" + TASK, 1, "`sandbox` is a list, not a mapping"),
    ("sandbox:\n  extra_path: ./bin\n" + TASK, 2, "`sandbox.extra_path` is text, not a list"),
    (
        "sandbox:\n  extra_path:\n    - bin\n    - nope\n" + TASK,
        4,
        '`extra_path` names "nope", which is no directory: fix the path',
    ),
    (
        "sandbox:\n  forbidden_files:\n    - a\n    - '('\n" + TASK,
        4,
        "`sandbox.forbidden_files` item 2 is not a regular expression",
    ),
    ("sandbox:\n  forbidden_files: ['']\n" + TASK, 2, "`sandbox.forbidden_files` item 1 is blank"),
    ("sandbox:\n  forbidden_files: ['a{99999999999999}']\n" + TASK, 2, "is not a regular expression"),
    # mcp
    ("mcp: [x]\n" + TASK, 1, "`mcp` is a list, not a mapping"),
    ("mcp:\n  a b: {command: x}\n" + TASK, 2, "`mcp.a b` is not a server name: use letters, digits, `_` and `-`"),
    ("mcp:\n  a:\n" + TASK, 2, "`mcp.a` is blank, not a mapping: give the server a `command:`"),
    ("mcp:\n  a: {}\n" + TASK, 2, "`mcp.a` has no `command`: add it, or `type: http` and `url:` for a remote server"),
    ("mcp:\n  a:\n    command: ' '\n" + TASK, 3, "`mcp.a.command` is blank: write its text"),
    ("mcp:\n  a:\n    comand: x\n" + TASK, 3, "unknown key `comand`: did you mean `command`?"),
    ("mcp:\n  a:\n    url: http://x\n" + TASK, 3, "`url` belongs to a remote server: add `type: http`"),
    ("mcp:\n  a:\n    command: x\n    headers: {A: b}\n" + TASK, 4, "`headers` belongs to a remote server"),
    ("mcp:\n  a:\n    type: http\n" + TASK, 2, "`mcp.a` has no `url`: add `url:`"),
    ("mcp:\n  a:\n    type: sse\n    url: ''\n" + TASK, 4, "`mcp.a.url` is blank"),
    ("mcp:\n  a:\n    type: sse\n    url: example.com\n" + TASK, 4, "not a web address: start it with `https://`"),
    (
        "mcp:\n  a:\n    type: http\n    url: http://x\n    env: {}\n" + TASK,
        5,
        "`env` belongs to a local (stdio) server: delete it",
    ),
    (
        "mcp:\n  a:\n    type: htp\n    url: http://x\n" + TASK,
        3,
        '`mcp.a.type` is "htp", which is no transport: did you mean `http`?',
    ),
    ("mcp:\n  a:\n    type: 3\n" + TASK, 3, "which is no transport: use stdio (or leave it out), http or sse"),
    ("mcp:\n  a:\n    type: [http]\n" + TASK, 3, "`mcp.a.type` is a list, which is no transport"),
    (
        "mcp:\n  a:\n    command: x\n    env:\n      PORT: 80\n" + TASK,
        5,
        "`mcp.a.env.PORT` is text, and YAML reads 80 as a number",
    ),
    ("mcp:\n  a:\n    command: x\n    env:\n      A: '${}'\n" + TASK, 5, '`mcp.a.env.A` holds "${}", which names no variable'),
    (
        "mcp:\n  a:\n    command: x\n    env:\n      A: '${B} ${C'\n" + TASK,
        5,
        'holds "${C", which names no variable: write `${NAME}`',
    ),
    ("mcp:\n  a:\n    command: x\n    env:\n      A: '${B:-c}'\n" + TASK, 5, "defaults are not supported"),
    ("mcp:\n  a:\n    command: x\n    env:\n      A=B: c\n" + TASK, 5, "is not the name of a variable"),
    (
        "mcp:\n  a:\n    command: ${X}\n" + TASK,
        3,
        "`mcp.a.command` holds `${`, which only works in `env:`, `headers:` and `url:`",
    ),
    ("mcp:\n  a:\n    command: x\n    args:\n      - y\n      - ${X}\n" + TASK, 6, "`mcp.a.args` item 2 holds `${`"),
    ("mcp:\n  a:\n    type: http\n    url: https://x/${\n" + TASK, 4, "which names no variable"),
    ("mcp:\n  a:\n    type: http\n    url: http://x\n    headers:\n      A b: c\n" + TASK, 6, "is not the name of a header"),
    (
        'mcp:\n  a:\n    type: http\n    url: http://x\n    headers:\n      A: "b\\nc"\n' + TASK,
        6,
        "has several lines, and a header has one",
    ),
    # asserts
    (task("assert: |\n  # nothing\n  # here"), 5, "`assert` checks nothing: add an `assert` statement"),
    (task("assert: pass"), 4, "`assert` checks nothing"),
    (task("assert: |\n  '''docs'''\n  ...\n  pass"), 5, "`assert` checks nothing"),
    (
        task("assert: |\n\n  import os\n  assert os = 1"),
        7,
        '`assert` is not valid Python (invalid syntax) in "assert os = 1": fix it',
    ),
    (task("assert: |\n  x = (\nsetup: x"), 5, "`assert` is not valid Python ('(' was never closed)"),
    (task("assert: |\n  if x:\nsetup: x"), 5, "`assert` is not valid Python"),
    (task("assert: assert x ="), 4, "`assert` is not valid Python"),
    (task('assert: "\\n\\nassert x ="'), 4, "`assert` is not valid Python"),
    (task("assert: >\n  assert\n  x ="), 4, "`assert` is not valid Python"),
    (task("assert: |\n  x = 1\n  return x"), 6, "`assert` is not valid Python ('return' outside function)"),
    (task("assert: " + "(" * 5000), 4, "`assert`"),
    (task("assert: " + "-" * 200000 + "1"), 4, "`assert` cannot be compiled"),
    (task("assert: ./nope.py"), 4, '`assert` names the script "./nope.py", which does not exist: fix the path or create it'),
    (task("assert: 'assert x  # as in check.py'"), 4, "(a single line that ends in `.py` is a path)"),
]


@pytest.mark.parametrize(("text", "line", "words"), CASES)
def test_a_mistake_is_told_once_with_its_line_and_remedy(mistakes: Mistakes, text: str, line: int, words: str) -> None:
    [found] = mistakes(text)
    assert found.startswith(f"{line}: ")
    assert words in found


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines(mistakes: Mistakes, project: Path) -> None:
    (project / "broken.py").write_text("import os\n\nassert os.path = 1\n")
    found = mistakes(
        """\
        skill: {path: nope.md, modle: x}
        sandbox: {forbidden_files: ["["]}
        mcp: {a: {}}
        tasks:
          - name: 1
            prompt: b
            assert: ./broken.py
          - name: b
            expect: yes
            expect: no
          - name: B
            prompt: c
            assert: |
              assert x
              assert y =
          - name: c
            prompt: c
            assert: broken.py
        """
    )
    assert [one.split(": ", 1)[0] for one in found] == ["1", "1", "2", "3", "5", "8", "9", "10", "11", "15", "broken.py:3"]


def test_a_mistake_of_an_assert_script_names_the_script(mistakes: Mistakes, project: Path) -> None:
    (project / "check.py").write_bytes(b"x = 1\r\nassert x ==\r\n")
    [found] = mistakes(task("assert: check.py"))
    assert found.startswith('check.py:2: `assert` is not valid Python (invalid syntax) in "assert x ==": fix it')


@pytest.mark.parametrize(
    ("content", "where", "words"),
    [
        (b"x = '\xff'\n" * 3, "check.py:1", "save it as UTF-8"),
        (b"\n\n\nx = '\xff'\n", "4", "cannot be read"),
        (b"# coding: klingon\nassert 1 == x\n", "check.py:1", "save it as UTF-8"),
        (b"# only a comment\n", "check.py:1", "checks nothing"),
        (b"", "check.py:1", "checks nothing"),
    ],
)
def test_odd_assert_scripts(mistakes: Mistakes, project: Path, content: bytes, where: str, words: str) -> None:
    (project / "check.py").write_bytes(content)
    [found] = mistakes(task("assert: check.py"))
    assert found.startswith(f"{where}: ")
    assert words in found


def test_a_directory_is_no_assert_script(mistakes: Mistakes, project: Path) -> None:
    (project / "dir.py").mkdir()
    [found] = mistakes(task("assert: dir.py"))
    assert "does not exist" in found


def test_a_missing_spec_and_a_directory(project: Path) -> None:
    with pytest.raises(SpecError, match=r"nope\.eval\.yaml:1: cannot read the spec \(No such file or directory\)"):
        load_spec(project / "nope.eval.yaml")
    with pytest.raises(SpecError, match="this is not a file"):
        load_spec(project / "bin")
