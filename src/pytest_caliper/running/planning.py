"""From a spec and the settings to the plans of its attempts."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pytest_caliper.backends.registry import by_name, resolve_target
from pytest_caliper.contracts import AttemptPlan, Backend, Engine, EngineError, Skill
from pytest_caliper.judging.assertion import compile_assertion
from pytest_caliper.options import SPEC_SUFFIXES
from pytest_caliper.runs.cassette import cassette_directory
from pytest_caliper.runs.place import project_of, results_directory, spec_stem
from pytest_caliper.runs.records import Arm, AttemptKey, Bar
from pytest_caliper.sources import resolve_skills
from pytest_caliper.spec.files import files_named
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Diagnostic, EngineDefault, Spec, SpecError, Task
from pytest_caliper.spec.names import node_name
from pytest_caliper.spec.paths import absolute_paths

if TYPE_CHECKING:
    from pytest_caliper.options import Settings

DEFAULT_BACKEND = "claude-code"
STAMP_LENGTH = len("2026-01-02T03-04-05Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionId:
    """What names a session: the same in all its processes."""

    id: str
    stamp: str
    """UTC start, as in file names: `%Y-%m-%dT%H-%M-%SZ`."""
    continued: dict[str, str] = field(default_factory=dict, compare=False)
    """Path of a spec -> the name of an earlier run of it that this session continues; filled before anything is planned."""

    def run_id(self, spec: Path) -> str:
        """The id of this session's run of one spec: specs that share a results directory do not share a file."""
        name = self.continued.get(str(spec))
        return hashlib.sha256(f"{self.id} {spec}".encode()).hexdigest()[:8] if name is None else name[STAMP_LENGTH + 1 :]

    def run_stamp(self, spec: Path) -> str:
        """When that run began: this session, or the one that it continues."""
        return self.continued.get(str(spec), self.stamp)[:STAMP_LENGTH]

    def run_name(self, spec: Path) -> str:
        """The stem of everything that is kept of that run."""
        return f"{self.run_stamp(spec)}-{self.run_id(spec)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where pytest has an attempt, when that does not follow from its spec: a test in Python has an item of its own."""

    nodeid: str
    name: str
    """The item's own name."""
    location: tuple[str, int | None, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class SpecPlan:
    """A spec that was opened, with what the settings make of it. Raises nothing once it is built."""

    spec: Spec
    skills: tuple[Skill, ...]
    warnings: tuple[Diagnostic, ...]
    settings: Settings
    project: Path
    results: Path
    """Directory of this spec's run files."""
    baseline_known: bool = False
    """Whether the baseline is taken from a saved run, so that it has no attempts."""
    places: Mapping[AttemptKey, Place] = field(default_factory=dict)
    """Of the attempts whose places do not follow from the spec."""

    prompts_come_later: ClassVar[bool] = False
    """Whether what an attempt asks is only known when it runs."""

    @classmethod
    def open(cls, path: Path, settings: Settings, rootdir: Path) -> SpecPlan:
        """Load a spec and its skills. Raises SpecError with every mistake of the file."""
        path = Path(os.path.abspath(path))  # noqa: PTH100  links stay: two names of one spec are two specs
        _refuse_twin(path)
        spec = load_spec(path)
        project = project_of(path, rootdir)
        results = results_directory(path, override=settings.results, rootdir=rootdir)
        kept = {settings.results} if settings.results is not None else set()
        skills, warnings = resolve_skills(spec, exclude=files_named(spec) | kept, project=project)
        return cls(
            spec=spec,
            skills=skills,
            warnings=(*spec.warnings, *warnings),
            settings=settings,
            project=project,
            results=results,
        )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Skill before baseline; no baseline where there is no skill to leave out."""
        return ("skill", "baseline") if self.settings.baseline and self.skills and not self.baseline_known else ("skill",)

    @property
    def lacks_baseline(self) -> bool:
        """Whether a baseline was asked for that this spec cannot have."""
        return self.settings.baseline and not self.skills

    @property
    def k(self) -> int:
        """Attempts per arm and task; the most where tasks differ."""
        return self.settings.k

    def k_of(self, task: Task) -> int:  # noqa: ARG002  tests in Python differ
        """Attempts per arm of a task."""
        return self.settings.k

    def arms_of(self, task: Task) -> tuple[Arm, ...]:  # noqa: ARG002  as above
        """The arms of a task, the skill's first."""
        return self.arms

    @property
    def names_all(self) -> bool:
        """Whether `spec` has all tasks of the file, whatever is selected."""
        return True

    @property
    def all_skills(self) -> tuple[Skill, ...]:
        """`skills`, and those that became known since."""
        return self.skills

    def bar_name(self, task: Task) -> str:
        """What stands behind the file in the node id of the task's bar."""
        return f"{node_name(task.name, task.task_id)}::bar"

    def bar(self, task: Task) -> Bar | None:
        """The bar that decides over a task: command line, task, spec, ini; None where every failing attempt fails."""
        settings = self.settings
        said = (settings.bar, task.bar, self.spec.bar, settings.ini_bar)
        rate = next((rate for rate in said if rate is not None), None)
        if rate is None:
            return None
        return Bar(rate=rate, policy=settings.bar_policy, min_coverage=Fraction(settings.min_coverage))

    def keys(self, task: Task) -> Iterator[AttemptKey]:
        """The attempts of a task: attempt 1 of each arm, attempt 2 of each arm, …"""
        for attempt in range(1, self.k_of(task) + 1):
            for arm in self.arms_of(task):
                yield AttemptKey(spec=str(self.spec.path), task_id=task.task_id, arm=arm, attempt=attempt)

    def engine(self, backends: Mapping[str, Backend]) -> Engine:
        """The engine under test: command line, spec, ini, default. Raises EngineError."""
        settings = self.settings
        return _engine(settings.model, self.spec.engine_default, settings.ini_model, backends)

    def judge(self, backends: Mapping[str, Backend]) -> Engine:
        """The engine that grades `expect:`. Raises EngineError."""
        settings = self.settings
        return _engine(settings.judge_model, self.spec.judge_default, settings.ini_judge_model, backends)

    @cached_property
    def _codes(self) -> dict[str, bytes]:
        return {t.task_id: compile_assertion(t.assertion) for t in self.spec.tasks if t.assertion is not None}

    @cached_property
    def protected(self) -> tuple[Path, ...]:
        """What no agent may read, whatever the spec says."""
        return (self.spec.path, self.results, cassette_directory(self.spec.path))

    def transcripts(self, session: SessionId) -> Path:
        """Directory of the side files that attempts of this session write their transcripts to."""
        return self.results / f"{session.run_name(self.spec.path)}.parts"

    def spare(self, session: SessionId) -> Path:
        """Where the run file goes when `results` does not take it; outlives the session."""
        return Path(tempfile.gettempdir()) / f"caliper-unsaved-{session.id}"

    def spare_transcripts(self, session: SessionId) -> Path:
        """Where transcripts go when `results` does not take them."""
        return self.spare(session) / f"{session.run_name(self.spec.path)}.parts"

    def shares_paths(self, task: Task) -> bool:
        """Whether attempts of the task would meet each other outside their roots, so that they run one at a time."""
        return bool(absolute_paths(task))

    def plan(
        self,
        key: AttemptKey,
        *,
        engines: tuple[Engine, Engine],
        env: Mapping[str, str],
        root: Path,
        tag: str,
        session: SessionId,
    ) -> AttemptPlan:
        """The plan of one attempt.

        `engines` are the one under test and the judge; `root` and `tag` are those of the process that runs the attempt.
        """
        task = next(task for task in self.spec.tasks if task.task_id == key.task_id)
        name = f"{key.task_id}-{key.arm}-{key.attempt}"
        run = session.run_id(self.spec.path)
        bare = key.arm == "baseline"
        return AttemptPlan(
            key=key,
            task=task,
            spec_path=self.spec.path,
            engine=engines[0],
            judge=engines[1],
            skills=() if bare else self.skills,
            absent_skills=tuple(skill.name for skill in self.skills) if bare else (),
            sandbox=self.spec.sandbox,
            mcp=self.spec.mcp,
            env=env,
            protected=self.protected,
            timeout_s=self.settings.timeout_s,
            root=root / run / name,
            tag=f"{tag}/{run}-{name}",
            transcript_path=self.transcripts(session) / f"{name}.jsonl",
            transcript_spare=self.spare_transcripts(session) / f"{name}.jsonl",
            project=self.project,
            user_customizations=self.settings.user_customizations,
            judge_votes=self.settings.judge_votes,
            assert_code=self._codes.get(key.task_id),
        )


def _refuse_twin(path: Path) -> None:
    """`x.eval.yaml` and `x.eval.yml` side by side would share their results and cassettes. Raises SpecError."""
    stem = spec_stem(path)
    for suffix in SPEC_SUFFIXES:
        twin = path.with_name(stem + suffix)
        if twin.name != path.name and twin.exists():
            message = f"{twin.name} stands beside it, and the two would share results and cassettes: rename one"
            raise SpecError((Diagnostic(path=path, line=1, message=message),))


def _engine(typed: str | None, default: EngineDefault | None, ini: str | None, backends: Mapping[str, Backend]) -> Engine:
    if typed is None and default is not None and (default.backend or default.model):
        if default.backend is None:
            return resolve_target(str(default.model), backends, DEFAULT_BACKEND)
        engine = resolve_target(default.backend, backends, DEFAULT_BACKEND)
        if engine.model is not None:  # a bare word that is no backend would be taken for a model
            known = ", ".join(sorted(by_name(list(backends.values()))))
            raise EngineError(f"backend {default.backend!r} is not known; use one of {known}")
        return Engine(backend=engine.backend, model=default.model)
    said = next((text for text in (typed, ini) if text is not None), DEFAULT_BACKEND)
    return resolve_target(said, backends, DEFAULT_BACKEND)
