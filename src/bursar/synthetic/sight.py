"""What of the log a table is made of, and where it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bursar.analysts.policy import own_records
from bursar.core.accounting import Mode
from bursar.core.domain import Neighbours
from bursar.core.ledger import Record, SqliteLedger
from bursar.planner.goals import Wanted
from bursar.planner.offer import SyntheticRows
from bursar.report.spending.purchases import reader
from bursar.report.status import OWNER
from bursar.thresholding import ThresholdDoor

if TYPE_CHECKING:
    from bursar.synthetic.plan.methods import Task
    from bursar.synthetic.plan.task import EvidentMarginals, MarginalWorkload
    from bursar.synthetic.store import TableView


class Sight(ThresholdDoor):
    """The part of `Bursar` that knows which records its analyst may use, and the table of the last run."""

    _shelf: TableView | None = None

    def synthetic_rows(self) -> SyntheticRows | None:
        """The table of the last run as proposers see it, if there is one that still holds."""
        if self._shelf is None and (self._kept_path is None or not self._kept_path.exists()):
            return None  # without a table, nothing more is imported or read
        return self._kept().rows()

    def _kept(self) -> TableView:
        from bursar.synthetic.store import TableView

        if self._shelf is None:
            shared = self.config.analysts.policy == "shared"
            facts: Any = {"domain": self.config.domain, "path": self._kept_path, "size": self._size}
            self._shelf = TableView(**facts, records=self._visible, analyst=None if shared else self.analyst)
        return self._shelf

    @cached_property
    def _kept_path(self) -> Path | None:
        """Beside the ledger; None where that is in memory, and the table too."""
        if not isinstance(self.ledger, SqliteLedger):
            return None
        whose = "" if self.config.analysts.policy == "shared" else f"-{blake2b(self.analyst.encode()).hexdigest()[:16]}"
        return self.config.ledger_path.with_name(f"synthetic{whose}.npz")

    def _visible(self, after: int) -> Sequence[Record]:
        """The log as far as the asker may use it."""
        if self.config.analysts.policy == "shared" or self.analyst == OWNER:
            return self.ledger.records(after)
        return own_records(self.ledger.records, self.analyst)(after)

    @property
    def _asker(self) -> str | None:
        """Whose questions can be looked back at; None where everybody's."""
        return None if self.analyst == OWNER else self.analyst

    @property
    def _size(self) -> int | None:
        """The number of rows, where the privacy statement takes it for public."""
        unit = self.config.unit
        exact = unit.neighbours is Neighbours.REPLACE_ONE and unit.column is None
        return self.config.public_size if exact else None

    def _task(self, evident: EvidentMarginals, workload: MarginalWorkload, spend: float) -> Task:
        from bursar.synthetic.marginals.choice import Allowance
        from bursar.synthetic.plan.methods import Task
        from bursar.synthetic.plan.spend import Spend

        config = self.config
        amount = Spend.epsilon(spend) if config.budget.mode is Mode.PURE else Spend.rho(spend)
        unit = config.unit
        allowance = Allowance(spend=amount, neighbours=unit.neighbours, contributions=unit.max_contributions)
        about = config.max_rows if config.public_size is None else config.public_size
        return Task(
            domain=evident.domain,
            sets=workload.sets,
            allowance=allowance,
            weights=workload.weights,
            size=self._size,
            about=about,
            evidence=evident.evidence,
        )

    def _sets_of(self, questions: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The column sets that questions are about."""
        from bursar.synthetic.plan.column_sets import asked

        wanted = Wanted(synthetic=True)
        requests = [self.prepare(sql, wanted, None) for sql in questions]
        return tuple(dict.fromkeys(columns for request in requests for columns in asked(request.compiled.map)))

    def _read(self, text: str) -> list[tuple[str, ...]]:
        from bursar.synthetic.plan.column_sets import asked

        config = self.config
        found = reader(config.domain, config.table, config.levels)(text, self.kernel.sealed() or 0)
        return [] if found is None else asked(found.compiled.map)
