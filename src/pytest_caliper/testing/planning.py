"""From the tests of one Python file that ask for `caliper` to a plan that everything else takes for a spec's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.contracts import Skill
from pytest_caliper.running.planning import Place, SpecPlan
from pytest_caliper.runs.place import project_of, results_directory
from pytest_caliper.runs.records import Arm, AttemptKey
from pytest_caliper.sources import resolve_skills
from pytest_caliper.spec.model import Assertion, Sandbox, SkillRef, Spec, Task

if TYPE_CHECKING:
    from pytest_caliper.options import Settings
    from pytest_caliper.testing.marker import Marked
    from pytest_caliper.testing.source import Source

_PLAIN_NAME = re.compile(r"([A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)(?:\[([A-Za-z0-9_.-]+)\])?")
_MAX_ID = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One test (of a parametrised one: one set of parameters) and what is known of it before it runs."""

    name: str
    """What tells it from the others of its file: `TestNotes::test_commit[feature]`."""
    source: Source
    marked: Marked
    k: int
    arms: tuple[Arm, ...]

    @property
    def task_id(self) -> str:
        """Stable whatever is selected, and fit for a file's name."""
        return task_id(self.name)

    @property
    def skills(self) -> tuple[str, ...]:
        return self.marked.skills + self.source.skills


def task_id(name: str) -> str:
    """The id of the task that a test is: `test_commit-feature` for `test_commit[feature]`; with a hash where that loses some."""
    plain = _PLAIN_NAME.fullmatch(name)
    if plain is not None and len(name) <= _MAX_ID:
        return plain[1].replace("::", ".") + (f"-{plain[2]}" if plain[2] else "")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name)[: _MAX_ID - 9].strip("-.") + f"-{digest}"


@dataclass(frozen=True, kw_only=True, eq=False)
class FilePlan(SpecPlan):
    """The tests of one file. Its tasks differ in k and arms, and may name skills when they run."""

    asked: Mapping[str, Asked]
    """By task id."""
    whole_file: bool = True
    """Whether nobody named single tests of the file."""
    learned: dict[str, Skill] = field(default_factory=dict)
    """Name -> skill that a test named when it ran."""

    prompts_come_later = True

    def k_of(self, task: Task) -> int:
        return self.asked[task.task_id].k

    def arms_of(self, task: Task) -> tuple[Arm, ...]:
        return self.asked[task.task_id].arms

    @property
    def k(self) -> int:
        """The most of any test."""
        return max(asked.k for asked in self.asked.values())

    @property
    def arms(self) -> tuple[Arm, ...]:
        return max((asked.arms for asked in self.asked.values()), key=len)

    @property
    def lacks_baseline(self) -> bool:
        return self.settings.baseline and "baseline" not in self.arms

    def bar_name(self, task: Task) -> str:
        return f"{task.name}::bar"

    @property
    def names_all(self) -> bool:
        return self.whole_file

    @property
    def all_skills(self) -> tuple[Skill, ...]:
        known = {skill.name: skill for skill in self.skills}
        return tuple((known | self.learned).values())

    def learn(self, skills: Iterable[Skill]) -> None:
        """Note skills that a test named when it ran."""
        known = {skill.name: skill for skill in self.all_skills}
        self.learned.update({skill.name: skill for skill in skills if known.get(skill.name) != skill})

    @cached_property
    def _codes(self) -> dict[str, bytes]:
        return {}  # the test itself decides

    def resolved(self, names: Iterable[str], line: int) -> tuple[Skill, ...]:
        """The skills of these names, as one test names them together. Raises SpecError."""
        return resolve(self.spec.path, names, line=line, project=self.project)


def resolve(path: Path, names: Iterable[str], *, line: int, project: Path) -> tuple[Skill, ...]:
    """The skills that a test names, relative to its file. Raises SpecError at the test's line."""
    refs = tuple(SkillRef(path=path.parent / name, line=line + 1) for name in dict.fromkeys(names))
    spec = Spec(
        path=path,
        skills=refs,
        tasks=(),
        sandbox=Sandbox(),
        mcp=(),
        engine_default=None,
        judge_default=None,
        warnings=(),
        digest="",
    )
    skills, _ = resolve_skills(spec, exclude=frozenset(), project=project)
    return skills


def file_plan(
    path: Path,
    tests: Iterable[Asked],
    *,
    settings: Settings,
    rootdir: Path,
    whole_file: bool,
    places: Mapping[AttemptKey, Place],
) -> FilePlan:
    """The plan of a file. Raises SpecError for a skill that cannot be installed, OSError for a file that cannot be read."""
    asked = {test.task_id: test for test in tests}
    project = project_of(path, rootdir)
    skills: dict[str, Skill] = {}
    for test in asked.values():
        skills |= {skill.name: skill for skill in resolve(path, test.skills, line=test.source.line, project=project)}
    spec = Spec(
        path=path,
        skills=(),
        tasks=tuple(task_of(path, test) for test in asked.values()),
        sandbox=Sandbox(),
        mcp=(),
        engine_default=None,
        judge_default=None,
        warnings=(),
        digest="sha256:" + hashlib.sha256(path.read_bytes()).hexdigest(),
    )
    return FilePlan(
        spec=spec,
        skills=tuple(skills.values()),
        warnings=(),
        settings=settings,
        project=project,
        results=results_directory(path, override=settings.results, rootdir=rootdir),
        asked=asked,
        whole_file=whole_file,
        places=places,
    )


def task_of(path: Path, test: Asked) -> Task:
    """A test as a task: its source is what decides over the agent's work."""
    source = test.source
    return Task(
        task_id=test.task_id,
        name=test.name,
        prompt=source.prompt if source.prompt is not None else "(made by the test when it runs)",
        line=source.line,
        expect=" / ".join(source.criteria) or ("(asked by the test when it runs)" if source.judges else None),
        assertion=Assertion(source=source.text, path=path, line=source.line, column=0, is_script=True),
        bar=test.marked.bar,
    )


def keys_of(path: Path, test: Asked) -> Iterator[AttemptKey]:
    """The attempts of a test: attempt 1 of each arm, attempt 2 of each arm, …"""
    for attempt in range(1, test.k + 1):
        for arm in test.arms:
            yield AttemptKey(spec=str(path), task_id=test.task_id, arm=arm, attempt=attempt)
