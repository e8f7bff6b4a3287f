"""The composite GitHub Action: its files, its steps run here as a runner would, and what it sends to GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_caliper.cli.action import ActionError, main, pytest_words

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXAMPLE = yaml.safe_load((ROOT / "examples/github/skill-eval.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def step(name: str) -> dict[str, Any]:
    return next(one for one in STEPS if one.get("name") == name)


# -- the files ------------------------------------------------------------------------------------------------------------------


def test_every_input_that_is_used_exists_and_every_one_that_exists_is_used():
    used = set(re.findall(r"\binputs\.([\w-]+)", "\n".join(texts(STEPS))))

    assert used == set(ACTION["inputs"])


def test_every_output_is_one_that_the_run_writes():
    told = set(re.findall(r"steps\.run\.outputs\.([\w-]+)", "\n".join(texts(ACTION))))

    assert set(ACTION["outputs"]) == {"rate", "low", "high", "verdict", "bar", "run-file"}
    assert told == {*ACTION["outputs"], "report"}


@pytest.mark.parametrize("script", [one["run"] for one in STEPS if "run" in one])
def test_nothing_is_put_into_a_script(script):
    assert "${{" not in script


def test_every_script_names_its_shell():
    assert all(one["shell"] == "bash" for one in STEPS if "run" in one)


def test_the_inputs_reach_the_step_by_names_that_it_reads():
    env = step("Run the spec")["env"]
    texts = {name: f"<{name}>" for name in env} | {"CALIPER_ACTION_BASELINE": "true", "CALIPER_ACTION_ARGS": "-x"}

    for name, value in env.items():
        assert value == "${{ inputs." + name.removeprefix("CALIPER_ACTION_").lower().replace("_", "-") + " }}"
    words = pytest_words(texts)
    assert set(words) == {
        "--caliper", "--caliper-k=<CALIPER_ACTION_K>", "--caliper-model=<CALIPER_ACTION_MODEL>", "--caliper-bar=<CALIPER_ACTION_BAR>",
        "--caliper-judge-model=<CALIPER_ACTION_JUDGE_MODEL>", "--caliper-workers=<CALIPER_ACTION_WORKERS>", "--caliper-baseline", "-x",
    }  # fmt: skip


def test_the_example_uses_inputs_and_outputs_that_exist():
    job = EXAMPLE["jobs"]["evaluate"]
    (used,) = [one for one in job["steps"] if "pytest-caliper" in one.get("uses", "")]
    outputs = set(re.findall(r"steps\.caliper\.outputs\.([\w-]+)", "\n".join(texts(job))))

    assert set(used["with"]) <= set(ACTION["inputs"])
    assert {name for name, said in ACTION["inputs"].items() if said.get("required")} <= set(used["with"])
    assert outputs
    assert outputs <= set(ACTION["outputs"])
    assert EXAMPLE["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert not any(EXPRESSION.search(one.get("run", "")) for one in job["steps"])


# -- the step that runs pytest --------------------------------------------------------------------------------------------------


@pytest.fixture
def runner(tmp_path):
    """A checkout with the quick start, and `run(**inputs)`, which runs the action's own script as a runner does."""
    place = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("results", ".caliper", "__pycache__")
    shutil.copytree(ROOT / "examples" / "quickstart", place, ignore=ignored)
    return Runner(place, tmp_path)


