"""A table that is about to be made: its price, and whether that can be paid."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bursar.core.accounting import Event, from_units, left_of
from bursar.core.accounts import Charge
from bursar.core.ledger import Record, chain
from bursar.errors import BudgetError
from bursar.pace import paced
from bursar.report.status import budget_of

if TYPE_CHECKING:
    from bursar.synthetic.plan.methods import TablePlan, Task
    from bursar.synthetic.plan.offers import Logged
    from bursar.synthetic.plan.workload import EvidentMarginals, MarginalWorkload
    from bursar.synthetic.session import Synthesis
    from bursar.synthetic.table.synthetic_data import SyntheticData

Progress = Callable[[int, int], None]
"""Hears how much of how much is bought."""


def silent(done: int, of: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Who stands in the queue."""

    analyst: str
    wait: bool
    ticket: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A table to be made: what it would cost and how exact it would be; nothing is paid yet."""

    synthesis: Synthesis
    task: Task | None  # None where nothing may be spent
    plan: TablePlan | None
    evident: EvidentMarginals
    workload: MarginalWorkload
    own: Sequence[Record]  # of the same run before, if it was interrupted
    purpose: str
    why: str
    rows: int | None
    place: Place
    again: Callable[[], Prepared]  # the same wish, prepared from the log as it is then

    @cached_property
    def price(self) -> float:
        """What is still to be paid; nothing where everything is in the log."""
        return from_units(self._charge.account)

    @property
    def question(self) -> str:
        """What the log calls the wish."""
        return chain.question(self.purpose)

    @property
    def unit(self) -> str:
        return self.synthesis.kernel.budget.mode.unit

    @property
    def left(self) -> float:
        """What whoever pays has left."""
        status = budget_of(self.synthesis.kernel, self.synthesis.analyst)
        return status.accounts[0].left if len(status.accounts) == 1 else status.left

    @property
    def method(self) -> str:
        return "marginals" if self.plan is None else self.plan.method.value

    def check(self) -> None:
        """Refuse what cannot be paid, before anything is."""
        charge = self._charge
        kernel = self.synthesis.kernel
        left = kernel.account(self.place.analyst).left if charge.account else 0
        most = min(left, kernel.left())
        if charge.account > left or charge.total > kernel.left():
            asked = from_units(max(charge))
            raise self.refused(BudgetError(asked=asked, left=left_of(most), unit=self.unit))

    def refused(self, error: BudgetError) -> BudgetError:
        """The same refusal, with what would fit."""
        fits = f"--spend {_rounded_down(error.left)}" if error.left > 0 else "the same without --spend, which is free"
        return replace(error, fits=fits)

    @cached_property
    def logged(self) -> Logged:
        """The log as the run finds it."""
        from bursar.synthetic.plan.offers import Logged

        version = self.synthesis.kernel.version()
        remade = [own.record(version) for own in self.evident.remade]
        return Logged(records=self.evident.records, own=self.own, remade=remade)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All that is still to be bought, in its worst case: what is priced, and held while the table is made."""
        if self.plan is None or self.task is None:
            return ()
        from bursar.synthetic.plan.offers import to_come

        return to_come(self.task, self.plan, self.logged, self.synthesis.kernel.version())

    @cached_property
    def _charge(self) -> Charge:
        """What whoever pays would be charged, at most, and the data set."""
        return self.synthesis.kernel.charge(self.events, self.place.analyst)

    def make(self, *, progress: Progress = silent, seconds: float | None = None) -> SyntheticData:
        """Buy what is missing and make the table. After so many seconds, with whatever is there."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with paced(self.synthesis.config.pace):
            return self.synthesis.make_table(
                self, progress, lambda: deadline is not None and time.monotonic() > deadline
            )


def _rounded_down(amount: float) -> str:
    """To three significant digits, so that it can be typed."""
    step = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return f"{math.floor(amount / step) * step:.3g}"
