"""How often a word is said: every outcome counted where they are few, else over drawn totals or drawn attempts.

An arm of a task has `n` attempts, each passing with the task's rate. A/A means that both arms have the same rates. Given how many
attempts of a task passed in both arms together (its *total*), the split between equal arms is hypergeometric whatever the rate:
so words are counted given the totals, and rates only say how probable the totals are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product
from math import comb, factorial, pi, prod, sin, sqrt
from random import Random

from pytest_caliper.scoring import ALPHA, Comparison, Table, compare_arms, holm, stratified_exact

_FEW = 45
"""Attempts per arm of all tasks up to which totals come again so often that their edges are worth finding."""

Arms = tuple[int, int]
"""Attempts of a task in its two arms."""


@dataclass(frozen=True)
class Chance:
    """A probability, 0 to 1, and its Monte-Carlo standard error: 0 where every outcome was counted."""

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Words:
    """How probable "better" and "worse" are."""

    better: float
    worse: float

    @property
    def either(self) -> float:
        return self.better + self.worse


def rate_grid(steps: int) -> list[float]:
    """Rates from 0 to 1, closer together near both ends, where a binomial changes fastest."""
    return [sin(pi / 2 * i / steps) ** 2 for i in range(steps + 1)]


def beta_rates(tasks: int) -> list[float]:
    """Rates spread as Beta(2, 1) is: its quantiles. Most tasks work mostly, some hardly ever."""
    return [sqrt((t + 0.5) / tasks) for t in range(tasks)]


@cache
def binomial(n: int, rate: float) -> tuple[float, ...]:
    return tuple(comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1))


def compared(tables: Sequence[Table]) -> Comparison:
    comparison = compare_arms(tables, advice=False)
    assert comparison is not None
    return comparison


# -- one task: every table ------------------------------------------------------------------------------------------------------


@cache
def one_task(arms: Arms) -> dict[Table, Comparison]:
    """The verdict on every table of a spec with one task."""
    n_base, n_skill = arms
    tables = [(b, n_base, s, n_skill) for b in range(n_base + 1) for s in range(n_skill + 1)]
    return {table: compared([table]) for table in tables}


def one_task_error(arms: Arms, words: Sequence[str] = ("better", "worse"), steps: int = 1000) -> float:
    """Chance of one of these words for one task on identical arms: the largest over all rates."""
    return _largest([table for table, said in one_task(arms).items() if said.word in words], steps)


def flag_error(arms: Arms, tasks: int, steps: int = 200) -> float:
    """Chance that any of so many tasks is flagged on identical arms: the largest over all rates, which may differ by task.

    Holm flags some task if and only if it flags the one with the smallest p, as if all others had p = 1; tasks are independent.
    """
    flagged = [t for t, said in one_task(arms).items() if holm([said.p] + [1.0] * (tasks - 1))[0] <= ALPHA]
    return 1 - (1 - _largest(flagged, steps)) ** tasks


def _largest(tables: Sequence[Table], steps: int) -> float:
    """Chance of one of these tables at the common rate where it is largest."""
    if not tables:
        return 0.0
    n = tables[0][1] + tables[0][3]
    ways = [0] * (n + 1)
    for c_base, n_base, c_skill, n_skill in tables:
        ways[c_base + c_skill] += comb(n_base, c_base) * comb(n_skill, c_skill)
    shares = [some / comb(n, m) for m, some in enumerate(ways)]
    return max(sum(p * share for p, share in zip(binomial(n, rate), shares, strict=True)) for rate in rate_grid(steps))


def one_task_power(base: float, skill: float, attempts: int) -> float:
    """Chance of the true word for one task with `attempts` per arm, where skill > base. The edge of "better" is walked along."""
    least, chance = 0, 0.0
    for c_base, p in enumerate(binomial(attempts, base)):
        while least <= attempts and compared([(c_base, attempts, least, attempts)]).word != "better":
            least += 1
        chance += p * sum(binomial(attempts, skill)[least:])
    return chance


# -- several tasks --------------------------------------------------------------------------------------------------------------

Stratum = tuple[int, int, int]
"""A task: attempts in both arms, and how many passed in both together."""


@cache
def given_totals(strata: tuple[Stratum, ...]) -> Words:
    """On identical arms of these tasks, given their totals."""
    if len({n for n_base, n_skill, _ in strata for n in (n_base, n_skill)}) == 1:
        return _given_totals_equal(strata[0][0], tuple(m for _, _, m in strata))
    return every_split(strata)


def every_split(strata: tuple[Stratum, ...]) -> Words:
    """The same by looking at each way to split the totals between the arms."""
    ways = {"better": 0, "worse": 0, "no evidence": 0}
    for passes in product(*(range(max(0, m - n_base), min(n_skill, m) + 1) for n_base, n_skill, m in strata)):
        tables = [(m - x, n_base, x, n_skill) for (n_base, n_skill, m), x in zip(strata, passes, strict=True)]
        ways[compared(tables).word] += prod(comb(n_base, b) * comb(n_skill, s) for b, n_base, s, n_skill in tables)
    every = prod(comb(n_base + n_skill, m) for n_base, n_skill, m in strata)
    return Words(ways["better"] / every, ways["worse"] / every)


def _given_totals_equal(attempts: int, totals: tuple[int, ...]) -> Words:
    """With equal arms the word depends on the sum only, and is "worse" up to an edge and "better" from another on."""
    worst, best = word_edges(attempts, totals)
    low = lowest(attempts, totals)
    less = stratified_exact(split(attempts, totals, worst)).less if worst >= low else 0
    greater = stratified_exact(split(attempts, totals, best)).greater if best <= sum(totals) - low else 0
    return Words(float(greater), float(less))


@cache
def word_edges(attempts: int, totals: tuple[int, ...]) -> tuple[int, int]:
    """The largest number of passes of the second arm that is "worse", and the smallest that is "better"."""
    low, middle = lowest(attempts, totals), sum(totals) // 2
    spread = sqrt(sum(m * (2 * attempts - m) / (8 * attempts - 4) for m in totals)) if attempts * 2 > 1 else 0.0
    worst = max(low - 1, min(middle, int(sum(totals) / 2 - 2 * spread)))
    while worst >= low and compared(split(attempts, totals, worst)).word != "worse":
        worst -= 1
    while worst + 1 <= middle and compared(split(attempts, totals, worst + 1)).word == "worse":
        worst += 1
    best = sum(totals) - worst
    # Found by exchanging the arms, and then looked at.
    assert best > sum(totals) - low or compared(split(attempts, totals, best)).word == "better"
    assert compared(split(attempts, totals, best - 1)).word == "no evidence"
    return worst, best


def lowest(attempts: int, totals: Sequence[int]) -> int:
    """Fewest passes that the second arm can have."""
    return sum(max(0, m - attempts) for m in totals)


def split(attempts: int, totals: Sequence[int], passes: int) -> list[Table]:
    """Tables with these totals and so many passes of the second arm."""
    left, tables = passes - lowest(attempts, totals), []
    for m in totals:
        least = max(0, m - attempts)
        x = least + min(left, min(attempts, m) - least)
        left -= x - least
        tables.append((m - x, attempts, x, attempts))
    return tables


def words(arms: Sequence[Arms], rates: Sequence[float]) -> Words:
    """On identical arms of tasks with so many attempts and these rates: every combination of totals counted."""
    chances = [binomial(sum(two), rate) for two, rate in zip(arms, rates, strict=True)]
    better = worse = 0.0
    for totals, orders in _totals(arms, rates):
        weight = orders * prod(chance[m] for chance, m in zip(chances, totals, strict=True))
        if weight:
            said = given_totals(strata(arms, totals))
            better, worse = better + weight * said.better, worse + weight * said.worse
    return Words(better, worse)


def _totals(arms: Sequence[Arms], rates: Sequence[float]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every combination with the number of orders that it stands for: tasks that are all alike are not told apart."""
    if len(set(arms)) > 1 or len(set(rates)) > 1:
        yield from ((totals, 1) for totals in product(*(range(sum(two) + 1) for two in arms)))
        return
    for totals in combinations_with_replacement(range(sum(arms[0]) + 1), len(rates)):
        yield totals, factorial(len(totals)) // prod(factorial(totals.count(m)) for m in set(totals))


