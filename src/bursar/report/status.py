"""The budget and the log as a person sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import (
    Allotted,
    Carried,
    Closed,
    Event,
    Failed,
    Found,
    Measured,
    Mode,
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
from bursar.core.extensions.charges import ChargedLog, question_key
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.extensions.open_keys import Keyed
from bursar.core.extensions.relations import Added
from bursar.core.ledger import Record
from bursar.core.noise.law import DELTA_BITS
from bursar.lazy_dataclass import dataclass

OWNER = "owner"
"""The data owner, who sees everything; who asks under no other name."""


ERASED = "(erased)"
"""What is shown where the text of a question was erased."""


MANY = 10_000
"""From so many records on, a log is read in one go: one by one takes four times as long for each."""


class Lines(Protocol):
    """What is asked of the ledger."""

    def texts(self, questions: Collection[str] | None = None) -> Mapping[str, str]: ...

    def records(self, after: int = 0) -> Sequence[Record]: ...

    def record(self, position: int) -> Record: ...


class Money(Protocol):
    """What is asked of the kernel: functions of the log and the holds."""

    budget: Budget
    domain: Domain

    def spent(self) -> int: ...

    def held(self, analyst: str | None = None) -> int: ...

    def shares(self) -> Mapping[str, Fraction]:
        """The analysts' shares of the budget; none where all spend from one."""

    def account(self, analyst: str) -> Account: ...

    def charged(self) -> ChargedLog:
        """What each record of the log was charged."""

    @property
    def ledger(self) -> Lines:
        """The lines of the log."""

    def sealed(self) -> int | None:
        """How many partitions can be asked about; None where the data have none."""

    def delta_spent(self) -> int:
        """What looking for texts of open columns has used up of delta."""

    def carried(self) -> int:
        """What an earlier ledger had spent, in units of 2^-50."""

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


def budget_words(budget: Budget) -> str:
    """A budget as people read it."""
    if budget.mode is Mode.PURE:
        return f"epsilon {budget.amount:g}"
    if budget.epsilon is None:
        return f"rho {budget.amount:g}" + (f" but for a chance of {budget.delta_keys:g}" if budget.delta_keys else "")
    at_order = "" if budget.order is None else f" at order {budget.order}"
    return f"epsilon {budget.epsilon:g} at delta {budget.delta:g} (rho {budget.amount:.6g}{at_order})"


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
        promise = f"whatever is asked, nobody's presence is revealed beyond {budget_words(budget)}"
        gauge = ", and so far not beyond what is spent" if pure else "; what is spent says how far that is used up"
        return BudgetStatus(
            unit=budget.mode.unit,
            total=budget.amount,
            spent=from_units(spent),
            left=left_of(max(budget.units - spent - held, 0)),
            held=from_units(held),
            description=budget_words(budget),
            statement=f"{promise}{gauge}",
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


class LogPage(list[LogLine]):
    """Lines of the log, oldest first, and how many lines of the same sort are older than these."""

    def __init__(self, lines: Iterable[LogLine] = (), *, older: int | None = 0) -> None:
        super().__init__(lines)
        self.older = older  # None: there are some, and nobody counted them


def log_of(
    money: Money,
    analyst: str,
    *,
    last: int | None = None,
    before: int | None = None,
    of: str | None = None,
    proposer: str | None = None,
    kinds: Collection[str] | None = None,
    contains: str = "",
) -> LogPage:
    """The newest lines of the log that the analyst may see, oldest first: the own ones; the data owner sees all.

    `before` is a position that all of them stand before, `of` and `proposer` whose lines they are, `kinds` of which
    events; a line `contains` a text in its question or its analyst. Records that are not shown are not read.
    """
    log = money.charged()
    seen = np.ones(len(log), bool)
    seen[len(log) if before is None else max(before - 1, 0) :] = False
    for name in (None if analyst == OWNER else analyst, of):
        if name is not None:
            seen &= log.column("analyst") == number_of(name, log.analysts)
    if proposer is not None:
        seen &= log.column("proposer") == number_of(proposer, log.proposers)
    if kinds is not None:
        seen &= np.array([subject[0] in kinds for subject in log.subjects], bool)[log.column("subject")]
    if contains:
        seen &= _containing(contains.casefold(), log, money.ledger.texts())
    positions = np.flatnonzero(seen) + 1
    shown = positions if last is None else positions[len(positions) - min(last, len(positions)) :]
    totals, paid = (log.column(name)[shown - 1].tolist() for name in ("total", "account"))
    records = list(records_at(money.ledger, shown.tolist()))
    charges = [Charge(total=total, account=account) for total, account in zip(totals, paid, strict=True)]
    texts = money.ledger.texts(None if last is None else {record.question for record in records})
    return LogPage(log_lines(zip(records, charges, strict=True), texts), older=len(positions) - len(shown))


def _containing(text: str, log: ChargedLog, texts: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which rows have a text in their question or in the name of their analyst."""
    named = np.array([text in name.casefold() for name in log.analysts], bool)[log.column("analyst")]
    keys = {question_key(question) for question, words in texts.items() if text in words.casefold()}
    questions = log.column("question")
    matching = np.isin(questions[:, 0], [first for first, _ in keys])
    matching[matching] = [(first, second) in keys for first, second in questions[matching].tolist()]
    rows: NDArray[np.bool_] = matching | named
    return rows


def number_of(name: str, names: Sequence[str]) -> int:
    """The number that rows have for a name; -1, which none has, where it is not there."""
    return names.index(name) if name in names else -1


def records_at(ledger: Lines, positions: Sequence[int]) -> Iterable[Record]:
    """The records at positions that rise, one after the other; where there are few between them, in one go."""
    if len(positions) < MANY:
        return (ledger.record(position) for position in positions)
    chosen = set(positions)
    return (record for record in ledger.records(positions[0] - 1) if record.position in chosen)


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
