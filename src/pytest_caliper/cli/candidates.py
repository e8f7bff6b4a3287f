"""What the completion scripts ask while somebody types: names of specs with saved runs, and of runs. Nothing is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_caliper.cli.finding import NotFound, results_root, saved_specs
from pytest_caliper.cli.output import say
from pytest_caliper.runs.names import run_order

_MOST_IDS = 200
_STAMP = len("2026-01-02T03-04-05Z-")


def run(words: Sequence[str]) -> int:
    """Print a candidate per line; nothing where nothing is saved. -> 0, 2 for another question."""
    kinds = {"saved": _specs, "run": _runs}
    if len(words) != 1 or words[0] not in kinds:
        return 2
    try:
        names = list(kinds[words[0]]())
    except NotFound:
        names = []
    say("".join(f"{name}\n" for name in names if name.isprintable()))
    return 0


def _specs() -> Iterator[str]:
    return (spec.name for spec in saved_specs(results_root(None)))


def _runs() -> Iterator[str]:
    """Specs, those with a run before the latest once more as `SPEC~1`, then the ids of the newest runs."""
    specs = saved_specs(results_root(None))
    for spec in specs:
        yield spec.name
        if len(spec.runs) > 1:
            yield f"{spec.name}~1"
    paths = sorted((path for spec in specs for path in (*spec.runs, *spec.partial)), key=run_order, reverse=True)
    yield from (path.stem[_STAMP:] for path in paths[:_MOST_IDS] if path.stem[_STAMP:])