def strata(arms: Sequence[Arms], totals: Sequence[int]) -> tuple[Stratum, ...]:
    return tuple(sorted((n_base, n_skill, m) for (n_base, n_skill), m in zip(arms, totals, strict=True)))


def drawn_totals(attempts: int, rates: Sequence[float], draws: int, random: Random) -> tuple[Chance, Chance]:
    """On identical equal arms: "better or worse", and "worse", exactly given the totals, which are drawn."""
    arms = [(attempts, attempts)] * len(rates)
    columns = [random.choices(range(2 * attempts + 1), binomial(2 * attempts, rate), k=draws) for rate in rates]
    said = [given_totals(strata(arms, totals)) for totals in zip(*columns, strict=True)]
    return mean([w.either for w in said]), mean([w.worse for w in said])


def power(base: Sequence[float], skill: Sequence[float], attempts: int, draws: int, random: Random) -> Chance:
    """Chance of "better" with `attempts` per arm of tasks with these rates, attempts drawn."""
    counts = [random.choices(range(attempts + 1), binomial(attempts, rate), k=draws) for rate in (*base, *skill)]
    seen = 0
    for drawn in zip(*counts, strict=True):
        befores, afters = drawn[: len(base)], drawn[len(base) :]
        totals = tuple(sorted(b + s for b, s in zip(befores, afters, strict=True)))
        if attempts * len(base) <= _FEW:
            seen += sum(afters) >= word_edges(attempts, totals)[1]
        else:
            seen += compared(split(attempts, totals, sum(afters))).word == "better"
    return share(seen, draws)


