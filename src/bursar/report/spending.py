"""What the budget went into, as far as the one who looks may know it: functions of the log and of public facts.

By columns, what was bought, who proposed it, question and analyst; whose budget is used most; and all of it drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import (
    AddRemove,
    Allotted,
    Book,
    Carried,
    Found,
    Opened,
    Profile,
    Refined,
    ReplaceOne,
    Sealed,
    Selected,
    Versioned,
    from_units,
)
from bursar.core.accounting.events import KINDS
from bursar.core.accounting.kind import ROOT, PaidEvent
from bursar.core.accounting.profile import Grid, added
from bursar.core.domain import Attribute, Domain
from bursar.core.extensions.charges import ChargedLog, Subject, question_key
from bursar.core.extensions.relations import Added
from bursar.core.noise.law import UNIT_BITS
from bursar.report.answer_columns import library
from bursar.report.files import written
from bursar.report.plots import plain
from bursar.report.status import ERASED, OWNER, BudgetStatus, Money, number_of, records_at
from bursar.views.baseline import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DECLARED = frozenset(event.kind for event in (Versioned, Added, Allotted, Sealed, Carried))
"""Kinds of events that everybody knows of."""

COSTLY = frozenset(kind for kind, event in KINDS.items() if issubclass(event, PaidEvent)) | {Carried.kind}
"""Kinds of events that are charged for."""

WAYS = {
    Refined.kind: "earlier rows made finer",
    Opened.kind: "tests of what was learnt",
    Selected.kind: "choices of what to measure",
    Found.kind: "texts that were looked for",
    Carried.kind: "carried over from another config",
}
"""What is bought, by the kind of its event; else it is rows that are measured."""

LOW = 2**31 - 1
"""The low bits of a charge: those of millions of charges are added up without an overflow."""


class Books(Money, Protocol):
    """What is asked of the kernel."""

    def empty_book(self) -> Book:
        """A book as it was when nothing had been spent, to add up what some events cost by themselves."""

    def book_of(self, analyst: str | None) -> Book | None: ...

    def tables(self) -> Mapping[int, str]: ...

    def further(self) -> Mapping[str, Domain]:
        """The columns of further private tables, by table."""


SHOWN = 3
"""How many values are named per column."""

MOST_JOINT = 2**17
"""Up to this number of joint cells the losses are added up cell by cell, as the budget itself is."""


@dataclass(frozen=True, kw_only=True)
class Used:
    """For people with a value of one column: the most that was learnt about any of them, largest first."""

    column: str
    top: tuple[tuple[str, float], ...]
    rest: float  # the most of the values that are not named; 0 where all are
    values: int

    @property
    def alike(self) -> bool:
        """Whether the value makes no difference."""
        most = self.top[0][1]
        return all(used == most for _, used in self.top) and (self.values == len(self.top) or self.rest == most)


def used_by_people(book: Book, domain: Domain, table: str = ROOT) -> tuple[Used, ...]:
    """By column of a table in use, on the version of it that is measured now; earlier ones have a profile of their own.

    Guarantees: each number bounds the loss of everybody with that value, and none exceeds what is spent, which bounds
    everybody's: adding up column by column is coarser than the budget is. It is a function of the events alone.
    Edge cases: nothing where losses are not kept by cell, as under sequential composition. Where people are replaced
    instead of added, the numbers are those of adding.
    """
    used = [_used(domain[name], losses) for name, losses in _losses_by_column(book, domain, table).items()]
    return tuple(replace(each, column=_of(table, each.column)) for each in used)


def losses_by_value(books: Books, analyst: str, *, domain: Domain) -> dict[str, list[tuple[str, float]]]:
    """The same for every value of every column in use, table by table, in the order of its domain; an analyst's own
    part."""
    book = _book(books, books.charged(), analyst)
    return {
        _of(table, name): [(_label(columns[name], cell), from_units(loss)) for cell, loss in enumerate(losses.tolist())]
        for table, columns in {ROOT: domain, **books.further()}.items()
        for name, losses in _losses_by_column(book, columns, table).items()
    }


def _losses_by_column(book: Book, domain: Domain, table: str = ROOT) -> dict[str, Integers]:
    versions = [version for version in book.profiles if book.versions.tables.get(version, ROOT) == table]
    profile = _by_cell(book.profiles.get(max(versions, default=0)))
    if profile is None:
        return {}
    columns = domain.ordered(name for names in profile.losses for name in names)
    shown = [name for name in columns if Grid.over(domain, (name,)).exact]
    joint, spent = _joint(profile, domain, columns), profile.spent()
    return {name: np.minimum(_losses(profile, domain, name, columns, joint), spent) for name in shown}


def _by_cell(profile: Profile | None) -> AddRemove | None:
    if isinstance(profile, ReplaceOne):
        return profile.around
    return profile if isinstance(profile, AddRemove) else None


def _joint(profile: AddRemove, domain: Domain, columns: tuple[str, ...]) -> Integers | None:
    """The loss of every joint cell of the columns in use, where there are not too many."""
    if domain.cells(columns) > MOST_JOINT:
        return None
    return _sum(profile, domain, Grid.over(domain, columns))


def _losses(
    profile: AddRemove, domain: Domain, name: str, columns: tuple[str, ...], joint: Integers | None
) -> Integers:
    if joint is None:
        return _sum(profile, domain, Grid.over(domain, (name,)))
    others = tuple(axis for axis, column in enumerate(columns) if column != name)
    most: Integers = joint.max(axis=others)
    return most


def _sum(profile: AddRemove, domain: Domain, onto: Grid) -> Integers:
    total: Integers = np.zeros(onto.shape, np.int64)
    for names, loss in profile.losses.items():
        total = added(total, Grid.over(domain, names).project(loss, onto))
    return total


def _used(column: Attribute, losses: Integers) -> Used:
    order = np.argsort(-losses, kind="stable").tolist()
    top = tuple((_label(column, cell), from_units(int(losses[cell]))) for cell in order[:SHOWN])
    next_most = from_units(int(losses[order[SHOWN]])) if len(order) > SHOWN else 0.0
    return Used(column=column.name, top=top, rest=next_most, values=len(order))


def _label(column: Attribute, cell: int) -> str:
    value = column.label(cell)
    return "NULL" if value is None else str(value)


WIDTH = 24
"""Of a bar, in characters."""

MOST_QUESTIONS = 5
"""How many questions are printed; `by_question` has all of them."""

LONGEST = 60
"""Characters of a question that are printed."""


@dataclass(frozen=True, kw_only=True)
class Portion:
    """A part of what was spent."""

    name: str
    charge: float
    purchases: int


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What was spent on what. For an analyst: the own questions only, and what the own account paid for them.

    Portions are what each purchase added to the account when it was made, so they add up to what is spent.
    """

    unit: str  # "epsilon" or "rho"
    analyst: str | None  # whose questions; None: everybody's
    paid: float
    by_columns: tuple[Portion, ...]
    by_way: tuple[Portion, ...]
    by_proposer: tuple[Portion, ...]  # under the names that EXPLAIN has for them
    by_question: tuple[Portion, ...]  # texts that were erased are one portion
    by_analyst: tuple[Portion, ...]  # for the data owner
    people: tuple[Used, ...]
    saved: Comparison | None = None  # where it was asked for

    def to_json(self) -> dict[str, object]:
        """All of it as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.by_columns:
            return "nothing was bought yet" + ("" if self.analyst is None else f" by {self.analyst}")
        parts = {
            "columns": self.by_columns,
            "bought": self.by_way,
            "from": self.by_proposer,
            "asked": self._questions(),
            "analyst": self.by_analyst,
        }
        lines = [line for title, portions in parts.items() for line in self._portions(title, portions)]
        return "\n".join([*lines, *self._people(), *self._saved()])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _questions(self) -> list[Portion]:
        shown = [replace(each, name=_short(each.name)) for each in self.by_question[:MOST_QUESTIONS]]
        others = self.by_question[MOST_QUESTIONS:]
        if others:
            paid, bought = sum(each.charge for each in others), sum(each.purchases for each in others)
            shown.append(Portion(name=f"({len(others)} more)", charge=paid, purchases=bought))
        return shown

    def _portions(self, title: str, portions: Sequence[Portion]) -> list[str]:
        wide = max((len(portion.name) for portion in portions), default=0)
        lines = []
        for place, portion in enumerate(portions):
            part = portion.charge / self.paid if self.paid else 0.0
            times = f"{portion.purchases} purchase{'s' if portion.purchases != 1 else ''}"
            bar = "=" * round(WIDTH * part)
            head = title if place == 0 else ""
            lines.append(f"{head:<8}{portion.name:<{wide}}  {portion.charge:>10.6g}  {bar:<{WIDTH}}  {times}")
        return lines

    def _people(self) -> list[str]:
        lines = []
        for place, used in enumerate(self.people):
            if used.alike:
                told = f"{used.top[0][1]:.6g} whatever the value"
            else:
                others = f"; others at most {used.rest:.6g}" if used.values > len(used.top) else ""
                told = ", ".join(f"{label} {amount:.6g}" for label, amount in used.top) + others
            lines.append(f"{'people' if place == 0 else '':<8}by {used.column}: {told}")
        why = f"{'':<8}(the most that was learnt about anyone with that value; never more than what is spent)"
        return [*lines, why] if lines else []

    def _saved(self) -> list[str]:
        saved = self.saved
        if saved is None or saved.questions == 0:
            return []
        questions = f"{saved.questions} different question{'s' if saved.questions != 1 else ''}"
        return [
            f"saved   {questions}, free ones included: {self.unit} {saved.spent:.6g} is spent in all.",
            f"        Plain noise for each: {saved.plain:.6g} added up, {saved.cached:.6g} counted by person.",
        ]


def own_rows(log: ChargedLog, analyst: str) -> NDArray[np.bool_]:
    """The part of the log that somebody may look back at: the own records, and declarations, which everybody knows."""
    if analyst == OWNER:
        return np.ones(len(log), bool)
    by_analyst: NDArray[np.bool_] = log.column("analyst") == number_of(analyst, log.analysts)
    return by_analyst | _of_kinds(log, DECLARED)


def _of_kinds(log: ChargedLog, kinds: Set[str]) -> NDArray[np.bool_]:
    of_kind: NDArray[np.bool_] = np.array([subject[0] in kinds for subject in log.subjects], bool)
    return of_kind[log.column("subject")]


def own_charges(log: ChargedLog, analyst: str) -> Integers:
    """Whose money counts: the data set's for the data owner, the own account's for others; in units of 2^-50."""
    return log.column("total" if analyst == OWNER else "account")


def growth_of(books: Books, analyst: str) -> tuple[Reals, Reals]:
    """When something was paid, by those whom the analyst may look at, and how much, in the order of the log."""
    log = books.charged()
    visible = (analyst == OWNER) | (log.column("analyst") == number_of(analyst, log.analysts))
    charges = own_charges(log, analyst)
    paid = np.flatnonzero(visible & (charges > 0))
    return log.times()[paid], charges[paid] / 2**UNIT_BITS


def spending_of(books: Books, analyst: str, *, domain: Domain) -> Spending:
    """The overview that the analyst may see: of the own purchases; for the data owner, of all.

    Guarantees: for an analyst it is a function of the own records and of declarations, which everybody knows.
    """
    everything, log = analyst == OWNER, books.charged()
    visible, charges = own_rows(log, analyst), own_charges(log, analyst)
    tables, domains, book = books.tables(), {ROOT: domain, **books.further()}, _book(books, log, analyst)
    bought = np.flatnonzero(visible & _of_kinds(log, COSTLY))
    paid, subjects = charges[bought], log.column("subject")[bought]
    questions, question_numbers = _questions(books, log.column("question")[bought])
    by_analyst = _portions(paid, log.column("analyst")[bought], log.analysts) if everything else ()
    return Spending(
        unit=books.budget.mode.unit,
        analyst=None if everything else analyst,
        paid=from_units(sum(_sums(charges[visible], np.zeros(np.count_nonzero(visible), np.int8), 1))),
        by_columns=_portions(paid, subjects, [_columns(subject, tables, domains) for subject in log.subjects]),
        by_way=_portions(paid, subjects, [WAYS.get(subject[0], "rows measured") for subject in log.subjects]),
        by_proposer=_portions(paid, log.column("proposer")[bought], log.proposers),
        by_question=_portions(paid, question_numbers, questions),
        by_analyst=by_analyst,
        people=tuple(used for table in domains for used in used_by_people(book, domains[table], table)),
    )


def _book(books: Books, log: ChargedLog, analyst: str) -> Book:
    """What is learnt by the purchases that somebody may look back at: kept by the kernel for the data set, and for the
    accounts of those who have shares."""
    kernel_book = books.book_of(None if analyst == OWNER else analyst)
    if kernel_book is not None:
        return kernel_book
    book = books.empty_book()
    for record in records_at(books.ledger, (np.flatnonzero(own_rows(log, analyst)) + 1).tolist()):
        book.add(record.event, record.position)
    return book


def _questions(books: Books, keys: Integers) -> tuple[list[str], Integers]:
    """The texts of questions, and for each row the number of its text; those that were erased have one in common."""
    order = np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int32)
    same = np.ones(max(len(keys) - 1, 0), bool)  # as the one before
    for part in keys.T:
        in_order = part[order]
        same &= in_order[1:] == in_order[:-1]
    new = np.append(True, ~same)[: len(keys)]
    numbers: Integers = np.zeros(len(keys), np.int64)
    numbers[order] = np.cumsum(new) - 1
    texts = {question_key(question): text for question, text in books.ledger.texts().items()}
    return [texts.get((first, second), ERASED) for first, second in keys[order[new]].tolist()], numbers


def _sums(paid: Integers, numbers: Integers, names: int) -> list[int]:
    """Exact sums by number."""
    low, high = np.zeros(names, np.int64), np.zeros(names, np.int64)
    np.add.at(low, numbers, paid & LOW)
    np.add.at(high, numbers, paid >> LOW.bit_length())
    return [(more << LOW.bit_length()) + less for more, less in zip(high.tolist(), low.tolist(), strict=True)]


def _portions(paid: Integers, numbers: Integers, names: Sequence[str]) -> tuple[Portion, ...]:
    """Sums by name, the largest first."""
    used, first = np.unique(numbers, return_index=True)
    sums, counts = _sums(paid, numbers, len(names)), np.bincount(numbers, minlength=len(names)).tolist()
    portions: dict[str, tuple[int, int]] = {}
    for number in used[np.argsort(first)].tolist():
        charge, purchases = portions.get(names[number], (0, 0))
        portions[names[number]] = (charge + sums[number], purchases + counts[number])
    unsorted = [Portion(name=name, charge=from_units(charge), purchases=n) for name, (charge, n) in portions.items()]
    return tuple(sorted(unsorted, key=lambda portion: -portion.charge))


def _of(table: str, name: str) -> str:
    """A column, with its table where that is not the first."""
    return f"{table}.{name}" if table else name


def _columns(subject: Subject, tables: Mapping[int, str], domains: Mapping[str, Domain]) -> str:
    kind, version, attrs = subject
    if kind == Carried.kind:
        return "(under another config)"
    table = tables.get(version, ROOT)
    names = attrs if kind == Found.kind else domains[table].ordered(attrs) or ("(all rows)",)
    return ", ".join(_of(table, name) for name in names)


def _short(text: str) -> str:
    """On one line, without characters that a terminal would obey."""
    line = "".join(character for character in " ".join(text.split()) if character.isprintable())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


MOST_BARS = 10
GONE, LEFT, HELD = "#c44e52", "#8fbf8f", "#e0c060"


def draw_spending(status: BudgetStatus, spending: Spending, path: Path) -> None:
    """Write the picture."""
    library("matplotlib", extra="plot", what="a picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    last = "asked" if spending.saved is None else "saved"
    panels: dict[str, Axes] = figure.subplot_mosaic(
        [["whole"] * 2, ["columns", "people"], ["bought", "from"], [last] * 2]
    )
    _whole(panels["whole"], status)
    whose = "" if spending.analyst is None else f" (questions of {spending.analyst})"
    _bars(panels["columns"], f"spent on{whose}", [(p.name, p.charge) for p in spending.by_columns])
    _bars(panels["bought"], "bought", [(p.name, p.charge) for p in spending.by_way])
    _bars(panels["from"], "by way of answering", [(p.name, p.charge) for p in spending.by_proposer])
    most = [
        (f"any {used.column}" if used.alike else f"{used.column} = {used.top[0][0]}", used.top[0][1])
        for used in spending.people
    ]
    _bars(panels["people"], "most learnt about people with", sorted(most, key=lambda each: -each[1]))
    saved = spending.saved
    if saved is None:
        _bars(panels[last], "by question", [(p.name, p.charge) for p in spending.by_question[:MOST_QUESTIONS]])
    else:
        bars = [("as paid", saved.spent), ("plain noise", saved.plain), ("the same, by person", saved.cached)]
        _bars(panels[last], f"{saved.questions} questions", bars)
    with written(path):
        figure.savefig(path, dpi=120)


def _whole(axes: Axes, status: BudgetStatus) -> None:
    rows = [("data set", status.spent, status.held, status.left)]
    rows += [(account.analyst, account.spent, account.held, account.left) for account in status.accounts]
    for place, (_, spent, held, left) in enumerate(rows):
        start = 0.0
        for amount, color, name in ((spent, GONE, "spent"), (held, HELD, "set aside"), (left, LEFT, "left")):
            axes.barh(place, amount, left=start, color=color, label=name if place == 0 and amount else None)
            start += amount
    axes.set_yticks(range(len(rows)), [_tick(name) for name, *_ in rows])
    axes.invert_yaxis()
    axes.set_title(f"budget: {status.description}", fontsize=10)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _bars(axes: Axes, title: str, bars: list[tuple[str, float]]) -> None:
    shown = bars[:MOST_BARS]
    axes.barh(range(len(shown)), [amount for _, amount in shown], color="#4c72b0")
    axes.set_yticks(range(len(shown)), [_tick(name) for name, _ in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.margins(y=0.2)


def _tick(name: str) -> str:
    return plain(name if len(name) <= 28 else f"{name[:27]}…")
