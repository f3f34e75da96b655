"""Exact answers spelt out row by row: what sources, masks and maps must come to, by none of their code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from bursar.core.domain import Domain
from bursar.core.queries import Distinct, LinearMap, PerPerson, decode, encode
from harness.cells import Cell, Numbers, coefficients, table_of
from harness.small import TableSource

Rows = Sequence[tuple[str, Cell]]
"""The bounded rows: whose each is, and its cell."""


@cache  # the same strategies come again and again
def _spelt(body: bytes, domain: Domain) -> Numbers:
    return coefficients(decode(body), domain)


def spelt(strategy: LinearMap, domain: Domain) -> Numbers:
    """q_j(v) as a matrix over all cells."""
    return _spelt(encode(strategy), domain)


def is_sum(strategy: LinearMap) -> bool:
    """Whether the answers are sums over rows."""
    return not isinstance(strategy, Distinct | PerPerson)


def answers(strategy: LinearMap, rows: Rows, domain: Domain) -> Numbers:
    """The exact answers of a strategy of any kind."""
    if is_sum(strategy):
        return spelt(strategy, domain) @ table_of(domain, [cell for _, cell in rows]).ravel()
    if isinstance(strategy, PerPerson):
        return _per_person(strategy, rows, domain)
    assert isinstance(strategy, Distinct)
    inside = spelt(strategy.groups, domain).reshape(-1, *domain.sizes(domain.names))
    place = None if strategy.of is None else domain.place(strategy.of)
    found = [{name if place is None else cell[place] for name, cell in rows if group[cell]} for group in inside]
    return np.array([len(each) for each in found], np.int64)


def _per_person(people: PerPerson, rows: Rows, domain: Domain) -> Numbers:
    """By a dictionary of everybody's own number; rows beyond the bound are not there."""
    shape = domain.sizes(domain.names)
    inside = spelt(people.groups, domain).reshape(-1, *shape)
    weight = None if people.value is None else spelt(people.value, domain).reshape(shape)
    found = []
    for group in inside:
        numbers: dict[str, int] = {}
        for name, cell in rows:
            if group[cell]:
                numbers[name] = numbers.get(name, 0) + (1 if weight is None else int(weight[cell]))
        clamped = [min(max(number, people.lower), people.upper) for number in numbers.values()]
        for low, high in people.bins:
            there = [number for number in clamped if low <= number < high]
            found.append(len(there) if people.centre is None else sum(number - people.centre for number in there))
    return np.array(found, np.int64)


class PeopleSource(TableSource):
    """Rows of people, counted one by one."""

    def __init__(self, rows: Rows, domain: Domain, content: str) -> None:
        super().__init__(table_of(domain, [cell for _, cell in rows]), domain, content=content)
        self.rows = rows

    def distinct(self, distinct: Distinct) -> Numbers:
        return answers(distinct, self.rows, self.domain)

    def per_person(self, people: PerPerson) -> Numbers:
        return answers(people, self.rows, self.domain)
