"""The book: what is spent over all versions of the data."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Footprint,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    ReplaceOne,
    Versioned,
)
from bursar.core.accounting import profile as grid
from bursar.core.domain import Neighbours, Unit
from bursar.core.queries import Product
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=3, b=2)
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
ONE = 2**50


def about(cell: int, version: int) -> Measured:
    """A question about the people in one cell of column a."""
    row = [[int(cell == place) for place in range(3)]]
    return Measured(strategy=Product((mask_of(DOMAIN, ("a",), row),)), noise=NOISE, version=version)


def book(unit: Unit | None = None) -> Book:
    accountant = Accountant(mode=Mode.PURE, unit=unit or Unit())
    return Book(accountant, lambda: AddRemove(DOMAIN))


def filled(*events: object, unit: Unit | None = None) -> Book:
    made = book(unit)
    for event in events:
        made.add(event)
    return made


def test_inside_a_version_disjoint_people_cost_the_dearer() -> None:
    assert filled(Versioned(version=1), about(0, 1), about(1, 1)).spent() == ONE


def test_after_a_change_of_rows_versions_add_up() -> None:
    history = (Versioned(version=1), about(0, 1), Versioned(version=2), about(1, 2))
    assert filled(*history).spent() == 2 * ONE


def test_where_rows_were_only_added_versions_share_a_profile() -> None:
    shared = filled(Versioned(version=1), about(0, 1), Versioned(version=2, same_rows=True), about(1, 2))
    assert shared.spent() == ONE
    shared.add(Versioned(version=3, same_rows=True))
    shared.add(about(1, 3))
    assert shared.spent() == 2 * ONE  # the same people, asked twice
    shared.add(Versioned(version=4))
    shared.add(about(2, 4))
    assert shared.spent() == 3 * ONE
    shared.add(Versioned(version=5, same_rows=True))
    shared.add(about(1, 5))
    assert shared.spent() == 3 * ONE
    assert sorted(shared.profiles) == [1, 4]


def test_units_with_a_column_never_share_a_profile() -> None:
    """A unit may have one row too many, and then a new row takes the place of one that was counted before."""
    history = (Versioned(version=1), about(0, 1), Versioned(version=2, same_rows=True), about(1, 2))
    for rows in (1, 3):
        assert filled(*history, unit=Unit(column="person", max_contributions=rows)).spent() == 2 * rows * ONE


@pytest.mark.parametrize(
    "history",
    [
        (about(0, 0), Versioned(version=1, same_rows=True), about(1, 1)),  # nothing was declared before
        (Versioned(version=1), about(0, 1), Versioned(version=3, same_rows=True), about(1, 3)),  # a gap
        (about(0, 5), about(1, 6)),  # never declared at all
        (Versioned(version=1), about(0, 1), Versioned(version=1), Versioned(version=2), about(1, 2)),
    ],
)
def test_where_nothing_is_known_versions_add_up(history: tuple[object, ...]) -> None:
    assert filled(*history).spent() == 2 * ONE


def test_a_version_declared_twice_never_costs_less() -> None:
    start = (Versioned(version=1), about(0, 1), Versioned(version=2), about(1, 2))
    again = filled(*start, Versioned(version=2, same_rows=True), about(1, 2))
    assert again.spent() == 2 * ONE
    again.add(about(0, 2))
    assert again.spent() == 3 * ONE


def test_a_price_is_what_is_added() -> None:
    made = filled(Versioned(version=1), about(0, 1))
    assert made.price([about(1, 1)]) == 0
    assert made.price([about(0, 1)]) == ONE
    assert made.price([about(2, 2)]) == ONE
    assert made.spent() == ONE


def test_asking_for_a_price_changes_nothing() -> None:
    made = filled(Versioned(version=1), about(0, 1))
    for version in (1, 2, 9):
        made.price([about(1, version), about(2, version)])
    assert made.spent() == ONE


def test_the_price_is_what_adding_raises() -> None:
    made = filled(Versioned(version=1), about(0, 1))
    events = [about(0, 1), about(1, 1)]
    price, before = made.price(events), made.spent()
    for event in events:
        made.add(event)
    assert made.spent() - before == price


def test_a_price_is_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that are measured together become a set P worth trying, which may lower the bound; 0 is charged."""
    monkeypatch.setattr(grid, "MOST_BLOCKS", 8)
    domain = domain_of(a=2, b=2, c=2, d=64)
    made = Book(Accountant(mode=Mode.PURE, unit=Unit()), lambda: AddRemove(domain))

    def asked(attrs: str, row: list[int], scale: float = 1.0) -> Measured:
        noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
        return Measured(strategy=Product((mask_of(domain, tuple(attrs), [row]),)), noise=noise, version=1)

    for pair in ("ab", "bc", "ac"):
        made.add(asked(pair, [0, 1, 1, 0]))  # who differs in two columns; nobody differs in all three pairs of them
    made.add(asked("d", [1] * 64))
    assert made.spent() == 4 * ONE
    together = asked("abc", [1] * 8, scale=2.0**30)
    assert made.price([together]) == 0
    made.add(together)
    assert made.spent() == 3 * ONE + 2**20


def test_replace_one_books_pairs() -> None:
    accountant = Accountant(mode=Mode.PURE, unit=Unit(neighbours=Neighbours.REPLACE_ONE))
    made = Book(accountant, lambda: ReplaceOne(DOMAIN, AddRemove(DOMAIN)))
    made.add(about(0, 1))
    assert made.spent() == ONE
    made.add(about(1, 1))
    assert made.spent() == 2 * ONE
    made.add(Measured(strategy=Product(()), noise=NOISE, version=1))
    assert made.spent() == 2 * ONE  # sizes are public


def test_generations_add_up_beyond_64_bits() -> None:
    (norm,) = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),)).norms(1)
    dear = [Footprint(norm=norm, units=2**60, version=version) for version in range(40)]
    assert book().spent(dear) == 40 * 2**60
