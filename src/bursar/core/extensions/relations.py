"""Several private tables: people who have rows in more than one, and one budget for each of them over all tables.

Each table is a relation: it has a domain, a bound k and losses of its own, and what is spent is the sum over relations.
An event names one version, and a version is of one table, so no event can look at two. See `relations.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bursar.core.accounting.kind import ROOT, EventKind, Fields, FreeEvent, Versioned
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.errors import ConfigError, LedgerError

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant, Book
    from bursar.core.accounting.profile import Profile
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.public import Public


@dataclass(frozen=True, kw_only=True)
class Added(FreeEvent):
    """The data owner added a private table, of which nothing was asked before. `facts` bind for life, as a charter
    does."""

    kind = "added"
    table: str
    facts: Mapping[str, object]

    def fields(self) -> dict[str, object]:
        return {"kind": self.kind, "table": self.table, "facts": dict(self.facts)}

    @staticmethod
    def read(fields: Fields) -> Added:
        return Added(table=fields.named("table"), facts=fields.take("facts", dict))


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A private table as it is asked about: its columns, those of the tables that it is joined with included, and how
    many rows of it one unit has at most.

    Edge cases: `replace-one`, and rows as units, go with one private table only.
    """

    table: str  # ROOT for the one that the charter describes
    domain: Domain
    unit: Unit
    max_rows: int
    joined: tuple[Mapping[str, object], ...] = ()  # the tables that add columns, and by which keys

    @property
    def added(self) -> Added:
        """The event that adds it, by which the log knows it."""
        unit = {"unit": self.unit.column, "max_contributions": self.unit.max_contributions}
        facts = {"columns": self.domain.to_json(), "privacy": unit, "max_rows": self.max_rows}
        return Added(table=self.table, facts={**facts, "tables": list(self.joined)} if self.joined else facts)


def check_relations(relations: Iterable[Relation]) -> None:
    """Refuse tables whose losses do not add up to those of a person."""
    listed = list(relations)
    names = [relation.table.casefold() for relation in listed]
    if names.count(ROOT) != 1 or len(set(names)) < len(names):
        raise ConfigError("every private table has a name of its own")
    if len(listed) == 1:
        return
    if any(relation.unit.column is None for relation in listed):
        raise ConfigError('several private tables need a column that says whose each row is: unit = { column = "..." }')
    if any(relation.unit.neighbours is Neighbours.REPLACE_ONE for relation in listed):
        raise ConfigError(
            'neighbours = "replace-one" keeps the number of rows, which several private tables do not; '
            'use neighbours = "add-remove"'
        )


@dataclass(frozen=True, kw_only=True)
class TableTerms:
    """How losses in one table are priced and kept."""

    accountant: Accountant
    new_profile: Callable[[], Profile]
    relation: Relation


@dataclass
class Versions:
    """The present version of each table, and the table of each version, advanced event by event."""

    present: dict[str, int] = field(default_factory=dict)
    tables: dict[int, str] = field(default_factory=dict)

    def add(self, event: EventKind) -> None:
        """Edge cases: a version that was of another table before raises LedgerError."""
        if type(event) is Versioned:
            if self.tables.setdefault(event.version, event.table) != event.table:
                raise LedgerError("the log has one version of the data for two tables")
            self.present[event.table] = event.version

    def __contains__(self, version: int) -> bool:
        """Whether the version is the present one of its table; any is where none was declared."""
        return not self.present or version in self.present.values()

    def copy(self) -> Versions:
        return Versions(dict(self.present), dict(self.tables))

    def state(self) -> Tree:
        """As plain values."""
        return [[version, table] for version, table in self.tables.items()]

    def restore(self, state: Tree) -> None:
        for version, table in state:
            self.add(Versioned(version=version, table=table))


def check_known(book: Book, event: EventKind) -> None:
    """Refuse a log with a table that is not known here, or not in this way: its losses could not be added up."""
    if type(event) is Added:
        further = book.further.get(event.table)
        if further is None or further.relation.added != event:
            told = "does not have" if further is None else "has otherwise"
            raise LedgerError(f"the ledger has a private table {event.table} that the config {told}")
    elif type(event) is Versioned and event.table != ROOT and event.table not in book.further:
        raise LedgerError(f"the ledger has a private table {event.table} that the config does not have")


def losses_by_table(book: Book) -> dict[str, int]:
    """What is spent on each table, in units of 2^-50; together that is what is spent. What was carried over counts
    for the first."""
    spent = {**dict.fromkeys((ROOT, *book.further), 0), ROOT: book.carried}
    for generation, profile in book.profiles.items():
        spent[book.versions.tables.get(generation, ROOT)] += profile.spent()
    return spent


def spent_by_table(public: Public) -> dict[str, int]:
    """What is spent on each private table, in units of 2^-50, which add up to what is spent."""
    with public._lock:
        return losses_by_table(public._advanced().total)


def added_tables(public: Public) -> list[Added]:
    """The events that add the private tables beside the first, as they are known here."""
    return [relation.added for relation in public._relations if relation.table != ROOT]


def further_domains(public: Public) -> dict[str, Domain]:
    """The domains of the private tables beside the first, by name."""
    return {relation.table: relation.domain for relation in public._relations if relation.table != ROOT}


def tables_of_versions(public: Public) -> dict[int, str]:
    """The table of each version of the data that the log declares."""
    with public._lock:
        public._advanced()
        return dict(public._versions.tables)


def empty_book(public: Public) -> Book:
    """A book as it was when nothing had been spent, to add up what some events cost by themselves."""
    book = public._new_book()
    book.versions = public._versions.copy()
    return book
