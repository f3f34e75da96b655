"""What of the log a table is made of, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.analysts.policy import own_records
from bursar.config import Config
from bursar.core.accounting import Mode
from bursar.core.domain import Neighbours
from bursar.core.ledger import Ledger, MemoryLedger, Record
from bursar.planner.offer import SyntheticRows
from bursar.report.status import OWNER

if TYPE_CHECKING:
    from bursar.synthetic.plan.methods import Task
    from bursar.synthetic.plan.workload import EvidentMarginals, MarginalWorkload
    from bursar.synthetic.store import TableView


class TableSight:
    """Which records an analyst may use, and the synthetic table of the last run."""

    def __init__(
        self, config: Config, ledger: Ledger, analyst: str, records: Callable[[int], Sequence[Record]]
    ) -> None:
        """`records` looks at the ledger's log."""
        self._config, self._ledger, self._analyst, self._records = config, ledger, analyst, records
        self._view: TableView | None = None

    def synthetic_rows(self) -> SyntheticRows | None:
        """The table of the last run as proposers see it, if there is one that still holds."""
        if self._view is None and (self.path is None or not self.path.exists()):
            return None  # without a table, nothing more is imported or read
        return self.view().rows()

    def view(self) -> TableView:
        """The view of the kept table as the log grows."""
        from bursar.synthetic.store import TableView

        if self._view is None:
            shared = self._config.analysts.policy == "shared"
            self._view = TableView(
                domain=self._config.domain,
                path=self.path,
                size=self.size,
                records=self.visible,
                analyst=None if shared else self._analyst,
            )
        return self._view

    @cached_property
    def path(self) -> Path | None:
        """Beside the ledger; None where that is in memory, and the table too."""
        if isinstance(self._ledger, MemoryLedger):
            return None
        whose = (
            "" if self._config.analysts.policy == "shared" else f"-{blake2b(self._analyst.encode()).hexdigest()[:16]}"
        )
        return self._config.beside(f"synthetic{whose}", ".npz")

    def visible(self, after: int) -> Sequence[Record]:
        """The log as far as the asker may use it."""
        if self._config.analysts.policy == "shared" or self._analyst == OWNER:
            return self._records(after)
        return own_records(self._records, self._analyst)(after)

    @property
    def asker(self) -> str | None:
        """Whose questions can be looked back at; None where everybody's."""
        return None if self._analyst == OWNER else self._analyst

    @property
    def size(self) -> int | None:
        """The number of rows, where the privacy statement takes it for public."""
        unit = self._config.unit
        exact = unit.neighbours is Neighbours.REPLACE_ONE and unit.column is None
        return self._config.public_size if exact else None

    def task(self, evident: EvidentMarginals, workload: MarginalWorkload, spend: float) -> Task:
        """What methods get to see of a table: its sets, the budget, and what the log holds."""
        from bursar.synthetic.marginals.answers import Allowance
        from bursar.synthetic.plan.methods import Task
        from bursar.synthetic.plan.spend import Spend

        config = self._config
        amount = Spend.epsilon(spend) if config.budget.mode is Mode.PURE else Spend.rho(spend)
        unit = config.unit
        allowance = Allowance(spend=amount, neighbours=unit.neighbours, contributions=unit.max_contributions)
        about = config.max_rows if config.public_size is None else config.public_size
        return Task(
            domain=evident.domain,
            sets=workload.sets,
            allowance=allowance,
            weights=workload.weights,
            size=self.size,
            about=about,
            evidence=evident.evidence,
        )
