"""What questions about some columns have cost so far, counted from when rows for more than one question were bought."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bursar.core.accounting import Book, Measured, Refined, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask
from bursar.views.measurements import products_of

Columns = tuple[str, ...]
Rule = Callable[[LinearMap], bool]


@dataclass
class Rents:
    """A view of the log: per column set, the loss of the events on these columns or fewer, taken by themselves."""

    domain: Domain
    empty_book: Callable[[], Book]
    events: list[tuple[frozenset[str], Measured | Refined]] = field(default_factory=list)
    kept: dict[tuple[Columns, str], tuple[int, Book]] = field(default_factory=dict)

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record.event, Versioned):
                self.events.clear()  # what was bought on other data answers nothing now
                self.kept.clear()
            elif isinstance(record.event, Measured | Refined):
                self.events.append((frozenset(record.event.strategy.attrs), record.event))

    def sets(self) -> list[frozenset[str]]:
        """The column sets that were ever measured on this version."""
        return list(dict.fromkeys(columns for columns, _ in self.events))

    def since(self, columns: Columns, name: str, owned: Rule, shared: Rule | None = None) -> int:
        """What was spent on the columns since rows that are `owned` were last bought on them, in units of 2^-50.

        Rows that are `shared` are no rent: they were bought for more than one question themselves. Nor are counts of
        every value of fewer columns: they leave nothing to ask about those, and tell nothing about more columns.
        One name stands for one pair of rules: what was counted under it is not counted again.
        """
        start, book = self.kept.get((columns, name), (0, None))
        book = self.empty_book() if book is None else book
        for measured, event in self.events[start:]:
            if not measured.issubset(columns):
                continue
            if owned(event.strategy):
                book = self.empty_book()
            elif len(measured) < len(columns) and self._every_value(event.strategy):
                continue
            elif shared is None or not shared(event.strategy):
                book.add(event)
        self.kept[columns, name] = (len(self.events), book)
        return book.spent()

    def _every_value(self, strategy: LinearMap) -> bool:
        """Whether a measurement has as many rows as its columns have values, or combinations, and tells all apart."""

        def complete(mask: Mask) -> bool:
            values = math.prod(self.domain[name].declared for name in mask.attrs)
            return min(mask.rows, len(mask.steps.breaks())) >= values

        return any(
            set(product.attrs) == set(strategy.attrs) and all(map(complete, product.masks))
            for product in products_of(strategy)
        )
