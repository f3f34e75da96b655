"""Looking for texts, enumerated: all tables of a few people, all releases of two rounds, the second of which depends on
the first, against rho and delta as the event prices them.

Let u be a person who comes to a table x. P is the law of what is released on x, P' on x + u, and P~ on x + u where
texts that u alone has are left out. The claims of discovery.proof.md, checked release by release:

    P~ and P are within rho, at every order;     P' >= (1 - D) P~, D the sum of delta over the rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest

from bursar.core.accounting import Accountant, AddRemove, Book, Found, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.domain import Neighbours, Unit
from bursar.core.noise.law import DELTA_BITS, UNIT_BITS
from harness.masses import mass_of
from harness.open_texts import CITIES

TEXTS = ("a", "b", "c")
PERSONS = [texts for size in (1, 2) for texts in itertools.combinations(TEXTS, size)]
TABLES = [table for size in (0, 1, 2) for table in itertools.combinations_with_replacement(PERSONS, size)]
Table = tuple[tuple[str, ...], ...]
Release = tuple[frozenset[str], ...]
Law = dict[Release, float]

FIRST = Found(column="city", most=2, weight=6, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=5.0), threshold=16, version=1)
AGAIN = {True: replace(FIRST, threshold=20, weight=9), False: replace(FIRST, threshold=11, weight=2)}
"""The second round, by whether anything was found in the first."""


@cache
def reached(scale: float, least: int) -> float:
    """P(N >= least), added up."""
    mass = mass_of(Noise(kind=NoiseKind.GAUSSIAN, scale=scale))
    return float(sum((mass(x) for x in range(max(least, -80), 81)), Decimal(0)))


Weights = Callable[[Found, int], int]


def as_priced(event: Found, texts: int) -> int:
    return event.share(texts)


def found(
    event: Found, table: Table, listed: frozenset[str], hidden: frozenset[str], weigh: Weights
) -> Mapping[str, float]:
    """The chance of each text that somebody has to be released."""
    weights: dict[str, int] = {}
    for person in table:
        own = [text for text in person if text not in listed]
        for text in own:
            weights[text] = weights.get(text, 0) + weigh(event, len(own))
    return {
        text: reached(event.noise.scale, event.threshold - weight)
        for text, weight in weights.items()
        if text not in hidden
    }


def law(table: Table, *, hidden: frozenset[str] = frozenset(), weigh: Weights = as_priced) -> Law:
    """All releases of two rounds, with their probabilities."""
    released: Law = {}
    for first, chance in sets(found(FIRST, table, frozenset(), hidden, weigh)).items():
        event = AGAIN[bool(first)]
        for second, then in sets(found(event, table, first, hidden, weigh)).items():
            released[first, second] = released.get((first, second), 0.0) + chance * then
    return released


def sets(chances: Mapping[str, float]) -> dict[frozenset[str], float]:
    every: dict[frozenset[str], float] = {}
    for chosen in itertools.product((True, False), repeat=len(chances)):
        probability = 1.0
        for (_, chance), kept in zip(chances.items(), chosen, strict=True):
            probability *= chance if kept else 1 - chance
        every[frozenset(text for text, kept in zip(chances, chosen, strict=True) if kept)] = probability
    return every


def rho_of(event: Found, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Fraction:
    replaced = neighbours is Neighbours.REPLACE_ONE
    unit = Unit(column="person", max_contributions=event.most, neighbours=neighbours)

    def profile() -> AddRemove | ReplaceOne:
        return ReplaceOne(CITIES, AddRemove(CITIES)) if replaced else AddRemove(CITIES)

    book = Book(Accountant(mode=Mode.CONCENTRATED, unit=unit), profile)
    book.add(event)
    return Fraction(book.spent(), 2**UNIT_BITS)


def most(value: Callable[[Found], float]) -> float:
    """What both rounds cost together, whichever the second is."""
    return value(FIRST) + max(value(event) for event in AGAIN.values())


RHO, DELTA = most(lambda event: float(rho_of(event))), most(lambda event: event.delta / 2**DELTA_BITS)


def divergence(here: Law, there: Law, order: int) -> float:
    """The Renyi divergence over its order."""
    assert all(there.get(release, 0.0) > 0 for release, chance in here.items() if chance > 0)
    moment = sum(chance**order * there[release] ** (1 - order) for release, chance in here.items() if chance > 0)
    return math.log(moment) / (order - 1) / order


def alone(person: tuple[str, ...], table: Table) -> frozenset[str]:
    return frozenset(person) - {text for other in table for text in other}


def excess(weigh: Weights = as_priced) -> float:
    """By how much the divergences exceed rho, over all neighbours and a few orders, both ways."""
    worst = -1.0
    for table, person in itertools.product(TABLES, PERSONS):
        without = law(table, weigh=weigh)
        within = law((*table, person), hidden=alone(person, table), weigh=weigh)
        for order in (2, 8, 32):
            worst = max(worst, divergence(without, within, order) - RHO, divergence(within, without, order) - RHO)
    return worst


def shortfall(delta: float) -> float:
    """By how much P' falls short of (1 - D) P~ on some release, over all neighbours."""
    worst = -1.0
    for table, person in itertools.product(TABLES, PERSONS):
        there, left_out = law((*table, person)), law((*table, person), hidden=alone(person, table))
        worst = max([worst, *((1 - delta) * chance - there.get(t, 0.0) for t, chance in left_out.items())])
    return worst


