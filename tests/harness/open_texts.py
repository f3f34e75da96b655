"""Data with one open column, as raw texts and ages, and a kernel over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bursar.core.budget import Budget, charter_of
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.open_keys import OpenText, normalised
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger, MemoryLedger
from bursar.core.noise.system import Randomness
from bursar.core.queries import Mask, Product, Steps
from bursar.testing import CountsSource

CAPACITY = 2
CITY = OpenText(name="city", capacity=CAPACITY)
OTHER, NULL = CAPACITY, CAPACITY + 1
AGE = IntegerRange(name="age", lower=0, upper=1, null=0)
CITIES = Domain((CITY,))
PLENTY = Budget.of(epsilon=100.0)

Text = str | None
Rows = tuple[Text, ...]


def cell_of(text: Text, keys: Sequence[str]) -> int:
    """The cell of a text under a list of keys, by the definition."""
    if text is None:
        return NULL
    plain = normalised(text)
    return keys.index(plain) if plain in keys else OTHER


class TextSource(CountsSource):
    """Rows of one open column, coded anew with every list."""

    def __init__(self, rows: Rows, content: str = "as it was") -> None:
        self.rows = rows
        super().__init__(np.zeros(CITY.size, np.int64), CITIES, content)
        self.assign({"city": ()})

    def assign(self, texts: Mapping[str, Sequence[str]]) -> None:
        self.counts = np.bincount([cell_of(row, texts["city"]) for row in self.rows], minlength=CITY.size)


def rows_over(rows: Sequence[Sequence[int]]) -> Product:
    """A strategy over the open column."""
    return Product((Mask(("city",), (CITY.size,), Steps.dense(rows)),))


def kernel_of(
    rows: Rows,
    randomness: Randomness,
    *,
    budget: Budget = PLENTY,
    kind: type[Kernel] = Kernel,
    ledger: Ledger | None = None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Kernel:
    """A kernel over the texts; where no ledger is given, over a new one with version 1 declared."""
    unit = Unit(neighbours=neighbours)
    if ledger is None:
        ledger = MemoryLedger(charter_of(dataset="texts", domain=CITIES, unit=unit, budget=budget, max_rows=100))
        declare_version(ledger, lambda key: TextSource(rows), randomness)
    return kind(
        domain=CITIES,
        unit=unit,
        budget=budget,
        max_rows=100,
        ledger=ledger,
        open_source=lambda key: TextSource(rows),
        randomness=randomness,
    )
