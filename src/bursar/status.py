"""The budget and the log as a person sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bursar.kernel.accounting import Event, Measured, Refined, Versioned, from_units, left_of
from bursar.kernel.budget import Budget
from bursar.kernel.ledger import Record


@dataclass(frozen=True, kw_only=True)
class BudgetStatus:
    """How much may be spent, how much is spent, what that means."""

    unit: str  # "epsilon" or "rho"
    total: float
    spent: float
    left: float
    held: float  # set aside for plans that are running
    description: str
    statement: str

    @staticmethod
    def of(budget: Budget, *, spent: int, held: int) -> BudgetStatus:
        pure = budget.delta is None and budget.epsilon is not None
        gauge = "this is a guarantee at any time" if pure else "this is a gauge; what is guaranteed is the cap"
        return BudgetStatus(
            unit=budget.mode.value,
            total=budget.amount,
            spent=from_units(spent),
            left=left_of(max(budget.units - spent - held, 0)),
            held=from_units(held),
            description=budget.describe(),
            statement=f"whatever is asked, nobody's presence is revealed beyond {budget.describe()}; spent: {gauge}",
        )


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One record of the log with what it was charged when it was written."""

    position: int
    at: float
    analyst: str
    purpose: str
    kind: str
    rows: int
    noise: str
    charge: float


def log_lines(history: Iterable[tuple[Record, int]]) -> list[LogLine]:
    """Records and their charges (in units of 2^-50) as lines."""
    return [_line(record, charge) for record, charge in history]


def _line(record: Record, charge: int) -> LogLine:
    kind, noise = _described(record.event)
    return LogLine(
        position=record.position,
        at=record.at,
        analyst=record.analyst,
        purpose=record.purpose,
        kind=kind,
        rows=len(record.values),
        noise=noise,
        charge=from_units(charge),
    )


def _described(event: Event) -> tuple[str, str]:
    """What happened, and with which noise."""
    match event:
        case Measured(noise=noise):
            return "measured", f"{noise.kind.value} {noise.scale:.6g}"
        case Refined(block=block, before=before, after=after):
            return f"refined #{block}", f"{after.kind.value} {before.scale:.6g} -> {after.scale:.6g}"
        case Versioned(version=version, same_rows=same_rows):
            return f"version {version}" + (" (rows added)" if same_rows else ""), ""
