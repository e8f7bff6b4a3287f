"""The images of the terminal show what the program prints today. Out of date? `make images`."""

from __future__ import annotations

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
NAMES = ("compare", "failure", "run")


@pytest.fixture(scope="module")
def render() -> ModuleType:
    spec = importlib.util.spec_from_file_location("caliper_images", IMAGES / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shots(render):
    return render.shots()


def lines(svg: str) -> list[str]:
    """The words of an image, line by line, without blanks and without its title."""
    rows: dict[float, list[tuple[float, str]]] = defaultdict(list)
    for text in ET.fromstring(svg.encode()).iter("{http://www.w3.org/2000/svg}text"):
        if not text.get("class", "").endswith("-title"):
            rows[float(text.attrib["y"])].append((float(text.attrib["x"]), text.text or ""))
    joined = ("".join(part for _, part in sorted(row)) for _, row in sorted(rows.items()))
    return [words for line in joined if (words := "".join(line.split()))]


def test_there_is_an_image_of_each_and_no_other(shots):
    assert {path.stem for path in IMAGES.glob("*.svg")} == set(shots) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_image_shows_what_is_printed(shots, name):
    printed = [words for line in shots[name].plain.splitlines() if (words := "".join(line.split()))]

    assert lines((IMAGES / f"{name}.svg").read_text(encoding="utf-8")) == printed


@pytest.mark.parametrize("name", NAMES)
def test_the_image_has_the_colours_that_are_printed(render, shots, name):
    def colours(svg: str) -> set[str]:
        return set(re.findall(r"fill: (#[0-9a-f]{6})", svg))

    assert colours(render.svg(name, shots[name])) == colours((IMAGES / f"{name}.svg").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_image_tells_nothing_of_a_machine_and_loads_nothing(name):
    text = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")

    for private in ("/tmp", "/root", "/home", "/Users", "http://", "https://", "url(http", "@font-face", "<script"):
        assert private not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
