"""The site: `make docs`. Sphinx reads the Markdown that GitHub shows; the navigation is the lists of index.md."""

from __future__ import annotations

import re
from importlib.metadata import version as installed
from typing import Any

project = "pytest-caliper"
author = "the pytest-caliper authors"
copyright = "the pytest-caliper authors"  # noqa: A001  (Sphinx's name)
version = release = installed("pytest-caliper")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
smartquotes = False  # `--k` is no dash

myst_heading_anchors = 4  # the anchors that GitHub makes

html_theme = "furo"
html_title = "pytest-caliper"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-code-background": "#f3f4f6"},
    "dark_css_variables": {"color-code-background": "#1c2128"},
}
html_static_path = ["_static"]
html_css_files = ["caliper.css"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

_SECTION = re.compile(r"^## (.+)$", re.M)
_LINK = re.compile(r"^- \[[^\]]+\]\(([\w./-]+)\.md\)", re.M)


def sections(index: str) -> dict[str, list[str]]:
    """The lists of index.md: section -> its pages, without `.md`."""
    parts = _SECTION.split(index)
    return {title: _LINK.findall(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def _in_the_repository(link: re.Match[str]) -> str:
    text, path = link[1], link[2]
    return text if path in text else f"{text} (`{path}`)"


def _prepare(_app: Any, docname: str, source: list[str]) -> None:
    """Links that leave docs become text with a path; the lists of the index page become trees, which are not shown there."""
    up = "(?:\\.\\./){2,}" if "/" in docname else "(?:\\.\\./)+"
    source[0] = re.sub(rf"\[([^\]]+)\]\({up}([^)#\s]*)(?:#[^)\s]*)?\)", _in_the_repository, source[0])
    if docname == "index":
        trees = (
            f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) + "\n```\n"
            for title, pages in sections(source[0]).items()
        )
        source[0] = "\n".join([source[0], *trees])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _prepare)
    return {"parallel_read_safe": True}
