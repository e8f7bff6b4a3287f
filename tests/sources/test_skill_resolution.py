from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_caliper.contracts import Skill
from pytest_caliper.sources import git, resolve_skill, resolve_skills
from pytest_caliper.sources.snapshot import MAX_TEXT, MAX_TEXTS
from pytest_caliper.spec.model import Sandbox, SkillRef, Spec, SpecError

FRONTMATTER = "---\nname: greeter\ndescription: Greets.\n---\nSay hi.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A skill's directory in a project without version control."""
    directory = tmp_path / "skills" / "hello"
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(FRONTMATTER)
    return directory


def write(root: Path, *paths: str, content: str = "x") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def resolve(path: Path, *, project: Path | None = None, exclude: frozenset[Path] = frozenset()) -> Skill:
    skill, warnings = resolve_skill(
        SkillRef(path=path, line=2), exclude=exclude, project=project or path.parent, spec_path=Path("/p/x.eval.yaml")
    )
    assert warnings == ()
    return skill


def warning(path: Path) -> tuple[Skill, str]:
    skill, warnings = resolve_skill(
        SkillRef(path=path, line=2), exclude=frozenset(), project=path.parent, spec_path=Path("/p/x.eval.yaml")
    )
    assert [(one.path, one.line) for one in warnings] == [(Path("/p/x.eval.yaml"), 2)]
    return skill, warnings[0].message


def refusal(path: Path) -> str:
    with pytest.raises(SpecError) as caught:
        resolve(path)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.path, diagnostic.line) == (Path("/p/x.eval.yaml"), 2)
    assert "\n" not in diagnostic.message
    return diagnostic.message


# What a skill may be


def test_a_directory_and_its_skill_file_are_the_same_skill(root: Path) -> None:
    skill = resolve(root)
    assert skill == resolve(root / "SKILL.md", project=root.parent)
    assert (skill.name, skill.kind, skill.root, skill.files) == ("greeter", "directory", root.resolve(), ("SKILL.md",))


def test_a_lone_markdown_file_is_a_command(root: Path) -> None:
    write(root, "commit.md", "other.txt")
    skill = resolve(root / "commit.md")
    assert (skill.name, skill.kind, skill.files) == ("commit", "command", ("commit.md",))
    assert list(skill.snapshot.files) == ["commit.md"]
    assert skill.snapshot.path == "commit.md"


def test_without_a_name_the_directory_gives_it_with_a_warning(root: Path) -> None:
    write(root, "SKILL.md", content="# No frontmatter\n")
    skill, message = warning(root)
    assert skill.name == "hello"
    assert "no `name:`" in message
    assert "no Agent Skill name" not in message


def test_a_directory_name_that_some_agents_refuse_is_said(root: Path) -> None:
    odd = root.rename(root.parent / "My_Skill")
    write(odd, "SKILL.md", content="---\ndescription: x\n---\n")
    skill, message = warning(odd)
    assert skill.name == "My_Skill"
    assert "no Agent Skill name" in message


def test_the_name_is_that_of_the_directory_however_it_is_reached(root: Path) -> None:
    write(root, "SKILL.md", "sub/x", content="# x\n")
    assert warning(root / "sub" / "..")[0].name == "hello"


def test_a_linked_skill_directory_is_a_skill(root: Path) -> None:
    (root.parent / "current").symlink_to("hello")
    assert resolve(root.parent / "current").root == root.resolve()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("---\nname: x\n", "closing ---"),
        ("---\nname: Not Valid\n---\n", "no Agent Skill name"),
        ("---\nname: 1\n---\n", "quote it"),
    ],
)
def test_broken_frontmatter_is_refused(root: Path, content: str, says: str) -> None:
    write(root, "SKILL.md", content=content)
    message = refusal(root)
    assert "hello/SKILL.md" in message
    assert says in message


