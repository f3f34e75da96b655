"""In RENYI mode what is spent bounds the true divergence, added up over the mass functions of moved noise."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.domain import Neighbours, Unit
from bursar.core.queries import Product
from harness.cases import examples
from harness.divergences import divergence
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=3, b=2)
CELLS = list(product(range(3), range(2)))
UNITS = [
    Unit(column=column, max_contributions=rows, neighbours=neighbours)
    for column, rows in ((None, 1), ("person", 2))
    for neighbours in Neighbours
]
ROUNDING = Fraction(1, 10**40)

entries = st.integers(-3, 3)
noises = st.builds(Noise, kind=st.sampled_from(NoiseKind), scale=st.sampled_from((0.75, 1.0, 3.0)))
Rows = list[list[int]]


@st.composite
def events(draw: st.DrawFn) -> Measured:
    """One or two rows over a, or over both columns, with noise of either kind."""
    columns, cells = draw(st.sampled_from(((("a",), 3), (("a", "b"), 6))))
    rows: Rows = draw(st.lists(st.lists(entries, min_size=cells, max_size=cells), min_size=1, max_size=2))
    return Measured(strategy=Product((mask_of(DOMAIN, columns, rows),)), noise=draw(noises), version=1)


asked = st.lists(events(), min_size=1, max_size=3)
orders = st.sampled_from((2, 3, 16))


def values(event: Measured) -> Rows:
    """How a row in each cell changes the rows of an event."""
    (mask,) = event.strategy.masks  # type: ignore[attr-defined]
    matrix = np.asarray(mask.steps.at_cells(np.arange(mask.steps.size)))
    return [matrix[:, a if mask.attrs == ("a",) else 2 * a + b].tolist() for a, b in CELLS]


def changes(unit: Unit) -> Iterator[dict[int, int]]:
    """How often each cell comes or goes, for every neighbour."""
    for rows in range(1, unit.max_contributions + 1):
        sets = list(combinations_with_replacement(range(len(CELLS)), rows))
        for come in sets:
            for gone in sets if unit.neighbours is Neighbours.REPLACE_ONE else [()]:
                yield {cell: come.count(cell) - gone.count(cell) for cell in {*come, *gone}}


def true_divergence(bought: list[Measured], unit: Unit, order: int) -> Fraction:
    """The largest divergence of all answers together over neighbours: rows are independent, so they add up."""
    tables = [(event.noise, values(event)) for event in bought]
    seen: set[tuple[int, ...]] = set()
    for change in changes(unit):
        moves = [[sum(n * each[v][j] for v, n in change.items()) for j in range(len(each[0]))] for _, each in tables]
        seen.add(tuple(abs(s) for own in moves for s in own))
    of_row = [noise for noise, each in tables for _ in each[0]]
    with localcontext(Context(prec=60)):
        sums = [
            sum((divergence(noise, s, order) for noise, s in zip(of_row, shift, strict=True) if s), Decimal(0))
            for shift in seen
        ]
    return Fraction(max(sums))


def spent(bought: list[Measured], unit: Unit, order: int, accountant: type[Accountant] = Accountant) -> Fraction:
    """What the book says, as a divergence."""

    def new_profile() -> AddRemove | ReplaceOne:
        around = AddRemove(DOMAIN)
        return ReplaceOne(DOMAIN, around) if unit.neighbours is Neighbours.REPLACE_ONE else around

    book = Book(accountant(mode=Mode.RENYI, unit=unit, order=order), new_profile)
    for event in bought:
        book.add(event)
    return Fraction(book.spent(), 2**50) * order


@pytest.mark.hypothesis
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_is_spent_bounds_the_divergence(unit: Unit) -> None:
    @settings(max_examples=examples(25), deadline=None)
    @given(bought=asked, order=orders)
    def check(bought: list[Measured], order: int) -> None:
        assert spent(bought, unit, order) >= true_divergence(bought, unit, order) - ROUNDING

    check()


@settings(max_examples=20, deadline=None)
@given(order=orders, scale=st.sampled_from((0.75, 1.0, 3.0)), rows=st.sampled_from((1, 2)), twice=st.booleans())
def test_counts_with_laplace_noise_are_priced_exactly(order: int, scale: float, rows: int, twice: bool) -> None:
    unit = Unit(column="person", max_contributions=rows)
    noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
    strategy = Product((mask_of(DOMAIN, ("a",), [[1, 0, 1]] * (1 + twice)),))
    bought = [Measured(strategy=strategy, noise=noise, version=1)]
    assert 0 <= spent(bought, unit, order) - true_divergence(bought, unit, order) <= Fraction(order * 2, 2**50)


class OrderOffByOne(Accountant):
    """Prices the divergence of the order before."""

    def units(self, noise: Noise, finer: int = 0) -> int:
        assert self.order is not None
        found = Accountant(mode=self.mode, unit=self.unit, order=max(self.order - 1, 2)).units(noise, finer)
        return found * (self.order - 1) // self.order if self.order > 2 else found


class RoundedDown(Accountant):
    def units(self, noise: Noise, finer: int = 0) -> int:
        return super().units(noise, finer) - 1


class OneRow(Accountant):
    """Forgets that a unit may have several rows."""

    def units(self, noise: Noise, finer: int = 0) -> int:
        return Accountant(mode=self.mode, unit=Unit(), order=self.order).units(noise, finer)


class FirstPowers(Accountant):
    """Prices in proportion to a coefficient."""

    @property
    def power(self) -> int:
        return 1


@pytest.mark.parametrize("twin", [OrderOffByOne, RoundedDown, OneRow, FirstPowers])
def test_twins_that_count_too_little_are_found(twin: Any) -> None:
    def wrong(case: tuple[list[Measured], int]) -> bool:
        return spent(case[0], UNITS[2], case[1], twin) < true_divergence(case[0], UNITS[2], case[1]) - ROUNDING

    find(st.tuples(asked, orders), wrong, settings=settings(max_examples=500, deadline=None, phases=[Phase.generate]))
