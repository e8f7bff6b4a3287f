"""What action.yml runs: `python -m pytest_caliper.cli.action run|comment`.

Everything comes in through the environment, so that no input is ever part of a script.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_caliper.runs.records import Run

_PREFIX = "CALIPER_ACTION_"
_VALUES = ("k", "model", "judge-model", "workers", "bar")
"""Inputs that become an option of the same name."""
_OUTPUTS = ("rate", "low", "high", "verdict", "bar", "run-file")
_COMMENT_CHARS = 65_536
_PAGES = 30
"""Of 100 comments each: more than any pull request has."""
_FIND = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { comments(first: 100, after: $after) {
    pageInfo { hasNextPage endCursor }
    nodes { databaseId viewerDidAuthor body author { __typename login } } } } } }
"""


class ActionError(Exception):
    """The step cannot do what it was asked for. The text is one line for the workflow's author."""


def main(words: Sequence[str], env: Mapping[str, str]) -> int:
    """-> exit status: pytest's own for `run`; 0 for `comment`, since a comment that cannot be written fails no job."""
    if list(words) == ["run"]:
        try:
            return run(env)
        except ActionError as error:
            _tell("error", str(error))
            return 2
    if list(words) == ["comment"]:
        try:
            comment(env)
        except ActionError as error:
            _tell("warning", f"no comment on the pull request: {error}")
        return 0
    sys.stderr.write("usage: python -m pytest_caliper.cli.action run|comment\n")
    return 2


def run(env: Mapping[str, str]) -> int:
    """Run pytest on the specs, and leave reports and outputs for the steps after it. -> pytest's exit status."""
    report = Path(tempfile.mkdtemp(prefix="caliper-report-", dir=env.get("RUNNER_TEMP") or None))
    specs = _specs(env)
    command = [sys.executable, "-m", "pytest", *pytest_words(env), f"--caliper-output={report}", *specs]
    sys.stdout.flush()
    status = subprocess.run(command, check=False).returncode
    outputs = _reports(report, specs)
    target = env.get("GITHUB_OUTPUT")
    if target and outputs:
        with open(target, "a", encoding="utf-8", errors="backslashreplace") as out:
            out.writelines(_output(name, value) for name, value in {**outputs, "report": str(report)}.items())
    return status


def pytest_words(env: Mapping[str, str]) -> list[str]:
    """pytest's arguments from the inputs, but for the specs. Raises ActionError for a value that cannot be meant."""
    words = ["--caliper"]
    for name in _VALUES:
        value = _input(env, name)
        if value:
            words.append(f"--caliper-{name}={value}")
    baseline = _input(env, "baseline").lower() or "false"
    if baseline not in ("true", "false"):
        raise ActionError(f"input baseline must be true or false, got {baseline!r}")
    if baseline == "true":
        words.append("--caliper-baseline")
    try:
        return words + shlex.split(_input(env, "args"))
    except ValueError as error:
        raise ActionError(f"input args cannot be read as a shell would: {error}") from error


def _specs(env: Mapping[str, str]) -> list[str]:
    """The specs, one per line of the input; a name that begins with a dash is a file all the same."""
    specs = [line.strip() for line in _input(env, "spec").splitlines() if line.strip()]
    if not specs:
        raise ActionError("input spec is blank: name a .eval.yaml file")
    return [f"./{spec}" if spec.startswith("-") else spec for spec in specs]


def _input(env: Mapping[str, str], name: str) -> str:
    return env.get(_PREFIX + name.upper().replace("-", "_"), "").strip()


def _reports(report: Path, specs: Sequence[str]) -> dict[str, str]:
    """Write HTML and Markdown beside every run file. -> the outputs, a line per run; empty without any run."""
    from pytest_caliper.cli.main import main as caliper
    from pytest_caliper.runs.reading import load_run

    runs = [(path, load_run(path)) for path in sorted(report.glob("*.json"))]
    runs.sort(key=lambda pair: _place(pair[1], specs))
    for number, (path, _) in enumerate(runs, 1):
        for kind in ("html", "md"):  # the numbers keep the order of the specs for the comments
            caliper(["report", str(path), "--format", kind, "--output", str(report / f"{number:03}-{path.stem}.{kind}")])
    lines = [_outputs(path, made) for path, made in runs]
    return {name: "\n".join(line[name] for line in lines) for name in _OUTPUTS} if lines else {}


def _place(made: Run, specs: Sequence[str]) -> int:
    """Where the run's spec stands among those that were named; behind them when it is none of them by name."""
    name = f"/{made.meta.spec}"
    paths = ["/" + Path(os.path.normpath(spec)).as_posix().lstrip("/") for spec in specs]
    return next((n for n, path in enumerate(paths) if path.endswith(name) or name.endswith(path)), len(paths))


