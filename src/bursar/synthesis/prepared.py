"""A table that is about to be made: its price, and whether that can be paid."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bursar.errors import BudgetError
from bursar.kernel.accounting import Measured, from_units, left_of, to_units
from bursar.kernel.ledger import Record
from bursar.pace import paced

if TYPE_CHECKING:
    from bursar.release.methods import Plan, Task
    from bursar.release.synthetic_data import SyntheticData
    from bursar.release.task_of import Evident, Workload
    from bursar.synthesis.door import SynthesisDoor

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

    door: SynthesisDoor
    task: Task | None  # None where nothing may be spent
    plan: Plan | None
    evident: Evident
    workload: Workload
    own: Sequence[Record]  # of the same run before, if it was interrupted
    purpose: str
    why: str
    rows: int | None
    place: Place
    again: Callable[[], Prepared]  # the same wish, prepared from the log as it is then

    @cached_property
    def price(self) -> float:
        """What is still to be paid; nothing where everything is in the log."""
        return from_units(self._units()[0])

    @property
    def unit(self) -> str:
        return self.door.kernel.budget.mode.unit

    @property
    def left(self) -> float:
        """What whoever pays has left."""
        status = self.door.budget()
        return status.accounts[0].left if len(status.accounts) == 1 else status.left

    @property
    def method(self) -> str:
        return "marginals" if self.plan is None else self.plan.method.value

    def check(self) -> None:
        """Refuse what cannot be paid, before anything is."""
        asked, whole = self._units()
        kernel = self.door.kernel
        left = kernel.account(self.place.analyst).left if asked else 0
        most = min(left, kernel.left())
        if asked > left or whole > kernel.left():
            fits = f"--spend {_rounded_down(left_of(most))}" if most > 0 else "the same without --spend, which is free"
            raise BudgetError(asked=from_units(max(asked, whole)), left=left_of(most), unit=self.unit, fits=fits)

    def _units(self) -> tuple[int, int]:
        """What whoever pays would be charged, at most, and the data set, in units of 2^-50."""
        if self.plan is None or self.task is None:
            return 0, 0
        from bursar.release.carry_out import missing

        version = self.door.kernel.version()
        events = [
            Measured(strategy=one.strategy, noise=one.noise, version=version)
            for one in missing(self.plan, self.evident.records)
        ]
        charge = self.door.kernel.charge(events, self.place.analyst)
        picking = self._picking()
        return charge.account + picking, charge.total + picking

    def _picking(self) -> int:
        if self.plan is None or self.task is None or self.plan.picking is None or self.plan.adaptivity is None:
            return 0
        from bursar.release.bought import Progress

        done = len(Progress.of(self.task.workload, self.own).rounds)
        part = self.plan.picking.amount / self.task.spend.amount * max(1 - done / self.plan.adaptivity.rounds, 0.0)
        return to_units(part * self.task.allowance.spend.amount)

    def make(self, *, progress: Progress = silent, seconds: float | None = None) -> SyntheticData:
        """Buy what is missing and make the table. After so many seconds, with whatever is there."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with paced(self.door.config.pace):
            return self.door.make_table(self, progress, lambda: deadline is not None and time.monotonic() > deadline)


def _rounded_down(amount: float) -> str:
    """To three significant digits, so that it can be typed."""
    step = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return f"{math.floor(amount / step) * step:.3g}"