def test_what_is_no_skill(root: Path) -> None:
    write(root, "notes.txt", "empty/x", "lower/skill.md")
    assert "neither" in refusal(root / "notes.txt")
    assert "holds no SKILL.md" in refusal(root / "empty")
    assert "rename it" in refusal(root / "lower")
    assert "does not exist" in refusal(root / "gone")
    (root / "dir" / "SKILL.md").mkdir(parents=True)
    assert "is no file" in refusal(root / "dir")


# What is installed


def test_the_whole_directory_is_installed_hidden_files_too(root: Path) -> None:
    write(root, "scripts/run.sh", "reference/a b.md", ".hidden", ".config/x.json", "env/settings.py", "envy", "a.eval.yaml.md")
    (root / "reference" / "empty").mkdir()
    assert resolve(root).files == (
        ".config/x.json",
        ".hidden",
        "SKILL.md",
        "a.eval.yaml.md",
        "env/settings.py",
        "envy",
        "reference/a b.md",
        "scripts/run.sh",
    )


def test_what_is_never_installed(root: Path) -> None:
    write(root, "x.eval.yaml", "sub/Y.EVAL.YML", "x.cassettes/task-001-skill-1.json", ".caliper/results/x/r.json")
    write(root, ".env", ".env.local", "sub/.envrc", ".git/config", "sub/.hg/x", ".svn/x", ".jj/x")
    write(root, ".venv/lib/x.py", "venv/pyvenv.cfg", "venv/lib/x.py", "odd/pyvenv.cfg", "node_modules/a/index.js")
    write(root, "sub/__pycache__/a.pyc", "b.pyc", ".pytest_cache/x", ".mypy_cache/x", ".ruff_cache/x", ".tox/x", "sub/.DS_Store")
    shutil.rmtree(root / ".git")  # else git is asked, and refuses what is no repository
    assert resolve(root).files == ("SKILL.md",)


def test_a_worktrees_git_file_is_not_installed(root: Path) -> None:
    write(root, "sub/.git", content="gitdir: /elsewhere\n")
    assert resolve(root).files == ("SKILL.md",)


def test_files_that_the_spec_names_are_not_installed(root: Path) -> None:
    write(root, "check.py", "server/weather.py", "server/data.json", "tools/a.py")
    os.link(root / "check.py", root / "same.py")
    (root / "link.py").symlink_to("check.py")
    exclude = frozenset({root / "check.py", root / "server" / "weather.py", root / "tools", root / "gone.py"})
    assert resolve(root, exclude=exclude).files == ("SKILL.md", "server/data.json")


def test_the_skill_file_is_always_installed(root: Path) -> None:
    assert resolve(root, exclude=frozenset({root / "SKILL.md"})).files == ("SKILL.md",)


# Links and special files


def test_links_inside_are_the_files_they_point_to(root: Path) -> None:
    write(root, "real/a.md")
    (root / "b.md").symlink_to("real/a.md")
    (root / "absolute.md").symlink_to(root / "real" / "a.md")
    (root / "linked").symlink_to("real", target_is_directory=True)
    skill = resolve(root)
    assert skill.files == ("SKILL.md", "absolute.md", "b.md", "linked/a.md", "real/a.md")
    assert skill.snapshot.files["linked/a.md"] == skill.snapshot.files["real/a.md"]


@pytest.mark.parametrize("target", ["../../../secret", "/etc/hostname", "x/../../../../secret", "../..", "../../hello-too/x"])
def test_links_that_leave_are_refused_by_name(root: Path, target: str) -> None:
    write(root.parent.parent, "secret")
    write(root.parent, "hello-too/x")
    (root / "sub" / "x").mkdir(parents=True)
    (root / "sub" / "out").symlink_to(target)
    assert "the link sub/out leads out" in refusal(root)


def test_a_link_to_a_link_that_leaves_is_refused(root: Path) -> None:
    write(root.parent, "secret")
    (root / "first").symlink_to("second")
    (root / "second").symlink_to("../secret")
    assert "the link first leads out" in refusal(root)


