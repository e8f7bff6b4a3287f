"""What git knows of a directory. Asked with bounded time, without locks, and without the variables that point elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

TIMEOUT_S = 10.0
_POINTERS = frozenset(
    f"GIT_{name}" for name in ("DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "OBJECT_DIRECTORY", "PREFIX", "NAMESPACE")
)
"""Variables that git sets for its hooks: with them, another repository would answer."""
_WEB = frozenset({"http", "https", "git", "ssh", "git+ssh"})
_SCP = re.compile(r"[\w.-]+@[\w.-]+:[^\s/?#][^\s?#]*")


class GitError(Exception):
    """Git could not answer. The text is one line."""


def in_repository(directory: Path) -> bool:
    """Whether a directory lies in a git working tree, by the look of it."""
    return any((place / ".git").exists() for place in (directory, *directory.parents))


def ignored_files(directory: Path) -> frozenset[str]:
    """Paths below a directory, relative to it, that are ignored and not tracked. Raises GitError."""
    out = _git(directory, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    return frozenset(os.fsdecode(name) for name in out.split(b"\0") if name)


def is_ignored(directory: Path) -> bool:
    """Whether a directory as a whole is ignored. Raises GitError."""
    return _git(directory, "check-ignore", "--quiet", ".", accept=(0, 1), want="code") == b"0"


def head(directory: Path) -> str | None:
    """The commit that is checked out; None before the first one, or when git cannot tell."""
    try:
        return _git(directory, "rev-parse", "--verify", "--quiet", "HEAD").decode("ascii", "replace").strip() or None
    except GitError:
        return None


def remote(directory: Path) -> str | None:
    """The URL of `origin` without credentials; None when there is none, or when it is a place on this machine."""
    try:
        return public_url(os.fsdecode(_git(directory, "config", "--get", "remote.origin.url")).strip())
    except GitError:
        return None


def public_url(url: str) -> str | None:
    """A remote's URL without user, password, query and fragment; None for local paths and unknown transports."""
    if "://" not in url:
        return url if _SCP.fullmatch(url) else None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _WEB or not host:
        return None
    shown = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, shown if port is None else f"{shown}:{port}", parts.path, "", ""))


def _git(directory: Path, *arguments: str, accept: tuple[int, ...] = (0,), want: str = "output") -> bytes:
    git = shutil.which("git")
    if git is None:
        raise GitError("git is not installed")
    env = {name: value for name, value in os.environ.items() if name not in _POINTERS}
    env.update(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C")
    # A repository's own settings could name a program that git would start to watch its files.
    argv = [git, "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(
            argv, cwd=directory, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} did not end within {TIMEOUT_S:g} s") from error
    except OSError as error:
        raise GitError(f"git could not be started: {error.strerror}") from error
    if done.returncode not in accept:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        raise GitError(said or f"git {arguments[0]} ended with status {done.returncode}")
    return str(done.returncode).encode() if want == "code" else done.stdout
