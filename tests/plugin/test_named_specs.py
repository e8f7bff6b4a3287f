"""Which specs a command line leads to is known before anything is collected, and is what pytest then collects."""

from __future__ import annotations

import os

import pytest
import yaml  # noqa: F401  its C part cannot be imported anew by each run in this process

from pytest_caliper.running.named_specs import named_specs

SPEC = "tasks:\n  - {name: T, prompt: echo a, assert: assert True}\n"


@pytest.fixture
def tree(project):
    """A project with specs wherever people have them, and where nobody looks for them."""

    def put(*names: str) -> None:
        for name in names:
            path = project.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SPEC)

    project.put = put
    return project


def named(project, *arguments: str) -> list[str]:
    config = project.parseconfigure(*arguments)
    return [os.path.relpath(path, project.path) for path in named_specs(config)]


def collected(project, *arguments: str) -> set[str]:
    result = project.runpytest(*arguments, "--collect-only", "-q", "--caliper-k=1")
    return {line.split("::", 1)[0] for line in result.outlines if "::attempt-1" in line}


def test_files_before_directories_in_the_order_of_their_names(tree):
    tree.put("b/z.eval.yaml", "b/a/y.eval.yml", "a.eval.yaml", "b.eval.yaml", "a/x.eval.yaml", "a/not_one.yaml")
    expected = ["a.eval.yaml", "b.eval.yaml", "a/x.eval.yaml", "b/z.eval.yaml", "b/a/y.eval.yml"]
    assert named(tree) == named(tree, ".") == expected
    assert set(expected) == collected(tree)


def test_arguments_in_their_order_without_node_ids_and_each_once(tree):
    tree.put("one.eval.yaml", "two.eval.yaml", "sub/three.eval.yaml")
    assert named(tree, "two.eval.yaml::T::attempt-1", "one.eval.yaml", "two.eval.yaml", "sub", ".") == [
        "two.eval.yaml",
        "one.eval.yaml",
        "sub/three.eval.yaml",
    ]


def test_a_file_whose_name_holds_colons_or_brackets_is_found_whole(tree):
    tree.put("a::b.eval.yaml", "c[1].eval.yaml")
    assert named(tree, "a::b.eval.yaml", "c[1].eval.yaml") == ["a::b.eval.yaml", "c[1].eval.yaml"]


def test_what_is_not_there_or_no_spec_is_not_named(tree):
    tree.makepyfile(test_unit="def test_unit(): pass")
    assert named(tree, "gone.eval.yaml", "test_unit.py", "x" * 300, "nul\0.eval.yaml") == []


def test_what_pytest_leaves_out_is_left_out(tree):
    hidden = [".claude/a.eval.yaml", "build/a.eval.yaml", "node_modules/p/a.eval.yaml", ".caliper/a.eval.yaml", "env/a.eval.yaml"]
    tree.put("seen.eval.yaml", "ign/a.eval.yaml", "glob_1.eval.yaml", *hidden)
    (tree.path / "env" / "pyvenv.cfg").write_text("")
    arguments = (".", "--ignore=ign", "--ignore-glob=glob_*")
    assert named(tree, *arguments) == ["seen.eval.yaml"]
    assert collected(tree, *arguments) == {"seen.eval.yaml"}


def test_norecursedirs_with_a_path_is_about_the_path(tree):
    tree.put("a/deep/x.eval.yaml", "b/deep/x.eval.yaml")
    assert named(tree, "-o", "norecursedirs=a/deep") == ["b/deep/x.eval.yaml"]
    assert collected(tree, "-o", "norecursedirs=a/deep") == {"b/deep/x.eval.yaml"}


def test_what_is_named_itself_is_taken_wherever_it_lies(tree):
    tree.put(".claude/skills/s/a.eval.yaml", "build/b.eval.yaml")
    assert named(tree, ".claude/skills", "build/b.eval.yaml") == [".claude/skills/s/a.eval.yaml", "build/b.eval.yaml"]
    assert collected(tree, ".claude/skills", "build/b.eval.yaml") == {".claude/skills/s/a.eval.yaml", "build/b.eval.yaml"}


def test_testpaths_are_followed(tree):
    tree.put("evals/a.eval.yaml", "other/b.eval.yaml")
    assert named(tree, "-o", "testpaths=evals") == ["evals/a.eval.yaml"]


def test_links_are_followed_but_not_in_circles(tree):
    tree.put("real/a.eval.yaml")
    (tree.path / "linked").symlink_to("real")
    (tree.path / "real" / "round").symlink_to("..")
    (tree.path / "dangling.eval.yaml").symlink_to("nowhere")
    assert named(tree) == ["linked/a.eval.yaml", "real/a.eval.yaml"]


def test_a_package_named_with_pyargs(tree, monkeypatch):
    tree.put("lib/pkg/evals/a.eval.yaml")
    (tree.path / "lib/pkg/__init__.py").write_text("")
    monkeypatch.syspath_prepend(tree.path / "lib")
    assert named(tree, "--pyargs", "pkg") == ["lib/pkg/evals/a.eval.yaml"]
    assert named(tree, "--pyargs", "no_such_package.at_all") == []


def test_a_directory_nobody_may_read_is_passed_over(tree):
    tree.put("closed/a.eval.yaml", "open.eval.yaml")
    (tree.path / "closed").chmod(0)
    try:
        assert "open.eval.yaml" in named(tree)
    finally:
        (tree.path / "closed").chmod(0o755)
