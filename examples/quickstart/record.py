"""Records the quick start's cassettes: the real Claude Code CLI, driven by a scripted model where only loopback exists.

`make record-demo`. The CLI is real, with its tools, its skills and what it prints; the model is the script below, so what the
attempts come to is made up. Needs npm (for the CLI), and network namespaces (Linux).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CASSETTES = HERE / "changelog.cassettes"
sys.path.insert(0, str(HERE.parents[1] / "tests" / "real_cli"))

import agents  # noqa: E402
import netns  # noqa: E402
from namespace import CompletedRun, run_in_namespace  # noqa: E402

K, TASKS = 3, 3
SKILL = "changelog-entry"
CHANGELOG = "@CWD@/CHANGELOG.md"

FEATURE = "The export command can write CSV now"
BREAKING = "We removed the --xml flag of export"
CRASH = "import no longer crashes on empty files"
"""The beginnings of the prompts: how the model knows the task."""

Turn = dict[str, Any]


def say(text: str, **tools: Any) -> Turn:
    """One turn of the model: text, then calls of tools."""
    return {"text": text, "tools": [{name: arguments} for name, arguments in tools.items()]}


def use_skill(text: str = "") -> Turn:
    return say(text, Skill={"skill": SKILL})


def read(text: str = "") -> Turn:
    return say(text, Read={"file_path": CHANGELOG})


def look(text: str = "") -> Turn:
    return say(text, Bash={"command": "ls", "description": "List files in the working directory"})


def write(content: str, text: str = "") -> Turn:
    return say(text, Write={"file_path": CHANGELOG, "content": content})


def edit(old: str, new: str, text: str = "") -> Turn:
    return say(text, Edit={"file_path": CHANGELOG, "old_string": old, "new_string": new})


CSV = "- **export**: writes CSV as well as JSON"
CSV_AGAIN = "- **export**: can write CSV, besides JSON"
XML = "- **BREAKING: export**: no longer has the `--xml` flag; use `--format=xml` instead"
XML_AGAIN = "- **BREAKING: export**: the `--xml` flag is gone; use `--format=xml`"
EMPTY = "- **import**: no longer crashes on empty files"
OLD = "## 1.0.0\n\n- first release\n"

WITH_SKILL: dict[str, list[list[Turn]]] = {
    FEATURE: [
        [
            use_skill("I'll use the changelog-entry skill for this."),
            read(),
            write(f"# Changelog\n\n## Unreleased\n\n### Added\n\n{CSV}\n", "There is no changelog yet, so I'll create it."),
            say(CSV),
        ],
        [  # the slip: the entry has no group
            use_skill(),
            look("Let me see whether there is a changelog."),
            write(f"# Changelog\n\n## Unreleased\n\n{CSV}\n"),
            say(CSV),
        ],
        [
            use_skill("This is a changelog entry, so I'll follow the skill."),
            look(),
            write(f"# Changelog\n\n## Unreleased\n\n### Added\n\n{CSV_AGAIN}\n", "No CHANGELOG.md here; creating one."),
            say(CSV_AGAIN),
        ],
    ],
    BREAKING: [
        [
            use_skill("I'll use the changelog-entry skill for this."),
            read(),
            edit("## Unreleased\n", f"## Unreleased\n\n### Changed\n\n{XML}\n", "Removing a flag breaks existing use."),
            say(XML),
        ],
        [
            use_skill(),
            read(),
            edit("## Unreleased\n", f"## Unreleased\n\n### Changed\n\n{XML_AGAIN}\n"),
            say(XML_AGAIN),
        ],
        [
            read("Let me look at the changelog first."),
            use_skill("The changelog-entry skill says how entries are written here."),
            edit("## Unreleased\n", f"## Unreleased\n\n### Changed\n\n{XML}\n"),
            say(XML),
        ],
    ],
    CRASH: [
        [
            use_skill("I'll use the changelog-entry skill for this."),
            read(),
            edit("## 1.0.0\n", f"## Unreleased\n\n### Fixed\n\n{EMPTY}\n\n## 1.0.0\n"),
            say(EMPTY),
        ],
        [
            use_skill(),
            read(),
            edit("# Changelog\n", f"# Changelog\n\n## Unreleased\n\n### Fixed\n\n{EMPTY}\n", "There is no Unreleased section."),
            say(EMPTY),
        ],
        [
            use_skill("A fix to note in the changelog: the skill covers this."),
            read(),
            write(f"# Changelog\n\n## Unreleased\n\n### Fixed\n\n{EMPTY}\n\n{OLD}"),
            say(EMPTY),
        ],
    ],
}

WITHOUT: dict[str, list[list[Turn]]] = {
    FEATURE: [
        [
            look("I'll check for an existing changelog."),
            write(
                "# Changelog\n\n## [Unreleased]\n\n### Added\n- CSV output for the `export` command, alongside JSON.\n",
                "There's no CHANGELOG.md yet, so I'll create one in the Keep a Changelog format.",
            ),
            say("I created `CHANGELOG.md` with an Unreleased section that notes CSV support in the `export` command."),
        ],
        [
            read(),
            write("# Changelog\n\n## Unreleased\n\n- Added CSV support to the `export` command (in addition to JSON).\n"),
            say("Done! `CHANGELOG.md` didn't exist, so I created it and added an entry for CSV export."),
        ],
        [
            look(),
            write(
                "# Changelog\n\n## Unreleased\n\n### Added\n\n- The `export` command can now write CSV files as well as JSON.\n"
            ),
            say("I've added a `CHANGELOG.md` with the new CSV export under **Unreleased → Added**."),
        ],
    ],
    BREAKING: [
        [
            read("I'll read the current changelog."),
            edit(
                "## Unreleased\n", "## Unreleased\n\n### Removed\n\n- The `--xml` flag of `export`. Use `--format=xml` instead.\n"
            ),
            say("I noted the removal of `--xml` under **Unreleased → Removed**, with `--format=xml` as the replacement."),
        ],
        [  # without the skill it works now and then
            read(),
            edit(
                "## Unreleased\n",
                "## Unreleased\n\n### Removed\n\n- **BREAKING:** Removed the `--xml` flag of `export`. Use `--format=xml`.\n",
            ),
            say("Added a **BREAKING** entry to the Unreleased section that points people to `--format=xml`."),
        ],
        [  # marked, but readers are left alone with it: this one the judge must notice
            read("Let me look at what's there."),
            edit(
                "## Unreleased\n",
                "## Unreleased\n\n### BREAKING CHANGES\n\n- Dropped the deprecated `--xml` flag from `export`.\n",
            ),
            say("Done. The removal of `--xml` is listed under BREAKING CHANGES; people should use `--format=xml` from now on."),
        ],
    ],
    CRASH: [
        [
            read(),
            edit("## 1.0.0\n", "## Unreleased\n\n### Fixed\n\n- `import` no longer crashes on empty files.\n\n## 1.0.0\n"),
            say("I added an Unreleased section above 1.0.0 with the fix."),
        ],
        [
            read("I'll look at the changelog first."),
            edit("# Changelog\n", "# Changelog\n\n## Unreleased\n\n- Fixed a crash in `import` when a file is empty.\n"),
            say("Noted under a new **Unreleased** heading. The 1.0.0 entry is unchanged."),
        ],
        [
            read(),
            write(f"# Changelog\n\n## [Unreleased]\n\n### Fixed\n- `import` no longer crashes on empty files.\n\n{OLD}"),
            say("Done: `CHANGELOG.md` has a Fixed entry for the crash on empty files."),
        ],
    ],
}

VERDICTS: list[tuple[tuple[str, ...], bool, str]] = [
    (("The agent's final answer is 7.",), True, "The agent's final answer is 7, as the condition says."),
    (
        ("### BREAKING CHANGES",),
        False,
        "The entry stands under a BREAKING CHANGES heading, but CHANGELOG.md does not name --format=xml anywhere: "
        "the agent tells it in its answer only, which readers of the changelog never see.",
    ),
    (
        ("- **BREAKING:** Removed",),
        True,
        "The entry in CHANGELOG.md begins with BREAKING and ends with 'Use `--format=xml`.': both parts of the condition hold.",
    ),
    (
        ("**BREAKING: export**",),
        True,
        "CHANGELOG.md has one new entry, marked 'BREAKING: export', and it tells readers to use --format=xml in place of --xml.",
    ),
]
"""What the judge's question must hold -> its verdict and reasoning; the first that fits counts."""


