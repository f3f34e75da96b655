"""All units of a few rows over four cells, what they really lose, and what a book says that they lose."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

from bursar.core.accounting import Accountant, AddRemove, Book, Footprint, Measured, Mode, Noise, ReplaceOne
from bursar.core.domain import Neighbours, Unit
from bursar.core.queries import LinearMap, Mask, Product, Steps
from harness import plainly
from harness.cells import Cell
from harness.maps import domain_of

DOMAIN = domain_of(a=2, b=2)
CELLS: tuple[Cell, ...] = tuple((a, b) for a in range(2) for b in range(2))
ONE = 2**50
Event = tuple[LinearMap, Noise]


def groups(rng: Random) -> Product:
    """Groups that do not overlap: of some cells of some columns."""
    masks = []
    for name in rng.sample(["a", "b"], rng.randint(0, 2)):
        rows = rng.choice([[[1, 0], [0, 1]], [[1, 1]], [[1, 0]], [[0, 1]]])
        masks.append(Mask((name,), (2,), Steps.dense(rows)))
    return Product(tuple(masks))


def some_rows(rng: Random) -> Product:
    rows = [[rng.choice([-1, 0, 0, 1, 2]) for _ in range(4)] for _ in range(rng.randint(1, 3))]
    return Product((Mask(("a", "b"), (2, 2), Steps.dense(rows)),))


def lost(bought: list[Event], here: plainly.Rows, there: plainly.Rows, mode: Mode) -> Fraction:
    """sum |s|/b, or sum s^2/(2 b^2), between two tables."""
    total = Fraction(0)
    for strategy, noise in bought:
        shift = plainly.answers(strategy, here, DOMAIN) - plainly.answers(strategy, there, DOMAIN)
        scale = Fraction(noise.scale)
        for step in shift.tolist():
            total += Fraction(abs(step)) / scale if mode is Mode.PURE else Fraction(step * step) / (2 * scale * scale)
    return total


Price = Callable[[Accountant, Event], tuple[Footprint, ...]]


def as_it_is(accountant: Accountant, event: Event) -> tuple[Footprint, ...]:
    return accountant.footprints(Measured(strategy=event[0], noise=event[1], version=1))


def booked(bought: list[Event], unit: Unit, mode: Mode, price: Price = as_it_is) -> Fraction:
    around = AddRemove(DOMAIN)
    profile = around if unit.neighbours is Neighbours.ADD_REMOVE else ReplaceOne(DOMAIN, around)
    book = Book(Accountant(mode=mode, unit=unit), lambda: profile)
    profile.add([footprint for event in bought for footprint in price(book.accountant, event)])
    return Fraction(profile.spent(), ONE)


def units(most: int) -> list[plainly.Rows]:
    """All people of up to so many rows."""
    every = [rows for size in range(1, most + 1) for rows in combinations_with_replacement(CELLS, size)]
    return [[("eve", cell) for cell in rows] for rows in every]


def others(rng: Random) -> plainly.Rows:
    return [(rng.choice(["ann", "bob"]), rng.choice(CELLS)) for _ in range(rng.randint(0, 4))]


BASE = (("ann", (0, 0)), ("ann", (1, 1)), ("bob", (1, 2)))


def data(*cells: Cell) -> tuple[plainly.Rows, ...]:
    return ((*BASE, *(("eve", cell) for cell in cells)),)


PAIRS = [
    (data(), data(*cells)) for cells in [((0, 0),), ((0, 0), (0, 0)), ((0, 0), (1, 2)), ((0, 1), (1, 1)), ((1, 1),)]
]
