"""Every pytest hook of the plugin, each a few lines that call a room below.

A suite without specs pays for this module alone: whatever opens specs, runs attempts or reports is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.fixtures import caliper, caliper_harness, caliper_judge, caliper_workspace
from pytest_caliper.options import add_options, is_spec, opted_in, refuse_misspelt, settings_of, spec_part
from pytest_caliper.state import ATTEMPT, SETTINGS, STATE, TESTS, UNOPENED, tell_worker, worker_input

if TYPE_CHECKING:
    from pytest_caliper.collection import SpecFile

__all__ = ["caliper", "caliper_harness", "caliper_judge", "caliper_workspace"]


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Generator[None, object, object]:
    result = yield
    refuse_misspelt(parser, args)  # conftest files may have brought options
    return result


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_caliper import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[UNOPENED] = {}
    config.addinivalue_line(
        "markers",
        "caliper(k, bar, baseline, skill): how often a test that asks for `caliper` attempts its task, and what it is to reach",
    )
    config.stash[SETTINGS] = settings_of(config)  # a mistake in an option is told at once, whether a spec is met or not


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SpecFile | None:
    if not is_spec(file_path.name):
        return None
    config = parent.config
    said = worker_input(config)
    may_run = opted_in(config) if said is None else bool(said["opted_in"])
    if not (may_run or config.getoption("collectonly") or parent.session.isinitpath(file_path)):
        config.stash[UNOPENED][str(file_path)] = None
        return None
    from pytest_caliper.collection import SpecFile

    return SpecFile.from_parent(parent, path=file_path)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "caliper" in metafunc.fixturenames:
        from pytest_caliper.testing.items import expand

        expand(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if STATE in config.stash:
        from pytest_caliper.selection import arrange

        arrange(config, items)
    elif TESTS in config.stash:
        from pytest_caliper.testing.items import leave_out

        leave_out(config, items)


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def pytest_caliper_specs_come_last(config: pytest.Config, items: list[pytest.Item]) -> None:
    if STATE in config.stash:
        from pytest_caliper.selection import specs_last

        specs_last(config, items)


@pytest.hookimpl(specname="pytest_collection_finish", tryfirst=True)
def pytest_caliper_bars_come_after_their_attempts(session: pytest.Session) -> None:
    if STATE in session.config.stash:
        if TESTS in session.config.stash and worker_input(session.config) is not None:
            from pytest_caliper.testing.items import tell_controller

            tell_controller(session)
        from pytest_caliper.selection import bars_behind

        bars_behind(session.items)  # `--ff` and its kin reorder after everybody else


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if STATE in session.config.stash and (worker_input(session.config) or {}).get("one_at_a_time"):
        from pytest_caliper.running.idle import append_idle

        append_idle(session)  # the controller has the ids by now


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    if STATE not in session.config.stash:
        return (yield)
    from pytest_caliper.running.loop import attempts

    with attempts(session):
        return (yield)


@pytest.hookimpl(specname="pytest_runtestloop", wrapper=True, tryfirst=True)
def pytest_caliper_bars_that_are_left(session: pytest.Session) -> Generator[None, object, object]:
    result = yield
    state = session.config.stash.get(STATE, None)
    if state is not None and state.session is not None:
        state.bars.announce_rest(state.session, without_item=not session.config.pluginmanager.has_plugin("dsession"))
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:  # noqa: ARG001
    state = item.config.stash.get(STATE, None)
    if state is not None and state.ahead is not None:
        state.ahead.before_item()
    return (yield)


@pytest.hookimpl(specname="pytest_runtest_protocol", tryfirst=True)
def pytest_caliper_runs_once(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if STATE not in item.config.stash:
        return None
    from pytest_caliper.selection import run_once

    return run_once(item, nextitem)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    state = item.config.stash.get(STATE, None)
    if state is not None and state.ahead is not None and state.ahead.may_pump_in_call(item):
        state.ahead.pump()  # session fixtures are up by now
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    if ATTEMPT not in pyfuncitem.stash:
        return (yield)
    from pytest_caliper.testing.items import call

    return (yield from call(pyfuncitem))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None, object, object]:
    value = yield
    state = request.config.stash.get(STATE, None)
    if state is not None and state.ahead is not None and fixturedef.scope == "session":
        state.ahead.live.add(fixturedef)
    return value


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    state = request.config.stash.get(STATE, None)
    if state is not None and state.ahead is not None:
        state.ahead.live.discard(fixturedef)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if STATE in item.config.stash:
        from pytest_caliper.reports import make_sections_inert, tell

        make_sections_inert(item, report)
        if call.when == "setup" and report.skipped and ATTEMPT in item.stash:
            from pytest_caliper.reports import tell_withdrawn

            tell_withdrawn(item, report)
        if call.when == "call":
            tell(item, report)
            if item.config.stash[SETTINGS].check:
                from pytest_caliper.checking.items import tell as tell_check

                tell_check(item, report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, Any] | None:
    outcome = getattr(report, "caliper_outcome", None)
    if outcome is None or report.when != "call":
        return None
    from pytest_caliper.reports import status

    return status(report, outcome)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:  # Ctrl-C while xdist ends its workers, or a hook that raises, must not cost a run that is complete
        _finish(session)


def _finish(session: pytest.Session) -> None:
    state = session.config.stash.get(STATE, None)
    if worker_input(session.config) is not None:
        unopened = session.config.stash[UNOPENED]
        session.config.workeroutput["caliper_unopened"] = list(unopened)  # type: ignore[attr-defined]
        session.config.workeroutput["caliper_unkept"] = [] if state is None else list(state.unkept)  # type: ignore[attr-defined]
    elif state is not None and state.session is not None:
        from pytest_caliper.ending import finish

        if state.distribution is not None:
            state.distribution.late_records()
        finish(session, state)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if worker_input(config) is None and (STATE in config.stash or config.stash[UNOPENED]):
        from pytest_caliper.ending import summarise

        summarise(terminalreporter, config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (state := config.stash.get(STATE, None)) is not None:
        state.close()
        if state.resuming is not None:
            state.resuming.close()  # what the session took over it has closed by now


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["caliper"] = tell_worker(node.config, local=bool(node.gateway.spec.popen))
    if opted_in(node.config):
        from pytest_caliper.running.distribution import distribution_of

        distribution_of(node.config).connect(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "load" or not opted_in(config):
        return None
    from pytest_caliper.running.distribution import distribution_of
    from pytest_caliper.running.scheduling import AttemptScheduling

    return AttemptScheduling(config, log, distribution_of(config))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ARG001
    said = getattr(node, "workeroutput", None) or {}  # a worker that crashed said nothing
    for path in said.get("caliper_unopened", ()):
        node.config.stash[UNOPENED][path] = None
    if STATE in node.config.stash:
        node.config.stash[STATE].unkept += said.get("caliper_unkept", ())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    resumes = STATE in node.config.stash and node.config.stash[STATE].resuming is not None
    distribution = node.config.pluginmanager.get_plugin("caliper-distribution")
    tests = distribution is not None and distribution.tests_told is not None
    if resumes or tests or any(spec_part(nodeid) is not None for nodeid in ids):
        from pytest_caliper.running.loop import controller_saw

        controller_saw(node.config, ids)
