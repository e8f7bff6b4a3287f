from __future__ import annotations

import pytest

from pytest_caliper.reporting import numbers


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "—"),
        (0, "0"),
        (340, "340"),
        (999, "999"),
        (1_000, "1.0K"),
        (1_249, "1.2K"),
        (9_949, "9.9K"),
        (9_960, "10K"),
        (159_000, "159K"),
        (999_400, "999K"),
        (999_700, "1.0M"),
        (1_200_000, "1.2M"),
        (34_000_000, "34M"),
        (1_500_000_000, "1.5B"),
        (2_000_000_000_000, "2000B"),
    ],
)
def test_tokens(count: int | None, text: str) -> None:
    assert numbers.tokens(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0.0s"),
        (2.44, "2.4s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (42, "42s"),
        (59.4, "59s"),
        (59.7, "1m 00s"),
        (378, "6m 18s"),
        (3599.4, "59m 59s"),
        (3599.7, "1h 00m"),
        (3780, "1h 03m"),
        (90_000, "25h 00m"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "—"), (0, "0.0%"), (1, "100.0%"), (2 / 3, "66.7%"), (0.9999, "99.9%"), (0.0001, "0.1%"), (0.5, "50.0%")],
)
def test_rates_are_all_or_nothing_only_when_they_are(value: float | None, text: str) -> None:
    assert numbers.rate(value) == text


def test_intervals() -> None:
    assert numbers.interval((0.2076, 0.93851)) == "[20.8, 93.9]"
    assert numbers.interval((0.0, 1.0)) == "[0.0, 100.0]"
    assert numbers.interval(None) == "—"
    assert numbers.signed_interval((-0.0586, 0.93851)) == "[-5.9, +93.9]"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "—"), (1 / 3, "+33.3 pts"), (-0.07, "-7.0 pts"), (0.0, "0.0 pts"), (-0.0, "0.0 pts"), (-0.0001, "0.0 pts")],
)
def test_points(value: float | None, text: str) -> None:
    assert numbers.points(value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "p = 1.00"),
        (0.618, "p = 0.62"),
        (0.018, "p = 0.018"),
        (0.05, "p = 0.050"),
        (0.0502, "p = 0.0502"),
        (0.0498, "p = 0.050"),
        (0.0004, "p < 0.001"),
    ],
)
def test_p_values_stay_on_their_side_of_the_limit(p: float, text: str) -> None:
    assert numbers.p_value(p) == text


@pytest.mark.parametrize(("function", "unit"), [(numbers.tokens, "tokens"), (numbers.duration, "seconds")])
def test_amounts_below_nothing_are_refused(function: object, unit: str) -> None:
    with pytest.raises(ValueError, match=rf"^{unit} must be >= 0, got -1$"):
        function(-1)  # type: ignore[operator]


def test_plural() -> None:
    assert numbers.plural(1, "attempt") == "1 attempt"
    assert numbers.plural(8_231, "character") == "8,231 characters"
