"""Make the terminal images of the README from what the program prints: `python docs/images/render.py` (or `make images`).

The quick start is replayed in a temporary copy, its output captured with colours and turned into SVG. Nothing is drawn by hand;
only what differs from day to day (dates, ids) is set to fixed values.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
QUICKSTART = HERE.parents[1] / "examples" / "quickstart"
COLUMNS = 92

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FIXED = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{8}"), "2026-11-30T12-00-00Z-5f17242a"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "2026-11-30 12:00 UTC"),
)
# The fonts are the reader's own: an image that loads one from the network is blocked where READMEs are shown.
_SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One image: a command as somebody types it, and what it printed."""

    title: str
    command: str
    output: str
    """With ANSI codes."""

    @property
    def plain(self) -> str:
        """All that the image shows, without colours."""
        return f"$ {self.command}\n\n{_ANSI.sub('', self.output)}"


def shots() -> dict[str, Shot]:
    """The images by name, from runs made now."""
    run = "pytest changelog.eval.yaml --caliper-k=3 --caliper-baseline --caliper-replay"
    with _workplace() as earlier, _workplace() as place:
        _take_the_skill_away(earlier)
        _pytest(earlier, f"--caliper-output={place / 'before.json'}")
        after = _pytest(place, "--caliper-baseline", "--caliper-output=after.json")
        compare = _caliper(place, "compare", "before.json", "after.json")
    return {
        "run": Shot(title="Does the skill work?", command=run, output=_part(after, "caliper", "short test summary info")),
        "failure": Shot(title="Why did an attempt fail?", command=run, output=_part(after, "FAILURES", "caliper")),
        "compare": Shot(
            title="Did it change anything?", command="caliper compare before.json after.json", output=compare.strip("\n")
        ),
    }


def svg(name: str, shot: Shot) -> str:
    """The image."""
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
    )
    console.print(Text(f"$ {shot.command}", style="bold"), soft_wrap=True)
    console.print()
    console.print(Text.from_ansi(shot.output), soft_wrap=True)
    text = console.export_svg(title=shot.title, code_format=_SVG, unique_id=f"caliper-{name}")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@contextmanager
def _workplace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="caliper-images-") as name:
        place = Path(name).resolve() / "project"
        ignored = shutil.ignore_patterns("results", ".caliper", "__pycache__", "record.py")
        shutil.copytree(QUICKSTART, place, ignore=ignored)
        yield place


def _take_the_skill_away(place: Path) -> None:
    """The run before there was a skill: what was recorded of the bare agent is what it would have printed."""
    spec = place / "changelog.eval.yaml"
    spec.write_text(re.sub(r"^skill:\n.*\n\n", "", spec.read_text(), flags=re.MULTILINE))
    for cassette in (place / "changelog.cassettes").glob("*-baseline-*.json"):
        text = cassette.read_text().replace('"arm": "baseline"', '"arm": "skill"')
        cassette.with_name(cassette.name.replace("-baseline-", "-skill-")).write_text(text)


def _pytest(place: Path, *options: str) -> str:
    words = [
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--color=yes",
        "changelog.eval.yaml",
        "--caliper-k=3",
        "--caliper-replay",
    ]
    return _printed(place, *words, *options)


def _caliper(place: Path, *words: str) -> str:
    return _printed(place, "-c", "from pytest_caliper.cli import main; raise SystemExit(main())", *words)


def _printed(place: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=place, env=_environment(place), capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode not in (0, 1) or done.stderr:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
    text = done.stdout
    for pattern, value in _FIXED:
        text = pattern.sub(value, text)
    if str(place.parent) in text:
        raise RuntimeError(f"a path of this machine would be shown: {place.parent}")
    return text


def _environment(place: Path) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": str(place.parent), "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PYTHONUTF8": "1"}


def _part(output: str, begin: str, end: str) -> str:
    """The lines from the heading `begin` up to the heading `end`, without blank ones around them."""
    lines = output.splitlines()
    plain = [_ANSI.sub("", line) for line in lines]
    first = next(n for n, line in enumerate(plain) if re.fullmatch(f"=+ {begin} =+", line))
    last = next(n for n, line in enumerate(plain) if n > first and re.fullmatch(f"=+ {end} =+", line))
    return "\n".join(lines[first:last]).strip("\n")


def main() -> None:
    for name, shot in shots().items():
        path = HERE / f"{name}.svg"
        path.write_text(svg(name, shot), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
