"""A client of yaml-language-server, which VS Code's YAML extension, Neovim and others ask about YAML files."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

BOUND_S = 60.0


class YamlServer:
    """The server over stdio, with one file at a time open. `settings` are what VS Code has below `yaml`."""

    def __init__(self, command: list[str], root: Path, settings: dict[str, Any]) -> None:
        self._root, self._settings = root, {"schemaStore": {"enable": False}, **settings}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._answers: dict[int, queue.Queue[Any]] = {}
        self._published: queue.Queue[dict[str, Any]] = queue.Queue()
        self._last = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        uri = root.as_uri()
        can = {
            "textDocument": {"completion": {"completionItem": {"snippetSupport": True}}, "hover": {"contentFormat": ["markdown"]}}
        }
        folders = [{"uri": uri, "name": root.name}]
        can["workspace"] = {"configuration": True, "workspaceFolders": True}
        self.ask("initialize", {"processId": None, "rootUri": uri, "capabilities": can, "workspaceFolders": folders})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": {"yaml": self._settings}})
        while not self.problems("ready.yaml", "a: [\n"):
            """Settings are read in the background, and validating is one of them."""

    def open(self, name: str, text: str) -> str:
        """Open a file; returns its URI."""
        path = self._root / name
        path.write_text(text, encoding="utf-8")
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        return document["uri"]

    def problems(self, name: str, text: str) -> list[tuple[int, str]]:
        """The marks in a file: (line counted from 1, message)."""
        uri = self.open(name, text)
        while True:
            told = self._published.get(timeout=BOUND_S)
            if told["uri"] == uri:
                return [(one["range"]["start"]["line"] + 1, one["message"]) for one in told["diagnostics"]]

    def completions(self, name: str, text: str) -> dict[str, dict[str, Any]]:
        """What is offered at the `|` in the text: label -> item."""
        place, text = _place(text)
        found = self.ask("textDocument/completion", {"textDocument": {"uri": self.open(name, text)}, "position": place})
        return {item["label"]: item for item in found["items"]}

    def hover(self, name: str, text: str) -> str:
        """What is shown over the `|` in the text; empty for nothing."""
        place, text = _place(text)
        found = self.ask("textDocument/hover", {"textDocument": {"uri": self.open(name, text)}, "position": place})
        return found["contents"]["value"] if found else ""

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        self._process.stdin.close()
        self._process.stdout.close()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        number = self._last
        self._answers[number] = queue.Queue()
        self._send({"id": number, "method": method, "params": params})
        message = self._answers[number].get(timeout=BOUND_S)
        assert "error" not in message, message
        return message.get("result")

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _listen(self) -> None:
        out = self._process.stdout
        while line := out.readline():
            size = int(line.split(b":")[1])
            while out.readline().strip():
                pass
            message = json.loads(out.read(size))
            if message.get("method") == "workspace/configuration":
                wanted = [item.get("section") for item in message["params"]["items"]]
                values = [self._settings if section == "yaml" else None for section in wanted]
                self._send({"id": message["id"], "result": values})
            elif "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            elif message.get("method") == "textDocument/publishDiagnostics":
                self._published.put(message["params"])
            elif "id" in message:
                self._answers[message["id"]].put(message)


def _place(text: str) -> tuple[dict[str, int], str]:
    before, _, after = text.partition("|")
    return {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}, before + after