def test_a_file_below_a_link_that_leaves_is_refused_with_the_link(root: Path) -> None:
    write(root.parent, "shared/a.md")
    (root / "shared").symlink_to("../shared", target_is_directory=True)
    assert "the link shared leads out" in refusal(root)


def test_a_linked_skill_file_that_leaves_is_refused(root: Path) -> None:
    (root / "SKILL.md").rename(root.parent / "real.md")
    (root / "SKILL.md").symlink_to("../real.md")
    assert "the link SKILL.md leads out" in refusal(root)


def test_a_linked_command_that_leaves_is_refused(root: Path) -> None:
    write(root.parent, "real.md")
    (root / "commit.md").symlink_to("../real.md")
    assert "the link commit.md leads out" in refusal(root / "commit.md")


def test_links_to_nowhere_and_to_themselves(root: Path) -> None:
    (root / "dangling").symlink_to("gone")
    assert "the link dangling points nowhere" in refusal(root)
    (root / "dangling").unlink()
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    assert "the link one points nowhere" in refusal(root)


@pytest.mark.parametrize("target", ["..", "."])
def test_links_back_up_are_refused(root: Path, target: str) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "up").symlink_to(target)
    assert "the link sub/up leads back" in refusal(root)


def test_a_link_does_not_bring_in_what_is_never_installed(root: Path) -> None:
    write(root, "x.eval.yaml", ".env", "node_modules/a.js", "plain/pyvenv.cfg")
    for name, target in {
        "a.md": "x.eval.yaml",
        "b": ".env",
        "c.js": "node_modules/a.js",
        "d": "node_modules",
        "e": "plain/pyvenv.cfg",
    }.items():
        (root / name).symlink_to(target)
    assert resolve(root).files == ("SKILL.md",)


def test_links_that_leave_do_not_matter_where_nothing_is_installed(root: Path) -> None:
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to("/usr/bin/env")
    assert resolve(root).files == ("SKILL.md",)


def test_special_files_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    assert "pipe is a named pipe" in refusal(root)
    (root / "pipe").unlink()
    monkeypatch.chdir(root)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        assert "sock is a socket" in refusal(root)


# Limits


def test_too_large_names_the_largest(root: Path) -> None:
    (root / "data").mkdir()
    for name, size in {"data/big.bin": 15_000_000, "small.bin": 5_100_000}.items():
        with open(root / name, "wb") as out:
            out.truncate(size)
    message = refusal(root)
    assert "20.1 MB, the limit is 20.0 MB" in message
    assert "data/big.bin (15.0 MB)" in message


def test_too_many_names_the_fullest_directory(root: Path) -> None:
    for number in range(999):
        write(root, f"data/deep/{number}.txt")
    assert len(resolve(root).files) == 1000
    write(root, "more/1.txt")
    message = refusal(root)
    assert "1,001 files, the limit is 1,000" in message
    assert "data/deep/ holds 999" in message


def test_scattered_files_are_summed_up(root: Path) -> None:
    for number in range(1001):
        write(root, f"data/{number % 300}/{number}.txt")
    assert "data/ holds 1,001" in refusal(root)


# Snapshot


def test_snapshot_holds_texts_and_hashes(root: Path) -> None:
    write(root, "text.md", content="Grüße\r\n")
    (root / "text.md").write_bytes("Grüße\r\n".encode())
    (root / "image.png").write_bytes(b"\x89PNG\x00")
    (root / "latin.txt").write_bytes(b"\xe9")
    snapshot = resolve(root, project=root.parent.parent).snapshot
    assert snapshot.path == "skills/hello"
    assert snapshot.files["text.md"] == {
        "content": "Grüße\r\n",
        "hash": f"sha256:{hashlib.sha256('Grüße'.encode() + bytes([13, 10])).hexdigest()}",
    }
    assert snapshot.files["image.png"]["content"] == snapshot.files["latin.txt"]["content"] == ""
    assert snapshot.files["image.png"]["hash"] == f"sha256:{hashlib.sha256(bytes([0x89]) + b'PNG' + bytes(1)).hexdigest()}"
    assert (snapshot.git_repo, snapshot.git_sha) == (None, None)


