"""Per-person aggregates: each person is one number made of their own rows, and people are counted or added up by it.

`SELECT AVG(total) FROM (SELECT person, SUM(cost) AS total FROM visits GROUP BY person)`: the inner sum is over one
person's rows, so it moves with nobody else's; clamped between two public bounds, it moves the outer sum by no more than
those, however many rows the person has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Integers
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.distinct import NOBODY, Distinct, Reach, check_counted
from bursar.core.queries.linear_map import Counts, Header, LinearMap, Norm
from bursar.core.queries.product import Product, Stack
from bursar.core.source.raw import FAILED, attempt
from bursar.errors import QueryError

if TYPE_CHECKING:
    from bursar.core.source.duckdb import DuckDBSource

LARGEST_VALUE = 2**40
"""Most that one person's number, or an end of its bins, can be."""


@dataclass(frozen=True, eq=False)
class PerPerson:
    """For each group and bin, the people whose number in the group falls into the bin: counted, or added up.

    Somebody's number in a group is the sum of `value`, one row of whole numbers, over their rows in it, clamped to
    lower .. upper; without `value`, the number of all rows they have, those beyond `max_contributions` too. Who has no
    row in a group is not in it. Where `centre` is given, the numbers are added up, each less the centre.

    Guarantees: a person is in one bin of a group at most. Edge cases: refused are groups that overlap, bins that do not
    rise or touch nothing of lower .. upper, and the number of all rows by group.
    """

    groups: Product
    value: Product | None
    lower: int
    upper: int
    bins: tuple[tuple[int, int], ...]  # from the first number to one before the second
    centre: int | None = None

    def __post_init__(self) -> None:
        Distinct(self.groups)  # refuses groups that overlap
        ends = [end for low, high in self.bins for end in (low, high)]
        numbers = [self.lower, self.upper, *ends, *([] if self.centre is None else [self.centre])]
        whole = all(type(number) is int and abs(number) <= LARGEST_VALUE for number in numbers)
        rising = all(low < high for low, high in self.bins) and all(a[1] <= b[0] for a, b in pairwise(self.bins))
        if not whole or not rising or not self.bins or self.lower > self.upper:
            raise QueryError("the numbers of people lie between two bounds, in bins that rise")
        if self.value is None:
            fits = not self.groups.attrs and self.groups.rows == 1
        else:
            fits = type(self.value) is Product and self.value.rows == 1 and self.value.largest() <= LARGEST_VALUE
        if not fits:
            raise QueryError("the number of a person is one sum over their rows, or of all rows there are")

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.groups.attrs, *(() if self.value is None else self.value.attrs))))

    @property
    def rows(self) -> int:
        return self.groups.rows * len(self.bins)

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def packed(self) -> tuple[Header, list[Integers]]:
        """A header and arrays that say all there is to say."""
        from bursar.core.queries.map_codec import shape_of

        arrays: list[Integers] = []
        value = None if self.value is None else shape_of(self.value, arrays)
        facts = {"lower": self.lower, "upper": self.upper, "bins": self.bins, "centre": self.centre}
        return {"kind": "per-person", **facts, "value": value, "groups": shape_of(self.groups, arrays)}, arrays

    @staticmethod
    def unpacked(header: Header, numbers: Integers) -> PerPerson:
        from bursar.core.queries.map_codec import products_of

        shapes = [shape for shape in (header["value"], header["groups"]) if shape is not None]
        stacked = products_of({"kind": "stack", "products": shapes}, numbers)
        assert isinstance(stacked, Stack)
        *value, groups = (part for part in stacked.parts if isinstance(part, Product))
        bins = tuple((low, high) for low, high in header["bins"])
        facts = {name: header[name] for name in ("lower", "upper", "centre")}
        return PerPerson(groups=groups, value=value[0] if value else None, bins=bins, **facts)

    @property
    def change(self) -> int:
        """The most that a person can change one answer by."""
        if self.centre is None:
            return 1
        ends = [min(max(end, self.lower), self.upper) for low, high in self.bins for end in (low, high - 1)]
        return max(1, *(abs(end - self.centre) for end in ends))

    def reach(self, unit: Unit, power: int) -> Reach:
        """A person is in one bin of min(k, groups) groups at most; everybody loses that, whatever their cells are."""
        times = Distinct(self.groups).reach(unit, power).times
        return Reach(times, self.change, (Norm((), power),))

    def apply(self, counts: Counts) -> Integers:
        raise QueryError("a table of counts does not tell people apart")

    def norms(self, power: int) -> tuple[Norm, ...]:
        """Where it looks: the cells of the groups."""
        return Distinct(self.groups).norms(power)

    def largest(self) -> int:
        return max(self.change, 1 if self.value is None else self.value.largest())

    def take(self, rows: Sequence[int]) -> LinearMap:
        if list(rows) == list(range(self.rows)):
            return self
        if len(rows) != 1:
            raise QueryError("the numbers of people are taken one by one")
        group, place = divmod(rows[0], len(self.bins))
        return replace(self, groups=self.groups.row(group), bins=(self.bins[place],))

    def counted(self, person: Integers, cells: dict[str, Integers], times: Integers) -> Integers:
        """The answers, from the rows of people: whose each is, its cells, and how often it is there."""
        number, inside = Distinct(self.groups).group_of(cells, len(person))
        weights = times if self.value is None else times * _at(self.value, cells, len(person))
        order = np.lexsort((person[inside], number[inside]))
        group, who, weight = (part[inside][order] for part in (number, person, weights))
        starts = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(who, prepend=-1) != 0))
        totals = np.add.reduceat(weight, starts) if len(starts) else np.zeros(0, np.int64)
        clamped = np.clip(totals, self.lower, self.upper)
        result = np.zeros((self.groups.rows, len(self.bins)), np.int64)
        for place, (low, high) in enumerate(self.bins):
            there = (clamped >= low) & (clamped < high)
            added = np.ones(there.sum(), np.int64) if self.centre is None else clamped[there] - self.centre
            np.add.at(result[:, place], group[starts][there], added)
        return result.reshape(-1)


