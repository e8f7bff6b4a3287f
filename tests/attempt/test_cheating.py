"""What counts as reading a forbidden file, and what does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.attempt.cheating import MAX_EVIDENCE, find_cheating
from pytest_caliper.attempt.shell import Group, Node, parse
from pytest_caliper.contracts import Workspace
from pytest_caliper.runs.records import Turn

SPECS = r".*\.eval\.yaml$"
RESULTS = r"./.caliper/.*"


def call(name: str, **given: Any) -> Turn:
    return Turn(role="tool_use", tool_name=name, tool_input=given)


def bash(command: str) -> Turn:
    return call("Bash", command=command, description="reads x.eval.yaml and .caliper/results/x")


class World(NamedTuple):
    """A project with a spec and saved results, and an attempt's workspace elsewhere."""

    workspace: Workspace
    project: Path
    spec: Path
    results: Path

    def evidence(
        self, *turns: Turn, patterns: tuple[str, ...] = (), protected: tuple[Path, ...] | None = None
    ) -> tuple[str, ...]:
        kept = (self.spec, self.results) if protected is None else protected
        return find_cheating(turns, patterns=patterns, protected=kept, workspace=self.workspace)

    def fill(self, text: str) -> str:
        """`text` with {work}, {home}, {project}, {specs}, {spec} and {results} replaced."""
        places = {
            "{work}": self.workspace.work,
            "{home}": self.workspace.home,
            "{project}": self.project,
            "{specs}": self.spec.parent,
            "{spec}": self.spec,
            "{results}": self.results,
        }
        for name, path in places.items():
            text = text.replace(name, str(path))
        return text


@pytest.fixture
def world(tmp_path: Path) -> World:
    workspace = Workspace.at(tmp_path / "run" / "7")
    for directory in (
        workspace.work,
        workspace.home,
        tmp_path / "my project" / "specs",
        tmp_path / "my project" / ".caliper/results",
    ):
        directory.mkdir(parents=True)
    project = tmp_path / "my project"
    (tmp_path / "p").symlink_to(project)  # a name without a space, and a link
    spec, results = tmp_path / "p" / "specs" / "config.eval.yaml", tmp_path / "p" / ".caliper" / "results"
    spec.write_text("tasks: []\n")
    (results / "run.json").write_text("{}")
    return World(workspace, tmp_path / "p", spec, results)


FORBIDDEN_COMMANDS = [
    "cat config.eval.yaml",
    "cat ./config.eval.yaml",
    "cat ../../specs/config.eval.yaml",
    "cat {work}/sub/config.eval.yaml",
    "cat ~/config.eval.yaml",
    "cat $HOME/config.eval.yaml; ls",
    "cat<config.eval.yaml",
    "wc -l <config.eval.yaml",
    "sort < config.eval.yaml > out",
    "ls;cat config.eval.yaml|head -3",
    "ls&&cat config.eval.yaml&&ls",
    "tool --file=config.eval.yaml --verbose",
    "tool -fconfig.eval.yaml -v",
    "dd if=config.eval.yaml of=x",
    "git show HEAD:config.eval.yaml | cat",
    "curl -d @config.eval.yaml http://localhost",
    "curl file:///p/config.eval.yaml -o x",
    "X=$(cat config.eval.yaml); echo done",
    "echo $(cat config.eval.yaml)",
    'echo "got: `cat config.eval.yaml` <"',
    'echo "$(cat "config.eval.yaml")" > mine.txt',
    "cat 'config.eval.yaml' x",
    'cat "config.eval.yaml" x',
    "cat config.eval.ya\\ml x",
    "cat con'fig'.eval.yaml x",
    "cat 'config.eval.yaml",
    'cat "config.eval.yaml; ls',
    "bash -c 'cat config.eval.yaml; ls'",
    "/bin/bash -lc 'cat config.eval.yaml; ls'",
    "timeout 5 bash -c 'sh -c \"cat config.eval.yaml; ls\"'",
    "eval 'cat config.eval.yaml; ls'",
    "(cd sub && cat config.eval.yaml)",
    "for f in config.eval.yaml; do cat $f; done",
    "if true; then cat config.eval.yaml; fi",
    "while read l; do echo $l; done < config.eval.yaml && true",
    "cat <(grep x config.eval.yaml) | sort",
    "cat > x <<EOF\n$(cat config.eval.yaml)\nEOF\n",
    "sh <<'EOF'\ncat config.eval.yaml\nEOF\n",
    "cat <<'EOF' | bash\ncat config.eval.yaml\nEOF\n",
    "echo config.eval.yaml | xargs cat",
    "echo 'cat config.eval.yaml; ls' | sh",
    "xargs cat <<< config.eval.yaml && ls",
    "python3 -c \"print(open('config.eval.yaml').read())\"",
    "python3 - <<'EOF'\nprint(open('config.eval.yaml').read())\nEOF\n",
    "python3.12 <<'EOF'\nprint(open('config.eval.yaml').read())\nEOF\n",
    'node -e "fs.readFileSync(`config.eval.yaml`)"',
    "F=config.eval.yaml; cat $F",
    "F=config; cat ${F}.eval.yaml x",
    "cat {config,other}.eval.yaml x",
    "cat \\\n  config.eval.yaml \\\n  x",
    "cat a\ncat config.eval.yaml\ncat b",
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: config.eval.yaml\n@@\n-x\n*** End Patch\nEOF\n",
    "cat x > config.eval.yaml; ls",
    "cat x 2>config.eval.yaml | y",
    "find . -name '*.eval.yaml' -exec cat {} +",
    "cat *.eval.yaml x",
]

