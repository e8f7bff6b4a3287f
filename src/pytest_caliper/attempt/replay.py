"""Recording attempts onto cassettes and replaying them: two Invokers that stand where real processes stand.

Everything above the invoker (parsing, file effects, cheat check, asserts, verdicts, statistics) is the same in a replay.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

from pytest_caliper.attempt.changes import EffectsTooLarge, FileEffect, apply_effects, file_effects, snapshot
from pytest_caliper.attempt.effects import PERMISSIONS
from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.contracts import AttemptPlan, Backend, EngineError, Invoker, JudgeRequest, RawOutput, Workspace
from pytest_caliper.judging.autorater import judge_prompt_hash
from pytest_caliper.runs import cassette_file
from pytest_caliper.runs.cassette import (
    AgentRecording,
    Cassette,
    CassetteError,
    Identity,
    JudgeIdentity,
    JudgeRecording,
    RecordedFile,
    Recording,
    cassette_path,
    judge_stale_reason,
    missing_reason,
    skills_hash,
    stale_reason,
    text_hash,
)
from pytest_caliper.runs.placeholders import localised, portable
from pytest_caliper.spec.env_refs import references_of


def path_of(plan: AttemptPlan) -> Path:
    """The attempt's cassette."""
    return cassette_path(plan.spec_path, plan.key.task_id, plan.key.arm, plan.key.attempt)


def identity_of(plan: AttemptPlan) -> Identity:
    """What the agent of this attempt meets."""
    extra = [os.path.relpath(path, plan.spec_dir) for path in plan.sandbox.extra_path]
    surroundings = (plan.task.setup, extra, [(s.name, s.transport, s.command, s.args, s.url) for s in plan.mcp])
    return Identity(
        task_id=plan.key.task_id,
        arm=plan.key.arm,
        attempt=plan.key.attempt,
        engine=str(plan.engine),
        prompt=text_hash(plan.task.prompt),
        skill=skills_hash(skill.snapshot for skill in plan.skills),
        setup=text_hash(repr(surroundings)),
    )


def judge_identity_of(plan: AttemptPlan) -> JudgeIdentity:
    """What the judge of this attempt is asked."""
    return JudgeIdentity(expect=text_hash(plan.task.expect or ""), engine=str(plan.judge), prompt=judge_prompt_hash())


def check_cassettes(plans: Iterable[AttemptPlan]) -> tuple[list[str], list[str]]:
    """-> (why the agents' recordings cannot be used, which judge's replies cannot), a line each."""
    mistakes: list[str] = []
    notes: list[str] = []
    for plan in plans:
        key, path = plan.key, path_of(plan)
        try:
            cassette = cassette_file.read(path)
        except FileNotFoundError:
            mistakes.append(f"{plan.spec_path}: {missing_reason(plan.spec_path, key.task_id, key.arm, key.attempt)}")
            continue
        except CassetteError as error:
            mistakes.append(str(error))
            continue
        if reason := stale_reason(cassette, identity_of(plan)):
            mistakes.append(f"{path}: {reason}")
        elif cassette.judge is not None and (reason := judge_stale_reason(cassette.judge, judge_identity_of(plan))):
            notes.append(f"{path.parent.name}/{path.name}: the judge's reply was {reason}")
    return mistakes, notes


