"""What can be wrong with a file that a run left behind."""

from __future__ import annotations

from pathlib import Path


class RunFileError(Exception):
    """A run file or journal cannot be read. The text is one line, names the file and says what is wrong with it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {' '.join(problem.split())}")
        self.path = path
