"""The plugin is tested with pytest's own pytester."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import pytest_caliper

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session", autouse=True)
def a_session_of_their_own() -> Iterator[None]:
    """The sessions that tests start must not write into the job that runs the tests, nor take themselves for its workers."""
    with pytest.MonkeyPatch.context() as patch:
        xdist = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")
        for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_WORKSPACE", *xdist):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def imported_once() -> None:
    """After a session in process pytester forgets what that session imported: without this, each imports the package anew."""
    for module in pkgutil.walk_packages(pytest_caliper.__path__, "pytest_caliper."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
