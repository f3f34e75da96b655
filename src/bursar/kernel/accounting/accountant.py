"""Accountants: what an event costs. Events come from the log, prices from the noise that was really drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import partial

from bursar.domain import Unit
from bursar.errors import BudgetError, Unsupported
from bursar.kernel.accounting.events import (
    Allotted,
    Closed,
    Event,
    Failed,
    Measured,
    Opened,
    Refined,
    Sealed,
    Versioned,
)
from bursar.kernel.accounting.noise import UNIT_BITS, Noise, NoiseKind
from bursar.kernel.accounting.profile import HALF, Footprint
from bursar.queries import Product, Stack, Transform

COARSEST = 2**20
"""Losses of one row below so many units are counted in finer ones."""

FINER = 8
"""Bits by which units are made finer at a time: 2^28 and what rounding adds, below 2^20, stays below 2^30."""


class Mode(Enum):
    """The two ways of adding up privacy loss; the value is the name of the number."""

    PURE = "epsilon"
    CONCENTRATED = "rho"


@dataclass(frozen=True, kw_only=True)
class Accountant:
    """Prices events for a unit of up to k rows: k times the pure loss, k^2 times the concentrated one.

    Guarantees: an event it does not know, or a strategy of a kind it does not know, is refused, never free; every
    figure is rounded up.
    """

    mode: Mode
    unit: Unit

    @property
    def power(self) -> int:
        """L(v) = sum |q_j(v)| / b_j adds first powers, R(v) = sum q_j(v)^2 / (2 sigma_j^2) adds squares."""
        return 1 if self.mode is Mode.PURE else 2

    def units(self, noise: Noise, finer: int = 0) -> int:
        """The loss of one row that each row of a unit changes by one, so k rows by k, in units of 2^-(50 + finer)."""
        if self.mode is Mode.PURE:
            if noise.kind is not NoiseKind.LAPLACE:
                raise Unsupported(
                    "a budget in epsilon alone cannot pay for Gaussian noise; declare epsilon and delta, or rho"
                )
            return noise.pure_units(change=self.unit.max_contributions, finer=finer)
        return noise.concentrated_units(change=self.unit.max_contributions, finer=finer)

    def opened_units(self, opened: Opened, finer: int = 0) -> int:
        """The loss of a whole sparse vector where each row of a unit changes every query by one: k (1/b_T + 2/b_Q).

        In concentrated mode half its square. In units of 2^-(50 + finer), rounded up.
        """
        loss = self.unit.max_contributions * opened.rate
        return math.ceil((loss if self.mode is Mode.PURE else loss**2 / 2) * (1 << (UNIT_BITS + finer)))

    def footprints(self, event: Event, block: Hashable = None) -> tuple[Footprint, ...]:
        """What an event adds to the profile; a refinement adds what its rows did not lose yet.

        `block` is what the footprints of a measurement or a sparse vector are filed under, the event itself where
        nothing is given; those of a refinement are filed under the block that it refines.
        """
        filed: Hashable = event if block is None else block
        match event:
            case Measured(strategy=strategy, noise=noise):
                units, finer = _fine_units(partial(self.units, noise))
            case Refined(priced=strategy, before=before, after=after):
                units, finer = self._difference(before, after)
                filed = event.block
            case Opened():
                units, finer = _fine_units(partial(self.opened_units, event))
                norm = event.norms[self.power]
                return (Footprint(norm=norm, units=units, version=event.version, finer=finer, block=filed),)
            case Failed() | Closed():
                return ()
            case Versioned() | Allotted() | Sealed():
                return ()
            case _:
                raise Unsupported(f"no accountant knows events of kind {type(event).__name__}")
        if not isinstance(strategy, Product | Stack | Transform):
            raise Unsupported(f"no accountant knows strategies of kind {type(strategy).__name__}")
        norms = strategy.norms(self.power)
        return tuple(
            Footprint(norm=norm, units=units, version=event.version, finer=finer, block=filed) for norm in norms
        )

    def _difference(self, before: Noise, after: Noise) -> tuple[int, int]:
        """What a row of the finer noise is charged beyond what the same row was charged for the coarser one.

        Both are taken in the units of the coarser, which are no coarser than those of the finer, so the difference is
        exact. In units finer than 2^-50 it may have too many digits; then it is rounded up to units that suit.
        """
        if self.mode is not Mode.PURE:
            raise Unsupported("rows are refined under a budget in epsilon alone; buy a fresh row: precisions add")
        had, finer = _fine_units(partial(self.units, before))
        has, coarser = _fine_units(partial(self.units, after))
        units = (has << (finer - coarser)) - had
        while finer > 0 and units >= 2**HALF:
            units, finer = -(-units >> FINER), finer - FINER
        return units, finer

    def all_footprints(self, events: Iterable[Event]) -> list[Footprint]:
        return [footprint for event in events for footprint in self.footprints(event)]


def _fine_units(units_of: Callable[[int], int]) -> tuple[int, int]:
    """The units, and how many bits finer than 2^-50 they are: so fine that rounding up costs one part in 2^20.

    Large coefficients call for large noise; a row that changes by one then loses less than 2^-50.
    """
    units, finer = units_of(0), 0
    while units < COARSEST:
        finer += FINER
        units = units_of(finer)
    return units, finer


def to_units(budget: float) -> int:
    """A budget in units of 2^-50, rounded down."""
    if not (math.isfinite(budget) and 0 <= budget <= 1000):
        raise BudgetError(asked=budget, left=1000, unit="budget")
    return math.floor(Fraction(budget) * (1 << UNIT_BITS))


def from_units(units: int) -> float:
    """A loss as an ordinary number, rounded up to a float."""
    nearest = units / 2**UNIT_BITS
    return nearest if Fraction(nearest) >= Fraction(units, 2**UNIT_BITS) else math.nextafter(nearest, math.inf)


def left_of(units: int) -> float:
    """What is left as an ordinary number, rounded down to a float."""
    return -from_units(-units)
