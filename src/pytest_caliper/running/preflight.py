"""Everything that can be known to fail is found before the first attempt is paid for.

Three rounds, each only when the one before found nothing: what the specs say; which CLIs are here and logged in; whether judges
and MCP servers answer. What takes time within a round is done at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_caliper.attempt.replay import check_cassettes
from pytest_caliper.attempt.workspace import create
from pytest_caliper.backends.mcp import resolve_server
from pytest_caliper.backends.mcp_probe import probe_server
from pytest_caliper.contracts import Cancelled, Engine, EngineError, Workspace
from pytest_caliper.judging.probe import probe_judge
from pytest_caliper.process import unsupported_reason
from pytest_caliper.spec.env_refs import references
from pytest_caliper.spec.model import McpServer

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.running.runtime import Runtime
    from pytest_caliper.runs.records import AttemptKey

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Unharnessed:
    """Attempts whose fixtures were overridden, so that no CLI of ours is asked for."""

    agent: frozenset[AttemptKey] = frozenset()
    judge: frozenset[AttemptKey] = frozenset()


NOTHING = Unharnessed()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What the selected attempts of one spec need."""

    plan: SpecPlan
    keys: tuple[AttemptKey, ...]
    engine: Engine | None
    """None when no agent of ours runs."""
    judge: Engine | None
    """None when nothing is sent to a judge's CLI."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What preflight has to say when nothing is missing."""

    lines: tuple[str, ...] = ()
    """What was found, for the moment before the run."""
    notes: tuple[str, ...] = ()
    """What a reader of the results must know."""


def check(
    plans: Mapping[SpecPlan, tuple[Engine, Engine]],
    keys: Sequence[AttemptKey],
    runtime: Runtime,
    unharnessed: Unharnessed = NOTHING,
) -> Findings:
    """Check engines, logins, variables, servers and cassettes of the selected attempts.

    Raises EngineError whose text names everything that is missing, a line each, with the remedies.
    """
    if reason := unsupported_reason():
        raise EngineError(reason)
    wanted = [_wanted(plan, pair, keys, unharnessed) for plan, pair in plans.items()]
    if runtime.settings.replay:
        return _check_cassettes(wanted, runtime)
    _refuse(mistake for want in wanted for mistake in _spec_mistakes(want, runtime))
    engines = dict.fromkeys(engine for want in wanted for engine in (want.engine, want.judge) if engine is not None)
    lines = _all_at_once([_finder(engine, runtime) for engine in engines])
    _refuse(missing for want in wanted for missing in _lacking(want, runtime))
    judges = dict.fromkeys(want.judge for want in wanted if want.judge is not None)
    lines += _all_at_once(
        [_prober(judge, number, runtime) for number, judge in enumerate(judges)]
        + [_greeter(want.plan, server, runtime) for want in wanted if want.engine for server in want.plan.spec.mcp]
    )
    own = [w.judge for w in wanted if w.judge is not None and w.judge == w.engine]
    notes = [f"{judge} grades its own work; --caliper-judge-model names another judge" for judge in own]
    return Findings(lines=tuple(lines), notes=tuple(dict.fromkeys(notes)))


def _wanted(plan: SpecPlan, pair: tuple[Engine, Engine], keys: Sequence[AttemptKey], unharnessed: Unharnessed) -> _Wanted:
    mine = tuple(key for key in keys if key.spec == str(plan.spec.path))
    graded = {key.task_id for key in mine if key not in unharnessed.judge}
    judged = any(task.expect is not None and task.task_id in graded for task in plan.spec.tasks)
    ours = any(key not in unharnessed.agent for key in mine)
    return _Wanted(plan=plan, keys=mine, engine=pair[0] if ours else None, judge=pair[1] if judged else None)


def _check_cassettes(wanted: Sequence[_Wanted], runtime: Runtime) -> Findings:
    known = [want for want in wanted if not want.plan.prompts_come_later]
    mistakes, notes = check_cassettes(runtime.plan(want.plan, key, runtime.env) for want in known for key in want.keys)
    _refuse(mistakes)
    return Findings(notes=tuple(dict.fromkeys(notes)))


