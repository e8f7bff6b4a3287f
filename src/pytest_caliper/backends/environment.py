"""The environment that agents and judges live in: an allow-list of the host's, with private directories.

What is not named here, or by the backend, stays outside: secrets of other programs, variables of a parent agent session, pytest's
own state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from pytest_caliper.contracts import Workspace

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY")

ALLOWED: tuple[str, ...] = (
    *("PATH", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "TZ", "SHELL", "USER", "LOGNAME", "HOSTNAME"),
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"),
    *("GIT_SSL_CAPATH", "AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE", "DENO_CERT", "NODE_USE_SYSTEM_CA"),
    *("CI", "GITHUB_ACTIONS", "GITLAB_CI"),
    # What programs on PATH need to start at all: shared libraries, locales, macOS' text encoding and developer tools.
    *("LD_LIBRARY_PATH", "LOCALE_ARCHIVE", "__CF_USER_TEXT_ENCODING", "DEVELOPER_DIR", "SDKROOT"),
)
"""Names, or patterns with `*`, of the host's variables that pass through."""

_TOOLCHAINS = {
    "ASDF_DATA_DIR": ".asdf",
    "NODENV_ROOT": ".nodenv",
    "NVM_DIR": ".nvm",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "VOLTA_HOME": ".volta",
}
"""Version managers whose programs on PATH look below HOME for the real ones, with the directory they take by default."""


def base_environment(
    env: Mapping[str, str],
    workspace: Workspace,
    *,
    extra_path: Iterable[Path] = (),
    spec_dir: Path | None = None,
    passed: Iterable[str] = (),
) -> dict[str, str]:
    """The environment of a process in `workspace`.

    `env` is the host's. `extra_path` goes before PATH, in order. `passed` names further variables of the host, `*` as a wildcard.
    `CALIPER_WORKDIR` is always set. `CALIPER_SPEC_DIR` is set when `spec_dir` is given: to setup, asserts and cleanup, never to
    an agent, which must not be led to where the answers are.
    """
    patterns = (*ALLOWED, *passed)
    out = {name: value for name, value in env.items() if matches(name, patterns)}
    out |= _toolchains(env)
    directories = [str(path) for path in extra_path]
    out["PATH"] = os.pathsep.join([*directories, out.get("PATH") or os.defpath])
    out["HOME"] = str(workspace.home)
    out["TMPDIR"] = str(workspace.tmp)
    out["CALIPER_WORKDIR"] = str(workspace.work)
    if spec_dir is not None:
        out["CALIPER_SPEC_DIR"] = str(spec_dir)
    return out


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a variable's name is one of `patterns`, in which `*` stands for anything; letter case counts."""
    return _any_of(tuple(patterns)).match(name) is not None


@lru_cache(maxsize=32)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")


def host_home(env: Mapping[str, str]) -> Path:
    """The user's own home directory, by the host's environment `env`; the account's when HOME is unset."""
    home = env.get("HOME")
    return Path(home) if home else Path.home()


def _toolchains(env: Mapping[str, str]) -> dict[str, str]:
    """Where version managers keep their programs: HOME is replaced, and without this their shims on PATH would find nothing."""
    home = host_home(env)
    found = {name: env.get(name) or str(home / directory) for name, directory in _TOOLCHAINS.items()}
    return {name: path for name, path in found.items() if Path(path).is_dir()}