def _outputs(path: Path, made: Run) -> dict[str, str]:
    from pytest_caliper.reporting.bars import bar_verdict, was_judged
    from pytest_caliper.reporting.figures import arm_figures, baseline_figures

    suite, compared = arm_figures(made.results).suite, baseline_figures(made)
    bars = [verdict for result in made.results if (verdict := bar_verdict(result)) is not None]
    numbers = ("", "", "") if suite is None else tuple(f"{value:.4f}" for value in (suite.rate, suite.low, suite.high))
    word = compared.comparison.word if compared is not None and compared.comparison is not None else ""
    judged = all(was_judged(result) for result in made.results if result.bar is not None)
    reached = "" if not bars or not judged else "met" if all(verdict.reached for verdict in bars) else "missed"
    return dict(zip(_OUTPUTS, (*numbers, word, reached, str(path)), strict=True))


def _output(name: str, value: str) -> str:
    """An output as GITHUB_OUTPUT wants it: with an end that nothing in the value can be."""
    end = f"end-{secrets.token_hex(16)}"
    return f"{name}<<{end}\n{value}\n{end}\n"


def comment(env: Mapping[str, str]) -> None:
    """Write every report as a comment on the pull request, in place of the one of an earlier push. Raises ActionError."""
    number = _pull_request(env)
    repository = env.get("GITHUB_REPOSITORY", "")
    if repository.count("/") != 1:
        raise ActionError("GITHUB_REPOSITORY is not set")
    if not env.get("GH_TOKEN"):
        raise ActionError("there is no token: pass github-token")
    reports = sorted(Path(env.get(_PREFIX + "REPORT") or "missing").glob("*.md"))
    there = _own_comments(repository, number) if reports else {}
    for path in reports:
        body = path.read_text(encoding="utf-8") + _link(env)
        marker = body.split("\n", 1)[0]
        if len(body) > _COMMENT_CHARS:
            raise ActionError(f"{path.name} is longer than GitHub takes")
        if marker in there:
            _gh("--method", "PATCH", f"repos/{repository}/issues/comments/{there[marker]}", body={"body": body})
        else:
            _gh("--method", "POST", f"repos/{repository}/issues/{number}/comments", body={"body": body})


def _pull_request(env: Mapping[str, str]) -> int:
    try:
        event = json.loads(Path(env.get("GITHUB_EVENT_PATH") or "missing").read_text(encoding="utf-8"))
        return int(event["pull_request"]["number"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ActionError("this is no run of a pull request") from error


def _link(env: Mapping[str, str]) -> str:
    server, repository, run_id = (env.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    if not (server.startswith("https://") and run_id.isdigit()):
        return ""
    return f"\n<sub>[Everything, with transcripts]({server}/{repository}/actions/runs/{run_id}#artifacts)</sub>\n"


def _own_comments(repository: str, number: int) -> dict[str, int]:
    """First line -> id of the comments that this token's owner wrote: others may hold the marker too."""
    owner, _, name = repository.partition("/")
    found: dict[str, int] = {}
    variables: dict[str, Any] = {"owner": owner, "name": name, "number": number, "after": None}
    try:
        for _ in range(_PAGES):
            data = _gh("graphql", body={"query": _FIND, "variables": variables})["data"]
            page = data["repository"]["pullRequest"]["comments"]
            for node in page["nodes"]:
                if _is_own(node, data["viewer"]["login"]):
                    found.setdefault(node["body"].replace("\r\n", "\n").split("\n", 1)[0], node["databaseId"])
            if not page["pageInfo"]["hasNextPage"]:
                break
            variables["after"] = page["pageInfo"]["endCursor"]
    except (KeyError, TypeError) as error:
        raise ActionError("the comments of the pull request could not be read") from error
    return found


def _is_own(node: Mapping[str, Any], viewer: str) -> bool:
    """Whether the token's owner wrote the comment. A workflow's own token is `github-actions[bot]`, and as an author a Bot."""
    author = node["author"] or {}  # of an account that is gone
    kind = "Bot" if viewer.endswith("[bot]") else "User"
    return bool(node["viewerDidAuthor"]) or (author.get("login"), author.get("__typename")) == (
        viewer.removesuffix("[bot]"),
        kind,
    )


def _gh(*words: str, body: Mapping[str, Any]) -> Any:
    """The answer of `gh api`. Texts go in as JSON on standard input, never as arguments. Raises ActionError."""
    try:
        done = subprocess.run(
            ["gh", "api", *words, "--input", "-"],
            input=json.dumps(body),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip() or f"gh ended with {done.returncode}"
            denied = "403" in said or "not accessible" in said
            hint = (
                "; give the job `permissions: pull-requests: write` (pull requests from forks cannot have it)" if denied else ""
            )
            raise ActionError(f"{said}{hint}")
        return json.loads(done.stdout)
    except FileNotFoundError as error:
        raise ActionError("the GitHub CLI `gh` is not on this runner") from error
    except subprocess.TimeoutExpired as error:
        raise ActionError("GitHub did not answer within 60 s") from error
    except ValueError as error:
        raise ActionError("GitHub's answer is not JSON") from error


def _tell(kind: str, text: str) -> None:
    from pytest_caliper.reporting.github import workflow_command
    from pytest_caliper.reporting.text import one_line

    sys.stdout.write(workflow_command("error" if kind == "error" else "warning", one_line(text), title="pytest-caliper") + "\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ))