# -- drawing attempts -----------------------------------------------------------------------------------------------------------


def draw(random: Random, rates: Sequence[float], arms: Arms, lost: float) -> list[Table]:
    """Tables of identical arms, attempt by attempt; each is lost with chance `lost`."""

    def arm(rate: float, attempts: int) -> tuple[int, int]:
        usable = sum(random.random() >= lost for _ in range(attempts)) if lost else attempts
        return sum(random.random() < rate for _ in range(usable)), usable

    return [(*arm(rate, arms[0]), *arm(rate, arms[1])) for rate in rates]


@lru_cache(maxsize=200_000)
def said(tables: tuple[Table, ...]) -> str:
    comparison = compare_arms(tables, advice=False)
    return "nothing" if comparison is None else comparison.word


def simulated(rates: Sequence[float] | int, arms: Arms, lost: float, draws: int, random: Random) -> tuple[Chance, Chance]:
    """On identical arms: "better or worse", and "worse". A number of tasks instead of rates: each draw has its own, Beta(2, 1)."""
    seen = {"better": 0, "worse": 0, "no evidence": 0, "nothing": 0}
    for _ in range(draws):
        these = [sqrt(random.random()) for _ in range(rates)] if isinstance(rates, int) else rates
        seen[said(tuple(sorted(draw(random, these, arms, lost))))] += 1
    return share(seen["better"] + seen["worse"], draws), share(seen["worse"], draws)


def share(seen: int, draws: int) -> Chance:
    """A share of draws. Its error is that of one more seen and one more not, so that it is never 0."""
    smooth = (seen + 1) / (draws + 2)
    return Chance(seen / draws, sqrt(smooth * (1 - smooth) / draws))


def mean(values: Sequence[float]) -> Chance:
    centre = sum(values) / len(values)
    return Chance(centre, sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1) / len(values)))
