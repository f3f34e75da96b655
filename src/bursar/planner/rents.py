"""What questions about some columns have cost so far, counted from when a plan for all of them was last bought."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bursar.domain import Domain
from bursar.kernel.accounting import Book, Measured, Versioned
from bursar.kernel.ledger import Record

Columns = tuple[str, ...]


@dataclass
class Rents:
    """A view of the log: per column set, the loss of the events on these columns or fewer, taken by themselves."""

    domain: Domain
    empty_book: Callable[[], Book]
    events: list[tuple[frozenset[str], Measured]] = field(default_factory=list)
    kept: dict[tuple[Columns, str], tuple[int, Book]] = field(default_factory=dict)

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record.event, Versioned):
                self.events.clear()  # what was bought on other data answers nothing now
                self.kept.clear()
            elif isinstance(record.event, Measured):
                self.events.append((frozenset(record.event.strategy.attrs), record.event))

    def sets(self) -> list[frozenset[str]]:
        """The column sets that were ever measured on this version."""
        return list(dict.fromkeys(columns for columns, _ in self.events))

    def since(self, columns: Columns, plan: str) -> int:
        """What was spent on the columns since the strategy with digest `plan` was last measured, units of 2^-50."""
        start, book = self.kept.get((columns, plan), (0, None))
        book = self.empty_book() if book is None else book
        for measured, event in self.events[start:]:
            if event.strategy.digest == plan:
                book = self.empty_book()
            elif measured.issubset(columns):
                book.add(event)
        self.kept[columns, plan] = (len(self.events), book)
        return book.spent()
