"""Two ledgers about the same people, the second of which takes over what the first has spent: one looks at sexes, the
other at ages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bursar.core.accounting import Carried
from bursar.core.budget import Budget, charter_of
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.kernel import Kernel
from bursar.core.ledger import Charter, MemoryLedger
from bursar.core.noise.system import Randomness
from harness.cells import table_of
from harness.small import TableSource
from harness.two_tables import PEOPLE, PLENTY, VISITS, Rows

PERSON = Unit(column="person")


def charter(domain: Domain, *, budget: Budget = PLENTY, unit: Unit = PERSON) -> Charter:
    return charter_of(dataset="people", domain=domain, unit=unit, budget=budget, max_rows=1000)


@dataclass
class TwoLedgers:
    """The kernel of a first ledger, and once it is handed over that of a second one."""

    rows: Rows
    randomness: Randomness
    budgets: tuple[Budget, Budget] = (PLENTY, PLENTY)
    unit: Unit = PERSON
    kind: type[Kernel] = Kernel
    old: Kernel = field(init=False)

    def __post_init__(self) -> None:
        self.old = self.kernel(0, None)

    def handed_over(self, **facts: Any) -> Kernel:
        """The kernel of the second ledger."""
        budget = self.budgets[1]
        return self.kernel(1, self.old.hand_over(charter(VISITS, budget=budget, unit=self.unit), budget, **facts))

    def kernel(self, place: int, carried: Carried | None) -> Kernel:
        domain, budget = (PEOPLE, VISITS)[place], self.budgets[place]
        ledger = MemoryLedger(charter(domain, budget=budget, unit=self.unit), carried=carried)

        def source(key: bytes) -> TableSource:
            return TableSource(table_of(domain, self.rows[place]), domain, content=str(self.rows[place]))

        declare_version(ledger, source, self.randomness)
        return self.kind(
            domain=domain,
            unit=self.unit,
            budget=budget,
            max_rows=1000,
            ledger=ledger,
            open_source=source,
            randomness=self.randomness,
        )
