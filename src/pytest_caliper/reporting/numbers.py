"""How numbers are written. One rule for each kind, the same in every report.

- Unknown is `—`, never 0.
- Tokens: `340`, from 1,000 on with a unit and at least two digits: `1.2K`, `159K`, `1.2M`, `34M`, `1.5B`.
- Durations: `2.4s` below ten seconds, then `42s`, `6m 18s`, `1h 03m`.
- Rates: `66.7%`. Only none is `0.0%` and only all is `100.0%`: 1,999 of 2,000 is `99.9%`.
- Intervals: 95 %, in percent, without the sign: `[20.8, 93.9]`.
- Differences: in points, always signed but for nothing: `+33.3 pts`, `-7.0 pts`, `0.0 pts`; their intervals `[+10.6, +72.9]`.
- P values: two digits that tell (`0.62`, `0.018`), `< 0.001` below; more digits where rounding would cross 0.05.

Rounding comes before the choice of a unit, so that 999,700 tokens are `1.0M` and 59.7 seconds `1m 00s`.
"""

from __future__ import annotations

UNKNOWN = "—"


def tokens(count: int | None) -> str:
    """A number of tokens; raises ValueError when negative."""
    if count is None:
        return UNKNOWN
    if count < 0:
        raise ValueError(f"tokens must be >= 0, got {count}")
    if count < 1000:
        return str(count)
    for unit, size in (("K", 1e3), ("M", 1e6), ("B", 1e9)):
        value = count / size
        if value < 9.95:
            return f"{value:.1f}{unit}"
        if value < 999.5 or unit == "B":
            return f"{value:.0f}{unit}"
    raise AssertionError("unreachable")


def duration(seconds: float | None) -> str:
    """A time in seconds; raises ValueError when negative."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        raise ValueError(f"seconds must be >= 0, got {seconds}")
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    minutes = round(seconds / 60)
    return f"{minutes // 60}h {minutes % 60:02}m"


def rate(value: float | None) -> str:
    """A share of 0 to 1 in percent."""
    if value is None:
        return UNKNOWN
    percent = round(100 * value, 1)
    if 0 < value < 1:
        percent = min(99.9, max(0.1, percent))
    return f"{percent:.1f}%"


def interval(limits: tuple[float, float] | None) -> str:
    """Limits of a share of 0 to 1 in percent."""
    return UNKNOWN if limits is None else f"[{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"


def signed(value: float | None) -> str:
    """A difference of -1 to 1 in points, without their name."""
    if value is None:
        return UNKNOWN
    rounded = round(100 * value, 1)
    return f"{rounded:+.1f}" if rounded else "0.0"


def points(value: float | None) -> str:
    """A difference of -1 to 1 in points."""
    return UNKNOWN if value is None else f"{signed(value)} pts"


def signed_interval(limits: tuple[float, float]) -> str:
    """Limits of a difference of -1 to 1 in points."""
    return f"[{signed(limits[0])}, {signed(limits[1])}]"


def p_value(p: float) -> str:
    """`p = 0.018`; never on the other side of 0.05 than `p` itself."""
    if p < 0.001:
        return "p < 0.001"
    digits = 2 if p >= 0.1 else 3
    while (float(f"{p:.{digits}f}") <= 0.05) != (p <= 0.05) and digits < 17:
        digits += 1
    return f"p = {p:.{digits}f}"


def plural(count: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
