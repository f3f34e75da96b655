"""The spending at a glance: by columns, what was bought, who proposed it, question and analyst; whose budget is
used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from bursar.core.accounting import Measured, Opened, Paid, Refined, Selected, from_units
from bursar.core.accounts import Charge
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.report.spending.people import Used, used_by_people
from bursar.report.spending.purchases import Books, Entries, own_entries, paid_by
from bursar.report.spending.savings import Saved
from bursar.report.status import ERASED, OWNER

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
    saved: Saved | None = None  # where it was asked for

    def to_json(self) -> dict[str, Any]:
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
        rest = self.by_question[MOST_QUESTIONS:]
        if rest:
            paid, bought = sum(each.charge for each in rest), sum(each.purchases for each in rest)
            shown.append(Portion(name=f"({len(rest)} more)", charge=paid, purchases=bought))
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
                rest = f"; others at most {used.rest:.6g}" if used.values > len(used.top) else ""
                told = ", ".join(f"{label} {amount:.6g}" for label, amount in used.top) + rest
            lines.append(f"{'people' if place == 0 else '':<8}by {used.column}: {told}")
        why = f"{'':<8}(the most that was learnt about anyone with that value; never more than what is spent)"
        return [*lines, why] if lines else []

    def _saved(self) -> list[str]:
        saved = self.saved
        if saved is None or saved.questions == 0:
            return []
        asked = f"{saved.questions} question{'s' if saved.questions != 1 else ''}"
        told = [
            f"saved   {asked} cost {self.unit} {saved.paid:.6g}; each measured by itself, as exactly on average, they",
            f"        would have cost {saved.direct:.6g}. Free answers are not in the log, and not counted here.",
        ]
        if saved.left_out:
            told.append(f"        ({saved.left_out} more purchases could not be compared)")
        return told


def spending_of(books: Books, analyst: str, *, domain: Domain) -> Spending:
    """The overview that the analyst may see: of the own purchases; for the data owner, of all.

    Guarantees: for an analyst it is a function of the own records and of declarations, which everybody knows.
    """
    everything, texts = analyst == OWNER, books.ledger.texts()
    own, pays = own_entries(books.history(), analyst), paid_by(analyst)
    book = books.empty_book()
    for record, _ in own:
        book.add(record.event, record.position)
    return Spending(
        unit=books.budget.mode.unit,
        analyst=None if everything else analyst,
        paid=from_units(sum(pays(charge) for _, charge in own)),
        by_columns=_portions(own, lambda record: _columns(record, domain), pays),
        by_way=_portions(own, _way, pays),
        by_proposer=_portions(own, lambda record: record.proposer, pays),
        by_question=_portions(own, lambda record: texts.get(record.question, ERASED), pays),
        by_analyst=_portions(own, lambda record: record.analyst, pays) if everything else (),
        people=used_by_people(book, domain),
    )


def _portions(entries: Entries, name: Callable[[Record], str], pays: Callable[[Charge], int]) -> tuple[Portion, ...]:
    """Sums by name, the largest first."""
    sums: dict[str, list[int]] = defaultdict(list)
    for record, charge in entries:
        if isinstance(record.event, Paid):  # nothing else costs anything
            sums[name(record)].append(pays(charge))
    made = [Portion(name=key, charge=from_units(sum(paid)), purchases=len(paid)) for key, paid in sums.items()]
    return tuple(sorted(made, key=lambda portion: -portion.charge))


def _columns(record: Record, domain: Domain) -> str:
    event = record.event
    match event:
        case Opened(scope=looked_at) | Selected(candidates=looked_at) | Measured(strategy=looked_at):
            pass
        case _:
            assert isinstance(event, Refined)
            looked_at = event.strategy
    return ", ".join(domain.ordered(looked_at.attrs)) or "(all rows)"


def _way(record: Record) -> str:
    match record.event:
        case Refined():
            return "earlier rows made finer"
        case Opened():
            return "tests of what was learnt"
        case Selected():
            return "choices of what to measure"
    return "rows measured"


def _short(text: str) -> str:
    """On one line, without characters that a terminal would obey."""
    line = "".join(character for character in " ".join(text.split()) if character.isprintable())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