def test_what_is_released_costs_no_more_than_its_rho() -> None:
    assert excess() <= 1e-9


NEAR = replace(FIRST, weight=2, threshold=5)
"""With a threshold among the weights, where a release says most about them."""


def excess_of_one(weigh: Weights) -> float:
    """The same for one round, in parts of its rho."""
    rho, worst = float(rho_of(NEAR)), -1.0
    for table, person in itertools.product(TABLES, PERSONS):
        hidden = alone(person, table)
        laws = [
            {(each,): chance for each, chance in sets(found(NEAR, rows, frozenset(), hidden, weigh)).items()}
            for rows in (table, (*table, person))
        ]
        worst = max(worst, *(divergence(*pair, 2) / rho - 1 for pair in itertools.permutations(laws)))
    return worst


def test_weights_that_do_not_fall_with_the_number_of_texts_are_found() -> None:
    assert -0.5 < excess_of_one(as_priced) <= 0
    assert excess_of_one(lambda event, texts: event.weight) > 0.1


def test_texts_of_one_person_alone_are_released_no_more_often_than_delta() -> None:
    assert shortfall(DELTA) <= 1e-12
    assert 0.7 * DELTA < worst_delta() <= DELTA


def worst_delta() -> float:
    """The least D for which P' >= (1 - D) P~ everywhere."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if shortfall(middle) <= 1e-15 else (middle, high)
    return high


@pytest.mark.parametrize("twin", ["one round", "one text"])
def test_a_delta_that_is_too_small_is_found(twin: str) -> None:
    one = FIRST.delta / 2**DELTA_BITS
    assert one < DELTA
    small = {
        "one round": one,
        "one text": most(lambda event: reached(event.noise.scale, event.threshold - event.share(2))),
    }
    assert shortfall(small[twin]) > 1e-6


def test_the_number_of_texts_that_is_worst_is_not_always_the_largest() -> None:
    event = Found(
        column="city", most=4, weight=12, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=9.0), threshold=40, version=1
    )
    chances = {j: 1 - (1 - reached(9.0, 40 - event.share(j))) ** j for j in range(1, 5)}
    assert max(chances, key=lambda j: chances[j]) == 1
    assert chances[4] < 0.5 * chances[1]
    assert chances[1] <= event.delta / 2**DELTA_BITS <= 1.2 * chances[1]


def test_who_is_replaced_costs_twice() -> None:
    for event in (FIRST, *AGAIN.values()):
        assert rho_of(event) >= Fraction(event.weight**2, 2 * Fraction(event.noise.scale) ** 2)
        assert rho_of(event, Neighbours.REPLACE_ONE) == 2 * rho_of(event)
    worst, furthest = 0.0, 0
    for table, one, other in itertools.product(TABLES[:8], PERSONS, PERSONS):
        mine = alone(one, (*table, other)), alone(other, (*table, one))
        laws = [law((*table, person), hidden=frozenset().union(*mine)) for person in (one, other)]
        worst = max(worst, *(divergence(*pair, 8) for pair in itertools.permutations(laws)))
        shares = [{text: FIRST.share(len(person)) for text in person} for person in (one, other)]
        moved = [shares[0].get(text, 0) - shares[1].get(text, 0) for text in TEXTS]
        furthest = max(furthest, sum(each**2 for each in moved))
    assert worst <= 2 * RHO
    assert FIRST.weight**2 < furthest == 2 * FIRST.weight**2  # of texts that others have, this is what noise hides
