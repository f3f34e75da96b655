"""A data set of two private tables: people with a sex, and their visits at an age, as relations over one ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from bursar.core.accounting import Accountant, AddRemove, Book, Mode
from bursar.core.accounting.kind import ROOT
from bursar.core.budget import Budget, charter_of
from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.relations import Relation, TableTerms
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger, MemoryLedger
from bursar.core.noise.system import Randomness
from bursar.core.queries import Mask, Product, Steps
from harness.cells import Cell, table_of
from harness.small import TableSource

PEOPLE = Domain((Categories(name="sex", values=("F", "M"), outside=0, null=0),))
VISITS = Domain((IntegerRange(name="age", lower=0, upper=2, null=0),))
PLENTY = Budget.of(epsilon=100.0)

Rows = tuple[tuple[Cell, ...], tuple[Cell, ...]]
"""The bounded rows of people, and of visits, as cells."""


def relations(people: int = 1, visits: int = 1) -> tuple[Relation, Relation]:
    """Both tables, with the most rows that one person has in each."""
    units = (Unit(column="person", max_contributions=most) for most in (people, visits))
    pairs = zip((ROOT, "visits"), (PEOPLE, VISITS), units, strict=True)
    first, second = (Relation(table=table, domain=domain, unit=unit, max_rows=1000) for table, domain, unit in pairs)
    return first, second


def terms_of(relation: Relation, mode: Mode) -> TableTerms:
    accountant = Accountant(mode=mode, unit=relation.unit)
    return TableTerms(accountant=accountant, new_profile=lambda: AddRemove(relation.domain), relation=relation)


def book_of(first: Relation, second: Relation, mode: Mode = Mode.PURE, kind: type[Book] = Book) -> Book:
    """An empty book over both tables."""
    own = terms_of(first, mode)
    return kind(own.accountant, own.new_profile, further={second.table: terms_of(second, mode)})


def rows_over(domain: Domain, rows: Sequence[Sequence[int]]) -> Product:
    """A strategy over the one column of a table."""
    (column,) = domain.attributes
    return Product((Mask((column.name,), (column.size,), Steps.dense(rows)),))


def units_of(first: Relation, second: Relation) -> list[Rows]:
    """Everybody there can be: up to k rows in each of the tables."""
    people, visits = (
        [rows for most in range(relation.unit.max_contributions + 1) for rows in _multisets(relation.domain, most)]
        for relation in (first, second)
    )
    return [(one, other) for one in people for other in visits]


def _multisets(domain: Domain, size: int) -> list[tuple[Cell, ...]]:
    (column,) = domain.attributes
    return list(combinations_with_replacement([(cell,) for cell in range(column.size)], size))


@dataclass
class TwoTables:
    """Kernels of both tables over one ledger; the rows of either can be exchanged and declared anew."""

    rows: Rows
    randomness: Randomness
    most: tuple[int, int] = (1, 1)
    budget: Budget = PLENTY
    kind: type[Kernel] = Kernel
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.relations = relations(*self.most)
        first = self.relations[0]
        facts = {"dataset": "two", "domain": first.domain, "unit": first.unit, "max_rows": first.max_rows}
        self.ledger = MemoryLedger(charter_of(**facts, budget=self.budget))
        for place in (0, 1):
            self.declare(place)
        self.people, self.visits = self.kernel(0), self.kernel(1)

    def source(self, place: int) -> TableSource:
        domain = self.relations[place].domain
        return TableSource(table_of(domain, self.rows[place]), domain, content=str(self.rows[place]))

    def declare(self, place: int) -> int:
        """The data owner declares a table as it is now."""
        relation = self.relations[place] if place else None
        return declare_version(self.ledger, lambda key: self.source(place), self.randomness, relation=relation)

    def kernel(self, place: int) -> Kernel:
        own = self.relations[place]
        return self.kind(
            domain=own.domain,
            unit=own.unit,
            budget=self.budget,
            max_rows=own.max_rows,
            ledger=self.ledger,
            open_source=lambda key: self.source(place),
            randomness=self.randomness,
            table=own.table,
            relations=self.relations,
        )
