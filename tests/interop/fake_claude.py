"""A `claude` for the old packages to drive: it answers by the first word of its prompt, and counts how often it was asked.

It stands as `bin/claude` in the project that `foreign.project` makes. It says what Claude Code says, no more than their readers look at.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

BIN = Path(__file__).resolve().parent
USAGE = {"input_tokens": 7, "output_tokens": 20, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50}


def main(words: list[str]) -> int:
    if "--version" in words:
        print("2.1.0 (Claude Code)")
        return 0
    prompt = _prompt(words)
    if "<expectation>" in prompt:
        return _judge(prompt, words)
    return _agent(prompt)


def _prompt(words: list[str]) -> str:
    if "--" in words:
        return words[words.index("--") + 1]
    return words[words.index("-p") + 1]


def _judge(prompt: str, words: list[str]) -> int:
    said = prompt.split("<transcript>")[1]
    if "mumble" in said:
        answer = "I would rather not say."
    else:
        answer = json.dumps(
            {
                "mode": "verdict",
                "passed": "well" in said,
                "reasoning": "It is explained " + ("well" if "well" in said else "badly"),
            }
        )
    if words[words.index("--output-format") + 1] == "json":
        answer = json.dumps({"type": "result", "subtype": "success", "result": answer, "modelUsage": {"claude-judge-1": {}}})
    print(answer)
    return 0


def _agent(prompt: str) -> int:
    word = prompt.split(maxsplit=1)[0]
    count = _count(word)
    init = {
        "type": "system",
        "subtype": "init",
        "model": "claude-agent-1",
        "tools": ["Bash", "Skill"],
        "skills": ["greeter"],
        "mcp_servers": [],
    }
    _say(init)
    if word == "Write":
        port = 3000 if count == 3 else 8080
        _tool("Write", {"file_path": "app.json", "content": port}, "written")
        for place in (Path.cwd(), BIN.parent):
            (place / "app.json").write_text(json.dumps({"port": port}))
        return _done(f"Wrote port {port}.")
    if word == "Explain":
        return _done(
            {1: "It is explained well. \u2028\x1b[31mred\x1b[0m", 2: "No idea.", 3: "mumble"}.get(count, "It works well.")
        )
    if word == "Look":
        if count == 1:
            _tool("Bash", {"command": "cat answers.txt"}, "42")
            return _done("42")
        if count == 2:
            print("connection reset by peer", file=sys.stderr)
            return 1
        if count == 3:
            time.sleep(60)
        return _done("Found nothing.")
    if word == "Greet":
        if count != 2:
            _tool("Skill", {"skill": "greeter"}, "Launching skill: greeter")
        return _done("Hello!")
    return _done("?")


def _count(word: str) -> int:
    path = BIN / f"{word}.count"
    count = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(str(count))
    return count


def _tool(name: str, given: dict[str, Any], result: str) -> None:
    _say({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", "name": name, "input": given}]}})
    _say({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]}})


def _done(text: str) -> int:
    _say({"type": "assistant", "message": {"model": "claude-agent-1", "content": [{"type": "text", "text": text}]}})
    _say(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": text,
            "usage": USAGE,
            "modelUsage": {"claude-agent-1": {}},
        }
    )
    return 0


def _say(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