def _at(value: Product, cells: dict[str, Integers], rows: int) -> Integers:
    """The coefficient of each row of the data."""
    weights = np.ones(rows, np.int64)
    for mask in value.masks:
        joint = np.zeros(rows, np.int64)
        for name, size in zip(mask.attrs, mask.sizes, strict=True):
            joint = joint * size + cells[name]
        weights = weights * mask.steps.at_cells(np.arange(mask.steps.size))[0][joint]
    return weights


def check_summed(domain: Domain, people: PerPerson) -> None:
    """Raise the QueryError that `Source.per_person` promises."""
    check_counted(domain, Distinct(people.groups))
    masks = () if people.value is None else people.value.masks
    if any(name not in domain for mask in masks for name in mask.attrs) or any(
        domain.sizes(mask.attrs) != mask.sizes for mask in masks
    ):
        raise QueryError("a sum over the rows of a person does not fit the columns of the data")


def count_people(source: DuckDBSource, people: PerPerson) -> Integers:
    """`Source.per_person` of a source in DuckDB."""
    domain = source._domain
    check_summed(domain, people)
    if not source._people or (people.value is None and domain.partition is not None):
        raise QueryError(NOBODY)
    columns = {name: f"c{domain.place(name)}" for name in people.attrs}
    selected = ", ".join(["unit", *columns.values(), "CAST(sum(rows) AS BIGINT) AS rows"])
    stored = "totals" if people.value is None else source._kept

    def counted() -> Integers:
        fetched = source._fetch(f"SELECT {selected} FROM {stored} GROUP BY ALL")
        cells = {name: fetched[column].astype(np.int64) for name, column in columns.items()}
        return people.counted(fetched["unit"], cells, fetched["rows"])

    return attempt(counted, FAILED)