def _spec_mistakes(want: _Wanted, runtime: Runtime) -> Iterable[str]:
    plan = want.plan
    for reference in () if runtime.settings.check else references(plan.spec):  # no agent, so no server
        if reference.name not in runtime.env:
            yield (
                f"{plan.spec.path}:{reference.line}: mcp server {reference.server!r}, {reference.key}: "
                f"the environment variable {reference.name} is not set; export it"
            )
    if want.engine is None:
        return
    backend = runtime.backends[want.engine.backend]
    with _asking(want.engine):
        refused = backend.refuses(skills=plan.skills, mcp=plan.spec.mcp)
    if refused:
        yield f"{plan.spec.path}: {refused}"
    bound: int | None = getattr(backend, "max_prompt_bytes", None)
    selected = {key.task_id for key in want.keys}
    for task in plan.spec.tasks:
        if bound is None:
            return
        if task.task_id in selected and (size := len(task.prompt.encode("utf-8", "surrogatepass"))) > bound:
            yield (
                f"{plan.spec.path}:{task.line + 1}: the prompt has {size:,} bytes, {want.engine.backend} takes {bound:,}: "
                "put the text into a file that setup: writes, or use another engine"
            )


def _lacking(want: _Wanted, runtime: Runtime) -> Iterable[str]:
    """What the copy of the CLI that was found cannot do, where its backend can tell (`Hermes.lacks`)."""
    ask = None if want.engine is None else getattr(runtime.backends[want.engine.backend], "lacks", None)
    if want.engine is not None and ask is not None:
        cli = runtime.clis[want.engine.backend]
        if missing := ask(cli, runtime.env, mcp=want.plan.spec.mcp):
            yield f"{want.plan.spec.path}: {missing}"


def _finder(engine: Engine, runtime: Runtime) -> Callable[[], str]:
    def find() -> str:
        with _asking(engine):
            cli = runtime.clis[engine.backend]
            runtime.backends[engine.backend].check(engine, runtime.env)
            return f"{engine}: {cli.path}, version {cli.version}"

    return find


def _prober(judge: Engine, number: int, runtime: Runtime) -> Callable[[], str]:
    """One judge call whose answer is yes."""

    def probe() -> str:
        workspace = Workspace.at(runtime.root / f"probe-{number}")
        create(workspace)
        cli = runtime.clis[judge.backend]
        backend = runtime.backends[judge.backend]
        with _asking(judge):
            reply = probe_judge(backend, judge, runtime.env, cli, runtime.processes, workspace.root)
        model = f" as {reply.model}" if reply.model and reply.model != judge.model else ""
        return f"judge {judge}: answers{model}"

    return probe


def _greeter(plan: SpecPlan, server: McpServer, runtime: Runtime) -> Callable[[], str]:
    """One `initialize` and `tools/list` with a declared server: some CLIs say nothing about a broken one."""

    def greet() -> str:
        resolved = resolve_server(server, runtime.env, plan.spec.directory)
        place = runtime.root / "mcp" / f"{runtime.session.run_id(plan.spec.path)}-{server.name}"
        try:
            tools = probe_server(resolved, env=runtime.env, processes=runtime.processes, root=Path(place))
        except EngineError as error:
            raise EngineError(f"{plan.spec.path}:{server.line}: {error}") from None
        return f"mcp server {server.name}: {len(tools)} tool" + ("" if len(tools) == 1 else "s")

    return greet


@contextmanager
def _asking(engine: Engine) -> Iterator[None]:
    """A backend may be anybody's: what it raises against its contract is told in a line, before anything is paid for."""
    try:
        yield
    except (EngineError, Cancelled):
        raise
    except Exception as error:
        raise EngineError(f"{engine}: its backend is broken: {error!r}") from error


def _all_at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """The results in the order of `works`. Raises EngineError with all that failed, a line each."""
    if not works:
        return []
    with ThreadPoolExecutor(max_workers=8, thread_name_prefix="caliper-preflight") as threads:
        futures = [threads.submit(work) for work in works]
    failures = [str(error) for future in futures if isinstance(error := future.exception(), EngineError)]
    _refuse(failures)
    return [future.result() for future in futures]


def _refuse(mistakes: Iterable[str]) -> None:
    if said := list(dict.fromkeys(mistakes)):
        raise EngineError("\n".join(said))
