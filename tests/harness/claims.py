"""What a book claims about one pair of data sets: the loss at the very cells where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from bursar.core.accounting import AddRemove, Book, Profile, ReplaceOne
from bursar.core.domain import Domain
from bursar.core.extensions.sequential import Sequential
from bursar.core.noise.law import UNIT_BITS
from harness.cells import Cell

Versions = Sequence[Sequence[Cell]]
"""The (bounded) rows of every version of the data, as cells."""


def claimed(book: Book, domain: Domain, left: Versions, right: Versions) -> Fraction:
    """The loss between two data sets by the profiles, generation by generation.

    Profiles are priced for units of k rows: a row's own share of the loss at its cell is one k-th, in both modes.
    """
    total = 0
    for generation, profile in book.profiles.items():
        # Versions of one generation only add rows: the last one holds them all.
        last = max((v for v, g in book.generations.items() if g == generation), default=generation)
        here, there = Counter(left[last - 1]), Counter(right[last - 1])
        total += _loss(profile, domain, list((here - there).elements()), list((there - here).elements()))
    return Fraction(total, 2**UNIT_BITS * book.accountant.unit.max_contributions)


def _loss(profile: Profile, domain: Domain, removed: list[Cell], added: list[Cell]) -> int:
    """The sum over the rows that changed of the loss at their cells; under replace-one, over pairs of rows.

    Sequential composition says nothing about cells: whoever changed, everything spent is the claim.
    """
    if isinstance(profile, Sequential):
        return profile.spent() if removed or added else 0
    if isinstance(profile, ReplaceOne):
        return sum(_pair_loss(profile, domain, v, w) for v, w in zip(removed, added, strict=True))
    assert isinstance(profile, AddRemove)
    return sum(_cell_loss(profile, domain, v) for v in [*removed, *added])


def _cell_loss(profile: AddRemove, domain: Domain, cell: Cell) -> int:
    return sum(int(loss[_on(domain, columns, cell)]) for columns, loss in profile.losses.items())


def _pair_loss(profile: ReplaceOne, domain: Domain, cell: Cell, other: Cell) -> int:
    """A replaced row stays in its partition."""
    total, place = 0, 0
    if domain.partition is not None:
        place = cell[domain.place(domain.partition)]
        assert place == other[domain.place(domain.partition)]
    for columns, matrix in profile.parts[place].complete.items() if place in profile.parts else ():
        v, w = (_flat(domain, columns, which) for which in (cell, other))
        total += int(matrix[v, w])
    return total


def _on(domain: Domain, columns: tuple[str, ...], cell: Cell) -> Cell:
    return tuple(cell[domain.place(name)] for name in columns)


def _flat(domain: Domain, columns: tuple[str, ...], cell: Cell) -> int:
    place = 0
    for name, value in zip(columns, _on(domain, columns, cell), strict=True):
        place = place * domain[name].size + value
    return place
