"""Stands in for PyCharm's pytest runner where PyCharm is not installed; teamcity-messages, which it builds on, is the real one.

Written from what that runner takes and prints, not from its text; `test_pycharm.py` runs against both. The rules:

- `--path FILE` is passed on as it is. `--target FILE.py::a.b` becomes `FILE.py::a::b`, and whatever has no `.py::` has all its dots
  made `::`. Options stand behind `--`.
- TEAMCITY_VERSION is LOCAL, and `--no-header --no-summary -q` are added.
- A test's name is split at dots, and a part `x(y)` without a blank into two. Each level is a suite with a number and its parent's.
- Without `-n` one branch is open at a time: what does not belong to the next test is closed, and opened with a new number when its turn
  comes again. With `-n` a level keeps its number.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from typing import Any

os.environ.setdefault("TEAMCITY_VERSION", "LOCAL")

import pytest
from teamcity import messages

Base = messages.TeamcityServiceMessages


class Tree:
    """The numbers of nodes, and which branch is open."""

    def __init__(self) -> None:
        self.parallel = False
        self.open: list[str] = []
        self.numbers: dict[tuple[str, ...], int] = {}
        self.last = 0

    def number(self, path: list[str]) -> str:
        return str(self.numbers.get(tuple(path), 0))

    def enter(self, path: list[str]) -> None:
        self.last += 1
        self.numbers[tuple(path)] = self.last
        self.open = path


TREE = Tree()


class Messages(Base):
    """Service messages with the place of each node in the tree."""

    def told(self, kind: str, path: list[str], **more: Any) -> None:
        place = ".".join(path)
        where = {
            "locationHint": f"python<{os.getcwd()}>://{place}",
            "nodeId": TREE.number(path),
            "parentNodeId": TREE.number(path[:-1]),
        }
        Base.message(self, kind, name=path[-1], **where, **more)

    def message(self, messageName: str, **properties: Any) -> None:  # noqa: N803  the name it has there
        if "name" in properties and messageName != "testCount":
            self.told(messageName, parts(properties.pop("name")), **properties)
        else:
            Base.message(self, messageName, **properties)

    def testStarted(self, testName: str, captureStandardOutput: Any = None, flowId: Any = None, metainfo: Any = None) -> None:  # noqa: N802, N803
        path = parts(testName)
        if not TREE.parallel:
            while TREE.open != path[: len(TREE.open)]:
                self.leave()
        for depth in range(1, len(path)):
            if (tuple(path[:depth]) not in TREE.numbers) if TREE.parallel else depth > len(TREE.open):
                TREE.enter(path[:depth])
                self.told("testSuiteStarted", path[:depth])
        TREE.enter(path)
        self.told("testStarted", path, captureStandardOutput=captureStandardOutput, metainfo=metainfo)

    def testFinished(self, testName: str, testDuration: Any = None, flowId: Any = None) -> None:  # noqa: N802, N803
        self.told(
            "testFinished", parts(testName), duration=str(int(testDuration.total_seconds() * 1000)) if testDuration else None
        )
        TREE.open = parts(testName)[:-1]

    def leave(self) -> None:
        self.told("testSuiteFinished", TREE.open)
        TREE.open = TREE.open[:-1]

    def blockOpened(self, name: str, flowId: Any = None) -> None:  # noqa: N802, N803
        """Set-up and teardown are no nodes."""

    def blockClosed(self, name: str, flowId: Any = None) -> None:  # noqa: N802, N803
        """Set-up and teardown are no nodes."""


def parts(name: str) -> list[str]:
    found: list[str] = []
    for part in name.split("."):
        glued = re.match(r"^([^\s)(]+)(\(.*\))$", part)
        found += glued.groups() if glued else [part]
    return found


def target_of(text: str) -> str:
    file, mark, inner = text.rpartition(".py::")
    return file + mark + inner.replace(".", "::")


def main(argv: list[str]) -> int:
    cut = argv.index("--") if "--" in argv else len(argv)
    asked, arguments = argv[:cut], argv[cut + 1 :]
    for option, value in zip(asked[::2], asked[1::2], strict=True):
        arguments.append(value if option == "--path" else target_of(value))
    messages.TeamcityServiceMessages = Messages
    from teamcity import pytest_plugin

    pytest_plugin.TeamcityServiceMessages = Messages
    Messages().message("enteredTheMatrix")
    arguments += ["--no-header", "--no-summary", "-q"]

    class Mode:
        @staticmethod
        def pytest_configure(config: pytest.Config) -> None:
            TREE.parallel = bool(getattr(config.option, "numprocesses", None))

    return int(pytest.main(arguments, [Mode()]))


@atexit.register
def _close() -> None:
    while TREE.open and not TREE.parallel:
        Messages().leave()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
