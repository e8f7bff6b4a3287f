"""Stands in for the pytest plugin of VS Code's Python extension where the extension is not installed.

Written from what that plugin accepts, refuses and sends, not from its text; `test_vscode.py` runs against both. The rules:

- a test is any item with `path`, `nodeid`, `name` and a line in `location`; its id is the absolute path, then what follows the first
  `::` of its node id;
- items below a chain of `pytest.Class` are nested in it; any other collector between file and item is left out;
- an item with a `callspec` is put below a function: its name is cut at `[` and its id behind `.py`. Where one of these is missing,
  discovery of the whole workspace fails;
- an id's first result counts: of a call, of a skipped setup, of an exception, of a `skip` mark;
- exit statuses above 1 are told as errors, and only 2 to 5 are known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Pipe:
    """Sends JSON-RPC messages into the FIFO."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: Any = None

    def send(self, params: dict[str, Any]) -> None:
        if self._file is None:
            self._file = open(self._path, "wb")  # noqa: SIM115  open for the whole session
        body = json.dumps({"jsonrpc": "2.0", "params": params})
        self._file.write(f"content-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n{body}".encode())
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def pytest_configure(config: pytest.Config) -> None:
    pipe = Pipe(os.environ["TEST_RUN_PIPE"])
    config.add_cleanup(pipe.close)
    root = next(
        (Path(arg.split("=", 1)[1]) for arg in config.invocation_params.args if str(arg).startswith("--rootdir=")), Path.cwd()
    )
    link = root if root.resolve() != root else None
    kind = Discovery if config.option.collectonly else Run
    config.pluginmanager.register(kind(pipe, link), "vscode-side")


class Side:
    """What both ways of starting pytest share."""

    def __init__(self, pipe: Pipe, link: Path | None) -> None:
        self.pipe, self.link = pipe, link
        self.errors: list[str] = []

    def path_of(self, node: Any) -> Path:
        """The node's path, below the link by which the workspace was opened."""
        if self.link is None or isinstance(node, pytest.Session) or node.path.is_relative_to(self.link):
            return node.path
        return self.link / node.path.relative_to(Path.cwd())

    def id_of(self, nodeid: str, path: Path) -> str:
        return "::".join([str(path), *nodeid.split("::")[1:]])

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.errors.append(excinfo.exconly())


class Discovery(Side):
    def pytest_exception_interact(self, call: pytest.CallInfo[Any], report: Any) -> None:
        told = (
            report.longreprtext if call.excinfo is None or call.excinfo.typename == "AssertionError" else call.excinfo.exconly()
        )
        self.errors.append(told)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        error = {"name": "", "path": str(Path.cwd()), "type_": "error", "children": [], "id_": ""}
        if exitstatus not in {0, 1, 5}:
            self._tell(error)
        try:
            tree = self._tree(session)
        except Exception as wrong:  # noqa: BLE001  whatever an item does to it
            self.errors.append(repr(wrong))
            tree = error
        self._tell(tree)

    def _tell(self, tree: dict[str, Any]) -> None:
        self.pipe.send({"cwd": os.getcwd(), "status": "error" if self.errors else "success", "tests": tree, "error": self.errors})

    def _tree(self, session: pytest.Session) -> dict[str, Any]:
        root = self.link or session.path
        top = _branch("folder", root.name, root)
        for item in session.items:
            above = self._folders(top, root, self.path_of(item))
            for group in self._groups(item):
                above = _below(above, group)
            test = self.id_of(item.nodeid, self.path_of(item))
            line = item.location[1]
            _below(
                above,
                {
                    "name": item.name if not hasattr(item, "callspec") else "[" + item.name.split("[", 1)[1],
                    "path": str(self.path_of(item)),
                    "lineno": "" if line is None else str(line + 1),
                    "type_": "test",
                    "id_": test,
                    "runID": test,
                },
            )
        return _listed(top)

    def _folders(self, top: dict[str, Any], root: Path, file: Path) -> dict[str, Any]:
        node, at = top, root
        *folders, name = file.relative_to(root).parts
        for folder in folders:
            at = at / folder
            node = _below(node, _branch("folder", folder, at))
        return _below(node, _branch("file", name, file))

    def _groups(self, item: Any) -> Iterator[dict[str, Any]]:
        """The classes above an item, outermost first, and the function that a parametrised one belongs to."""
        classes = []
        at = item.parent
        while isinstance(at, pytest.Class):
            classes.append(at)
            at = at.parent
        for one in reversed(classes):
            yield _branch("class", one.name, self.path_of(one), self.id_of(one.nodeid, self.path_of(one)))
        if hasattr(item, "callspec"):
            name = item.name.split("[", 1)[0]
            inner = item.nodeid.rsplit("::", 1)[0].rsplit(".py", 1)[1]
            yield _branch("function", item.originalname, self.path_of(item), f"{self.path_of(item)}{inner}::{name}")


class Run(Side):
    def __init__(self, pipe: Pipe, link: Path | None) -> None:
        super().__init__(pipe, link)
        self._paths: dict[str, Path] = {}
        self._told: set[str] = set()

    def pytest_exception_interact(self, node: Any, call: pytest.CallInfo[Any], report: Any) -> None:
        outcome = "failure" if call.excinfo is not None and call.excinfo.typename == "AssertionError" else "error"
        self._tell(self.id_of(node.nodeid, self.path_of(node)), outcome, report.longreprtext)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._paths[item.nodeid] = self.path_of(item)
        node: Any = item
        while node is item or isinstance(node, pytest.Class):
            if any(mark.name == "skip" or (mark.name == "skipif" and any(mark.args)) for mark in node.own_markers):
                self._tell(self.id_of(item.nodeid, self.path_of(item)), "skipped", None)
            node = node.parent
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_report_teststatus(self, report: Any) -> Any:
        if report.when == "call" or (report.when == "setup" and report.skipped):
            outcome = {"passed": "success", "failed": "failure"}.get(report.outcome, "skipped")
            path = self._paths.get(report.nodeid, self.link or Path.cwd())
            self._tell(self.id_of(report.nodeid, path), outcome, report.longreprtext if report.failed else None)
        return (yield)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in {0, 1}:
            reason = {2: "interrupted", 3: "internal error", 4: "usage error", 5: "no tests"}[int(exitstatus)]
            self._send("error", None, [*self.errors, f"pytest ended with status {int(exitstatus)}: {reason}"])

    def _tell(self, test: str, outcome: str, message: str | None) -> None:
        if test not in self._told:
            self._told.add(test)
            result = {"test": test, "outcome": outcome, "message": message, "traceback": None, "subtest": None}
            self._send("success", {test: result}, self.errors or None)

    def _send(self, status: str, result: dict[str, Any] | None, error: list[str] | None) -> None:
        self.pipe.send({"cwd": os.getcwd(), "status": status, "result": result, "not_found": None, "error": error})


def _branch(kind: str, name: str, path: Path, id_: str | None = None) -> dict[str, Any]:
    return {"name": name, "path": str(path), "type_": kind, "id_": id_ or str(path), "children": {}}


def _below(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """The child of that id, which is put in if there is none."""
    return parent["children"].setdefault(child["id_"], child)


def _listed(node: dict[str, Any]) -> dict[str, Any]:
    if "children" not in node:
        return node
    return {**node, "children": [_listed(child) for child in node["children"].values()]}
