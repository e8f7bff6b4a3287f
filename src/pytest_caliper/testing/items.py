"""Tests in Python that ask for `caliper`: one item per attempt, by parametrisation, so that every plugin and IDE knows them.

The items stay pytest's own. What the rest of the house needs to know of them is a `FunctionAttempt` on the item's stash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.options import is_spec, opted_in
from pytest_caliper.runs.records import Arm, AttemptKey
from pytest_caliper.spec.model import SpecError, Task
from pytest_caliper.state import ATTEMPT, TESTS, UNOPENED, State, state_of, worker_input
from pytest_caliper.testing.marker import Marked, MarkError, marked
from pytest_caliper.testing.source import Source, source_of

if TYPE_CHECKING:
    from pytest_caliper.contracts import Skill
    from pytest_caliper.testing.planning import Asked, FilePlan

FIXTURE = "caliper"
WORDS: dict[Arm, str] = {"skill": "attempt", "baseline": "baseline"}
_ATTEMPT_ID = re.compile(rf"::.*\[(?:.*-)?(?:{'|'.join(WORDS.values())})-\d+(?:-.*)?\]$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Numbered:
    """The parameter of an item: which attempt it is."""

    arm: Arm
    attempt: int
    k: int
    arms: tuple[Arm, ...]

    @property
    def id(self) -> str:
        return f"{WORDS[self.arm]}-{self.attempt}"


class FunctionAttempt:
    """A test's item as an attempt: what `AttemptItem` is by itself."""

    def __init__(self, item: pytest.Function, plan: FilePlan, task: Task, key: AttemptKey) -> None:
        self.item, self.plan, self.task, self.key = item, plan, task, key
        self.named: tuple[str, ...] = ()
        """The skills that the test named when it ran, as it wrote them."""

    @property
    def asked(self) -> Asked:
        return self.plan.asked[self.task.task_id]

    @property
    def config(self) -> pytest.Config:
        return self.item.config

    @property
    def session(self) -> pytest.Session:
        return self.item.session

    @property
    def stash(self) -> pytest.Stash:
        return self.item.stash

    @property
    def path(self) -> Path:
        return self.item.path

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def nodeid(self) -> str:
        return self.item.nodeid

    @property
    def location_text(self) -> str:
        """`tests/test_x.py:8`, the form that editors and CI logs turn into a link."""
        path, line, _ = self.item.location
        return f"{path}:{(line or 0) + 1}"

    def learn(self, names: Sequence[str], skills: Iterable[Skill]) -> None:
        """Note the skills that the test named when it ran."""
        self.named = tuple(names)
        self.plan.learn(skills)


def is_ours(node: Any) -> bool:
    """Whether a test function asks for our fixture, not for somebody else's of that name."""
    if FIXTURE not in getattr(node, "fixturenames", ()):
        return False
    info = getattr(node, "_fixtureinfo", None) or getattr(node.definition, "_fixtureinfo", None)
    definitions = getattr(info, "name2fixturedefs", {}).get(FIXTURE, ())
    return bool(definitions) and getattr(definitions[-1].func, "__module__", None) == "pytest_caliper.fixtures"


def expand(metafunc: pytest.Metafunc) -> None:
    """Make an item of each attempt. A mistake in the mark is a collection error. Without an opt-in the test stays as it is."""
    if not is_ours(metafunc):
        return
    config = metafunc.config
    config.stash[TESTS] = None
    try:
        said = marked(metafunc.definition)
    except MarkError as error:
        path, line, _ = metafunc.definition.location
        pytest.fail(f"{path}:{(line or 0) + 1}: {error}", pytrace=False)
    if not (_may_run(config) or config.getoption("collectonly") or _names_attempts(config)):
        return
    state = state_of(config)
    source = source_of(metafunc.function)
    k = state.settings.typed_k or said.k or state.settings.k
    arms: tuple[Arm, ...] = ("skill", "baseline") if _has_baseline(state, said, source) else ("skill",)
    numbered = [Numbered(arm, attempt, k, arms) for attempt in range(1, k + 1) for arm in arms]
    metafunc.parametrize(FIXTURE, numbered, ids=[one.id for one in numbered], indirect=True)


def _may_run(config: pytest.Config) -> bool:
    said = worker_input(config)
    return opted_in(config) if said is None else bool(said["opted_in"])


def _names_attempts(config: pytest.Config) -> bool:
    """Whether the command line has ids of attempts, as VS Code gives them. They must be there to be left out: pytest runs nothing
    where it misses one that is named.
    """
    return any(_ATTEMPT_ID.search(str(arg)) for arg in config.args)