ALLOWED_COMMANDS = [
    "ls -la",
    "cat config.eval.yaml.bak",
    "cat config_eval_yaml",
    'echo "never read config.eval.yaml" > notes.md',
    "echo config.eval.yaml",
    "printf '%s\\n' config.eval.yaml > list.txt",
    "echo config.eval.yaml | tee list.txt | wc -l",
    "cat > notes.md <<'EOF'\nsee config.eval.yaml\nEOF",
    "cat > notes.md <<-EOF\n\tsee config.eval.yaml\n\tEOF\nls",
    "tee a.md <<EOF && tee b.md <<END\nconfig.eval.yaml\nEOF\nconfig.eval.yaml\nEND\nls",
    "bash -lc \"printf 'config.eval.yaml' > out.txt\"",
    "cat > run.sh <<'EOF'\n#!/bin/sh\ncat config.eval.yaml\nEOF",
    "git commit -m 'do not track config.eval.yaml'",
    "git commit -am config.eval.yaml && git push",
    "git commit -m \"$(cat <<'EOF'\nAdd config.eval.yaml\nEOF\n)\"",
    "ls # config.eval.yaml",
    "rg foo --glob '!*.eval.yaml'",
    "grep -r foo . --exclude=*.eval.yaml",
    "find . -type f -not -name '*.eval.yaml'",
    "find . -path '*/config.eval.yaml' -prune -o -print",
    "cat <<< config.eval.yaml",
    "python3 - <<'EOF'\nopen('notes.md', 'w').write('never read config.eval.yaml')\nEOF",
    "mkdir -p sub && cd sub && touch .eval.yaml.md",
]


@pytest.mark.parametrize("command", FORBIDDEN_COMMANDS)
def test_a_command_that_names_a_forbidden_file_is_cheating(world: World, command: str) -> None:
    found = world.evidence(bash(world.fill(command)), patterns=(SPECS,), protected=())
    assert len(found) == 1
    assert found[0].startswith("Bash: '")
    assert found[0].endswith(f"matches the forbidden pattern '{SPECS}'")


@pytest.mark.parametrize("command", ALLOWED_COMMANDS)
def test_a_command_that_only_writes_about_it_is_not(world: World, command: str) -> None:
    assert world.evidence(bash(world.fill(command)), patterns=(SPECS,), protected=()) == ()


@pytest.mark.parametrize(
    "path",
    [
        ".caliper/results/x",
        "./.caliper/results/x",
        "././.caliper/x",
        "{work}/.caliper/results/x",
        "sub/../.caliper/x",
        "{project}/.caliper/results/x",
        "../../.caliper/x",
    ],
)
@pytest.mark.parametrize("tool", ["Bash", "Read"])
def test_the_pattern_with_a_leading_dot_slash_matches_every_spelling(world: World, path: str, tool: str) -> None:
    path = world.fill(path)
    turn = bash(f"head -1 {path}") if tool == "Bash" else call("Read", file_path=path)
    assert world.evidence(turn, patterns=(RESULTS,), protected=())


