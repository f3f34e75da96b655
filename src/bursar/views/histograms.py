"""A place in the planner for histograms that learn from the log, one for each way of learning that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from bursar.core.accounting import Versioned
from bursar.core.ledger import Record


class Advanced(Protocol):
    """A view of the log."""

    def advance(self, records: Iterable[Record]) -> None: ...


View = TypeVar("View", bound=Advanced)


@dataclass
class Histograms:
    """Keeps the records of the current version and advances a view only when it is asked for.

    Guarantees: a view has seen every record of the version, in the order of the log, whenever it was first asked for.
    """

    records: list[Record] = field(default_factory=list)
    kept: dict[Hashable, tuple[int, Any]] = field(default_factory=dict)

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record.event, Versioned):
                self.records.clear()  # what was learnt of other data is of no use
                self.kept.clear()
            self.records.append(record)

    def of(self, key: Hashable, make: Callable[[], View]) -> View:
        """The view that stands under a key, made if there is none; equal keys mean equal views."""
        seen, view = self.kept.get(key, (0, None))
        view = make() if view is None else view
        if seen < len(self.records):
            view.advance(self.records[seen:])
        self.kept[key] = (len(self.records), view)
        return view
