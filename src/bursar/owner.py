"""What is done with an open data set besides asking: looking back, declaring what is new, closing it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from bursar.config import Config
from bursar.config.partition import cell_named
from bursar.core.curator import declare_version, seal
from bursar.core.domain import Attribute, Value
from bursar.core.kernel import Kernel
from bursar.core.ledger import Health, Ledger
from bursar.core.noise.system import Randomness
from bursar.core.seals import PartitionAxis
from bursar.core.source.source import Source
from bursar.curate.ingest import curating, ingest
from bursar.curate.intake import Taken
from bursar.errors import AnalystError, ConfigError, QueryError, SourceError
from bursar.planner.planner import Planner
from bursar.report.spending import Spending, spending_of
from bursar.report.spending.purchases import reader
from bursar.report.spending.savings import Progress, saved_of
from bursar.report.status import OWNER, BudgetStatus, LogLine, budget_of, log_of


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

    def spending(self, *, saved: bool = False, progress: Progress = lambda done, of: None) -> Spending:
        """What it was spent on and whose budget is used most; an analyst sees the own part.

        With `saved`, also what remembering has saved: the log is played again, which takes a while where that is long;
        `progress` hears how far it has come.
        """
        config = self.config
        spending = spending_of(self.kernel, self.analyst, domain=config.domain)
        if not saved:
            return spending
        read = reader(config.domain, config.table, config.levels)
        own_rows = config.analysts.policy != "shared"
        found = saved_of(self.kernel, self.analyst, read, domain=config.domain, own_rows=own_rows, progress=progress)
        return replace(spending, saved=found)

    def log(self, last: int | None = None) -> list[LogLine]:
        """Who paid how much for what, oldest first; an analyst sees the own lines, the data owner all."""
        return log_of(self.kernel, self.analyst, last)

    def erase_texts(self) -> int:
        """For the data owner: erase the texts of all questions so far, and say how many; their digests, and what each
        cost, stay in the log. Answers stored under a key keep their question."""
        if self.analyst != OWNER:
            raise AnalystError("only the data owner may erase the texts of questions")
        return self.ledger.erase_texts()

    def declare_version(self, *, same_rows: bool = False) -> int:
        """For the data owner: the data have changed, and are what they are now."""
        axis = PartitionAxis.of(self.config.domain, self.config.unit)
        with curating(self.config):
            return declare_version(self.ledger, self._open_source, self._randomness, same_rows=same_rows, axis=axis)

    def seal(self, through: object | None = None) -> Value:
        """For the data owner: seal the partitions up to a value of the partition column; returns the last sealed one.

        Without a value, all that are over by the calendar, where there is one; else the next one.
        """
        column = self._partition()
        place = self._next(column) if through is None else cell_named(column, str(through))
        return column.label(self._seal(place) - 1)

    def seal_due(self, today: date | None = None) -> int | None:
        """Seal what is over by the calendar, if the config says so; returns how many partitions are sealed.

        Where the data cannot be read, nothing is sealed: what was asked before can still be answered.
        """
        sealed = self.kernel.sealed()
        if sealed is None:
            return None
        due = self.config.sealing.due(self._partition(), today or datetime.now(UTC).date())
        with suppress(SourceError):
            return self._seal(due - 1) if due > sealed else sealed
        return sealed

    def ingest(self, file: str | Path) -> Taken:
        """For the data owner: add the rows of a file, first sealing what is over; the numbers are not for analysts."""
        self.seal_due()
        return ingest(self.config, Path(file), self.kernel.sealed)

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

    def _partition(self) -> Attribute:
        if self.config.domain.partition is None:
            hint = '[partition]\ncolumn = "joined"'
            raise ConfigError(f"these data have no partitions\ntry: {hint}", str(self.config.path))
        return self.config.domain[self.config.domain.partition]

    def _next(self, column: Attribute) -> int:
        sealed, due = self.kernel.sealed() or 0, self.config.sealing.due(column, datetime.now(UTC).date())
        if sealed >= column.declared:
            raise QueryError(f"every partition of {column.name} is sealed")
        return max(sealed, due - 1)

    def _seal(self, place: int) -> int:
        axis = PartitionAxis.of(self.config.domain, self.config.unit)
        assert axis is not None
        with curating(self.config):
            return seal(self.ledger, self._open_source, axis=axis, through=place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()