@pytest.mark.parametrize("path", [".caliper", "caliper/x", "x.caliper", ".calipers/x"])
def test_the_pattern_with_a_leading_dot_slash_matches_nothing_else(world: World, path: str) -> None:
    assert world.evidence(call("Read", file_path=path), bash(f"cat {path}"), patterns=(RESULTS,), protected=()) == ()


def test_a_pattern_is_also_searched_in_the_whole_command(world: World) -> None:
    found = world.evidence(bash("curl -s http://x | sudo tee y"), patterns=(r"curl .*\| *sudo",), protected=())
    assert found == ("Bash: 'curl -s http://x | sudo tee y' matches the forbidden pattern 'curl .*\\| *sudo'",)


def test_an_absolute_pattern_matches_a_relative_path(world: World) -> None:
    pattern = f"^{world.workspace.work}/secret"
    assert world.evidence(bash("cat secret/x"), patterns=(pattern,), protected=())
    assert world.evidence(bash("cd secret; cat x"), patterns=(pattern,), protected=())
    assert world.evidence(bash("cd other; cat x"), patterns=(pattern,), protected=()) == ()


def test_a_pattern_that_the_workspaces_own_place_matches_means_files_elsewhere(world: World) -> None:
    """`/tmp/.*` forbids what lies in /tmp, not the workspace that happens to be made there."""
    pattern = f"{world.workspace.root.parent}/.*"
    inside = [call("Read", file_path=f"{world.workspace.work}/a.txt"), bash(f"cat {world.workspace.work}/a.txt ~/b c")]
    assert world.evidence(*inside, patterns=(pattern,), protected=()) == ()
    assert world.evidence(bash(f"cat {world.workspace.root.parent}/8/work/a.txt"), patterns=(pattern,), protected=())


@pytest.mark.parametrize(
    ("turn", "cheats"),
    [
        (call("Read", file_path="a/config.eval.yaml"), True),
        (call("read", filePath="a/config.eval.yaml"), True),
        (call("read_file", absolute_path="/a/config.eval.yaml"), True),
        (call("NotebookEdit", notebook_path="config.eval.yaml", new_source="x"), True),
        (call("Write", file_path="config.eval.yaml", content="x"), True),
        (call("Write", file_path="notes.md", content="config.eval.yaml"), False),
        (call("Edit", file_path="notes.md", old_string="config.eval.yaml", new_string="config.eval.yaml"), False),
        (call("MultiEdit", file_path="n.md", edits=[{"old_string": "config.eval.yaml", "new_string": "a.eval.yaml"}]), False),
        (call("Glob", pattern="**/*.eval.yaml"), True),
        (call("Glob", pattern="**/*.md"), False),
        (call("Grep", pattern=r"config.eval.yaml", path="src"), False),
        (call("Grep", pattern="x", path="config.eval.yaml"), True),
        (call("Grep", pattern="x", glob="*.eval.yaml"), True),
        (call("Grep", pattern="x", glob="!*.eval.yaml"), False),
        (call("LS", path="a/config.eval.yaml"), True),
        (call("Task", prompt="do not read config.eval.yaml", description="config.eval.yaml"), False),
        (call("Skill", skill="x", args="config.eval.yaml"), False),
        (call("WebFetch", url="https://example.com/config.eval.yaml", prompt="config.eval.yaml"), False),
        (call("WebFetch", url="file:///a/config.eval.yaml", prompt="x"), True),
        (call("TodoWrite", todos=[{"content": "avoid config.eval.yaml", "status": "pending"}]), False),
        (call("mcp__fs__read_file", path="config.eval.yaml"), True),
        (call("mcp__fs__read_multiple_files", paths=["a", "config.eval.yaml"]), True),
        (call("mcp__fs__write_file", path="a", content="config.eval.yaml"), False),
        (call("mcp__fs__load", what={"deep": ["./config.eval.yaml"]}), True),
        (call("mcp__echo__echo", text="a sentence about config.eval.yaml"), False),
        (call("mcp__py__run", code="open('config.eval.yaml')"), True),
        (call("shell", command=["bash", "-lc", "cat config.eval.yaml; ls"]), True),
        (call("shell", command=["bash", "-lc", "echo config.eval.yaml"]), False),
        (call("exec_command", cmd="cat config.eval.yaml"), True),
        (call("file_change", changes=[{"path": "config.eval.yaml", "kind": "update"}]), True),
        (call("apply_patch", input="*** Begin Patch\n*** Update File: config.eval.yaml\n@@\n"), True),
        (call("apply_patch", input="*** Begin Patch\n*** Add File: a.md\n+config.eval.yaml\n"), False),
        (call("Bash"), False),
        (Turn(role="tool_use", tool_name=None, tool_input=None), False),
        (Turn(role="assistant", content="I read config.eval.yaml"), False),
        (Turn(role="tool_result", tool_name="Bash", tool_output="config.eval.yaml"), False),
        (Turn(role="user", content="cat config.eval.yaml"), False),
    ],
    ids=repr,
)
def test_which_values_of_a_tool_call_are_paths(world: World, turn: Turn, cheats: bool) -> None:
    assert bool(world.evidence(turn, patterns=(SPECS,), protected=())) is cheats


