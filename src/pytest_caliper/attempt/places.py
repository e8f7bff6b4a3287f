"""Directories that records must not name, and the words that stand for them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pytest_caliper.attempt.secrets import scrubbed

_START = r"(?:(?<![\w.~$-]/)|(?<=\\[nrtbf]/)|(?<=[0-9;\[]m/))"
"""Behind its first slash: where a path of one name (`/root`) may begin. `/var/root` is another, but a JSON escape and an ANSI
colour end in letters too. Looked at late, so that the search goes by first characters."""
_END = r"(?![\w-]|\.\w)"
"""Where the last name of a directory ends: `/tmp/x`, not `/tmp/xy`, not `/tmp/x.bak`."""
_SLUG_END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class Places:
    """Directories by all their spellings."""

    patterns: Mapping[str, str]
    """Spelling -> the regular expression that finds it, in the order in which they are tried."""
    words: Mapping[str, str]
    """Spelling -> what stands for it."""
    _compiled: dict[tuple[str, ...], re.Pattern[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, paths: Mapping[Path, str]) -> Places:
        """`paths` also by their real paths, inside JSON and URLs, and as the slug that Claude Code makes of its working directory
        (every character but letters and digits is a `-`). `/` and relative paths are left out."""
        deep: dict[str, str] = {}
        shallow: dict[str, str] = {}
        slugs: dict[str, str] = {}
        for path, word in paths.items():
            for place in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
                if place.strip("/") and place.startswith("/"):
                    clean = scrubbed(place)
                    target = deep if clean.count("/") > 1 else shallow
                    for spelling in _spellings(clean):
                        target.setdefault(spelling, word)
                    if target is deep:
                        slugs.setdefault(re.sub(r"[^A-Za-z0-9]", "-", clean), word)
        patterns = {spelling: re.escape(spelling) + _END for spelling in _longest_first(deep)}
        for spelling in _longest_first(shallow):
            patterns.setdefault(spelling, re.escape(spelling[0]) + _START + re.escape(spelling[1:]) + _END)
        for spelling in _longest_first(slugs):
            patterns.setdefault(spelling, re.escape(spelling) + _SLUG_END)
        return cls(patterns, slugs | shallow | deep)

    def replaced(self, text: str) -> str:
        """`text` with every directory replaced by its word, the innermost one where several fit."""
        # Most texts name none or one of them: to compile all spellings would cost more than the attempt's other work together.
        present = tuple(spelling for spelling in self.patterns if spelling in text)
        if not present:
            return text
        if present not in self._compiled:
            self._compiled[present] = re.compile("|".join(self.patterns[spelling] for spelling in present))
        return self._compiled[present].sub(lambda match: self.words[match[0]], text)


def _longest_first(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=len, reverse=True)


def _spellings(place: str) -> Iterator[str]:
    """`place` as it is, inside JSON (three ways), and in a URL."""
    yield place
    yield json.dumps(place)[1:-1]
    yield json.dumps(place, ensure_ascii=False)[1:-1]
    yield place.replace("/", "\\/")
    yield quote(place)
