"""The budget and the log as a person sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from bursar.core.accounting import (
    Added,
    Allotted,
    Carried,
    Checkpointed,
    Closed,
    Event,
    Failed,
    Found,
    Keyed,
    Measured,
    Opened,
    Refined,
    Sealed,
    Selected,
    Versioned,
    from_units,
    left_of,
)
from bursar.core.accounts import Account, Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.noise.law import DELTA_BITS
from bursar.lazy_dataclass import dataclass

OWNER = "owner"
"""The data owner, who sees everything; who asks under no other name."""


ERASED = "(erased)"
"""What is shown where the text of a question was erased."""


class Texts(Protocol):
    """What is asked of the ledger."""

    def texts(self) -> Mapping[str, str]: ...


class Money(Protocol):
    """What is asked of the kernel: functions of the log and the holds."""

    budget: Budget
    domain: Domain

    def spent(self) -> int: ...

    def held(self, analyst: str | None = None) -> int: ...

    def shares(self) -> Mapping[str, Fraction]: ...

    def account(self, analyst: str) -> Account: ...

    def history(self) -> list[tuple[Record, Charge]]: ...

    @property
    def ledger(self) -> Texts: ...

    def sealed(self) -> int | None: ...

    def delta_spent(self) -> int: ...

    def carried(self) -> int: ...

    def spent_by_partition(self) -> list[int]: ...


@dataclass(frozen=True, kw_only=True)
class AccountStatus:
    """What one analyst may spend, has caused to be spent, and has left; nothing about what was asked."""

    analyst: str
    share: float
    total: float
    spent: float
    left: float
    held: float

    def told(self, unit: str) -> str:
        """In one line."""
        held = f", {self.held:.6g} set aside" if self.held else ""
        whole = f"{self.share:.6g} of it, {unit} {self.total:.6g}"
        return f"{self.analyst}: {whole}; {unit} {self.spent:.6g} spent{held}, {self.left:.6g} left"


@dataclass(frozen=True, kw_only=True)
class PartitionStatus:
    """A sealed partition, and what is spent on the rows in it."""

    partition: str
    spent: float


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
    accounts: tuple[AccountStatus, ...] = ()  # under shares: the analyst's own; for the data owner, everybody's
    sharing: str = ""  # under shares: what analysts can rely on
    charging: str = ""  # how costs add up, where that is not by the loss of each cell
    sealed: str = ""  # where the data have partitions: which can be asked about
    keys: str = ""  # where texts can be looked for: the chance that is kept for it
    carried: str = ""  # where an earlier or a later ledger is about the same people: what of `spent` is its
    partitions: tuple[PartitionStatus, ...] = ()  # for the data owner: the sealed ones, in their order
    tables: tuple[tuple[str, float], ...] = ()  # where there are several private tables: what is spent on each

    @staticmethod
    def of(budget: Budget, *, spent: int, held: int, accounts: Iterable[AccountStatus] = ()) -> BudgetStatus:
        """The status of a budget of which so many units of 2^-50 are spent and held."""
        pure = budget.delta is None and budget.epsilon is not None
        gauge = "this is a guarantee at any time" if pure else "this is a gauge; what is guaranteed is the cap"
        return BudgetStatus(
            unit=budget.mode.unit,
            total=budget.amount,
            spent=from_units(spent),
            left=left_of(max(budget.units - spent - held, 0)),
            held=from_units(held),
            description=budget.describe(),
            statement=f"whatever is asked, nobody's presence is revealed beyond {budget.describe()}; spent: {gauge}",
            accounts=tuple(accounts),
        )

    def lines(self) -> list[tuple[str, str]]:
        """What there is to say, by its subject; a line without one goes with the line before."""
        held = f", {self.held:.6g} set aside for questions that are running" if self.held else ""
        parts = ", ".join(f"{name} {spent:.6g}" for name, spent in self.tables)
        told = [
            ("budget", self.description),
            ("spent", f"{self.unit} {self.spent:.6g}{held}"),
            *([("", f"the sum over tables: {parts}")] if parts else []),
            ("left", f"{self.unit} {self.left:.6g}"),
        ]
        if self.sealed:
            told.append(("sealed", self.sealed))
        if self.keys:
            told.append(("keys", self.keys))
        if self.carried:
            told.append(("carried", self.carried))
        if self.partitions:
            amounts = [partition.spent for partition in self.partitions]
            told.append(("", f"{self.unit} {min(amounts):.6g} to {max(amounts):.6g} spent on each"))
        return told + [("share", account.told(self.unit)) for account in self.accounts]

    def promises(self) -> list[str]:
        """What the budget means, and what analysts can rely on."""
        added_up = f"charged by {self.charging}" if self.charging else ""
        return [self.statement, *filter(None, (added_up, self.sharing))]

    def _repr_html_(self) -> str:
        from bursar.report.exports import page

        return page((), self.lines(), self.promises())


def budget_of(money: Money, analyst: str, *, promised: object = "", charging: str = "") -> BudgetStatus:
    """The budget as the analyst may see it: the data set's, and the own share; the data owner sees all shares.

    `promised` is what analysts can rely on, shown where there are shares; `charging` how costs add up.
    """
    shares = money.shares()
    if shares and analyst != OWNER:
        money.account(analyst)  # refuses somebody who has none
    seen = [name for name in shares if analyst in (OWNER, name)]
    accounts = [_account(money, name, shares[name]) for name in seen]
    status = BudgetStatus.of(money.budget, spent=money.spent(), held=money.held(), accounts=accounts)
    status = replace(status, sealed=_sealed(money), partitions=_partitions(money) if analyst == OWNER else ())
    status = replace(status, charging=charging, keys=_keys(money), carried=_carried(money))
    return replace(status, sharing=str(promised)) if shares else status


def _sealed(money: Money) -> str:
    sealed, domain = money.sealed(), money.domain
    if sealed is None or domain.partition is None:
        return ""
    column = domain[domain.partition]
    last = f", the last one {column.label(min(sealed, column.declared) - 1)}" if sealed > 0 else ""
    return f"{min(sealed, column.declared)} of {column.declared} partitions of {column.name}{last}"


def _keys(money: Money) -> str:
    reserve, used = money.budget.delta_keys, money.delta_spent() / 2**DELTA_BITS
    return (
        f"of delta, {reserve:g} is kept for texts that are looked for, and {used:.3g} of it used up" if reserve else ""
    )


def _carried(money: Money) -> str:
    amount = f"{money.budget.mode.unit} {from_units(money.carried()):.6g}"
    return f"{amount} of what is spent stands for another config about the same people" if money.carried() else ""


def _partitions(money: Money) -> tuple[PartitionStatus, ...]:
    if money.domain.partition is None:
        return ()
    column, spent = money.domain[money.domain.partition], money.spent_by_partition()[: money.sealed()]
    return tuple(
        PartitionStatus(partition=str(column.label(place)), spent=from_units(units))
        for place, units in enumerate(spent)
    )


def _account(money: Money, analyst: str, share: Fraction) -> AccountStatus:
    account, held = money.account(analyst), money.held(analyst)
    return AccountStatus(
        analyst=analyst,
        share=float(share),
        total=left_of(account.cap),
        spent=from_units(account.spent),
        left=left_of(max(account.left - held, 0)),
        held=from_units(held),
    )


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """The table as the data owner has declared it; nothing is read from the data."""

    table: str
    columns: Domain  # all that a question can name
    rows: int | None  # where their number is public
    goal: str | None  # of questions that name none
    tables: tuple[str, ...] = ()  # all that can be asked about, this one among them


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One record of the log with what it was charged when it was written."""

    position: int
    at: float
    analyst: str
    purpose: str  # the text of the question; empty where it was erased
    question: str  # its digest, which stays
    proposer: str  # whose offer it was, under the name that EXPLAIN has for it
    run: int  # the same for all lines of one plan; 0 where the log does not tell
    kind: str
    rows: int
    noise: str
    charge: float  # by how much it raised what is spent on the data set
    paid: float  # by how much it raised what its analyst has caused; the same where there were no shares

    @property
    def asked(self) -> str:
        """The question as it is shown."""
        return self.purpose or ERASED


