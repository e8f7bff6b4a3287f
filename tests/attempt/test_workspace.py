"""Private directories of attempts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pytest_caliper.attempt.workspace import PREFIX, create, remove, restore, session_root
from pytest_caliper.contracts import Workspace


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return session_root()


def test_a_session_root_is_private_and_named_so_that_it_may_be_removed(root: Path) -> None:
    assert root.name.startswith(PREFIX)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_session_root_lies_outside_any_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    inside = tmp_path / "tmp"
    inside.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(inside))
    made = session_root()
    try:
        assert not made.is_relative_to(tmp_path)
    finally:
        remove(made)


def test_creating_twice_changes_nothing(root: Path) -> None:
    workspace = Workspace.at(root / "a")
    create(workspace)
    (workspace.work / "kept").write_text("x")
    create(workspace)
    assert (workspace.work / "kept").read_text() == "x"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in (workspace.home, workspace.work, workspace.tmp))


def test_directories_that_were_closed_are_removed_and_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    closed = root / "work" / "a" / "b"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    (closed / "link").symlink_to(outside)
    os.chmod(closed, 0o500)
    os.chmod(closed.parent, 0o000)
    assert remove(root)
    assert (outside / "kept").exists()


def test_removing_what_is_gone_is_no_error(root: Path) -> None:
    assert remove(root)
    assert remove(root)


@pytest.mark.parametrize("how", ["removed", "file", "link", "dangling", "closed"])
@pytest.mark.parametrize("which", ["work", "home", "tmp"])
def test_what_an_agent_did_to_its_directories_is_undone_for_the_cleanup(root: Path, tmp_path: Path, how: str, which: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    workspace = Workspace.at(root / "a")
    create(workspace)
    place: Path = getattr(workspace, which)
    if how == "closed":
        place.chmod(0o000)
    else:
        place.rmdir()
    if how == "file":
        place.write_text("x")
    elif how in ("link", "dangling"):
        place.symlink_to(outside if how == "link" else tmp_path / "nowhere")
    restore(workspace)
    assert stat.S_IMODE(place.lstat().st_mode) == 0o700
    assert stat.S_ISDIR(place.lstat().st_mode)
    assert list(place.iterdir()) == []
    assert (outside / "kept").exists()