PROTECTED_COMMANDS = [
    "cat {spec}",
    "cat '{spec}'",
    "cat /{spec}",
    "cat {specs}/../specs/./config.eval.yaml",
    "cat {specs}/*.yaml",
    "cat {specs}/*",
    "cat {specs}/c?nfig.*",
    "cat {specs}/{a,config}.eval.yaml",
    "cat {project}/*/*.yaml",
    "cat {project}/**/config*",
    "cat {results}/run.json",
    "cat {results}/*",
    "ls {results}",
    "cat {project}/.caliper/*/run.json",
    "cat {project}/.*/*/*",
    "cd {specs} && cat config.eval.yaml",
    "cd {specs}; cat *",
    "pushd {project}/specs > /dev/null; head -1 con*",
    "cd {project} && cd specs && cat config.eval.yaml",
    "D={specs}; cat $D/config.eval.yaml",
    "export D={specs} && cat ${D}/config.eval.yaml",
    "(cd {specs}; cat config.eval.yaml)",
    "cat $(cd {specs}; ls *.yaml)",
    "grep -r tasks {specs}",
    "grep -rn tasks {project}",
    "grep tasks -R {project}/",
    "grep --recursive tasks /",
    "grep -e tasks -r {specs}",
    "cd {project} && grep -rn tasks",
    "cd {project} && grep -rn tasks .",
    "rg tasks {project}",
    "cd {specs} && rg tasks",
    "grep -r --include='*.yaml' x {project}",
    "grep -r --include='*.json' x {project}",
    "cat {project}/**/*.json",
    "grep tasks {specs}/*",
    "cp -r {project} copy",
    "cp -a {specs}/. .",
    "tar czf - {project} | tar xzf -",
    "tar -C / -cf x.tar {project}",
    "rsync -a {project}/ here/",
    "diff -r {project} other",
    "rm -rf {project}",
    "mv {specs} away",
    "find {project} -name '*.yaml' -exec cat {} +",
    "find {project} -exec grep -l tasks {} \\;",
    "find {project} -type f | xargs cat",
    "find {project} -type f -print0 | xargs -0 grep x",
    "find {project} -name '*.yaml' | while read f; do cat $f; done",
    "cat $(find {project} -name '*.yaml')",
    "for f in {specs}/*.yaml; do cat $f; done",
    "git -C {project} show HEAD:specs/config.eval.yaml",
    "cd {project} && git grep tasks",
    "sed -i s/a/b/ {spec}",
    "echo x > {spec}",
    "python3 -c \"print(open('{spec}').read())\"",
    "curl file://{spec}",
]

HARMLESS_COMMANDS = [
    "ls {specs}",
    "ls -la {specs}/*",
    "ls {project}/.caliper",
    "tree {project}",
    "find {project} -name '*.yaml'",
    "find {project} -name '*.md' -exec cat {} +",
    "cat {specs}/*.md",
    "cat {specs}/other.eval.yaml",
    "cat {specs}config.eval.yaml",
    "cat {project}/*",
    "cat {project}/*/results/run.json",
    "grep tasks {specs}",
    "grep -rn / .",
    "grep -r tasks .",
    "grep -r --include='*.md' x {project}",
    "grep -r x {project} --exclude='*.yaml' --exclude-dir=.caliper",
    "rg -g '*.py' x {project}",
    "rg --files {project}",
    "cp {project}/README.md .",
    "echo {spec}",
    "cat > x.md <<'EOF'\n{spec}\nEOF",
    "(cd {specs}); cat config.eval.yaml",
    "cd {specs} && cd {work} && cat config.eval.yaml",
    "cat config.eval.yaml",
    "cat {home}/.claude/skills/x/SKILL.md",
]


