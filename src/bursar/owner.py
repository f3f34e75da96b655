"""What is done with an open data set besides asking: looking back, declaring what is new, closing it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from bursar.config import Config
from bursar.kernel.curator import declare_version
from bursar.kernel.kernel import Kernel
from bursar.kernel.ledger import Health, Ledger
from bursar.kernel.randomness import Randomness
from bursar.kernel.sources.source import Source
from bursar.planner.planner import Planner
from bursar.spending import Spending, spending_of
from bursar.spending.savings import Progress
from bursar.status import BudgetStatus, LogLine, budget_of, log_of


class OwnersDoor:
    """The part of `Bursar` that asks nothing."""

    config: Config
    ledger: Ledger
    kernel: Kernel
    planner: Planner
    analyst: str
    _open_source: Callable[[bytes], Source]
    _randomness: Randomness

    def budget(self) -> BudgetStatus:
        """What may be spent, what is spent, what is left: of the data set, and of the own share."""
        return budget_of(self.kernel, self.analyst, promised=self.planner.promised)

    def spending(self, *, progress: Progress = lambda done, of: None) -> Spending:
        """What it was spent on, whose budget is used most, what remembering has saved; an analyst sees the own part.

        It plays the log again, which takes a while where that is long; `progress` hears how far it has come.
        """
        facts: Any = {"domain": self.config.domain, "table": self.config.table, "progress": progress}
        own_rows = self.config.analysts.policy != "shared"
        return spending_of(self.kernel, self.analyst, own_rows=own_rows, **facts)

    def log(self, last: int | None = None) -> list[LogLine]:
        """Who paid how much for what, oldest first; an analyst sees the own lines, the data owner all."""
        return log_of(self.kernel, self.analyst, last)

    def declare_version(self, *, same_rows: bool = False) -> int:
        """For the data owner: the data have changed, and are what they are now."""
        return declare_version(self.ledger, self._open_source, self._randomness, same_rows=same_rows)

    def declare_shares(self) -> None:
        """For the data owner: the shares of the config are in force from now on, if they can be given out."""
        self.kernel.allot(self.config.analysts.accounts)

    def verify(self) -> Health:
        return self.ledger.verify()

    def recover(self) -> Health:
        return self.ledger.recover()

    def close(self) -> None:
        self.kernel.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()
