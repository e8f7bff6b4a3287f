"""The matrix: which versions of pytest, Python and other people's plugins are tried together.

One place for the numbers: docs/running.md shows this table, and a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

PYTESTS = ("8.4.0", "9.0.0", "9.1.0")
"""The first of each minor version that is supported; the newest of all comes by itself."""
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

OWN_LOWEST = (
    "pytest==8.4.0",
    "pluggy==1.5.0",
    "pydantic==2.7.0",
    "PyYAML==6.0.1",
    "rich==13.7.0",
    "pytest-xdist==3.6.1",
    "psutil==5.9.8",
    "tomli-w==1.0.0",
)
"""The lowest versions of our own dependencies. pyproject says PyYAML 6.0, whose source does not build with today's Cython."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """Somebody else's plugin and the options that make it do its work."""

    name: str
    distribution: str
    lowest: str
    """The lowest version that was tried and works; lower ones were not tried, or do not work with pytest 8.4 themselves."""
    options: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


PLUGINS = (
    Plugin(name="xdist", distribution="pytest-xdist", lowest="3.6.1", options=("-n2",)),
    Plugin(name="html", distribution="pytest-html", lowest="4.1.1", options=("--html=report.html", "--self-contained-html")),
    Plugin(name="json-report", distribution="pytest-json-report", lowest="1.5.0", options=("--json-report",)),
    Plugin(name="reportlog", distribution="pytest-reportlog", lowest="0.4.0", options=("--report-log=log.jsonl",)),
    Plugin(name="cov", distribution="pytest-cov", lowest="5.0.0", options=("--cov=.", "--cov-report=xml")),
    Plugin(name="timeout", distribution="pytest-timeout", lowest="2.3.1", options=("--timeout=1",)),
    Plugin(name="randomly", distribution="pytest-randomly", lowest="3.15.0", options=("-p", "randomly")),
    Plugin(name="rerunfailures", distribution="pytest-rerunfailures", lowest="14.0", options=("--reruns=2",)),
    Plugin(name="retry", distribution="pytest-retry", lowest="1.6.3", options=("--retries=2",)),
    Plugin(name="split", distribution="pytest-split", lowest="0.9.0"),
    Plugin(name="sugar", distribution="pytest-sugar", lowest="1.0.0"),
    Plugin(name="asyncio", distribution="pytest-asyncio", lowest="0.24.0", options=("-o", "asyncio_mode=auto")),
    Plugin(name="anyio", distribution="anyio", lowest="4.4.0"),
    Plugin(name="hypothesis", distribution="hypothesis", lowest="6.100.0"),
    Plugin(name="allure", distribution="allure-pytest", lowest="2.13.5", options=("--alluredir=allure",)),
    Plugin(
        name="github-actions-annotate-failures",
        distribution="pytest-github-actions-annotate-failures",
        lowest="0.2.0",
        env=(("GITHUB_ACTIONS", "true"),),
    ),
    Plugin(
        name="benchmark",
        distribution="pytest-benchmark",
        lowest="4.0.0",
        options=("--benchmark-json=benchmark.json", "--benchmark-max-time=0.05"),
    ),
    Plugin(name="syrupy", distribution="syrupy", lowest="4.6.1"),
)
