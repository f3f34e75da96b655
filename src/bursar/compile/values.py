"""The number that each cell of a column counts as when values are added up.

whole numbers, listed numbers    the value itself
bins                             the middle of the bin, or the number declared for it: off for each row by at most
                                 the way from there to the further edge
NULL                             nothing: it is left out, as SQL has it
other                            no number at all; a question must keep such rows out
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Attribute, Bins, Categories, Domain, IntegerRange, Stray
from bursar.errors import ConfigError, QueryError

LARGEST_NUMBER = 2**31
"""Most units of the common denominator that a value may be: rows of squares, and their squares, must stay whole."""


@dataclass(frozen=True, kw_only=True)
class Represented(Bins):
    """Bins with a number that the values of each count as when they are added up.

    It says nothing about where rows fall, so a ledger is not bound to it.
    """

    representatives: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.representatives) != self.declared:
            raise ConfigError(
                f"column {self.name} has {self.declared} bins and {len(self.representatives)} representatives"
            )
        for number, low, high in zip(self.representatives, self.edges, self.edges[1:], strict=False):
            if not low <= number <= high:
                raise ConfigError(f"column {self.name}: {number:g} lies outside of its bin, {low:g} to {high:g}")


def representatives_of(domain: Domain) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """The columns that have representatives, with these."""
    return tuple((one.name, one.representatives) for one in domain.attributes if isinstance(one, Represented))


@dataclass(frozen=True, eq=False)
class Values:
    """What cells count as, in whole numbers of 1/`parts`."""

    attribute: Attribute
    numbers: NDArray[np.int64]  # one per cell, 0 where there is none
    parts: int
    null: NDArray[np.bool_]  # cells that are left out
    missing: NDArray[np.bool_]  # cells that stand for values nobody knows
    off: Fraction  # how far a row's own value can be from what it counts as

    def times(self, factor: int) -> Values:
        """The same in finer parts."""
        return Values(self.attribute, self.numbers * factor, factor * self.parts, self.null, self.missing, self.off)


def holds_numbers(attribute: Attribute) -> bool:
    """Whether the values of a column can be added up."""
    return isinstance(attribute, IntegerRange | Bins) or (
        isinstance(attribute, Categories) and type(attribute.values[0]) is int
    )


def values_of(attribute: Attribute, position: int) -> Values:
    """The numbers of a column; refused where its cells are none."""
    match attribute:
        case IntegerRange():
            found, parts, off = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64), 1, Fraction(0)
            if max(abs(attribute.lower), abs(attribute.upper)) > LARGEST_NUMBER:
                raise QueryError(f"the numbers in {attribute.name} are too large to be added up", position=position)
        case Categories() if type(attribute.values[0]) is int:
            listed = [int(value) for value in attribute.values]
            if max(map(abs, listed)) > LARGEST_NUMBER:
                raise QueryError(f"the numbers in {attribute.name} are too large to be added up", position=position)
            found, parts, off = np.array(listed, np.int64), 1, Fraction(0)
        case Bins():
            found, parts, off = _in_bins(attribute)
        case _:
            raise QueryError(f"{attribute.name} holds no numbers; it can be counted and grouped by", position=position)
    numbers = np.zeros(attribute.size, np.int64)
    numbers[: attribute.declared] = found
    null, missing = np.zeros(attribute.size, np.bool_), np.zeros(attribute.size, np.bool_)
    if attribute.has_null:
        null[attribute.null_cell] = True
    if attribute.other is not None:
        only_null = attribute.ordered and attribute.outside is not Stray.OTHER
        (null if only_null else missing)[attribute.other] = True
    return Values(attribute, numbers, parts, null, missing, off)


def _in_bins(attribute: Bins) -> tuple[NDArray[np.int64], int, Fraction]:
    """What bins count as, in the decimals they are written in, or in as fine a grid as there is room for."""
    edges = [_written(edge) for edge in attribute.edges]
    if isinstance(attribute, Represented):
        points = [_written(number) for number in attribute.representatives]
    else:
        points = [(low + high) / 2 for low, high in pairwise(edges)]
    largest = max(1, math.ceil(max(map(abs, points))))
    parts = math.lcm(*(point.denominator for point in points))
    if parts * largest > LARGEST_NUMBER:
        parts = max(1, LARGEST_NUMBER // largest)
    numbers = [round(point * parts) for point in points]
    counted = [Fraction(number, parts) for number in numbers]
    off = max(max(high - number, number - low) for (low, high), number in zip(pairwise(edges), counted, strict=True))
    if max(map(abs, numbers)) > LARGEST_NUMBER:
        raise QueryError(f"the numbers in {attribute.name} are too large to be added up")
    return np.array(numbers, np.int64), parts, off


def _written(number: float) -> Fraction:
    return Fraction(Decimal(repr(float(number))))