def log_of(money: Money, analyst: str, last: int | None) -> list[LogLine]:
    """The log as the analyst may see it, oldest first: the own lines; the data owner sees all."""
    seen = [entry for entry in money.history() if analyst in (OWNER, entry[0].analyst)]
    lines = log_lines(seen, money.ledger.texts())
    return lines[len(lines) - min(last, len(lines)) :] if last is not None else lines


def log_lines(history: Iterable[tuple[Record, Charge]], texts: Mapping[str, str]) -> list[LogLine]:
    """Records and their charges as lines, with the texts of their questions."""
    return [_line(record, charge, texts.get(record.question, "")) for record, charge in history]


def _line(record: Record, charge: Charge, text: str) -> LogLine:
    kind, noise = _described(record.event)
    return LogLine(
        position=record.position,
        at=record.at,
        analyst=record.analyst,
        purpose=text,
        question=record.question,
        proposer=record.proposer,
        run=record.run,
        kind=kind,
        rows=len(record.values) if isinstance(record.event, Measured | Refined | Selected) else 0,
        noise=noise,
        charge=from_units(charge.total),
        paid=from_units(charge.account),
    )


def _described(event: Event) -> tuple[str, str]:
    """What happened, and with which noise."""
    match event:
        case Measured(noise=noise):
            return "measured", f"{noise.kind.value} {noise.scale:.6g}"
        case Refined(block=block, before=before, after=after):
            return f"refined #{block}", f"{after.kind.value} {before.scale:.6g} -> {after.scale:.6g}"
        case Opened(threshold=threshold, test=test):
            return "opened", f"{test.kind.value} {threshold.scale:.6g} and {test.scale:.6g}"
        case Selected(scale=scale, joint=joint):
            return "selected", f"{'jointly' if joint else 'gumbel'} {scale:.6g}"
        case Found(column=column, noise=noise, threshold=threshold, weight=weight, scope=scope):
            people = f"{noise.kind.value} {noise.scale / weight:.6g}, from {threshold / weight:.6g}"
            return f"looked for texts in {column}" + ("" if scope is None else " among some rows"), people
        case Failed(instance=instance):
            return f"above #{instance}", ""
        case Closed(instance=instance):
            return f"closed #{instance}", ""
        case Keyed(column=column, text=text, table=table):
            whose = f" of {table}" if table else ""
            return f"told apart in {column}{whose}: {text}", ""
        case Versioned(version=version, same_rows=same_rows, table=table):
            whose = f" of {table}" if table else ""
            return f"version {version}{whose}" + (" (rows added)" if same_rows else ""), ""
        case Added(table=table):
            return f"added {table}", ""
        case Carried(onward=onward):
            return ("kept what is left for a new config" if onward else "carried over from an earlier config"), ""
        case Allotted(shares=shares):
            return "shares: " + (", ".join(f"{name} {float(share):.6g}" for name, share in shares) or "none"), ""
        case Sealed(through=through):
            return f"sealed {through + 1} partitions", ""
        case Checkpointed(position=position):
            return f"checkpoint #{position}", ""
