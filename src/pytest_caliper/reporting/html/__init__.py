"""A run, or two side by side, as one HTML file that needs no network and no server.

Who opens it should know in under a minute why one attempt failed. The numbers and words are those of the terminal; the summary is
plain HTML, attempts and their transcripts are data that the page's script lays out when one is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

__all__ = ["write_html", "write_html_comparison"]


def write_html(path: Path, out: TextIO) -> None:
    """Write the page of the run file `path`: ASCII, so that `out` may have any encoding.

    Transcripts are streamed. Raises RunFileError, possibly after a part of the page was written.
    """
    from pytest_caliper.reporting.html.one_run import page_of
    from pytest_caliper.reporting.html.page import write_page
    from pytest_caliper.runs.reading import load_run

    write_page(page_of(load_run(path), path), out)


def write_html_comparison(before: Path, after: Path, out: TextIO) -> None:
    """Write the page of two run files, the later one second: rates, tasks and attempts of both, skill arms only.

    As `write_html` otherwise.
    """
    from pytest_caliper.reporting.html.page import write_page
    from pytest_caliper.reporting.html.two_runs import page_of

    write_page(page_of(before, after), out)
