"""Every expected value of `oracles.json` (SciPy 1.17.1, statsmodels 0.15.0, exact fractions)."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.scoring import boschloo, pass_at, pass_at_k, pass_hat, pass_hat_k, stratified_exact, suite_delta, wilson

ORACLES: dict[str, Any] = json.loads((Path(__file__).parent / "oracles.json").read_text(encoding="utf-8"))
TWO_SAMPLE = {name: tuple(map(int, re.findall(r"\d+", name))) for name in ORACLES["two_sample"]}
SATURATED = "3/3->3/3"


@pytest.mark.parametrize("name", ORACLES["wilson95"])
def test_wilson(name: str) -> None:
    c, n = map(int, name.split("/"))

    assert wilson(c, n) == pytest.approx(tuple(ORACLES["wilson95"][name]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("function", "key"), [(pass_at, "pass_at"), (pass_hat, "pass_hat")])
def test_unbiased_estimators(function: Any, key: str) -> None:
    for name, expected in ORACLES[key].items():
        n, c, j = map(int, re.findall(r"\d+", name))
        assert function(j, c, n) == pytest.approx(float(Fraction(expected)), rel=1e-15), name


@pytest.mark.parametrize("name", ORACLES["plug_in"])
def test_plug_in_estimators(name: str) -> None:
    function, c, n = re.match(r"(\w+)\((\d+),(\d+)\)", name).groups()  # type: ignore[union-attr]
    value = {"pass_at_k": pass_at_k, "pass_hat_k": pass_hat_k}[function](int(c), int(n))

    assert value == pytest.approx(ORACLES["plug_in"][name], abs=1e-9)


@pytest.mark.parametrize("name", TWO_SAMPLE)
def test_two_samples(name: str) -> None:
    table, expected = TWO_SAMPLE[name], ORACLES["two_sample"][name]
    test, delta = stratified_exact([table]), suite_delta([table])

    assert test.two_sided == Fraction(expected["fisher_exact_fraction"])
    assert float(test.two_sided) == pytest.approx(expected["fisher_two_sided"], rel=1e-9)
    # Where one total is possible the formula gives 0.5; the test defines it as 1.
    assert float(test.mid_p) == pytest.approx(1.0 if name == SATURATED else expected["mid_p"], rel=1e-9)
    assert boschloo(*table) == pytest.approx(expected["boschloo_two_sided"], rel=1e-9)
    assert delta is not None
    assert (delta.low, delta.high) == pytest.approx(tuple(expected["newcombe95"]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ORACLES["stratified"])
def test_stratified(name: str) -> None:
    expected = ORACLES["stratified"][name]
    test = stratified_exact([tuple(table) for table in expected["tables_cB_nB_cS_nS"]])

    assert test.two_sided == Fraction(expected["fraction"])
    assert float(test.two_sided) == pytest.approx(expected["exact_two_sided"], rel=1e-9)
    assert float(test.greater) == pytest.approx(expected["one_sided_ge"], rel=1e-9)
    assert float(test.mid_p) == pytest.approx(expected["mid_p"] or 1.0, rel=1e-9)