def test_a_skill_outside_the_project_is_known_by_its_name(root: Path, tmp_path: Path) -> None:
    assert resolve(root, project=tmp_path / "elsewhere").snapshot.path == "greeter"


def test_long_texts_are_cut_and_marked(root: Path) -> None:
    write(root, "a.txt", content="ü" * MAX_TEXT)
    content = resolve(root).snapshot.files["a.txt"]["content"]
    assert content == "ü" * (MAX_TEXT // 2) + "\n[cut: 400,000 bytes in all]\n"


def test_all_texts_together_are_bounded_and_the_skill_file_is_kept(root: Path) -> None:
    for number in range(15):
        write(root, f"{number:02}.txt", content="x" * MAX_TEXT)
    files = resolve(root).snapshot.files
    assert files["SKILL.md"]["content"] == FRONTMATTER
    assert sum(len(entry["content"]) for entry in files.values()) < MAX_TEXTS + 1000
    assert files["14.txt"]["content"] == ""
    assert files["14.txt"]["hash"] == files["00.txt"]["hash"]


@pytest.mark.skipif(os.uname().sysname == "Darwin", reason="macOS has no such names")
def test_a_name_that_is_no_text_can_be_installed_and_written(root: Path) -> None:
    with open(os.fsencode(root) + b"/\xff.md", "wb"):
        pass
    skill = resolve(root)
    assert os.fsencode(skill.files[1]) == b"\xff.md"
    assert "\\xff.md" in skill.snapshot.files


# Several skills


def spec_of(directory: Path, *paths: Path) -> Spec:
    return Spec(
        path=directory / "x.eval.yaml",
        skills=tuple(SkillRef(path=path, line=number) for number, path in enumerate(paths, 3)),
        tasks=(),
        sandbox=Sandbox(),
        mcp=(),
        engine_default=None,
        judge_default=None,
        warnings=(),
        digest="sha256:0",
    )


def test_skills_come_in_the_order_of_the_spec_with_their_warnings(root: Path) -> None:
    write(root.parent, "abc/SKILL.md", "cmd.md", content="# x\n")
    spec = spec_of(root.parent, root, root.parent / "abc", root.parent / "cmd.md")
    skills, warnings = resolve_skills(spec, exclude=frozenset(), project=root.parent)
    assert [skill.name for skill in skills] == ["greeter", "abc", "cmd"]
    assert [one.line for one in warnings] == [4]
    assert resolve_skills(spec_of(root.parent), exclude=frozenset(), project=root.parent) == ((), ())


def test_every_mistake_is_told_at_once(root: Path) -> None:
    write(root.parent, "two/SKILL.md", content=FRONTMATTER)
    write(root.parent, "Greeter.md", "bad/SKILL.md", content="---\n")
    spec = spec_of(root.parent, root, root.parent / "two", root.parent / "bad", root.parent / "Greeter.md")
    with pytest.raises(SpecError) as caught:
        resolve_skills(spec, exclude=frozenset(), project=root.parent)
    assert [one.line for one in caught.value.diagnostics] == [4, 5, 6]
    assert "a second skill named 'greeter' (the first: line 3)" in caught.value.diagnostics[0].message


# Git


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self("init", "--quiet")

    def __call__(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    return Repository(tmp_path)


def test_git_ignored_files_are_not_installed(root: Path, repository: Repository) -> None:
    write(repository.root, ".gitignore", content="*.log\nbuild/\n/skills/hello/local*\n")
    write(root, "a.log", "sub/b.log", "build/out/x", "local notes.md", "new\nline.md", "kept.md", "forced.log", "nested/c.tmp")
    write(root, "nested/.gitignore", content="*.tmp\n")
    repository("add", "--force", "skills/hello/forced.log")
    assert resolve(root).files == ("SKILL.md", "forced.log", "kept.md", "nested/.gitignore", "new\nline.md")


def test_an_ignored_file_does_not_come_in_through_a_link(root: Path, repository: Repository) -> None:
    write(repository.root, ".gitignore", content="*.log\n")
    write(root, "real/a.log", "real/b.md")
    (root / "direct").symlink_to("real/a.log")
    (root / "linked").symlink_to("real", target_is_directory=True)
    assert resolve(root).files == ("SKILL.md", "linked/b.md", "real/b.md")


def test_ignored_links_that_leave_do_not_matter(root: Path, repository: Repository) -> None:
    write(repository.root, ".gitignore", content="result\n")
    (root / "result").symlink_to("/usr")
    assert resolve(root).files == ("SKILL.md",)


def test_a_directory_that_is_ignored_as_a_whole_is_installed_with_a_warning(root: Path, repository: Repository) -> None:
    write(repository.root, ".gitignore", content="skills/\n")
    write(root, "a.md", ".env")
    skill, message = warning(root)
    assert skill.files == ("SKILL.md", "a.md")
    assert "ignores the whole directory" in message


def test_an_ignored_skill_file_is_installed_all_the_same(root: Path, repository: Repository) -> None:
    write(repository.root, ".gitignore", content="SKILL.md\n*.log\n")
    write(root, "a.log")
    assert resolve(root).files == ("SKILL.md",)


def test_the_variables_of_a_git_hook_do_not_lead_to_another_repository(
    root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(repository.root, ".gitignore", content="*.log\n")
    write(root, "a.log")
    other = tmp_path_factory.mktemp("other")
    Repository(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    assert resolve(root).files == ("SKILL.md",)


def test_commit_and_remote_are_recorded_without_credentials(root: Path, repository: Repository) -> None:
    assert resolve(root).snapshot.git_sha is None
    repository("add", ".")
    repository("commit", "--quiet", "--message", "one")
    repository("remote", "add", "origin", "https://user:s3cret@example.org/r.git?token=s3cret")
    snapshot = resolve(root).snapshot
    assert snapshot.git_sha == repository("rev-parse", "HEAD")
    assert snapshot.git_repo == "https://example.org/r.git"


@pytest.fixture
def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return (tmp_path / "bin") / "git"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'fatal: detected dubious ownership' >&2; exit 128", "(fatal: detected dubious ownership)"),
        ("exit 3", "(git ls-files ended with status 3)"),
        ("exec sleep 600", "did not end within 0.2 s"),
    ],
)
def test_a_git_that_fails_is_a_warning(
    root: Path, fake_git: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    fake_git.write_text(f"#!/bin/sh\n{script}\n")
    fake_git.chmod(0o755)
    (root / ".git").mkdir()
    if "sleep" in script:
        monkeypatch.setattr(git, "TIMEOUT_S", 0.2)
    write(root, "a.log")
    skill, message = warning(root)
    assert skill.files == ("SKILL.md", "a.log")
    assert says in message


def test_no_git_is_a_warning_in_a_repository_only(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert resolve(root).files == ("SKILL.md",)
    (root / ".git").mkdir()
    assert "git is not installed" in warning(root)[1]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r.git"),
        ("https://token@github.com:8443/o/r?access_token=x#y", "https://github.com:8443/o/r"),
        ("ssh://git:pw@[::1]:22/o/r", "ssh://[::1]:22/o/r"),
        ("git@github.com:o/r.git", "git@github.com:o/r.git"),
        ("/home/me/r.git", None),
        ("../r", None),
        ("file:///home/me/r", None),
        ("ext::sh -c evil", None),
        ("https://[bad", None),
        ("https://host:port/x", None),
        ("", None),
    ],
)
def test_public_url(url: str, shown: str | None) -> None:
    assert git.public_url(url) == shown