class Runner:
    def __init__(self, place: Path, base: Path) -> None:
        self.place, self.temp, self.output, self.summary = place, base / "temp", base / "output", base / "summary.md"
        self.temp.mkdir()
        self.output.touch()
        self.bin = base / "bin"
        self.bin.mkdir()
        python = self.bin / "python"  # a link would not know its virtual environment
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)

    def env(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CALIPER_", "PYTEST"))}
        return {
            **kept,
            "PATH": f"{self.bin}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.place),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            **more,
        }

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        names = {f"CALIPER_ACTION_{name.upper()}": value for name, value in inputs.items()}
        blank = dict.fromkeys(step("Run the spec")["env"], "")
        return self.bash("Run the spec", {**blank, "CALIPER_ACTION_BASELINE": "false", **names})

    def bash(self, name: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        script = self.temp / "script.sh"
        script.write_text(step(name)["run"])
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return subprocess.run(command, cwd=self.place, env=self.env(**env), capture_output=True, text=True, check=False)

    @property
    def outputs(self) -> dict[str, str]:
        """What a runner reads from the file."""
        found, lines = {}, iter(self.output.read_text().splitlines())
        for line in lines:
            name, end = line.split("<<", 1)
            value = []
            for inner in lines:
                if inner == end:
                    break
                value.append(inner)
            found[name] = "\n".join(value)
        return found


def test_the_run_writes_outputs_reports_and_summary(runner):
    done = runner.run(spec="changelog.eval.yaml", k="3", baseline="true", args="--caliper-replay -p 'no:cacheprovider'")

    assert done.returncode == 1, done.stdout + done.stderr
    outputs = runner.outputs
    assert {name: outputs[name] for name in ("rate", "low", "high", "verdict", "bar")} == {
        "rate": "0.8889", "low": "0.5650", "high": "0.9801", "verdict": "better", "bar": "",
    }  # fmt: skip
    run_file, report = Path(outputs["run-file"]), Path(outputs["report"])
    assert json.loads(run_file.read_text())["run"]["spec"] == "changelog.eval.yaml"
    assert report.parent == runner.temp
    assert {path.suffix for path in report.iterdir()} == {".json", ".html", ".md"}
    (markdown,) = report.glob("*.md")
    assert markdown.read_text().startswith("<!-- pytest-caliper:changelog.eval.yaml -->\n")
    assert runner.summary.read_text().startswith("<!-- pytest-caliper:changelog.eval.yaml -->\n")
    assert "::error file=changelog.eval.yaml,line=7,title=" in done.stdout


def test_a_bar_decides_and_is_told(runner):
    done = runner.run(spec="./changelog.eval.yaml", k="3", bar="0.6", args="--caliper-replay")

    assert done.returncode == 0, done.stdout
    assert (runner.outputs["bar"], runner.outputs["verdict"]) == ("met", "")


def test_several_specs_have_a_line_each_in_their_order(runner):
    shutil.copy(runner.place / "changelog.eval.yaml", runner.place / "another.eval.yaml")
    shutil.copytree(runner.place / "changelog.cassettes", runner.place / "another.cassettes")
    done = runner.run(spec="changelog.eval.yaml\n\n  another.eval.yaml\n", k="1", args="--caliper-replay")

    assert done.returncode == 0, done.stdout
    assert runner.outputs["rate"] == "1.0000\n1.0000"
    specs = [json.loads(Path(path).read_text())["run"]["spec"] for path in runner.outputs["run-file"].splitlines()]
    assert specs == ["changelog.eval.yaml", "another.eval.yaml"]
    first = [path.read_text().split("\n", 1)[0] for path in sorted(Path(runner.outputs["report"]).glob("*.md"))]
    assert first == ["<!-- pytest-caliper:changelog.eval.yaml -->", "<!-- pytest-caliper:another.eval.yaml -->"]


@pytest.mark.parametrize("name", ["spec", "k", "model", "bar", "baseline", "args"])
def test_inputs_are_values_and_never_commands(runner, name):
    value = "$(touch pwned)`touch pwned`; touch pwned; ' touch pwned"
    inputs = {"spec": "changelog.eval.yaml", "args": "--caliper-replay", "k": "1", name: value}
    done = runner.run(**inputs)

    assert done.returncode not in (0, 1)
    assert not (runner.place / "pwned").exists()
    assert runner.output.read_text() == ""


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"spec": " \n "}, "input spec is blank"),
        ({"spec": "changelog.eval.yaml", "baseline": "maybe"}, "input baseline must be true or false, got 'maybe'"),
        ({"spec": "changelog.eval.yaml", "args": "'open"}, "input args cannot be read as a shell would"),
    ],
)
def test_a_mistake_in_an_input_is_an_annotation(runner, inputs, said):
    done = runner.run(**inputs)

    assert done.returncode == 2
    assert done.stdout.startswith(f"::error title=pytest-caliper::{said}")


