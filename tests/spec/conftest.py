"""A directory with what specs name, and a way to write a spec into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Spec, SpecError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """`SKILL.md`, a skill in `other/`, a command, a `bin/` and an assert script."""
    (tmp_path / "SKILL.md").write_text("---\nname: demo\n---\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "SKILL.md").write_text("---\nname: other\n---\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "command.md").write_text("Do it.")
    (tmp_path / "bin").mkdir()
    (tmp_path / "check.py").write_text("assert attempt.answer\n")
    return tmp_path


@pytest.fixture
def load(project: Path) -> Callable[[str | bytes], Spec]:
    """Write the text of a spec (dedented; bytes as they are) to `demo.eval.yaml` in the project, and load it."""

    def load(text: str | bytes) -> Spec:
        path = project / "demo.eval.yaml"
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
        return load_spec(path)

    return load


@pytest.fixture
def mistakes(load: Callable[[str | bytes], Spec], project: Path) -> Callable[[str | bytes], list[str]]:
    """Load a spec that has mistakes; each as `line: message`, or `script.py:line: message`."""

    def mistakes(text: str | bytes) -> list[str]:
        with pytest.raises(SpecError) as caught:
            load(text)
        found = str(caught.value).split("\n")
        prefix = f"{project}/"
        assert all(line.startswith(prefix) for line in found), "one mistake, one line"
        return [line.removeprefix(prefix).removeprefix("demo.eval.yaml:") for line in found]

    return mistakes