class ReplayInvoker:
    """Gives back what was recorded; runs nothing."""

    def agent(self, backend: Backend, plan: AttemptPlan, workspace: Workspace) -> RawOutput:  # noqa: ARG002
        """The recorded stream, after the recorded changes were made in `work/`. Raises EngineError for a stale cassette."""
        cassette = self._read(plan)
        if reason := stale_reason(cassette, identity_of(plan)):
            raise EngineError(f"{path_of(plan)}: {reason}")
        effects = [_effect(file, plan, workspace) for file in cassette.agent.files]
        apply_effects(effects, workspace.work)
        return _raw(cassette.agent, workspace.root / "agent.out", plan, workspace, cassette.cli_version)

    def judge(self, backend: Backend, plan: AttemptPlan, workspace: Workspace, request: JudgeRequest) -> RawOutput:  # noqa: ARG002
        """The recorded reply. Raises EngineError when it answers another question, or when none was recorded."""
        cassette, name = self._read(plan), path_of(plan).name
        if cassette.judge is None:
            raise EngineError(f"{name}: no judge's reply was recorded; record again with --caliper-record")
        if reason := judge_stale_reason(cassette.judge, judge_identity_of(plan)):
            raise EngineError(f"{name}: the judge's reply was {reason}")
        replies = cassette.judge.replies
        if request.number > len(replies):
            raise EngineError(f"{name}: the judge was asked once more than was recorded; record again")
        out = workspace.root / f"judge-{request.number}.out"
        return _raw(replies[request.number - 1], out, plan, workspace, cassette.judge_cli_version)

    @staticmethod
    def _read(plan: AttemptPlan) -> Cassette:
        try:
            return cassette_file.read(path_of(plan))
        except FileNotFoundError:
            raise EngineError(missing_reason(plan.spec_path, plan.key.task_id, plan.key.arm, plan.key.attempt)) from None
        except CassetteError as error:
            raise EngineError(str(error)) from None


class SecretInRecording(Exception):
    """What was recorded holds a secret where none can be replaced."""


class RecordingInvoker:
    """Runs the real thing and keeps it. A recording that cannot be kept does not spoil the attempt: see `problems`.

    No two attempts share a cassette, so threads do not meet.
    """

    def __init__(self, inner: Invoker) -> None:
        self._inner = inner
        self._kept: set[Path] = set()
        """Cassettes of this session, which may still get their judge's replies."""
        self.problems: list[str] = []
        """Why recordings could not be kept, a line each."""

    def agent(self, backend: Backend, plan: AttemptPlan, workspace: Workspace) -> RawOutput:
        """Run the agent and record its stream, its end and what it changed."""
        before, path = snapshot(workspace.work), path_of(plan)
        raw = self._inner.agent(backend, plan, workspace)
        teller = _Teller(plan, workspace)
        said = teller.recorded(raw)
        try:
            files = tuple(map(teller.file, file_effects(before, workspace.work)))
        except (EffectsTooLarge, SecretInRecording) as error:
            self._refuse(path, f"{path}: the recording was not kept: {error}")
            return raw
        agent = AgentRecording(**{field.name: getattr(said, field.name) for field in fields(Recording)}, files=files)
        cassette = Cassette(identity=identity_of(plan), agent=agent, cli_version=raw.cli_version)
        self._keep(path, cassette)
        return raw

    def judge(self, backend: Backend, plan: AttemptPlan, workspace: Workspace, request: JudgeRequest) -> RawOutput:
        """Ask the judge and add its reply to the attempt's cassette."""
        raw = self._inner.judge(backend, plan, workspace, request)
        path = path_of(plan)
        if path not in self._kept:  # the agent's part could not be kept, or a harness of the user's own ran the agent
            return raw
        try:
            cassette = cassette_file.read(path)
        except (OSError, CassetteError) as error:
            self._refuse(path, f"{path}: the judge's reply was not kept: {error}")
            return raw
        reply = _Teller(plan, workspace).recorded(raw)
        earlier = cassette.judge.replies if cassette.judge is not None else ()
        judge = JudgeRecording(identity=judge_identity_of(plan), replies=(*earlier[: request.number - 1], reply))
        self._keep(path, replace(cassette, judge=judge, judge_cli_version=raw.cli_version))
        return raw

    def _keep(self, path: Path, cassette: Cassette) -> None:
        try:
            cassette_file.write(cassette, path)
            self._kept.add(path)
        except CassetteError as error:
            self._refuse(path, str(error))
        except OSError as error:
            self._refuse(path, f"{path}: the cassette cannot be written: {error}")

    def _refuse(self, path: Path, problem: str) -> None:
        self._kept.discard(path)
        self.problems.append(problem)
        with suppress(OSError):
            path.unlink()  # an older recording in its place would be taken for this one