def test_a_spec_that_begins_with_a_dash_is_a_file(runner):
    (runner.place / "-p.eval.yaml").write_text("tasks: []\n")
    done = runner.run(spec="-p.eval.yaml", args="--caliper-replay")

    assert "-p.eval.yaml:1: " in done.stdout


def test_the_agent_is_installed_by_its_commands(runner):
    env = {"CALIPER_ACTION_INSTALL": "echo one > one\nfalse\necho two > two"}
    done = runner.bash("Install the agent", env)

    assert done.returncode != 0
    assert (runner.place / "one").exists()
    assert not (runner.place / "two").exists()


# -- the comment ----------------------------------------------------------------------------------------------------------------

GH = """#!{python}
import json, sys
from pathlib import Path
place = Path({place!r})
body = json.load(sys.stdin)
calls = place / "calls.json"
known = json.loads(calls.read_text()) if calls.exists() else []
calls.write_text(json.dumps([*known, [sys.argv[1:], body]]))
answers = json.loads((place / "answers.json").read_text())
if sys.argv[2] == "graphql":
    page = int(body["variables"]["after"] or 0)
    print(json.dumps(answers["pages"][page]))
elif answers.get("error"):
    sys.stderr.write(answers["error"])
    sys.exit(1)
else:
    print("{{}}")
"""


