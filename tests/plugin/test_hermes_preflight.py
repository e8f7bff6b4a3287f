"""Given what Hermes cannot do, when pytest runs a spec on it, then that is said before anything is paid for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

VERSION = """\
#!{python}
import sys
if sys.argv[1:] == ["--version"]:
    print("Hermes Agent v0.19.0 (2026.7.20)")
elif "importlib" in " ".join(sys.argv):
    print(False)
else:
    open("{ran}", "w")
"""


@pytest.fixture
def hermes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a Hermes which was really run leaves behind. Its Python has no package `mcp`."""
    ran = pytester.path / "ran"
    python = pytester.path / "venv" / "python3"
    program = pytester.path / "hermes"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\ncase "$*" in *importlib*) echo False ;; *) exec ' + sys.executable + ' "$@" ;; esac\n')
    program.write_text(VERSION.replace("{python}", str(python)).replace("{ran}", str(ran)))
    for path in (python, program):
        path.chmod(0o755)
    monkeypatch.setenv("HERMES_CLI_PATH", str(program))
    monkeypatch.setenv("OPENROUTER_API_KEY", "dummy-key")
    monkeypatch.setenv("HOME", str(pytester.path))
    return ran


def run(pytester: pytest.Pytester, spec: str) -> pytest.RunResult:
    (pytester.path / "demo.eval.yaml").write_text(spec, encoding="utf-8")
    return pytester.runpytest_subprocess("demo.eval.yaml", "--caliper-model=hermes", "-p", "no:cacheprovider")


def test_a_prompt_that_is_too_long_names_its_task(pytester: pytest.Pytester, hermes: Path) -> None:
    result = run(
        pytester,
        f"tasks:\n  - name: Short\n    prompt: a\n    assert: assert 1\n  - {{name: Long, prompt: {'é' * 70_000}, assert: assert 1}}\n",
    )

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*demo.eval.yaml:5: the prompt has 140,000 bytes, hermes takes 122,880: *"])
    assert not hermes.exists()


def test_a_copy_without_mcp_is_refused_with_the_remedy(pytester: pytest.Pytester, hermes: Path) -> None:
    result = run(pytester, "mcp:\n  echo: {command: cat}\ntasks:\n  - {name: A, prompt: b, assert: assert 1}\n")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*demo.eval.yaml: this copy of Hermes has no support for MCP: *hermes-agent?mcp?*"])
    assert not hermes.exists()