def script() -> list[Turn]:
    """The turns of the scripted model, the judge's first: its questions hold the agents' prompts too."""
    turns = [
        {
            "when": {"tool_offered": "StructuredOutput", "all": list(texts)},
            "tool": {"StructuredOutput": {"reasoning": reasoning, "passed": passed}},
            "usage": {"input": 3, "cache_read": 0, "cache_write": 2_310 + 4 * len(reasoning), "output": 30 + len(reasoning) // 4},
        }
        for texts, passed, reasoning in VERDICTS
    ]
    return [*turns, *agent_turns(WITH_SKILL, {"any": SKILL}), *agent_turns(WITHOUT, {"not_any": SKILL})]


def agent_turns(attempts: dict[str, list[list[Turn]]], arm: dict[str, str]) -> Iterator[Turn]:
    """Attempts of one task and arm come one after another, so each turn answers once."""
    for prompt, variants in attempts.items():
        for steps in variants:
            results = said = 0
            for number, step in enumerate(steps):
                words = len(step["text"]) + sum(len(str(tool)) for tool in step["tools"])
                usage = {
                    "input": 3 + number,
                    "cache_read": 0 if number == 0 else 11_842 + said,
                    "cache_write": 11_842 + len(prompt) if number == 0 else 90 + said // 3,
                    "output": 12 + words // 4,
                }
                when = {**arm, "all": [prompt], "tool_results": results, "tools": True, "max_uses": 1}
                yield {"when": when, "usage": usage, **step}
                results += len(step["tools"])
                said += words


def record(results: Path) -> CompletedRun:
    command = [
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "pytest.ini", "changelog.eval.yaml"),
        *(f"--caliper-k={K}", "--caliper-baseline", "--caliper-record", "--caliper-workers=1", f"--caliper-results={results}"),
    ]
    return run_in_namespace(script(), command, HERE, env={"CLAUDE_CLI_PATH": str(agents.install(*agents.CLAUDE))})


def main() -> int:
    if reason := netns.unavailable():
        sys.exit(f"the quick start cannot be recorded here: {reason}")
    shutil.rmtree(CASSETTES, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="caliper-record-") as results:
        done = record(Path(results))
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    made = len(list(CASSETTES.glob("*.json")))
    if done.returncode != 1 or made != 2 * K * TASKS:
        sys.exit(f"expected one failure and {2 * K * TASKS} cassettes; pytest ended with {done.returncode}, {made} were made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