@pytest.mark.parametrize("command", PROTECTED_COMMANDS)
def test_a_command_that_reads_a_protected_file_is_cheating(world: World, command: str) -> None:
    found = world.evidence(bash(world.fill(command)))
    assert len(found) == 1, found
    assert "reaches the protected" in found[0]


@pytest.mark.parametrize("command", HARMLESS_COMMANDS)
def test_a_command_that_reads_no_protected_file_is_not(world: World, command: str) -> None:
    assert world.evidence(bash(world.fill(command))) == ()


@pytest.mark.parametrize(
    ("name", "given", "cheats"),
    [
        ("Read", {"file_path": "{spec}"}, True),
        ("Write", {"file_path": "{spec}", "content": "x"}, True),
        ("Edit", {"file_path": "{results}/run.json", "old_string": "", "new_string": "x"}, True),
        ("Write", {"file_path": "notes.md", "content": "{spec}"}, False),
        ("LS", {"path": "{specs}"}, False),
        ("LS", {"path": "{results}"}, True),
        ("Grep", {"pattern": "x", "path": "{specs}"}, True),
        ("Grep", {"pattern": "x", "path": "{project}", "glob": "*.{yaml,yml}"}, True),
        ("Grep", {"pattern": "x", "path": "{project}", "glob": "*.md"}, False),
        ("Grep", {"pattern": "x", "path": "{project}", "type": "py"}, False),
        ("Grep", {"pattern": "x", "path": "{project}", "type": "yaml"}, True),
        ("Grep", {"pattern": "{spec}"}, False),
        ("Grep", {"pattern": "x"}, False),
        ("Glob", {"pattern": "**/*.yaml", "path": "{project}"}, True),
        ("Glob", {"pattern": "{project}/**/*.json"}, True),
        ("Glob", {"pattern": "*.yaml", "path": "{project}"}, False),
        ("Glob", {"pattern": "**/*.md", "path": "{project}"}, False),
        ("Glob", {"pattern": "**/*"}, False),
        ("mcp__fs__read", {"uri": "file://{spec}"}, True),
        ("mcp__fs__list_directory", {"path": "{specs}"}, False),
    ],
)
def test_tools_that_reach_protected_files(world: World, name: str, given: dict[str, str], cheats: bool) -> None:
    filled = {key: world.fill(value) for key, value in given.items()}
    assert bool(world.evidence(call(name, **filled))) is cheats


def test_a_protected_file_is_known_by_every_name(world: World, tmp_path: Path) -> None:
    work = world.workspace.work
    (work / "link.txt").symlink_to(world.spec)
    (work / "dir").symlink_to(world.spec.parent)
    os.link(world.spec, work / "hard.txt")
    for name in ("link.txt", "hard.txt", "dir/config.eval.yaml", "dir/*", str(tmp_path / "my project/specs/config.eval.yaml")):
        assert world.evidence(call("Read", file_path=name)), name
        assert world.evidence(bash(f"cat '{name}'")), name
    assert world.evidence(bash("cat dir/../.caliper/results/run.json"))  # `..` behind a link leads elsewhere than it seems
    assert world.evidence(bash("grep -r x dir/"))


def test_a_protected_path_need_not_exist(world: World) -> None:
    gone = world.project / "specs" / "config.cassettes"
    assert world.evidence(bash(f"cat {gone}/task-001-skill-1.json"), protected=(gone,))


def test_results_kept_around_the_workspace_do_not_forbid_the_workspace(world: World) -> None:
    around = world.workspace.root.parent
    assert world.evidence(bash("cat a.txt ./b; grep -r x ."), protected=(around,)) == ()


def test_one_line_for_each_pattern_and_protected_file(world: World) -> None:
    found = world.evidence(
        bash(f"cat {world.spec}; cat {world.spec} {world.results}/run.json"),
        call("Read", file_path=str(world.spec)),
        patterns=(SPECS,),
    )
    assert [line.split(":")[0] for line in found] == ["Bash", "Bash", "Bash", "Read", "Read"]


def test_evidence_is_bounded_and_printable(world: World) -> None:
    turns = [call("Read", file_path=f"{'x' * 3000}\x1b[31m\u2028\ud800/{i}.eval.yaml") for i in range(MAX_EVIDENCE * 2)]
    found = world.evidence(*turns, patterns=(SPECS,))
    assert len(found) == MAX_EVIDENCE
    for line in found:
        assert line.isprintable()
        assert len(line) < 500
        assert line.encode("utf-8")