def _has_baseline(state: State, said: Marked, source: Source) -> bool:
    """The mark says it; else the option, for tests that name a skill."""
    if said.baseline is not None:
        return said.baseline
    return state.settings.baseline and bool(said.skills or source.names_skill)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without an opt-in: deselect the tests that would call agents, and count them."""
    ours = [item for item in items if is_ours(item)]
    if ours and not config.getoption("collectonly"):
        for item in ours:
            config.stash[UNOPENED][item.nodeid] = None
        items[:] = [item for item in items if not is_ours(item)]
        config.hook.pytest_deselected(items=ours)


def adopt(state: State, items: list[pytest.Item]) -> list[FunctionAttempt]:
    """Plan the files of the tests that ask for `caliper`. Raises pytest.UsageError for a skill that cannot be installed."""
    from pytest_caliper.running.planning import Place
    from pytest_caliper.testing.planning import file_plan, task_id

    files: dict[Path, dict[str, list[tuple[pytest.Function, Numbered]]]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and (numbered := _numbered(item)) is not None:
            files.setdefault(item.path, {}).setdefault(_name(item, numbered), []).append((item, numbered))
    adopted, wrong = [], []
    for path, tests in files.items():
        asked = [_asked(name, *members[0]) for name, members in tests.items()]
        members = [
            (item, AttemptKey(spec=str(path), task_id=task_id(name), arm=n.arm, attempt=n.attempt))
            for name, some in tests.items()
            for item, n in some
        ]
        places = {key: Place(nodeid=item.nodeid, name=item.name, location=item.location) for item, key in members}
        try:
            plan = file_plan(
                path,
                asked,
                settings=state.settings,
                rootdir=state.config.rootpath,
                whole_file=_whole(state.config, path),
                places=places,
            )
        except (SpecError, OSError) as error:
            wrong.append(str(error))
            continue
        state.specs[path] = plan
        tasks = {task.task_id: task for task in plan.spec.tasks}
        for item, key in members:
            attempt = item.stash[ATTEMPT] = FunctionAttempt(item, plan, tasks[key.task_id], key)
            adopted.append(attempt)
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    return adopted


def tell_controller(session: pytest.Session) -> None:
    """In an xdist worker: say which tests were collected that make attempts."""
    from pytest_caliper.testing.manifest import manifest

    plans = dict.fromkeys(attempt.plan for item in session.items if (attempt := item.stash.get(ATTEMPT, None)) is not None)
    if plans:
        state_of(session.config).listener.say(manifest(session.config, plans))


def _numbered(item: pytest.Function) -> Numbered | None:
    callspec = getattr(item, "callspec", None)
    numbered = None if callspec is None else callspec.params.get(FIXTURE)
    return numbered if isinstance(numbered, Numbered) else None


def _asked(name: str, item: pytest.Function, numbered: Numbered) -> Asked:
    from pytest_caliper.testing.planning import Asked

    return Asked(name=name, source=source_of(item.function), marked=marked(item), k=numbered.k, arms=numbered.arms)


def _name(item: pytest.Function, numbered: Numbered) -> str:
    """The item's id in its file without the attempt: `TestNotes::test_commit[feature]`."""
    parents = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    whole = item.callspec.id
    *_, ours = re.finditer(rf"(?:^|-){re.escape(numbered.id)}(?=-|$)", whole)  # the last: parameters of others come before it
    rest = (whole[: ours.start()] + whole[ours.end() :]).removeprefix("" if ours.start() else "-")
    return "::".join([*parents, getattr(item, "originalname", item.name) + (f"[{rest}]" if rest else "")])


def _whole(config: pytest.Config, path: Path) -> bool:
    """Whether no argument names single tests of the file."""
    return not any(
        "::" in str(arg) and not is_spec(str(arg).split("::", 1)[0]) and _same(config, str(arg), path) for arg in config.args
    )


def _same(config: pytest.Config, arg: str, path: Path) -> bool:
    return os.path.abspath(config.invocation_params.dir / arg.split("::", 1)[0]) == str(path)  # noqa: PTH100


def call(item: pytest.Item) -> Generator[None, object, object]:
    """Around the body of a test: what it comes to is the verdict over the attempt."""
    from pytest_caliper.testing.verdict import conclude

    attempt = item.stash[ATTEMPT]
    error: BaseException | None = None
    value: object = None
    try:
        value = yield
    except BaseException as raised:  # noqa: BLE001  raised again below, unless it is an attempt without the skill
        error = raised
    error = conclude(attempt, error)
    if error is not None:
        raise error
    return value
