"""Secrets that are known by their shape or by what stands before them, as each service documents it.

Every expression begins with plain characters, so that text without them is passed over at the speed of a substring search, and is
linear. None matches a quotation mark, so a replacement never breaks a JSON text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret."""

    kind: str
    marker: str
    """Text that it always contains."""
    pattern: re.Pattern[str]
    """Its named groups, where there are any, are kept."""


def _shape(kind: str, prefix: str, rest: str, *, after: str = "A-Za-z0-9") -> Shape:
    """A token of `prefix` and the expression `rest` that does not stand behind one of the characters `after`.

    A JSON escape, a URL escape and an ANSI colour end in such characters, but a token may follow them.
    """
    told = re.escape(prefix)
    escapes = (r"\\[nrtbf]", r"\\u[0-9A-Fa-f]{4}", r"%[0-9A-Fa-f]{2}", r"[0-9;\[]m")
    start = "|".join([f"(?<![{after}]{told})", *(f"(?<={escape}{told})" for escape in escapes)])
    return Shape(kind, prefix, re.compile(f"{told}(?:{start}){rest}"))


_WORD = "A-Za-z0-9_-"
_ARMOR = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BREAK, _LINE = r"(?:\s|\\+[nr])", r"[A-Za-z0-9+/=]{30,}"
_HEADER_VALUE = r"(?=[A-Za-z._~+/-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{12,}"  # with a digit: else it is prose
_PASSWORD = r"[^\s/@\"'\\$<{\[][^\s/@\"'\\]{0,255}"

SHAPES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        "PRIVATE KEY",
        re.compile(
            rf"-----BEGIN {_ARMOR}"
            rf"(?:[^\"-]*(?:-(?!----)[^\"-]*)*-----END {_ARMOR}|{_BREAK}+{_LINE}(?:{_BREAK}|{_LINE})*)"  # whole, or cut short
        ),
    ),
    _shape("anthropic-key", "sk-ant-", rf"[{_WORD}]{{16,}}"),
    *(
        _shape("openai-key", f"sk-{kind}-", rf"[{_WORD}]{{16,}}", after=_WORD)
        for kind in ("proj", "svcacct", "admin", "None", "or-v1")
    ),
    _shape("api-key", "sk-", r"[A-Za-z0-9]{20,}", after=_WORD),
    *(_shape("stripe-key", f"{kind}_{mode}_", r"[A-Za-z0-9]{16,}") for kind in ("sk", "rk") for mode in ("live", "test")),
    *(_shape("github-token", f"gh{kind}_", r"[A-Za-z0-9]{20,}") for kind in "pousr"),
    _shape("github-token", "github_pat_", r"[A-Za-z0-9_]{20,}"),
    _shape("gitlab-token", "glpat-", rf"[{_WORD}]{{16,}}"),
    _shape("slack-token", "xox", r"[abeoprs]-[A-Za-z0-9-]{10,}"),
    _shape("slack-webhook", "hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    *(_shape("aws-key", prefix, r"[0-9A-Z]{16}(?![0-9A-Za-z])") for prefix in ("AKIA", "ASIA")),
    _shape("google-key", "AIza", rf"[{_WORD}]{{35}}"),
    _shape("google-token", "ya29.", rf"[{_WORD}]{{20,}}"),
    _shape("huggingface-token", "hf_", r"[A-Za-z0-9]{20,}"),
    _shape("npm-token", "npm_", r"[A-Za-z0-9]{30,}"),
    _shape("pypi-token", "pypi-", rf"[{_WORD}]{{40,}}", after=_WORD),
    _shape("jwt", "eyJ", rf"[{_WORD}]{{8,}}\.eyJ[{_WORD}]{{8,}}\.[{_WORD}]*", after=_WORD),
    Shape("bearer-token", "earer", re.compile(rf"(?P<intro>earer[ \t+]{{1,4}}){_HEADER_VALUE}")),
    Shape(
        "credentials",
        "uthorization",
        re.compile(
            rf"(?P<intro>uthorization\W{{1,8}})(?:(?P<scheme>(?:[Bb]asic|[Tt]oken)[ \t]{{1,4}})(?=[a-z+/]{{0,200}}[A-Z0-9])"
            rf"[A-Za-z0-9._~+/=-]{{12,}}|{_HEADER_VALUE})"
        ),
    ),
    *(Shape("credentials", name, re.compile(rf"(?P<intro>{name}\W{{1,8}}){_HEADER_VALUE}")) for name in ("api-key", "Api-Key")),
    Shape("url-credentials", "://", re.compile(rf"(?P<intro>://)[^\s:/@\"'\\]{{0,128}}:{_PASSWORD}(?=@)")),
)
"""In the order in which they are replaced: what is told more exactly comes first."""


def replace_shapes(text: str) -> tuple[str, int]:
    """-> (`text` with `[redacted:KIND]` in the place of every such secret, how many there were)."""
    found = 0
    for shape in SHAPES:
        if shape.marker in text:
            kept = "".join(rf"\g<{name}>" for name in shape.pattern.groupindex)
            text, number = shape.pattern.subn(f"{kept}[redacted:{shape.kind}]", text)
            found += number
    return text, found