class _Teller:
    """What a recording may say: no secrets, and private paths as placeholders."""

    def __init__(self, plan: AttemptPlan, workspace: Workspace) -> None:
        home = plan.env.get("HOME", "")
        names = tuple(reference.name for reference in references_of(plan.mcp))
        self._secrets = Redactor.from_environment({**plan.env, "HOME": ""}, names)
        self._home = Redactor.from_environment({"HOME": home}, ())
        self._workspace, self._outer = workspace, _outer(plan)

    def told(self, text: str) -> str:
        """`text` as it is written. The user's home comes last: much of what has a placeholder of its own may lie below it."""
        return self._home.redact(portable(self._secrets.redact(text), self._workspace, self._outer))

    def _holds_secret(self, text: str) -> bool:
        before = self._secrets.count
        self._secrets.redact(text)
        return self._secrets.count > before

    def recorded(self, raw: RawOutput) -> Recording:
        return Recording(
            argv=tuple(map(self.told, (Path(raw.argv[0]).name, *raw.argv[1:]))) if raw.argv else (),
            exit_code=raw.exit_code,
            cause=raw.cause,
            duration_s=round(raw.duration_s, 3),
            stdout=self.told(raw.stdout.read_bytes().decode("utf-8", "replace")),
            stderr=self.told(raw.stderr),
        )

    def file(self, effect: FileEffect) -> RecordedFile:
        there = effect.change != "deleted"
        content: str | bytes | None = None
        if there and effect.link is None and not effect.is_directory:
            data = effect.data or b""  # None where even we may not read it
            try:
                content = self.told(data.decode("utf-8"))
            except UnicodeDecodeError:
                content = data
                if any(
                    self._holds_secret(data.decode(encoding, "replace")) for encoding in ("latin-1", "utf-16-le", "utf-16-be")
                ):
                    raise SecretInRecording("a file that is no UTF-8 text holds a secret") from None
        if self._holds_secret(effect.path):
            raise SecretInRecording("the name of a file holds a secret")
        return RecordedFile(
            path=effect.path,
            change=effect.change,
            mode=stat.S_IMODE(effect.mode) & PERMISSIONS if there and effect.link is None else None,
            content=content,
            link=None if effect.link is None else self.told(effect.link),
            directory=there and effect.is_directory,
        )


def _outer(plan: AttemptPlan) -> dict[str, Path]:
    outer = {"SPEC_DIR": plan.spec_dir}
    return outer if plan.project is None else {**outer, "PROJECT": plan.project}


def _raw(recording: Recording, out: Path, plan: AttemptPlan, workspace: Workspace, version: str | None) -> RawOutput:
    outer = _outer(plan)
    out.write_bytes(localised(recording.stdout, workspace, outer).encode("utf-8", "replace"))
    return RawOutput(
        argv=recording.argv,
        stdout=out,
        stderr=localised(recording.stderr, workspace, outer),
        exit_code=recording.exit_code,
        cause=recording.cause,
        duration_s=recording.duration_s,
        cli_version=version,
    )


def _effect(file: RecordedFile, plan: AttemptPlan, workspace: Workspace) -> FileEffect:
    def here(text: str) -> str:
        return localised(text, workspace, _outer(plan))

    data = here(file.content).encode("utf-8", "surrogatepass") if isinstance(file.content, str) else file.content
    kind, usual = (stat.S_IFDIR, 0o755) if file.directory else (0, 0o644)
    return FileEffect(
        path=file.path,
        change=file.change,
        mode=kind | (usual if file.mode is None else file.mode),
        data=data,
        link=None if file.link is None else here(file.link),
    )
