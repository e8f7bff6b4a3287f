from __future__ import annotations

from pathlib import Path

import pytest
from make_runs import names

from pytest_caliper.runs.place import path_in, prepare, project_of, results_directory, spec_stem


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "a" / "b").mkdir(parents=True)
    return root


def place(spec: Path, rootdir: Path, override: Path | None = None) -> Path:
    return results_directory(spec, override=override, rootdir=rootdir)


def test_repository_root_is_the_project_whatever_the_rootdir(repository: Path) -> None:
    spec = repository / "a" / "b" / "x.eval.yaml"
    assert project_of(spec, repository / "a") == repository
    assert place(spec, repository / "a") == repository / ".caliper" / "results" / "a" / "b" / "x"


def test_nearest_caliper_directory_wins(repository: Path) -> None:
    (repository / ".caliper").mkdir()
    (repository / "a" / ".caliper").mkdir()
    assert place(repository / "a" / "b" / "x.eval.yml", repository) == repository / "a" / ".caliper" / "results" / "b" / "x"
    assert place(repository / "y.eval.yaml", repository) == repository / ".caliper" / "results" / "y"


def test_a_caliper_directory_above_the_repository_is_another_project(repository: Path) -> None:
    (repository.parent / ".caliper").mkdir()
    assert project_of(repository / "x.eval.yaml", repository.parent) == repository


def test_a_file_named_caliper_is_no_place(repository: Path) -> None:
    (repository / "a" / ".caliper").write_text("")
    assert project_of(repository / "a" / "x.eval.yaml", repository) == repository


@pytest.mark.parametrize("mark", [".git", ".hg", ".jj", ".svn"])
def test_worktrees_and_other_systems_are_repositories(tmp_path: Path, mark: str) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / mark).write_text("gitdir: elsewhere\n")
    assert project_of(tmp_path / "w" / "x.eval.yaml", tmp_path) == tmp_path / "w"


def test_without_a_repository_the_rootdir_is_the_project(tmp_path: Path) -> None:
    assert place(tmp_path / "d" / "x.eval.yaml", tmp_path) == tmp_path / ".caliper" / "results" / "d" / "x"


def test_without_a_repository_the_search_ends_at_the_rootdir(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "d" / ".caliper").mkdir(parents=True)
    (tmp_path / ".caliper").mkdir()
    assert project_of(root / "d" / "x.eval.yaml", root) == root / "d"
    assert project_of(root / "e" / "x.eval.yaml", root) == root


def test_a_spec_outside_gets_a_directory_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = tmp_path / "one" / "d" / "x.eval.yaml", tmp_path / "two" / "d" / "x.eval.yaml"
    places = {place(one, root), place(two, root)}
    assert len(places) == 2
    for found in places:
        assert ".." not in found.parts
        assert found.is_relative_to(root / ".caliper" / "results")
        assert found.parent.name.startswith("d-")
        assert found.name == "x"


def test_override_replaces_the_place_and_keeps_what_is_below(repository: Path, tmp_path: Path) -> None:
    assert place(repository / "a" / "x.eval.yaml", repository, tmp_path / "out") == tmp_path / "out" / "a" / "x"


def test_links_in_one_of_the_two_paths_do_not_make_a_spec_foreign(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert place(tmp_path / "link" / "x.eval.yaml", tmp_path / "real").parts[-3:] == (".caliper", "results", "x")


def test_the_search_ends_at_the_rootdir_through_a_link_too(tmp_path: Path) -> None:
    (tmp_path / ".caliper").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert project_of(tmp_path / "link" / "x.eval.yaml", tmp_path / "real") == tmp_path / "real"


@pytest.mark.parametrize(
    ("name", "stem"), [("x.eval.yaml", "x"), ("a.b.EVAL.YML", "a.b"), (".eval.yaml", "eval"), ("odd.yaml", "odd")]
)
def test_stem(name: str, stem: str) -> None:
    assert spec_stem(Path("/d") / name) == stem


def test_a_spec_called_partial_does_not_meet_the_partial_runs_of_another(tmp_path: Path) -> None:
    other = place(tmp_path / "a.eval.yaml", tmp_path) / "partial"
    assert place(tmp_path / "a" / "partial.eval.yaml", tmp_path) != other


def test_paths_in_the_project_are_relative_and_never_lead_out(tmp_path: Path) -> None:
    assert path_in(tmp_path, tmp_path / "a" / "b.md") == "a/b.md"
    assert path_in(tmp_path / "a", tmp_path / "b.md") == "b.md"
    assert path_in(tmp_path / "a", tmp_path / "c" / "b.md", outside="b") == "b"


def test_prepare_ignores_a_new_caliper_directory(tmp_path: Path) -> None:
    prepare(tmp_path / ".caliper" / "results" / "x")
    assert (tmp_path / ".caliper" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / ".caliper" / "results" / "x").is_dir()
    prepare(tmp_path / ".caliper" / "results" / "x")


def test_prepare_leaves_an_existing_caliper_directory_alone(tmp_path: Path) -> None:
    (tmp_path / ".caliper").mkdir()
    prepare(tmp_path / ".caliper" / "results" / "x")
    assert names(tmp_path / ".caliper") == ["results"]


def test_prepare_with_a_directory_of_the_users_own_writes_no_gitignore(tmp_path: Path) -> None:
    prepare(tmp_path / "out" / "x")
    assert names(tmp_path / "out") == ["x"]


def test_prepare_says_what_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".caliper").write_text("")
    with pytest.raises(OSError, match=r"\.caliper"):
        prepare(tmp_path / ".caliper" / "results")