class Pull:
    """A pull request, as `gh` shows it."""

    def __init__(self, base: Path) -> None:
        self.base, self.report = base, base / "report"
        self.report.mkdir()
        (base / "bin").mkdir()
        gh = base / "bin" / "gh"
        gh.write_text(GH.format(python=sys.executable, place=str(base)))
        gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
        (base / "event.json").write_text('{"pull_request": {"number": 7}}')
        self.answers([])

    def answers(self, *pages: list[dict[str, Any]], error: str | None = None, viewer: str = "github-actions[bot]") -> None:
        def page(number: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
            more = number + 1 < len(pages)
            comments = {"pageInfo": {"hasNextPage": more, "endCursor": str(number + 1)}, "nodes": nodes}
            return {"data": {"viewer": {"login": viewer}, "repository": {"pullRequest": {"comments": comments}}}}

        told = {"pages": [page(number, nodes) for number, nodes in enumerate(pages)], "error": error}
        (self.base / "answers.json").write_text(json.dumps(told))

    @property
    def env(self) -> dict[str, str]:
        return {
            "CALIPER_ACTION_REPORT": str(self.report),
            "GH_TOKEN": "token",
            "GITHUB_EVENT_PATH": str(self.base / "event.json"),
            "GITHUB_REPOSITORY": "octo/skills",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "42",
        }

    @property
    def calls(self) -> list[Any]:
        path = self.base / "calls.json"
        return json.loads(path.read_text()) if path.exists() else []

    @property
    def writes(self) -> list[Any]:
        return [call for call in self.calls if call[0][1] != "graphql"]


@pytest.fixture
def pull(tmp_path, monkeypatch):
    made = Pull(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return made


def node(number: int, body: str, *, mine: bool = True, login: str = "github-actions", kind: str = "Bot") -> dict[str, Any]:
    return {"databaseId": number, "viewerDidAuthor": mine, "body": body, "author": {"login": login, "__typename": kind}}


BODY = "<!-- pytest-caliper:a.eval.yaml -->\n\n### Ünïcode `@octocat`\n"


def test_a_first_comment_is_created(pull):
    (pull.report / "001.md").write_text(BODY, encoding="utf-8")

    assert main(["comment"], pull.env) == 0
    (((words, body)),) = pull.writes
    assert words == ["api", "--method", "POST", "repos/octo/skills/issues/7/comments", "--input", "-"]
    assert body["body"].startswith(BODY)
    assert "https://github.com/octo/skills/actions/runs/42#artifacts" in body["body"]
    assert "token" not in json.dumps(pull.calls)


def test_the_own_comment_is_updated_wherever_it_stands(pull):
    (pull.report / "001.md").write_text(BODY, encoding="utf-8")
    others = [node(n, f"comment {n}", mine=False, login="octocat", kind="User") for n in range(3)]
    pull.answers(others, [node(99, BODY.replace("\n", "\r\n"), mine=False)])

    assert main(["comment"], pull.env) == 0
    (((words, _)),) = pull.writes
    assert words == ["api", "--method", "PATCH", "repos/octo/skills/issues/comments/99", "--input", "-"]


@pytest.mark.parametrize(
    "other",
    [
        node(1, BODY, mine=False, login="octocat", kind="User"),
        node(1, BODY, mine=False, login="github-actions", kind="User"),
        {**node(1, BODY, mine=False), "author": None},
        node(1, f"I quote: {BODY}"),
        node(1, BODY.replace("a.eval", "b.eval")),
    ],
)
def test_nobody_elses_comment_is_touched(pull, other):
    (pull.report / "001.md").write_text(BODY, encoding="utf-8")
    pull.answers([other])

    assert main(["comment"], pull.env) == 0
    assert [words[2] for words, _ in pull.writes] == ["POST"]


def test_a_token_of_a_persons_own_updates_that_persons_comment(pull):
    (pull.report / "001.md").write_text(BODY, encoding="utf-8")
    pull.answers([node(5, BODY, mine=False, login="octocat", kind="User")], viewer="octocat")

    main(["comment"], pull.env)
    assert pull.writes[0][0][2:4] == ["PATCH", "repos/octo/skills/issues/comments/5"]


def test_every_spec_has_a_comment(pull):
    for name in ("a", "b"):
        (pull.report / f"00{name}.md").write_text(BODY.replace("a.eval", f"{name}.eval"), encoding="utf-8")

    main(["comment"], pull.env)
    assert [body["body"].split("\n")[0] for _, body in pull.writes] == [
        f"<!-- pytest-caliper:{name}.eval.yaml -->" for name in "ab"
    ]


def missing_gh(pull: Pull, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")


def no_pull_request(pull: Pull, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path(env["GITHUB_EVENT_PATH"]).write_text('{"ref": "main"}')


def no_token(pull: Pull, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    del env["GH_TOKEN"]


def denied(pull: Pull, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    pull.answers([], error="gh: Resource not accessible by integration (HTTP 403)\n::error::x\n")


def nonsense(pull: Pull, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    (pull.base / "answers.json").write_text('{"pages": [{"data": null}]}')


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (missing_gh, "the GitHub CLI `gh` is not on this runner"),
        (no_pull_request, "this is no run of a pull request"),
        (no_token, "there is no token"),
        (denied, "permissions: pull-requests: write"),
        (nonsense, "the comments of the pull request could not be read"),
    ],
)
def test_a_comment_that_cannot_be_written_is_a_warning(pull, monkeypatch, capsys, spoil, said):
    (pull.report / "001.md").write_text(BODY, encoding="utf-8")
    env = pull.env
    spoil(pull, env, monkeypatch)

    assert main(["comment"], env) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("::warning title=pytest-caliper::no comment on the pull request: ")
    assert said in line


def test_other_words_are_a_mistake(capsys):
    assert main(["dance"], {}) == 2
    assert "usage:" in capsys.readouterr().err


def test_words_are_split_as_a_shell_does():
    env = {"CALIPER_ACTION_ARGS": "-k 'one or two' --caliper-timeout=300"}

    assert pytest_words(env) == ["--caliper", "-k", "one or two", "--caliper-timeout=300"]
    with pytest.raises(ActionError):
        pytest_words({"CALIPER_ACTION_ARGS": '"'})