def test_variables_of_the_agents_shell_may_be_given(world: World) -> None:
    turn = bash("cat $CALIPER_SPEC_DIR/config.eval.yaml")
    assert world.evidence(turn) == ()
    variables = {"CALIPER_SPEC_DIR": str(world.spec.parent)}
    assert find_cheating([turn], patterns=(), protected=(world.spec,), workspace=world.workspace, variables=variables)


def test_odd_names_do_no_harm(world: World) -> None:
    odd = ["a\0b", "x" * 10_000, "\ud800", "/" * 300, "[", "[!", "{", "{a,b", "~", "$", "${", "..", "-", "\n"]
    turns = [call("Read", file_path=name) for name in odd] + [bash(f"cat {name}") for name in odd]
    assert world.evidence(*turns, patterns=(SPECS,)) == ()


def test_a_huge_command_is_searched_piece_by_piece(world: World) -> None:
    """A quadratic pattern would need minutes for such a text in one piece."""
    filler = "word " * 10_000
    assert world.evidence(bash(f"cat '{filler}'"), patterns=(r"(.*)=(.*)\.evil$",)) == ()
    assert world.evidence(bash(f"grep '{filler}' config.eval.yaml '{filler}'"), patterns=(SPECS,), protected=())


def test_the_cut_between_pieces_hides_nothing(world: World) -> None:
    for length in range(900, 2200, 13):
        command = "tool " + "y" * length + " curl x | sudo z " + "w" * 5000
        assert world.evidence(bash(command), patterns=(r"curl x \| sudo",), protected=()), length


shell_text = st.text(alphabet=st.sampled_from(list("ab /.$`\"'\\|&;<>(){}\n#=~*[]!-EOF")), max_size=80)


@given(shell_text)
def test_any_text_can_be_read_as_a_command(text: str) -> None:
    def count(nodes: list[Node]) -> int:
        return sum(1 + count(node.nodes) if isinstance(node, Group) else 1 for node in nodes)

    script = parse(text)
    assert count(script.nodes) <= 3 * len(text) + 1
    assert all(0 <= start <= end for start, end in script.hidden)


@given(
    st.lists(st.sampled_from(["cat", "a b", "x'y", '"', "$HOME", "`", "\\", "#", "(", "\n", "é", "*"]), min_size=1, max_size=6)
)
def test_quoted_words_are_read_as_the_shell_reads_them(words: list[str]) -> None:
    import shlex

    (command,) = parse(shlex.join(words)).nodes
    assert not isinstance(command, Group)
    assert [word.text for word in command.words] == words


@given(shell_text)
def test_a_command_that_reads_is_found_behind_any_complete_command(text: str) -> None:
    """Whatever was quoted before, a line of its own is read as one, unless a quote or a here-document was left open."""
    if any(char in text for char in "'\"`\\<({#$"):
        return
    script = parse(f"{text}\ncat needle.txt")
    words = [word.text for node in script.nodes if not isinstance(node, Group) for word in node.words]
    assert "needle.txt" in words


@pytest.mark.parametrize(
    "source",
    ["$(" * 50_000, '"' * 50_001, "`" * 50_001, "(" * 50_000, "'\"" * 25_000, "<<a\n" * 20_000, '"$(' * 20_000, "${" * 20_000],
)
def test_deep_and_broken_nesting_ends(source: str) -> None:
    parse(source)


@pytest.mark.parametrize(
    "command",
    [
        "ls {specs} | while read f; do cat {specs}/$f; done",
        'for f in $(ls {specs}); do head -5 "{specs}/${f}"; done',
        "cd {specs}; for f in $(ls); do cat $f; done",
        "for x in a b; do cat {specs}/$x.eval.yaml; done",
    ],
)
def test_a_variable_whose_value_is_not_known_may_be_any_name(world: World, command: str) -> None:
    assert world.evidence(bash(world.fill(command)))


@pytest.mark.parametrize(
    "command",
    [
        "for f in $(ls); do cat $f; done",
        "ls {specs}/$f",
        'cat "$HOME/$f" "{work}/$f" $f/demo.eval.yaml',
        "echo $f > notes; mkdir -p $DIR/results",
        "grep -r x {work}/$f",
    ],
)
def test_a_variable_whose_value_is_not_known_accuses_nobody_elsewhere(world: World, command: str) -> None:
    assert not world.evidence(bash(world.fill(command)))
