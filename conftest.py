"""The plugin is tested with pytest's own pytester."""

from collections.abc import Iterator

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session", autouse=True)
def no_github() -> Iterator[None]:
    """The sessions that tests start must not write into the job that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_WORKSPACE"):
            patch.delenv(name, raising=False)
        yield
